//! Options of the database.

use std::time::Duration;

use kiln_value::Secret;
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions as _};

use super::connection::Place;
use super::pool::Pool;
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
    pub(super) async fn connect(&self, losses: &Losses) -> Result<(Pool, Pool), Error> {
        let pool = |connections: u32, read_only: bool| {
            let place = self.place(read_only).map_err(|error| Error::Database(error.to_string()))?;
            Ok::<_, Error>(Pool::new(place, connections, losses.clone()))
        };
        let (writer, reader) = if !self.native_url().starts_with("sqlite:") {
            // Reads do not wait behind transactions, which keep a connection for several answers of the server.
            let reads = (self.max_connections / 3).max(1);
            (pool(self.max_connections.saturating_sub(reads).max(1), false)?, pool(reads, false)?)
        } else if self.is_private() {
            let pool = pool(1, false)?;
            (pool.clone(), pool)
        } else {
            // SQLite has one writer at a time: writers queue fairly here instead of polling the file.
            (pool(1, false)?, pool(self.max_connections.clamp(1, 4), true)?)
        };
        for pool in [&writer, &reader] {
            // Two processes that open a new file at the same time both switch it to WAL mode. SQLite does not let the
            // second one wait for that, unlike for other locks.
            retry(losses, |_| async {
                pool.take().await?;
                Ok(())
            })
            .await?;
        }
        Ok((writer, reader))
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

    /// Where the database is, with the options of its connections.
    pub(super) fn place(&self, read_only: bool) -> Result<Place, sqlx::Error> {
        let url = self.native_url();
        match url.split_once(':').map_or("", |(scheme, _)| scheme) {
            "sqlite" => {
                let (options, is_private) = (Box::new(self.sqlite(&url, read_only)?), is_in_memory(&url));
                Ok(Place::Sqlite { options, is_private })
            }
            "mysql" => {
                let options = Box::new(url.parse::<MySqlConnectOptions>()?.disable_statement_logging());
                Ok(Place::MySql { options, wsrep_sync_wait: self.wsrep_sync_wait })
            }
            _ => Ok(Place::Postgres(Box::new(url.parse::<PgConnectOptions>()?.disable_statement_logging()))),
        }
    }

    fn sqlite(&self, url: &str, read_only: bool) -> Result<SqliteConnectOptions, sqlx::Error> {
        let synchronous = match self.durability {
            Durability::Process => SqliteSynchronous::Normal,
            Durability::Power => SqliteSynchronous::Full,
        };
        let options = url
            .parse::<SqliteConnectOptions>()?
            .disable_statement_logging()
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(10))
            .row_buffer_size(READ_AHEAD)
            .synchronous(synchronous)
            .foreign_keys(false)
            .statement_cache_capacity(200);
        if is_in_memory(url) {
            return Ok(options);
        }
        let options = options.journal_mode(SqliteJournalMode::Wal);
        Ok(if read_only {
            options.pragma("query_only", "ON").pragma("cache_size", "-4096")
        } else {
            // Commits with many rows stay in memory: by default, SQLite spills them to the disk from 2 MB.
            options.pragma("cache_size", "-16384").pragma("temp_store", "MEMORY").pragma("wal_autocheckpoint", "4000")
        })
    }
}

fn is_in_memory(url: &str) -> bool {
    url.starts_with("sqlite::memory:") || url.starts_with("sqlite://:memory:") || url.contains("mode=memory")
}

#[cfg(test)]
mod tests {
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
}
