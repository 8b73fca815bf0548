//! The connections of a process to a database.
//!
//! A connection returns to the pool only when the answer to its last statement is there. A future can be dropped at any
//! time, because a client goes away or an operation is aborted, and then nobody knows what the server still does: a
//! connection of a server is closed, so that the server ends what is left; one to a file is waited for in a task.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sqlx;
use sea_orm::{ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr, Statement};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connection::{Connection, Place, Session};
use super::packet::{Packet, lost_in, size_of_statement};
use super::pulse::{Pulse, silent};
use super::simulation::block_on;
use super::statement_retry::{Fault, Losses, is_answer, is_loss};

/// How long a statement waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection to a server that was idle for this long is tested before it is used.
const TESTED_AFTER: Duration = Duration::from_secs(30);
/// How long the answer to a test may take.
const TEST_LIMIT: Duration = Duration::from_secs(1);
/// How often those who wait for a connection look whether the server is silent.
const LOOK: Duration = Duration::from_millis(500);
/// How long a server may take to roll a transaction back that was given up.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);
/// A connection to a server is closed after it was idle for this long.
const MAX_IDLE: Duration = Duration::from_mins(10);

/// Connections to a database, up to a limit. Clones share them.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    place: Place,
    /// The last one was used last: it is the next one, because its data is in the caches of the processor.
    idle: Mutex<Vec<Idle>>,
    turns: Arc<Semaphore>,
    limit: u32,
    /// See [`super::Options::max_age`].
    max_age: Option<Duration>,
    losses: Losses,
    pulse: Arc<Pulse>,
    /// That of the last connection.
    packet: Mutex<Packet>,
}

struct Idle {
    connection: Connection,
    session: Option<Session>,
    opened: Instant,
    since: Instant,
}

impl Pool {
    pub(super) fn new(place: Place, limit: u32, max_age: Option<Duration>, losses: Losses, pulse: Arc<Pulse>) -> Self {
        let turns = Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(1)));
        let packet = Mutex::default();
        Self(Arc::new(Shared { place, idle: Mutex::default(), turns, limit, max_age, losses, pulse, packet }))
    }

    pub(super) fn place(&self) -> &Place {
        &self.0.place
    }

    /// The number of connections that are open or being opened, and how many of them are idle.
    pub(super) fn count(&self) -> (u32, usize) {
        let idle = self.0.idle().len();
        let busy = self.0.limit.saturating_sub(u32::try_from(self.0.turns.available_permits()).unwrap_or(u32::MAX));
        (busy + u32::try_from(idle).unwrap_or(0), idle)
    }

    /// The largest statement that the database takes, as the last connection has learnt it.
    pub(super) fn packet(&self) -> Packet {
        *self.0.packet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is not in a transaction.
    pub(super) async fn take(&self) -> Result<Lent, DbErr> {
        let turn = self.turn().await?;
        let lent = |connection, session, opened| {
            let held = Held { connection, session, opened, is_answered: true, in_transaction: false, _turn: turn };
            Lent { pool: Arc::clone(&self.0), held: Some(held) }
        };
        while let Some(mut idle) = self.0.next_idle() {
            if self.0.is_usable(&mut idle).await {
                return Ok(lent(idle.connection, idle.session, idle.opened));
            }
        }
        // Connecting is rare, and its future is large.
        let open = Box::pin(async {
            let mut connection = Connection::open(&self.0.place).await?;
            let session = connection.session().await?;
            Ok((connection, session))
        });
        let (connection, session) = self.0.pulse.watch(None, open).await.map_err(connection_error)?;
        if let Some(session) = &session {
            *self.0.packet.lock().unwrap_or_else(PoisonError::into_inner) = session.packet;
        }
        Ok(lent(connection, session, Instant::now()))
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, DbErr> {
        let mut turn = pin!(Arc::clone(&self.0.turns).acquire_owned());
        let started = Instant::now();
        loop {
            match tokio::time::timeout(LOOK, &mut turn).await {
                Ok(Ok(turn)) => return Ok(turn),
                Ok(Err(_)) => return Err(DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)),
                Err(_) if self.0.pulse.is_silent() => return Err(connection_error(silent())),
                Err(_) if started.elapsed() > ACQUIRE_TIMEOUT => {
                    return Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout));
                }
                Err(_) => {}
            }
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_idle(&self) -> Option<Idle> {
        self.idle().pop()
    }

    async fn is_usable(&self, idle: &mut Idle) -> bool {
        if !self.place.is_server() {
            return true;
        }
        let idle_for = idle.since.elapsed();
        if self.max_age.is_some_and(|limit| idle.opened.elapsed() >= limit) || self.losses.doubt(idle_for) {
            return false;
        }
        if idle_for < TESTED_AFTER {
            return true;
        }
        let answer = tokio::time::timeout(TEST_LIMIT, idle.connection.ping()).await;
        let answers = matches!(answer, Ok(Ok(())));
        if !answers {
            self.losses.note();
        }
        answers
    }

    fn keep(&self, held: Held) {
        let mut idle = self.idle();
        let Held { connection, session, opened, .. } = held;
        idle.push(Idle { connection, session, opened, since: Instant::now() });
        if self.place.is_server() && idle.first().is_some_and(|first| first.since.elapsed() > MAX_IDLE) {
            idle.remove(0);
        }
    }
}

/// A connection that is in use. When it is dropped, it returns to the pool as soon as that is safe, or it is closed.
pub(super) struct Lent {
    pool: Arc<Shared>,
    /// `None` only while it is dropped.
    held: Option<Held>,
}

struct Held {
    connection: Connection,
    session: Option<Session>,
    opened: Instant,
    /// Whether the answer to the last statement is there.
    is_answered: bool,
    /// Whether a transaction was begun, and it is not known to be ended.
    in_transaction: bool,
    _turn: OwnedSemaphorePermit,
}

impl Lent {
    /// The largest statement that the server takes.
    fn packet(&self) -> Packet {
        self.held.as_ref().and_then(|held| held.session.as_ref()).map_or_else(Packet::default, |session| session.packet)
    }

    /// Executes a statement, unless it is too large for the server.
    async fn execute(&mut self, statement: Statement) -> Result<ExecResult, sqlx::Error> {
        let size = size_of_statement(&statement);
        self.packet().check_size(size).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let result = self.run(async |connection| connection.execute(statement).await).await;
        result.map_err(|error| if is_loss(&error) { lost_in(size, error) } else { error })
    }

    /// Executes a statement. If this future is dropped before its end, there is no answer.
    async fn run<T>(
        &mut self,
        statement: impl AsyncFnOnce(&mut Connection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let held = self.held.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        held.is_answered = false;
        let answer = statement(&mut held.connection);
        let result = self.pool.pulse.watch(held.session.as_ref(), answer).await;
        held.is_answered = result.as_ref().err().is_none_or(is_answer);
        result
    }

    async fn begin(&mut self) -> Result<(), sqlx::Error> {
        // SQLite must know at the start that the transaction will write: one that has read may be unable to.
        self.begin_by(if self.pool.place.is_server() { "BEGIN" } else { "BEGIN IMMEDIATE" }).await
    }

    async fn begin_by(&mut self, begin: &'static str) -> Result<(), sqlx::Error> {
        if let Some(held) = &mut self.held {
            held.in_transaction = true;
        }
        self.run(async |connection| connection.execute_text(begin.to_owned()).await).await.map(drop)
    }

    /// Ends a transaction by `COMMIT` or `ROLLBACK`.
    async fn end(&mut self, by: &'static str) -> Result<(), sqlx::Error> {
        let ended = self.run(async |connection| connection.execute_text(by.to_owned()).await).await;
        if let Some(held) = &mut self.held {
            held.in_transaction = ended.is_err();
        }
        ended.map(drop)
    }
}

impl Held {
    /// Waits for the last statement and ends the transaction.
    async fn settle(&mut self) -> Result<(), sqlx::Error> {
        self.connection.ping().await?;
        if self.in_transaction
            && let Err(error) = self.connection.execute_text("ROLLBACK".to_owned()).await
            // SQLite has rolled it back when the disk was full, or it was never begun.
            && !error.to_string().contains("no transaction is active")
        {
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        let pool = Arc::clone(&self.pool);
        let is_server = pool.place.is_server();
        if held.is_answered && !held.in_transaction {
            pool.keep(held);
        } else if pool.place.is_simulated() {
            if block_on(held.settle()).is_ok() {
                pool.keep(held);
            }
        } else if (held.is_answered || !is_server)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let settled = if is_server {
                    tokio::time::timeout(SETTLE_LIMIT, held.settle()).await.is_ok_and(|settled| settled.is_ok())
                } else {
                    held.settle().await.is_ok()
                };
                if settled || pool.place.is_private() {
                    pool.keep(held);
                }
            });
        }
    }
}

/// A write transaction. Unless it is committed, it is rolled back when it is dropped, at whatever moment that is. No other
/// transactions are begun (`clippy.toml`).
pub(super) struct Transaction {
    lent: tokio::sync::Mutex<Lent>,
    backend: DbBackend,
    packet: Packet,
}

impl Transaction {
    pub(super) async fn begin(pool: &Pool) -> Result<Self, Fault> {
        let mut lent = pool.take().await?;
        lent.begin().await.map_err(query_error)?;
        let packet = lent.packet();
        Ok(Self { lent: tokio::sync::Mutex::new(lent), backend: pool.place().backend(), packet })
    }

    /// Begins a transaction that only reads, and sees everything as it is now.
    pub(super) async fn snapshot(pool: &Pool) -> Result<Self, Fault> {
        let mut lent = pool.take().await?;
        let begin = match pool.place() {
            Place::Sqlite { .. } => "BEGIN",
            Place::Postgres { .. } => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Place::MySql { .. } => {
                let next = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
                let set = lent.run(async |connection| connection.execute_text(next.to_owned()).await);
                set.await.map_err(query_error)?;
                "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            }
        };
        lent.begin_by(begin).await.map_err(query_error)?;
        let packet = lent.packet();
        Ok(Self { lent: tokio::sync::Mutex::new(lent), backend: pool.place().backend(), packet })
    }

    /// The largest statement that the server takes.
    pub(super) fn packet(&self) -> Packet {
        self.packet
    }

    /// Commits. After a lost connection, the outcome is unknown.
    pub(super) async fn commit(self) -> Result<(), Fault> {
        Ok(self.lent.into_inner().end("COMMIT").await.map_err(exec_error)?)
    }

    pub(super) async fn rollback(self) -> Result<(), Fault> {
        Ok(self.lent.into_inner().end("ROLLBACK").await.map_err(query_error)?)
    }
}

fn connection_error(error: sqlx::Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(error.into()))
}

/// Of a statement that may have changed something although it has failed.
fn exec_error(error: sqlx::Error) -> DbErr {
    DbErr::Exec(RuntimeErr::SqlxError(error.into()))
}

/// Of a statement that has changed nothing if it has failed.
fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(error.into()))
}

#[async_trait]
impl ConnectionTrait for Pool {
    fn get_database_backend(&self) -> DbBackend {
        self.place().backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let mut lent = self.take().await?;
        lent.execute(statement).await.map_err(exec_error)
    }

    async fn execute_unprepared(&self, text: &str) -> Result<ExecResult, DbErr> {
        let mut lent = self.take().await?;
        lent.run(async |connection| connection.execute_text(text.to_owned()).await).await.map_err(exec_error)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let mut lent = self.take().await?;
        lent.run(async |connection| connection.query_one(statement).await).await.map_err(query_error)
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let mut lent = self.take().await?;
        lent.run(async |connection| connection.query_all(statement).await).await.map_err(query_error)
    }
}

#[async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let mut lent = self.lent.lock().await;
        lent.execute(statement).await.map_err(query_error)
    }

    async fn execute_unprepared(&self, text: &str) -> Result<ExecResult, DbErr> {
        let mut lent = self.lent.lock().await;
        lent.run(async |connection| connection.execute_text(text.to_owned()).await).await.map_err(query_error)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let mut lent = self.lent.lock().await;
        lent.run(async |connection| connection.query_one(statement).await).await.map_err(query_error)
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let mut lent = self.lent.lock().await;
        lent.run(async |connection| connection.query_all(statement).await).await.map_err(query_error)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("limit", &self.0.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::Secret;

    use super::super::Options;
    use super::*;

    fn statement(text: &str) -> Statement {
        Statement::from_string(DbBackend::Sqlite, text)
    }

    /// The pools of a new file with a table of three rows.
    async fn pools(folder: &std::path::Path) -> (Pool, Pool) {
        let url = format!("sqlite://{}", folder.join("kiln.db").display());
        let options = Options { max_connections: 2, ..Options::new(url, Secret::new("0123456789abcdef".into())) };
        let (writer, reader) = options.connect(&Losses::default()).await.unwrap();
        let table = "CREATE TABLE t (x TEXT); INSERT INTO t VALUES (1), (2), (3)";
        writer.execute_unprepared(table).await.unwrap();
        (writer, reader)
    }

    async fn rows(pool: &Pool) -> usize {
        pool.query_all_raw(statement("SELECT x FROM t")).await.unwrap().len()
    }

    #[tokio::test]
    async fn connections_are_kept_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (_writer, reader) = pools(folder.path()).await;
        for _ in 0..3 {
            assert_eq!(rows(&reader).await, 3);
            assert_eq!(reader.count(), (1, 1));
        }
        let row = reader.query_one_raw(statement("SELECT x FROM t ORDER BY x")).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<String>(0).unwrap(), "1");
        let mut many = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let reader = reader.clone();
            // It takes milliseconds: one connection could be fast enough for all queries of a table of three rows.
            let slow = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) \
                SELECT x FROM t WHERE (SELECT MAX(i) FROM n) > 0";
            many.spawn(async move { reader.query_all_raw(statement(slow)).await.map(|rows| rows.len()) });
        }
        assert!(many.join_all().await.into_iter().all(|rows| rows.is_ok_and(|count| count == 3)));
        assert_eq!(reader.count(), (2, 2));
        reader.execute_unprepared("DELETE FROM t").await.unwrap_err();
    }

    /// A client that goes away neither frees the turn of a query that still runs nor spoils its connection.
    #[tokio::test]
    async fn a_query_that_nobody_waits_for_keeps_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let (_writer, reader) = pools(folder.path()).await;
        let long =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT MAX(i) FROM n";
        let soon = Duration::from_millis(20);
        tokio::time::timeout(soon, reader.query_all_raw(statement(long))).await.unwrap_err();
        assert_eq!(reader.count(), (1, 0), "it still runs");
        reader.query_all_raw(statement("SELECT nothing")).await.unwrap_err();
        while reader.count() != (2, 2) {
            tokio::time::sleep(soon).await;
        }
        assert_eq!(rows(&reader).await, 3);
        assert_eq!(reader.count(), (2, 2));
    }

    /// A file with a size limit simulates a full disk, on which SQLite rolls back without being asked.
    #[tokio::test]
    async fn a_transaction_that_sqlite_has_ended_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, reader) = pools(folder.path()).await;
        let limited = |pages: u32| format!("PRAGMA max_page_count = {pages}");
        writer.execute_unprepared(&limited(10)).await.unwrap();
        let filling = Transaction::begin(&writer).await.unwrap();
        let large = "INSERT INTO t VALUES (HEX(RANDOMBLOB(20000)))";
        let full = loop {
            if let Err(full) = filling.execute_unprepared(large).await {
                break full;
            }
        };
        assert!(full.to_string().contains("full"), "{full}");
        drop(filling);
        writer.execute_unprepared(&limited(1000)).await.unwrap();

        let next = Transaction::begin(&writer).await.unwrap();
        next.execute_unprepared(large).await.unwrap();
        next.commit().await.unwrap();
        writer.execute_unprepared("ROLLBACK").await.expect_err("no transaction is open");
        assert_eq!(rows(&reader).await, 4, "committed");
    }
}
