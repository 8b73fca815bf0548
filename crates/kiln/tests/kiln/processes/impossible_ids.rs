//! IDs and words that no row can have, because they have characters outside of ASCII: every route answers as for an ID that
//! does not exist, and the same on every database.
//!
//! Runs on SQLite, and on the servers in `KILN_TEST_DATABASES`.

use std::time::Duration;

use http::{HeaderMap, Method};
use kiln_cloud::{HttpRequest, SharedClient, TlsOptions, Transport as _};
use kiln_testcloud::Testcloud;

use crate::processes::cluster::{Cluster, Limits};

const DEPLOYMENT: &str = r#"{"config_id": "\u00e9", "server_id": "s", "action": "CREATE", "status": "IN_PROGRESS"}"#;

/// Method, path, body and status.
const REQUESTS: &[(&str, &str, &str, u16)] = &[
    ("GET", "software_configs/%C3%A9", "", 404),
    ("DELETE", "software_configs/%C3%A9", "", 404),
    ("GET", "software_configs?marker=%C3%A9", "", 200),
    ("GET", "software_deployments/%C3%A9", "", 404),
    ("PUT", "software_deployments/%C3%A9", r#"{"status": "COMPLETE"}"#, 404),
    ("DELETE", "software_deployments/%C3%A9", "", 404),
    ("POST", "software_deployments", DEPLOYMENT, 400),
    ("GET", "software_deployments?server_id=%C3%A9", "", 200),
    ("GET", "software_deployments/metadata/%C3%A9", "", 200),
    ("GET", "stacks?action=%C3%A9", "", 200),
    ("GET", "stacks?status=%C3%A9", "", 200),
    ("GET", "stacks?status=COMPLETE&status=%C3%A9", "", 200),
    ("GET", "stacks?id=%C3%A9", "", 200),
    ("GET", "stacks?name=%C3%A9", "", 200),
    ("GET", "stacks?tags=%C3%A9", "", 200),
    ("GET", "stacks?username=%C3%A9", "", 200),
    ("GET", "stacks/%C3%A9", "", 404),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_cannot_exist_is_not_found() {
    let servers = std::env::var("KILN_TEST_DATABASES").unwrap_or_default();
    for database in std::iter::once("sqlite").chain(servers.split_whitespace()) {
        let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
        let cluster = Box::pin(Cluster::start(cloud, database, 0, Limits::default())).await;
        let client = SharedClient::new(&TlsOptions::default()).expect("a client");
        let (url, token) = cluster.access(cluster.cloud.users().demo).await;
        let mut headers = HeaderMap::new();
        headers.insert("x-auth-token", token.parse().expect("a header"));
        headers.insert("content-type", "application/json".parse().expect("a header"));
        let mut wrong = Vec::new();
        for (method, path, body, expected) in REQUESTS {
            let request = HttpRequest {
                method: method.parse::<Method>().expect("a method"),
                url: format!("{}/{path}", url.as_str().trim_end_matches('/')).parse().expect("a URL"),
                headers: headers.clone(),
                body: Some(*body).filter(|body| !body.is_empty()).map(Into::into),
                timeout: Duration::from_secs(30),
            };
            let response = client.send(request).await.expect("an answer");
            if response.status.as_u16() != *expected {
                wrong.push(format!("{method} {path}: {} {:?}", response.status, response.body));
            }
        }
        assert_eq!(wrong, Vec::<String>::new(), "{database}");
        cluster.end().await;
    }
}
