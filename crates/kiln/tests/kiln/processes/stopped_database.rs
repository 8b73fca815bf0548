//! The server of the database is stopped (SIGSTOP), or a proxy in front of it forwards nothing (`silent_proxy`): connections
//! stay open, and nothing comes any more. Requests get 503, and everything goes on when there are answers again.
//!
//! These tests stop servers that others use, so they run alone:
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored stopped_database
//! crates/store/tests/databases.sh --galera=3 cargo test -p kiln --test kiln -- --ignored stopped_database
//! ```

use std::process::Command;
use std::time::{Duration, Instant};

use futures::future::join_all;
use http::{HeaderMap, Method};
use kiln_cloud::{HttpRequest, SharedClient, TlsOptions, Transport as _};
use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database, DatabaseConnection, DbBackend, Statement};

use crate::processes::cluster::{Cluster, Limits, end_of, log_of};
use crate::processes::lost_node::create_despite_silence;
use crate::processes::proxy::Proxy;
use crate::processes::wanted::Wanted;
use crate::running::Running;
use crate::wire;

/// For what takes seconds on a quiet machine.
const LIMIT: Duration = Duration::from_mins(1);
/// A request is answered within 5 s while the database does not answer; half as long again on a busy machine.
const ANSWERED: Duration = Duration::from_millis(7_500);
/// Requests succeed 15 s after the database answers again; half as long again on a busy machine.
const RECOVERED: Duration = Duration::from_millis(22_500);

async fn text(db: &DatabaseConnection, query: &str) -> String {
    let row = db.query_one_raw(Statement::from_string(db.get_database_backend(), query)).await.expect("an answer");
    row.expect("a row").try_get_by_index(0).expect("a text")
}

/// The process of a server. PostgreSQL has more of them, one for each connection.
async fn server_process(url: &str) -> String {
    let db = Box::pin(Database::connect(url)).await.expect("the server");
    let file = match db.get_database_backend() {
        DbBackend::Postgres => text(&db, "SHOW data_directory").await + "/postmaster.pid",
        _ => text(&db, "SELECT @@pid_file").await,
    };
    db.close().await.expect("closed");
    let pid = std::fs::read_to_string(file).expect("its process");
    pid.lines().next().unwrap_or_default().trim().to_owned()
}

/// Sends a signal to a process and to its children.
fn signal(name: &str, process: &str) {
    let send =
        |process: &str| Command::new("kill").args(["-s", name, process]).status().is_ok_and(|sent| sent.success());
    // First the process: then it has no more children.
    assert!(send(process), "SIG{name} to {process}");
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        if parent == Some(process) {
            send(&entry.file_name().to_string_lossy());
        }
    }
}

/// What makes the database silent.
pub(crate) enum Silencer {
    /// The server is stopped: its process.
    Server(String),
    Proxy(Proxy),
}

impl Silencer {
    /// The database is silent until the result is dropped, whatever happens to the test.
    fn silence(&self) -> Silence<'_> {
        match self {
            Self::Server(process) => signal("STOP", process),
            Self::Proxy(proxy) => proxy.go_silent(),
        }
        Silence(self)
    }
}

struct Silence<'a>(&'a Silencer);

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        match self.0 {
            Silencer::Server(process) => signal("CONT", process),
            Silencer::Proxy(proxy) => proxy.answer_again(),
        }
    }
}

/// Requests of one user.
struct Requests {
    client: SharedClient,
    url: String,
    headers: HeaderMap,
}

impl Requests {
    async fn of(cluster: &Cluster) -> Self {
        let (url, token) = cluster.access(cluster.cloud.users().demo).await;
        let mut headers = HeaderMap::new();
        headers.insert("x-auth-token", token.parse().expect("a header"));
        headers.insert("content-type", "application/json".parse().expect("a header"));
        let client = SharedClient::new(&TlsOptions::default()).expect("a client");
        Self { client, url: url.as_str().trim_end_matches('/').to_owned(), headers }
    }

    /// The status, and the header Retry-After.
    async fn send(&self, method: Method, path: &str, body: &str) -> (u16, String) {
        let request = HttpRequest {
            method,
            url: format!("{}/{path}", self.url).parse().expect("a URL"),
            headers: self.headers.clone(),
            body: Some(body).filter(|body| !body.is_empty()).map(|body| body.to_owned().into()),
            timeout: ANSWERED,
        };
        let response = self.client.send(request).await.expect("an answer in time");
        let retry = response.headers.get("retry-after").and_then(|value| value.to_str().ok()).unwrap_or_default();
        (response.status.as_u16(), retry.to_owned())
    }
}

pub(crate) async fn everything_goes_on(server: &str, silencer: Silencer) {
    let builder = Testcloud::builder().latency(Duration::from_millis(20)).build_time(Duration::from_secs(2));
    let cloud = builder.start().await.expect("a simulated cloud");
    let cluster = Box::pin(Cluster::start(cloud, server, 1, Limits::short())).await;
    let before = cluster.cloud.snapshot();
    let (client, wanted) = (cluster.client(cluster.cloud.users().demo), Wanted { nested: true, ..Wanted::small() });
    client.create_stack("before", &wanted.request()).await.expect("accepted");
    assert_eq!(end_of(&client, "before", LIMIT).await.0, "CREATE_COMPLETE");

    let mut observed = Command::new(env!("CARGO_BIN_EXE_kiln"));
    observed.args(["api", "--bind-host", "127.0.0.1", "--bind-port", "0", "--config-file"]);
    observed.arg(cluster.folder().join("kiln-0.conf")).env("OS_KILN__METRICS_BIND_PORT", "0");
    observed.env("OS_KILN__CFN_API", "false");
    let observed = Running::start(observed);
    let metrics = observed.wait_for("serving metrics address=");
    assert!(wire::get(&metrics, "/metrics").contains("\nkiln_database_up 1\n"));

    // In the midst of the work.
    let servers = || cluster.cloud.journal().count(|call| call.method == "POST" && call.path.ends_with("/servers"));
    let begun = servers();
    client.create_stack("during", &wanted.request()).await.expect("accepted");
    let start = Instant::now();
    while servers() == begun {
        assert!(start.elapsed() < LIMIT, "the engine does not work");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let requests = Requests::of(&cluster).await;
    let silence = silencer.silence();
    let new = r#"{"stack_name": "new", "template": {"heat_template_version": "2018-08-31"}}"#;
    let asked = [(Method::GET, "stacks", ""), (Method::GET, "stacks/before", ""), (Method::POST, "stacks", new)];
    let answers = join_all(asked.iter().map(|(method, path, body)| requests.send(method.clone(), path, body))).await;
    assert_eq!(answers, vec![(503, "5".to_owned()); 3]);
    // What needs no database.
    let api = observed.url().trim_start_matches("http://").to_owned();
    let alive = |address: &str| wire::status(&wire::get(address, "/livez"));
    assert_eq!((alive(&api), alive(&metrics)), (200, 200));
    let start = Instant::now();
    let text = wire::get(&metrics, "/metrics");
    let status = wire::status(&text);
    assert!(status == 200 && start.elapsed() < ANSWERED, "{status} after {:?}", start.elapsed());
    assert!(text.contains("\nkiln_database_up 0\n") && text.contains("\nprocess_cpu_seconds_total "), "{text}");
    assert!(!text.contains("\nkiln_stacks{") && text.contains("\nkiln_store_seconds_count"), "{text}");
    // More than there are connections.
    let many = join_all((0..30).map(|_| requests.send(Method::GET, "stacks", ""))).await;
    assert_eq!(many, vec![(503, "5".to_owned()); 30]);
    // Until leases have expired.
    tokio::time::sleep(cluster.limits.lease * 2).await;
    let mut migration = Command::new(env!("CARGO_BIN_EXE_kiln"));
    migration.args(["manage", "db", "sync", "--config-file"]).arg(cluster.folder().join("kiln-0.conf"));
    migration.env("RUST_LOG", "warn");
    let migration = Running::start(migration);
    migration.wait_for("cannot connect to the database; trying again");
    drop(silence);

    let start = Instant::now();
    while requests.send(Method::GET, "stacks", "").await.0 != 200 {
        assert!(start.elapsed() < RECOVERED, "the API does not recover");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // A node of a cluster reads again before it writes again.
    create_despite_silence(&client, "after", &wanted).await;
    for name in ["during", "after"] {
        let (status, reason) = end_of(&client, name, LIMIT).await;
        assert_eq!(status, "CREATE_COMPLETE", "{name}: {reason}");
    }
    assert_eq!(migration.wait().0, 0, "kiln manage db sync waits for the server");
    let log = std::fs::read_to_string(cluster.folder().join(log_of(0))).expect("a log");
    assert!(log.contains("the database does not answer the heartbeat"), "{log}");
    let (now, mut wrong) = (cluster.cloud.snapshot(), Vec::new());
    for name in ["before", "during", "after"] {
        wanted.check(&client, name, &now, &mut wrong).await;
    }
    assert_eq!(wrong, Vec::<String>::new(), "logs in {}", cluster.folder().display());
    for name in ["before", "during", "after"] {
        client.delete_stack(name).await.expect("accepted");
        assert_eq!(end_of(&client, name, LIMIT).await.0, "DELETE_COMPLETE");
    }
    let left = before.added_in(&cluster.cloud.snapshot()).into_iter().filter(|object| !object.starts_with("trusts "));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new(), "left behind");
    cluster.end().await;
}

/// The servers of this run: those of one kind, or a node of a cluster.
async fn on(scheme: &str) {
    let servers = std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh");
    let server = match servers.split(',').collect::<Vec<_>>().as_slice() {
        [_, node, ..] if scheme == "mysql:" => Some((*node).to_owned()),
        [_, _, ..] => None,
        _ => servers.split_whitespace().find(|url| url.starts_with(scheme)).map(str::to_owned),
    };
    if let Some(server) = server {
        let process = server_process(&server).await;
        Box::pin(everything_goes_on(&server, Silencer::Server(process))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "stops servers: crates/store/tests/databases.sh"]
async fn postgres() {
    on("postgres:").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "stops servers: crates/store/tests/databases.sh"]
async fn mariadb() {
    on("mysql:").await;
}
