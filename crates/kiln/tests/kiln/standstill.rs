//! A lock in the database that is not released: the work on stacks stands still, while the database answers.
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored standstill
//! ```

use std::net::TcpListener;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method};
use kiln_cloud::{HttpRequest, SharedClient, TlsOptions, Transport as _};
use kiln_testcloud::Testcloud;
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database};

use crate::databases::{Server, servers, with_url};
use crate::run::Folder;
use crate::running::Running;

const LIMIT: Duration = Duration::from_mins(1);

/// Waits for a line in what a URL answers.
async fn wait_for(url: &str, is_it: impl Fn(&str) -> bool) {
    let client = SharedClient::new(&TlsOptions::default()).unwrap();
    let start = Instant::now();
    loop {
        let request = HttpRequest {
            method: Method::GET,
            url: url.parse().unwrap(),
            headers: HeaderMap::new(),
            body: None,
            timeout: Duration::from_secs(10),
        };
        let text = client
            .send(request)
            .await
            .map_or_else(|error| error.to_string(), |answer| String::from_utf8_lossy(&answer.body).into_owned());
        if text.lines().any(&is_it) {
            return;
        }
        assert!(start.elapsed() < LIMIT, "{url}: {text}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn is_seen(server: &Server) {
    let folder = Folder::new("standstill");
    let cloud = Testcloud::builder().start().await.unwrap();
    server
        .with_database(async |database| {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let config = with_url(&folder, &cloud, &server.database(database));
            let text = std::fs::read_to_string(&config).unwrap();
            std::fs::write(&config, format!("{text}[kiln]\nlease = 0.5\nmetrics_bind_port = {port}\n")).unwrap();
            let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
            let url = service.url();
            let (health, metrics) = (format!("{url}/healthcheck"), format!("http://127.0.0.1:{port}/metrics"));
            folder
                .write("t.yaml", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::TestResource}}\n");
            let create = |args: &[&str]| {
                let all = [&["stack", "create", "-t", "t.yaml"], args].concat();
                folder.client(&cloud, &url, &all).output().unwrap()
            };
            assert!(create(&["--wait", "first"]).status.success());
            wait_for(&health, |line| line == "engine: up (1)").await;

            let mut options = ConnectOptions::new(server.database(database));
            options.max_connections(1);
            let other = Box::pin(Database::connect(options)).await.unwrap();
            // No engine can claim a lease or commit under it.
            let statements: &[&str] = if server.is_postgres() {
                &["BEGIN", "LOCK TABLE kiln_lease IN EXCLUSIVE MODE"]
            } else {
                &["LOCK TABLES kiln_lease READ"]
            };
            for statement in statements {
                other.execute_unprepared(statement).await.unwrap();
            }
            let second = std::thread::spawn({
                let mut command = folder.client(&cloud, &url, &["stack", "create", "-t", "t.yaml", "second"]);
                move || command.output().unwrap()
            });
            service.wait_for("a call to the database does not end: the engine stands still");
            wait_for(&health, |line| line == "engine: down").await;
            let waits = |line: &str| line.strip_prefix("kiln_database_wait_seconds ")?.parse::<f64>().ok();
            wait_for(&metrics, |line| waits(line).is_some_and(|seconds| seconds > 2.0)).await;

            other.close().await.unwrap();
            wait_for(&health, |line| line == "engine: up (1)").await;
            wait_for(&metrics, |line| waits(line).is_some_and(|seconds| seconds < 2.0)).await;
            second.join().unwrap();
            assert_eq!(service.stop().0, 0);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn an_engine_that_stands_still_is_not_up() {
    for server in &servers() {
        is_seen(server).await;
    }
}
