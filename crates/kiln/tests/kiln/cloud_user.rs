//! A user of the cloud without Kiln, who changes what stacks have made.

use std::sync::Arc;

use kiln_cloud::{Connector, Credentials, Options, SharedClient, StackCloud, TlsOptions};
use kiln_resource::{Cloud as _, CloudRequest, Method};
use kiln_testcloud::{Account, Testcloud};
use kiln_value::{Value, value};

/// A user of the cloud without Kiln.
pub(crate) struct CloudUser(Arc<StackCloud>);

/// A token of an account.
pub(crate) async fn token(cloud: &Testcloud, account: Account) -> String {
    let (connector, credentials) = connected(cloud, account);
    connector.session(credentials).token().await.expect("a token").secret.expose().clone()
}

fn connected(cloud: &Testcloud, account: Account) -> (Connector, Credentials) {
    let client = SharedClient::new(&TlsOptions::default()).expect("a client");
    let connector = Connector::new(Arc::new(client), Options::new(cloud.auth_url().parse().expect("a URL")));
    (connector, Credentials::password(account.user, account.password, account.project, "Default"))
}

impl CloudUser {
    pub(crate) async fn of(cloud: &Testcloud, account: Account) -> Self {
        let (connector, credentials) = connected(cloud, account);
        Self(connector.cloud(&credentials).await)
    }

    pub(crate) async fn call(&self, service: &str, method: Method, path: &str, body: Option<Value>) -> Value {
        let request = CloudRequest::new(service, method, path);
        // It shows which servers are locked.
        let request = if service == "compute" { request.microversion("2.9") } else { request };
        let request = if let Some(body) = body { request.body(body) } else { request };
        self.0.call(request).await.expect("done").body
    }

    pub(crate) async fn image(&self, name: &str) -> String {
        let body = value!({
            "name": name, "visibility": "public", "disk_format": "raw", "container_format": "bare", "min_disk": 0,
        });
        let image = self.call("image", Method::Post, "/v2/images", Some(body)).await;
        let id = image.str_at("id").expect("an ID").to_owned();
        self.call("image", Method::Put, &format!("/v2/images/{id}/file"), Some(value!({}))).await;
        id
    }

    pub(crate) async fn flavor(&self, name: &str) -> String {
        let body = value!({"flavor": {"name": name, "ram": 64, "vcpus": 1, "disk": 1}});
        let made = self.call("compute", Method::Post, "/flavors", Some(body)).await;
        made.get("flavor").and_then(|flavor| flavor.str_at("id")).expect("an ID").to_owned()
    }

    pub(crate) async fn group(&self, name: &str) -> String {
        let body = value!({"security_group": {"name": name}});
        let made = self.call("network", Method::Post, "/v2.0/security-groups", Some(body)).await;
        made.get("security_group").and_then(|group| group.str_at("id")).expect("an ID").to_owned()
    }

    pub(crate) async fn network(&self, name: &str) -> String {
        let made =
            self.call("network", Method::Post, "/v2.0/networks", Some(value!({"network": {"name": name}}))).await;
        let id = made.get("network").and_then(|network| network.str_at("id")).expect("an ID").to_owned();
        let cidr = if name == "lan" { "10.9.0.0/24" } else { "10.8.0.0/24" };
        let subnet = value!({"subnet": {"network_id": (&id), "ip_version": 4, "cidr": cidr}});
        self.call("network", Method::Post, "/v2.0/subnets", Some(subnet)).await;
        id
    }

    /// The image of a server.
    pub(crate) async fn image_of(&self, server: &str) -> String {
        let all = self.call("compute", Method::Get, "/servers/detail", None).await;
        let all = all.get("servers").and_then(Value::as_list).expect("a list");
        let server = all.iter().find(|one| one.str_at("name") == Some(server)).expect("a server");
        server.get("image").and_then(|image| image.str_at("id")).expect("an ID").to_owned()
    }
}
