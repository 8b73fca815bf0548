//! Options of the database.

use std::time::Duration;

use kiln_value::Secret;
use sea_orm::sqlx::sqlite::{SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{self, Connection as _, Executor as _};
use sea_orm::{ConnectOptions, Database, DatabaseConnection};

use super::reader::Reader;
use super::retry::{Losses, retry};
use crate::Error;

/// Number of rows that the thread of an SQLite connection reads ahead. With few, it and the reader wait for each other.
const READ_AHEAD: usize = 1024;

/// How to open a [`super::SqlStore`].
#[derive(Clone, Debug)]
pub struct Options {
    /// `sqlite:///path.db`, `sqlite::memory:`, `postgres://…`, `mysql://…`; also the form of Heat's `[database]
    /// connection` with a driver (`mysql+pymysql://…`).
    pub url: String,
    /// Encryption key of secrets: `auth_encryption_key`, 32 bytes (16 are doubled).
    pub key: Secret<String>,
    /// Previous keys, which can still decrypt.
    pub older_keys: Vec<Secret<String>>,
    /// Whether templates, environments, files, properties, attributes and metadata are encrypted too, in addition to
    /// credentials and driver data; `encrypt_parameters_and_properties`. Existing data is converted when it is written
    /// again, or by [`super::SqlStore::reencrypt`].
    pub encrypt_values: bool,
    /// Maximum number of database connections; `max_pool_size`.
    pub max_connections: u32,
    /// Durability of SQLite commits. Servers have their own settings.
    pub durability: Durability,
    /// Which statements wait until a node of a Galera cluster has applied what the others committed before; a bit mask,
    /// `wsrep_sync_wait`. `None`: as the server is configured.
    pub wsrep_sync_wait: Option<u8>,
    /// Whether events of stacks are announced on a message bus.
    pub notifications: bool,
}

/// Durability of SQLite commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Commits survive a crash of Kiln at any moment, including kill -9. A power failure may lose the last commits but
    /// never corrupts the database; an object that was just being created in the cloud may then have no record.
    /// (`synchronous = NORMAL`)
    #[default]
    Process,
    /// Commits also survive a power failure. Each commit waits for the disk. (`synchronous = FULL`)
    Power,
}

impl Options {
    /// Default options, except for the database and the key.
    pub fn new(url: impl Into<String>, key: Secret<String>) -> Self {
        Self {
            url: url.into(),
            key,
            older_keys: Vec::new(),
            encrypt_values: false,
            max_connections: 10,
            durability: Durability::default(),
            wsrep_sync_wait: None,
            notifications: false,
        }
    }

    /// The connections: one pool to write and one to read; a database in memory has only one connection.
    pub(super) async fn connect(&self, losses: &Losses) -> Result<(DatabaseConnection, Reader), Error> {
        let url = self.native_url();
        let connect = |connections: u32, read_only: bool| {
            let options = self.pool(&url, connections, read_only, losses);
            // Two processes that open a new file at the same time both switch it to WAL mode. SQLite does not let the
            // second one wait for that, unlike for other locks.
            retry(losses, move |_| {
                let options = options.clone();
                async { Ok(Database::connect(options).await?) }
            })
        };
        if !url.starts_with("sqlite:") {
            // Reads do not wait behind transactions, which keep a connection for several answers of the server.
            let reads = (self.max_connections / 3).max(1);
            let writer = connect(self.max_connections.saturating_sub(reads).max(1), false).await?;
            Ok((writer, Reader::Pool(connect(reads, false).await?)))
        } else if is_in_memory(&url) {
            let pool = connect(1, false).await?;
            Ok((pool.clone(), Reader::Pool(pool)))
        } else {
            // SQLite has one writer at a time: writers queue fairly here instead of polling the file.
            let writer = connect(1, false).await?;
            // A pool only to have its options and to see whether the file can be read.
            let pool = connect(1, true).await?;
            Ok((writer, Reader::of_file(&pool, self.max_connections.clamp(1, 4))))
        }
    }

    /// Whether the database belongs to this process and ends with it.
    pub fn is_private(&self) -> bool {
        is_in_memory(&self.native_url())
    }

    /// The URL for the Rust drivers: without Python driver and without `charset`, which is always UTF-8.
    pub(super) fn native_url(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once(':') else { return self.url.clone() };
        let scheme = match scheme.split('+').next().unwrap_or(scheme) {
            "postgresql" => "postgres",
            "mariadb" => "mysql",
            scheme => scheme,
        };
        if scheme != "mysql" {
            return format!("{scheme}:{rest}");
        }
        match rest.split_once('?') {
            None => format!("{scheme}:{rest}"),
            Some((place, query)) => {
                let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("charset=")).collect();
                let mark = if kept.is_empty() { "" } else { "?" };
                format!("{scheme}:{place}{mark}{}", kept.join("&"))
            }
        }
    }

    fn pool(&self, url: &str, connections: u32, read_only: bool, losses: &Losses) -> ConnectOptions {
        let synchronous = match self.durability {
            Durability::Process => SqliteSynchronous::Normal,
            Durability::Power => SqliteSynchronous::Full,
        };
        let private = is_in_memory(url);
        let wait = self.wsrep_sync_wait;
        let mut options = ConnectOptions::new(url);
        options
            .max_connections(connections)
            .min_connections(u32::from(private))
            .acquire_timeout(Duration::from_secs(30))
            .test_before_acquire_if_idle_for(Duration::from_secs(30))
            .sqlx_logging(false)
            .record_stmt_in_spans(false)
            .map_sqlx_sqlite_opts(move |sqlite| {
                let sqlite = sqlite
                    .create_if_missing(true)
                    .busy_timeout(Duration::from_secs(10))
                    .row_buffer_size(READ_AHEAD)
                    .synchronous(synchronous)
                    .foreign_keys(false)
                    .statement_cache_capacity(200);
                if private {
                    sqlite
                } else {
                    let sqlite = sqlite.journal_mode(SqliteJournalMode::Wal);
                    if read_only {
                        sqlite.pragma("query_only", "ON").pragma("cache_size", "-4096")
                    } else {
                        // Commits with many rows stay in memory: by default, SQLite spills them to the disk from 2 MB.
                        sqlite
                            .pragma("cache_size", "-16384")
                            .pragma("temp_store", "MEMORY")
                            .pragma("wal_autocheckpoint", "4000")
                    }
                }
            })
            .map_sqlx_sqlite_pool_opts(move |pool| {
                if private {
                    // The connection is the database, and nobody else waits for its transactions or misses them.
                    pool
                } else {
                    pool.after_release(|connection, _| Box::pin(is_free(connection)))
                }
            })
            .map_sqlx_mysql_pool_opts(move |pool| {
                pool.after_connect(move |connection, _| {
                    Box::pin(async move {
                        // No gap locks: they cause most deadlocks.
                        connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
                        if let Some(wait) = wait {
                            let statement = format!("SET SESSION wsrep_sync_wait = {wait}");
                            connection.execute(sqlx::AssertSqlSafe(statement)).await?;
                        }
                        Ok(())
                    })
                })
            });
        let (postgres, mysql) = (losses.clone(), losses.clone());
        options
            .map_sqlx_postgres_before_acquire(move |connection, about| {
                let doubt = postgres.doubt(about.idle_for);
                Box::pin(async move { Ok(!doubt || connection.ping().await.is_ok()) })
            })
            .map_sqlx_mysql_before_acquire(move |connection, about| {
                let doubt = mysql.doubt(about.idle_for);
                Box::pin(async move { Ok(!doubt || connection.ping().await.is_ok()) })
            });
        if private {
            // The database exists as long as its only connection.
            options.idle_timeout(None::<Duration>).max_lifetime(None::<Duration>);
        }
        options
    }
}

/// Whether a SQLite connection that is returned to the pool is outside of a transaction and can be reused.
///
/// SQLite rolls a transaction back automatically when the disk is full. The explicit rollback that follows fails, and
/// sqlx assumes that the connection is still in the transaction: later commits would only be parts of a transaction
/// that never ends.
async fn is_free(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    // Wait for a rollback that may be queued.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

fn is_in_memory(url: &str) -> bool {
    url.starts_with("sqlite::memory:") || url.starts_with("sqlite://:memory:") || url.contains("mode=memory")
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

    use super::*;

    #[test]
    fn urls_of_heat_are_understood() {
        for (given, native) in [
            ("mysql+pymysql://heat:pw@db/heat?charset=utf8", "mysql://heat:pw@db/heat"),
            ("mysql+pymysql://h:p@db/heat?charset=utf8&ssl-mode=DISABLED", "mysql://h:p@db/heat?ssl-mode=DISABLED"),
            ("mariadb+pymysql://h@db/heat", "mysql://h@db/heat"),
            ("postgresql+psycopg2://h:a+b@db:5432/heat", "postgres://h:a+b@db:5432/heat"),
            ("postgres://h@db/heat", "postgres://h@db/heat"),
            ("sqlite:///var/lib/kiln.db?mode=rwc", "sqlite:///var/lib/kiln.db?mode=rwc"),
            ("sqlite::memory:", "sqlite::memory:"),
        ] {
            let options = Options::new(given, Secret::new(String::new()));
            assert_eq!(options.native_url(), native);
        }
    }

    /// A file with a size limit simulates a full disk. The limit belongs to the connection: a new one has space.
    #[tokio::test]
    async fn a_connection_in_which_a_rollback_failed_is_not_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("kiln.db").display());
        let options = Options::new(url, Secret::new("0123456789abcdef".into()));
        let pool = options.connect(&Losses::default()).await.unwrap().0;
        let pool = pool.get_sqlite_connection_pool();
        pool.execute("CREATE TABLE t (x TEXT); PRAGMA max_page_count = 10").await.unwrap();
        let mut filling = pool.begin().await.unwrap();
        let large = "INSERT INTO t VALUES (HEX(RANDOMBLOB(20000)))";
        let full = loop {
            if let Err(full) = filling.execute(large).await {
                break full;
            }
        };
        assert!(full.to_string().contains("full"), "{full}");
        drop(filling);

        let mut next = pool.begin().await.unwrap();
        next.execute(large).await.unwrap();
        next.commit().await.unwrap();
        pool.execute("ROLLBACK").await.expect_err("no transaction is open");
        let other = options.connect(&Losses::default()).await.unwrap().1;
        let count = Statement::from_string(DbBackend::Sqlite, "SELECT COUNT(*) FROM t");
        let row = other.query_one_raw(count).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 1, "committed");
    }
}
