//! Connections for queries outside of write transactions.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sea_query::{Value, Values};
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sea_orm::sqlx::{self, Connection as _};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    Statement,
};
use sea_query_sqlx::SqlxValues;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a query waits for a connection, as in the pools.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// Executes queries outside of write transactions. Clones share the same connections.
#[derive(Clone, Debug)]
pub(super) enum Reader {
    /// A pool: of a database server, or the only connection of a database in memory.
    Pool(DatabaseConnection),
    /// The connections to a SQLite file.
    File(Arc<FileConnections>),
}

/// Connections to a SQLite file that are never in a transaction, so that they need no test before they are used again. A
/// pool tests each connection after each query in the thread of the connection, which takes as long as a small query.
pub(super) struct FileConnections {
    options: Arc<SqliteConnectOptions>,
    idle: Mutex<Vec<SqliteConnection>>,
    turns: Arc<Semaphore>,
    limit: u32,
}

impl Reader {
    /// At most `limit` connections to a file, opened with the options of the `pool`.
    pub(super) fn of_file(pool: &DatabaseConnection, limit: u32) -> Self {
        let turns = Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(1)));
        let options = pool.get_sqlite_connection_pool().connect_options();
        Self::File(Arc::new(FileConnections { options, idle: Mutex::default(), turns, limit }))
    }
}

impl FileConnections {
    /// The number of connections that are open or being opened, and how many of them are idle.
    pub(super) fn count(&self) -> (u32, usize) {
        let idle = self.idle().len();
        let busy = self.limit.saturating_sub(u32::try_from(self.turns.available_permits()).unwrap_or(u32::MAX));
        (busy + u32::try_from(idle).unwrap_or(0), idle)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn acquire(self: &Arc<Self>) -> Result<Busy, DbErr> {
        let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.turns).acquire_owned());
        let turn = match turn.await {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) => return Err(DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)),
            Err(_) => return Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)),
        };
        // The last one that was used is the first: its data is in the caches of the processor.
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await.map_err(connection_error)?,
        };
        Ok(Busy { of: Arc::clone(self), taken: Some((connection, turn)) })
    }

    /// Executes a query on a connection and keeps the connection.
    async fn run<T>(
        self: &Arc<Self>,
        query: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, DbErr> {
        let mut busy = self.acquire().await?;
        let (connection, _) = busy.taken.as_mut().ok_or_else(|| query_error(sqlx::Error::PoolClosed))?;
        let result = query(connection).await.map_err(query_error)?;
        if let Some((connection, _turn)) = busy.taken.take() {
            self.idle().push(connection);
        }
        Ok(result)
    }
}

/// A connection that executes a query. Unless it is released, it is tested before it is used again: the caller may have
/// stopped waiting while the query still runs.
struct Busy {
    of: Arc<FileConnections>,
    taken: Option<(SqliteConnection, OwnedSemaphorePermit)>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Some((mut connection, turn)) = self.taken.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let of = Arc::clone(&self.of);
        runtime.spawn(async move {
            if connection.ping().await.is_ok() {
                of.idle().push(connection);
            }
            drop(turn);
        });
    }
}

impl fmt::Debug for FileConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileConnections").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// A statement for SQLite, with its limit as a number: SQLite compiles a statement again in each execution if the limit is
/// a parameter.
fn prepared(statement: Statement) -> sqlx::query::Query<'static, sqlx::Sqlite, SqlxValues> {
    let Statement { mut sql, values, .. } = statement;
    let mut values = values.map_or_else(Vec::new, |values| values.0);
    if let Some(rest) = sql.strip_suffix(" LIMIT ?")
        && let Some(Value::BigUnsigned(Some(limit))) = values.last()
    {
        sql = format!("{rest} LIMIT {limit}");
        values.pop();
    }
    sqlx::query_with(sqlx::AssertSqlSafe(sql), SqlxValues(Values(values)))
}

fn connection_error(error: sqlx::Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(error.into()))
}

fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(error.into()))
}

#[async_trait]
impl ConnectionTrait for Reader {
    fn get_database_backend(&self) -> DbBackend {
        match self {
            Self::Pool(pool) => pool.get_database_backend(),
            Self::File(_) => DbBackend::Sqlite,
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match self {
            Self::Pool(pool) => pool.execute_raw(statement).await,
            Self::File(_) => Err(read_only()),
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        match self {
            Self::Pool(pool) => pool.execute_unprepared(sql).await,
            Self::File(_) => Err(read_only()),
        }
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match self {
            Self::Pool(pool) => pool.query_one_raw(statement).await,
            Self::File(connections) => {
                let query = prepared(statement);
                let row = connections.run(async |file| query.fetch_optional(file).await).await?;
                Ok(row.map(QueryResult::from))
            }
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Pool(pool) => pool.query_all_raw(statement).await,
            Self::File(connections) => {
                let query = prepared(statement);
                let rows = connections.run(async |file| query.fetch_all(file).await).await?;
                Ok(rows.into_iter().map(QueryResult::from).collect())
            }
        }
    }
}

fn read_only() -> DbErr {
    DbErr::Custom("the connections to read a file execute queries only".to_owned())
}

#[cfg(test)]
mod tests {
    use sea_orm::sqlx::{ConnectOptions as _, Executor as _};

    use super::*;

    async fn connections(folder: &std::path::Path) -> (Reader, Arc<FileConnections>) {
        let options = SqliteConnectOptions::new().filename(folder.join("t.db")).create_if_missing(true);
        let mut writer = options.connect().await.unwrap();
        writer.execute("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
        let pool: DatabaseConnection = sqlx::SqlitePool::connect_lazy_with(options).into();
        match Reader::of_file(&pool, 2) {
            Reader::File(file) => (Reader::File(Arc::clone(&file)), file),
            Reader::Pool(_) => panic!("a pool"),
        }
    }

    fn statement(sql: &str) -> Statement {
        Statement::from_string(DbBackend::Sqlite, sql)
    }

    #[tokio::test]
    async fn connections_are_kept_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (reader, file) = connections(folder.path()).await;
        for _ in 0..3 {
            assert_eq!(reader.query_all_raw(statement("SELECT x FROM t")).await.unwrap().len(), 3);
            assert_eq!(file.count(), (1, 1));
        }
        let row = reader.query_one_raw(statement("SELECT x FROM t ORDER BY x")).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 1);
        let mut many = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let reader = reader.clone();
            // It takes milliseconds: one connection could be fast enough for all queries of a table of three rows.
            let slow = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) \
                SELECT x FROM t WHERE (SELECT MAX(i) FROM n) > 0";
            many.spawn(async move { reader.query_all_raw(statement(slow)).await.map(|rows| rows.len()) });
        }
        assert!(many.join_all().await.into_iter().all(|rows| rows.is_ok_and(|count| count == 3)));
        assert_eq!(file.count(), (2, 2));
        reader.execute_unprepared("DELETE FROM t").await.unwrap_err();
    }

    #[test]
    fn the_limit_is_no_parameter() {
        use sea_orm::sea_query::{Expr, ExprTrait as _, Query};
        let mut select = Query::select();
        select.column("x").from("t").and_where(Expr::col("x").gt(1)).limit(2);
        let query = prepared(DbBackend::Sqlite.build(&select));
        assert_eq!(sqlx::Execute::sql(query).as_str(), r#"SELECT "x" FROM "t" WHERE "x" > ? LIMIT 2"#);
        let query = prepared(DbBackend::Sqlite.build(select.reset_limit()));
        assert_eq!(sqlx::Execute::sql(query).as_str(), r#"SELECT "x" FROM "t" WHERE "x" > ?"#);
    }

    /// A client that goes away neither frees the turn of a query that still runs nor spoils its connection.
    #[tokio::test]
    async fn a_query_that_nobody_waits_for_keeps_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let (reader, file) = connections(folder.path()).await;
        let long =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT MAX(i) FROM n";
        let soon = Duration::from_millis(20);
        tokio::time::timeout(soon, reader.query_all_raw(statement(long))).await.unwrap_err();
        assert_eq!(file.count(), (1, 0), "it still runs");
        reader.query_all_raw(statement("SELECT nothing")).await.unwrap_err();
        while file.count() != (2, 2) {
            tokio::time::sleep(soon).await;
        }
        assert_eq!(reader.query_all_raw(statement("SELECT x FROM t")).await.unwrap().len(), 3);
        assert_eq!(file.count(), (2, 2));
    }
}
