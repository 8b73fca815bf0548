//! Options of the database.

use std::sync::Arc;
use std::time::Duration;

use kiln_value::Secret;
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions as _};

use super::connection::Place;
use super::connection_url::ConnectionUrl;
use super::pool::Pool;
use super::pulse::Pulse;
use super::secrets::Vault;
use super::simulation::Simulation;
use super::statement_retry::{Fault, Losses, PATIENCE, retry};
use super::tls::Mode;
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
    /// A connection to a server is not used when it is older, so that changes of addresses and settings have an effect;
    /// `connection_recycle_time`. `None`: whatever its age.
    pub max_age: Option<Duration>,
    /// Durability of SQLite commits. Servers have their own settings.
    pub durability: Durability,
    /// Which statements wait until a node of a Galera cluster has applied what the others committed before; a bit mask,
    /// `wsrep_sync_wait`. `None`: as the server is configured.
    pub wsrep_sync_wait: Option<u8>,
    /// Whether events of stacks are announced on a message bus.
    pub notifications: bool,
    /// Whether projects can have webhooks: each commit with events looks for them.
    pub webhooks: bool,
    /// The simulation that gives the time instead of the clock of the database. The thread then waits for each statement to a
    /// file or a database in memory, so that no virtual time passes meanwhile.
    pub simulation: Option<Simulation>,
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

/// What connections are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    /// Reading a database of another application.
    Foreign,
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
            max_age: Some(Duration::from_hours(1)),
            durability: Durability::default(),
            wsrep_sync_wait: None,
            notifications: false,
            webhooks: false,
            simulation: None,
        }
    }

    /// Reads the keys, the URL and the files that it names, without a connection: errors name the parameter.
    pub fn check(&self) -> Result<(), Error> {
        Vault::new(&self.key, &self.older_keys)?;
        self.connection_url().map(drop)
    }

    /// The parameters of the URL that are accepted and have no effect, and why.
    pub fn without_effect(&self) -> Result<Vec<(&'static str, &'static str)>, Error> {
        Ok(self.connection_url()?.without_effect)
    }

    fn connection_url(&self) -> Result<ConnectionUrl, Error> {
        ConnectionUrl::parse(&self.url, |name| std::env::var(name).ok()).map_err(|why| Error::Unusable(why.into()))
    }

    /// The connections: one pool to write and one to read; a database in memory has only one connection. They use the
    /// first kind of encryption that both sides accept.
    pub(super) async fn connect(&self, losses: &Losses) -> Result<(Pool, Pool), Error> {
        let url = self.connection_url()?;
        let mut last = String::new();
        for mode in url.tls.mode.attempts() {
            let (writer, reader) = self.pools(&url, *mode, losses)?;
            // Two processes that open a new file at the same time both switch it to WAL mode. SQLite does not let the
            // second one wait for that, unlike for other locks.
            match retry(losses, PATIENCE, |_| opened([&writer, &reader])).await? {
                Ok(()) => return Ok((writer, reader)),
                Err(disagreement) => last = disagreement,
            }
        }
        Err(Error::Unusable(last.into()))
    }

    fn pools(&self, url: &ConnectionUrl, mode: Mode, losses: &Losses) -> Result<(Pool, Pool), Error> {
        let refused = |error: sqlx::Error| Error::Unusable(error.into());
        let pulse = Arc::new(Pulse::new(self.place(url, mode, Access::Write).map_err(refused)?));
        let pool = |connections: u32, read_only: bool| {
            let access = if read_only { Access::Read } else { Access::Write };
            let place = self.place(url, mode, access).map_err(refused)?;
            Ok::<_, Error>(Pool::new(place, connections, self.max_age, losses.clone(), Arc::clone(&pulse)))
        };
        Ok(if !url.native.starts_with("sqlite:") {
            // Reads do not wait behind transactions, which keep a connection for several answers of the server.
            let reads = (self.max_connections / 3).max(1);
            (pool(self.max_connections.saturating_sub(reads).max(1), false)?, pool(reads, false)?)
        } else if self.is_private() {
            let pool = pool(1, false)?;
            (pool.clone(), pool)
        } else {
            // SQLite has one writer at a time: writers queue fairly here instead of polling the file.
            (pool(1, false)?, pool(self.max_connections.clamp(1, 4), true)?)
        })
    }

    /// One pool for a database of another application, in which nothing is changed.
    pub(super) async fn connect_to_foreign(&self, losses: &Losses) -> Result<Pool, Error> {
        let url = self.connection_url()?;
        let refused = |error: sqlx::Error| Error::Unusable(error.into());
        let mut last = String::new();
        for mode in url.tls.mode.attempts() {
            let place = || self.place(&url, *mode, Access::Foreign).map_err(refused);
            let pulse = Arc::new(Pulse::new(place()?));
            let pool = Pool::new(place()?, self.max_connections, self.max_age, losses.clone(), pulse);
            match retry(losses, PATIENCE, |_| opened([&pool, &pool])).await? {
                Ok(()) => return Ok(pool),
                Err(disagreement) => last = disagreement,
            }
        }
        Err(Error::Unusable(last.into()))
    }

    /// Whether the database belongs to this process and ends with it.
    pub fn is_private(&self) -> bool {
        is_in_memory(&self.url)
    }

    /// Where the database is, with the options of its connections.
    fn place(&self, url: &ConnectionUrl, mode: Mode, access: Access) -> Result<Place, sqlx::Error> {
        let (native, demands) = (&url.native, url.demands);
        match native.split_once(':').map_or("", |(scheme, _)| scheme) {
            "sqlite" => {
                let (options, is_private) = (Box::new(self.sqlite(native, access)?), self.is_private());
                Ok(Place::Sqlite { options, is_private, is_simulated: self.simulation.is_some() })
            }
            "mysql" => {
                let options = url.mysql(native.parse::<MySqlConnectOptions>()?.disable_statement_logging(), mode);
                Ok(Place::MySql { options: Box::new(options), demands, wsrep_sync_wait: self.wsrep_sync_wait })
            }
            _ => {
                let options = native.parse::<PgConnectOptions>()?.disable_statement_logging();
                Ok(Place::Postgres { hosts: url.postgres(&options, mode), demands })
            }
        }
    }

    fn sqlite(&self, url: &str, access: Access) -> Result<SqliteConnectOptions, sqlx::Error> {
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
        let own = options.clone().journal_mode(SqliteJournalMode::Wal);
        Ok(match access {
            Access::Read => own.pragma("query_only", "ON").pragma("cache_size", "-4096"),
            // Commits with many rows stay in memory: by default, SQLite spills them to the disk from 2 MB.
            Access::Write => {
                own.pragma("cache_size", "-16384").pragma("temp_store", "MEMORY").pragma("wal_autocheckpoint", "4000")
            }
            Access::Foreign => options.create_if_missing(false).read_only(true),
        })
    }
}

/// Opens a connection of each pool; why client and server do not agree on encryption, if that is it.
async fn opened(pools: [&Pool; 2]) -> Result<Result<(), String>, Fault> {
    for pool in pools {
        if let Err(error) = pool.take().await {
            let fault = Fault::from(error);
            return fault.disagreement().map_or(Err(fault), |why| Ok(Err(why)));
        }
    }
    Ok(Ok(()))
}

fn is_in_memory(url: &str) -> bool {
    url.starts_with("sqlite::memory:") || url.starts_with("sqlite://:memory:") || url.contains("mode=memory")
}
