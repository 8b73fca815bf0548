//! Stacks that live longer than tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kiln_client::{Access, Bundle, Client, Error, StackRequest};
use kiln_cloud::{SharedClient, TlsOptions};
use kiln_testcloud::Testcloud;
use kiln_value::{Secret, value};
use url::Url;

use crate::processes::cluster::{Cluster, Limits};

/// A token that is not renewed.
struct Fixed(Url, String);

#[async_trait]
impl Access for Fixed {
    async fn endpoint(&self) -> Result<Url, Error> {
        Ok(self.0.clone())
    }

    async fn token(&self, _renew: bool) -> Result<Option<Secret<String>>, Error> {
        Ok(Some(Secret::new(self.1.clone())))
    }
}

/// The life of every token, of users and of the service.
const LIFE: Duration = Duration::from_secs(5);

fn request(network: &str) -> StackRequest {
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {
            "later": {"type": "OS::Heat::Delay", "properties": {"min_wait": 6}},
            "net": {"type": "OS::Neutron::Net", "depends_on": "later", "properties": {"name": network}},
        },
    });
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

/// The status at the end of the operation. Each question has a token of its own.
async fn settled(cluster: &Cluster) -> String {
    let start = Instant::now();
    loop {
        let status = match cluster.client(cluster.cloud.users().demo).stack("s", false).await {
            Ok(stack) => stack.status().to_owned(),
            Err(error) if error.is_not_found() => return "DELETE_COMPLETE".to_owned(),
            Err(error) => panic!("{error}"),
        };
        if !status.ends_with("_IN_PROGRESS") {
            return status;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "stuck in {status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_is_created_updated_and_deleted_after_the_token_of_its_request_has_expired() {
    let cloud = Testcloud::builder().token_life(LIFE).start().await.expect("a simulated cloud");
    let mut cluster = Cluster::start(cloud, "sqlite", 1, Limits { lease: LIFE, ..Limits::default() }).await;
    let user = cluster.cloud.users().demo;
    let (url, token) = cluster.access(user).await;
    let before = cluster.cloud.snapshot().count("networks");
    cluster.client(user).create_stack("s", &request("first")).await.expect("accepted");
    assert_eq!(settled(&cluster).await, "CREATE_COMPLETE");
    assert_eq!(cluster.cloud.snapshot().count("networks"), before + 1);
    let client_of_token = SharedClient::new(&TlsOptions::default()).expect("a client");
    let refused =
        Client::new(Arc::new(client_of_token), Arc::new(Fixed(url, token))).stack("s", false).await.expect_err("401");
    assert_eq!(refused.status(), Some(401), "the first token is still valid: {refused}");

    // Nothing but the stored credentials is left after the engine is killed.
    cluster.engines[0].kill();
    cluster.restart(0);
    tokio::time::sleep(LIFE).await;
    cluster.client(user).update_stack("s", &request("second")).await.expect("accepted");
    assert_eq!(settled(&cluster).await, "UPDATE_COMPLETE");
    tokio::time::sleep(LIFE).await;
    cluster.client(user).delete_stack("s").await.expect("accepted");
    assert_eq!(settled(&cluster).await, "DELETE_COMPLETE");
    assert_eq!(cluster.cloud.snapshot().count("networks"), before);
    cluster.end().await;
}
