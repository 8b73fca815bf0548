//! The last commit of an operation is slow, and events with higher numbers become visible before its events: a watcher gets
//! them all.
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored slow_commit
//! ```

use std::time::Duration;

use kiln_client::{Bundle, Client, StackAction, StackRequest};
use kiln_testcloud::Testcloud;
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, DbBackend, Statement};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;

use crate::processes::cluster::{Cluster, Limits, end_of};

/// For what takes seconds on a quiet machine.
const LIMIT: Duration = Duration::from_mins(1);

/// A database in which the last commit of a suspend waits until the transaction of this connection ends.
async fn close_gate(url: String) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1);
    let db = Box::pin(Database::connect(options)).await.expect("the database");
    let trigger: &[&str] = match db.get_database_backend() {
        DbBackend::Postgres => &[
            "CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN PERFORM id FROM gate WHERE id = 1 FOR UPDATE; RETURN NULL; END $$",
            "CREATE TRIGGER gate AFTER INSERT ON kiln_event FOR EACH ROW \
                WHEN (NEW.action = 'SUSPEND' AND NEW.status = 'COMPLETE') EXECUTE FUNCTION pass()",
        ],
        _ => &["CREATE TRIGGER gate AFTER INSERT ON kiln_event FOR EACH ROW \
            IF NEW.action = 'SUSPEND' AND NEW.status = 'COMPLETE' \
            THEN SELECT id FROM gate WHERE id = 1 INTO @passed FOR UPDATE; END IF"],
    };
    let table = ["CREATE TABLE gate (id INT PRIMARY KEY)", "INSERT INTO gate (id) VALUES (1)"];
    for statement in table.iter().chain(trigger).chain(&["BEGIN", "SELECT id FROM gate WHERE id = 1 FOR UPDATE"]) {
        db.execute_unprepared(statement).await.expect("executed");
    }
    db
}

/// Waits until a transaction waits for a lock in the database.
async fn await_slow_commit(url: String) {
    let db = Box::pin(Database::connect(url)).await.expect("the database");
    let query = match db.get_database_backend() {
        DbBackend::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
                ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
        }
    };
    let wait = async {
        let statement = || Statement::from_string(db.get_database_backend(), query);
        let count = async || db.query_one_raw(statement()).await.expect("an answer").expect("a row");
        while count().await.try_get_by_index::<i64>(0).expect("a number") == 0 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.expect("a slow commit");
    db.close().await.expect("closed");
}

/// A stream of events.
struct Stream(Lines<BufReader<TcpStream>>);

impl Stream {
    /// The events of the project.
    async fn open(cluster: &Cluster) -> Self {
        let (url, token) = cluster.access(cluster.cloud.users().demo).await;
        let mut connection = TcpStream::connect(("127.0.0.1", cluster.port())).await.expect("the API");
        let head = format!(
            "GET {}/events HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\nx-auth-token: {token}\r\n\r\n",
            url.path().trim_end_matches('/')
        );
        connection.write_all(head.as_bytes()).await.expect("sent");
        let mut stream = Self(BufReader::new(connection).lines());
        stream.until(|line| line.starts_with("content-type: text/event-stream")).await;
        stream
    }

    /// Reads until such a line comes.
    async fn until(&mut self, is_it: impl Fn(&str) -> bool) {
        let read = async {
            while let Some(line) = self.0.next_line().await.expect("a line") {
                if is_it(&line) {
                    return;
                }
            }
            panic!("the stream has ended");
        };
        tokio::time::timeout(LIMIT, read).await.expect("the line comes");
    }

    /// Reads until the operation of this stack has ended.
    async fn until_complete(&mut self, stack: &str, action: &str) {
        let (name, status) = (format!("\"resource_name\":\"{stack}\""), format!("\"{action}_COMPLETE\""));
        self.until(|line| line.starts_with("data:") && line.contains(&name) && line.contains(&status)).await;
    }
}

async fn create(client: &Client, stack: &str) {
    let template = "{heat_template_version: '2018-08-31', resources: {r: {type: 'OS::Heat::TestResource'}}}";
    let template = kiln_yaml::parse(template).expect("a template").value;
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    client.create_stack(stack, &StackRequest { bundle, ..StackRequest::default() }).await.expect("accepted");
    assert_eq!(end_of(client, stack, LIMIT).await.0, "CREATE_COMPLETE");
}

async fn a_watcher_misses_nothing(server: &str) {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Cluster::start(cloud, server, 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    create(&client, "slow").await;
    create(&client, "fast").await;
    let mut stream = Stream::open(&cluster).await;
    let gate = close_gate(cluster.database_url()).await;
    client.stack_action("slow", StackAction::Suspend).await.expect("accepted");
    await_slow_commit(cluster.database_url()).await;
    // The watcher reads beyond the events of the slow commit.
    for _ in 0..3 {
        client.stack_action("fast", StackAction::Check).await.expect("accepted");
        stream.until_complete("fast", "CHECK").await;
    }
    gate.execute_unprepared("COMMIT").await.expect("the gate opens");
    gate.close().await.expect("closed");
    stream.until_complete("slow", "SUSPEND").await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn slow_commit() {
    let servers = std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh");
    futures::future::join_all(servers.split_whitespace().map(a_watcher_misses_nothing)).await;
}
