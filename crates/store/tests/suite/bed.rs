//! Stores under test: the model in memory, SQLite in memory and in a file, and the servers in `KILN_TEST_DATABASES`
//! (URLs separated by spaces; see `tests/databases.sh`), on which each test has its own database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_store::{MemoryStore, Options, SqlStore, Store};
use kiln_value::Secret;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, QueryResult, Statement};
use uuid::Uuid;

/// MariaDB renews what it tells of its transactions only if nobody has asked for 100 ms. So those who ask wait for each
/// other, and for a while.
static ASKING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The URL of the model in memory.
const MODEL: &str = "model";

/// A fresh store.
pub(crate) struct Bed {
    /// The store, migrated.
    pub(crate) store: Arc<dyn Store>,
    /// The URL of the database; on a Galera cluster, its URLs on the nodes.
    nodes: Vec<String>,
    end: End,
}

enum End {
    Memory,
    File(PathBuf),
    Server { admin: String, database: String },
}

/// The rows that a query of a database's open transactions selects.
pub(crate) async fn transactions(db: &DatabaseConnection, query: &str) -> Vec<QueryResult> {
    let _turn = ASKING.lock().await;
    let backend = db.get_database_backend();
    if backend == DbBackend::MySql {
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    db.query_all_raw(Statement::from_string(backend, query)).await.unwrap()
}

impl Bed {
    /// The store as another process would open it; in memory it is the same store.
    pub(crate) async fn another(&self) -> Arc<dyn Store> {
        match self.end {
            End::Memory => Arc::clone(&self.store),
            _ => Arc::new(open(&self.nodes, &self.nodes[self.nodes.len() - 1]).await),
        }
    }

    /// The store as another process on the first node would open it, if it is not in memory.
    pub(crate) async fn again(&self) -> SqlStore {
        open(&self.nodes, self.url()).await
    }

    /// Whether another process can use the database.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self.end, End::Memory)
    }

    /// Whether it is a SQL database, not the model.
    pub(crate) fn is_sql(&self) -> bool {
        self.url() != MODEL
    }

    /// Whether it is a server, which limits the length of indexed names and whose connections can be lost.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.end, End::Server { .. })
    }

    pub(crate) fn url(&self) -> &str {
        &self.nodes[0]
    }

    /// The file, if the database is one.
    pub(crate) fn file(&self) -> Option<String> {
        match &self.end {
            End::File(path) => Some(path.display().to_string()),
            _ => None,
        }
    }

    /// Executes a statement without the store.
    pub(crate) async fn execute(&self, statement: &str) {
        let url = if self.is_shared() { self.url().to_owned() } else { panic!("no way behind a store in memory") };
        let db = Box::pin(Database::connect(url)).await.unwrap();
        db.execute_unprepared(statement).await.unwrap();
        db.close().await.unwrap();
    }

    /// One connection to the first node, for transactions without the store.
    pub(crate) async fn connection(&self) -> DatabaseConnection {
        let mut options = ConnectOptions::new(self.url());
        options.max_connections(1);
        Box::pin(Database::connect(options)).await.unwrap()
    }

    /// Lets all statements on stacks of a server wait until the connection is closed.
    pub(crate) async fn lock_stacks(&self) -> DatabaseConnection {
        let db = self.connection().await;
        let statements: &[&str] = match db.get_database_backend() {
            DbBackend::Postgres => &["BEGIN", "LOCK TABLE kiln_stack IN ACCESS EXCLUSIVE MODE"],
            _ => &["LOCK TABLES kiln_stack WRITE"],
        };
        for statement in statements {
            db.execute_unprepared(statement).await.unwrap();
        }
        db
    }

    /// The one column of text that a query selects, behind the store's back.
    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        let db = Box::pin(Database::connect(self.url())).await.unwrap();
        let rows = db.query_all_raw(Statement::from_string(db.get_database_backend(), query)).await.unwrap();
        db.close().await.unwrap();
        rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
    }

    /// The names of the store's tables.
    pub(crate) async fn tables(&self) -> Vec<String> {
        let db = Box::pin(Database::connect(self.url())).await.unwrap();
        let query = match db.get_database_backend() {
            DbBackend::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'kiln%'",
            DbBackend::Postgres => "SELECT tablename FROM pg_tables WHERE tablename LIKE 'kiln%'",
            _ => "SELECT CAST(table_name AS CHAR) FROM information_schema.tables WHERE table_schema = DATABASE()",
        };
        let rows = db.query_all_raw(Statement::from_string(db.get_database_backend(), query)).await.unwrap();
        db.close().await.unwrap();
        rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
    }

    /// Deletes the database. (After a failed test it is kept.)
    pub(crate) async fn end(self) {
        drop(self.store);
        match self.end {
            End::Memory => {}
            End::File(path) => {
                for suffix in ["", "-wal", "-shm", "-engine"] {
                    let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
                }
            }
            End::Server { admin, database } => {
                let db = Box::pin(Database::connect(&admin)).await.unwrap();
                let force = if admin.starts_with("postgres") { " WITH (FORCE)" } else { "" };
                db.execute_unprepared(&format!("DROP DATABASE {database}{force}")).await.unwrap();
            }
        }
    }
}

pub(crate) fn options(url: &str) -> Options {
    Options::new(url, Secret::new("0123456789abcdef0123456789abcdef".to_owned()))
}

/// Opens the database on a node. On a cluster, a read waits for what was written on another node.
async fn open(nodes: &[String], node: &str) -> SqlStore {
    let wsrep_sync_wait = (nodes.len() > 1).then_some(1);
    SqlStore::open(Options { wsrep_sync_wait, ..options(node) }).await.unwrap()
}

async fn bed(nodes: Vec<String>, end: End) -> Bed {
    let url = nodes[0].as_str();
    println!("on {url}");
    let store: Arc<dyn Store> = if url == MODEL {
        Arc::new(MemoryStore::new(Arc::new(Timestamp::now)))
    } else {
        Arc::new(open(&nodes, url).await)
    };
    store.migrate().await.unwrap();
    Bed { store, nodes, end }
}

/// All beds, one after the other: the next one is created after the previous one is dropped.
pub(crate) struct Beds(Vec<String>);

pub(crate) fn beds() -> Beds {
    let servers = std::env::var("KILN_TEST_DATABASES").unwrap_or_default();
    let mut urls = vec![MODEL.to_owned(), "sqlite::memory:".to_owned(), "sqlite://".to_owned()];
    urls.extend(servers.split_whitespace().map(str::to_owned));
    urls.reverse();
    Beds(urls)
}

impl Beds {
    pub(crate) async fn next(&mut self) -> Option<Bed> {
        let url = self.0.pop()?;
        Some(match url.as_str() {
            MODEL | "sqlite::memory:" => bed(vec![url], End::Memory).await,
            "sqlite://" => {
                let path = std::env::temp_dir().join(format!("kiln-{}.db", Uuid::new_v4()));
                bed(vec![format!("sqlite://{}", path.display())], End::File(path)).await
            }
            _ => {
                let database = format!("kiln_{}", Uuid::new_v4().simple());
                let servers: Vec<&str> = url.split(',').collect();
                let admin = servers[0].to_owned();
                let db = Box::pin(Database::connect(&admin)).await.unwrap();
                db.execute_unprepared(&format!("CREATE DATABASE {database}")).await.unwrap();
                let on = |server: &&str| format!("{}/{database}", server.rsplit_once('/').unwrap().0);
                let nodes: Vec<String> = servers.iter().map(on).collect();
                // A node of a cluster applies it some time later.
                for node in &nodes {
                    let is_there = async {
                        while Box::pin(Database::connect(node)).await.is_err() {
                            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        }
                    };
                    let limit = std::time::Duration::from_mins(1);
                    tokio::time::timeout(limit, is_there).await.expect("the database on each node");
                }
                bed(nodes, End::Server { admin, database }).await
            }
        })
    }
}
