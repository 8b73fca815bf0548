//! The operator lowers `max_allowed_packet` of MariaDB while a service runs. Connections that are open keep their limit, new
//! ones have the new one.
//!
//! This changes a server that others use, so it runs alone:
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored lowered
//! ```

use std::time::{Duration, Instant};

use kiln_client::{Bundle, StackRequest};
use kiln_testcloud::{Action, Fault, Service, Testcloud, When};
use kiln_value::value;
use sea_orm::{ConnectionTrait as _, Database, DatabaseConnection, Statement};

use crate::processes::cluster::{Cluster, Limits, end_of};

const LIMIT: Duration = Duration::from_mins(1);
const USUAL: usize = 16 << 20;
const LOWERED: usize = 1 << 20;

/// A network with metadata of this many KiB of a character that has six bytes in JSON.
fn noted(kibibytes: usize) -> StackRequest {
    let params = value!({"x": ("\u{1}".repeat(1 << 10))});
    let text = value!({"str_replace": {"template": ("x".repeat(kibibytes)), "params": params}});
    let net = value!({"type": "OS::Neutron::Net", "metadata": {"text": text}});
    let template = value!({"heat_template_version": "2018-08-31", "resources": {"net": net}});
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

/// The server, as its administrator.
struct Server(DatabaseConnection);

impl Server {
    /// Sets the limit of new connections, and ends all others.
    async fn limit(&self, bytes: usize) {
        self.0.execute_unprepared(&format!("SET GLOBAL max_allowed_packet = {bytes}")).await.expect("an administrator");
        let others = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db LIKE 'kiln%'";
        let rows = self.0.query_all_raw(Statement::from_string(self.0.get_database_backend(), others)).await;
        for row in rows.expect("a list") {
            let id: i64 = row.try_get_by_index(0).expect("a number");
            // It may be closed already.
            _ = self.0.execute_unprepared(&format!("KILL {id}")).await;
        }
    }
}

/// The networks that are there through a stack.
fn networks(cluster: &Cluster) -> usize {
    let all = cluster.cloud.snapshot();
    all.objects["networks"].iter().filter(|network| network["name"] != "public" && network["name"] != "private").count()
}

async fn is_survived(url: &str) {
    let server = Server(Box::pin(Database::connect(url)).await.expect("the server"));
    server.limit(USUAL).await;
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Box::pin(Cluster::start(cloud, url, 1, Limits::short())).await;
    let client = cluster.client(cluster.cloud.users().demo);
    // A create is in flight whose row fits only before.
    let slow = Fault::new(Service::Network, "POST", "/networks$", Action::Delay(Duration::from_secs(2)));
    cluster.cloud.faults().add(slow.when(When::Nth(1)));
    let large = || noted(2 * ((LOWERED / 6) >> 10));
    client.create_stack("s", &large()).await.expect("accepted");
    let start = Instant::now();
    // The intent is stored; the response comes two seconds later.
    while client.resources("s", 0, false, &Vec::new()).await.expect("a list").is_empty() {
        assert!(start.elapsed() < LIMIT, "the engine does not work");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.limit(LOWERED).await;
    let (status, reason) = end_of(&client, "s", LIMIT).await;
    assert_eq!(status, "CREATE_FAILED", "{reason}");
    let told = format!("a max_allowed_packet of {LOWERED} bytes");
    assert!(reason.contains(&told), "{reason}");
    assert!(networks(&cluster) <= 1, "made twice");

    // What cannot be stored ends with a reason too, and makes nothing.
    for name in ["s", "other"] {
        let asked = match name {
            "s" => client.update_stack(name, &large()).await,
            _ => client.create_stack(name, &large()).await.map(drop),
        };
        if let Err(refused) = asked {
            assert!(refused.to_string().contains(&told), "{refused}");
        } else {
            let (status, reason) = end_of(&client, name, LIMIT).await;
            assert!(status.ends_with("_FAILED") && reason.contains("max_allowed_packet"), "{name}: {status} {reason}");
        }
    }
    assert!(networks(&cluster) <= 1, "made twice");

    // A change ends, with a reason if a row that is still there does not fit. With the former limit, the stack is whole again.
    client.update_stack("s", &noted(1)).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", LIMIT).await;
    let is_told = status == "UPDATE_FAILED" && reason.contains(&told);
    assert!(is_told || status == "UPDATE_COMPLETE", "{status} {reason}");
    server.limit(USUAL).await;
    client.update_stack("s", &noted(1)).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", LIMIT).await;
    assert_eq!(status, "UPDATE_COMPLETE", "{reason}");
    assert_eq!(networks(&cluster), 1);
    client.delete_stack("s").await.expect("accepted");
    assert_eq!(end_of(&client, "s", LIMIT).await.0, "DELETE_COMPLETE");
    assert_eq!(networks(&cluster), 0);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "changes a server: crates/store/tests/databases.sh"]
async fn a_limit_that_is_lowered_at_run_time_ends_what_does_not_fit_with_a_reason() {
    let urls = std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh");
    let url = urls.split_whitespace().find(|url| url.starts_with("mysql:")).expect("MariaDB");
    Box::pin(is_survived(url)).await;
}
