//! One connection to a database, of whichever kind.

use std::collections::HashMap;

use sea_orm::sea_query::{Value, Values};
use sea_orm::sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sea_orm::sqlx::postgres::{PgConnectOptions, PgConnection};
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sea_orm::sqlx::{self, AssertSqlSafe, Connection as _, Executor as _};
use sea_orm::{DbBackend, ExecResult, QueryResult, Statement};
use sea_query_sqlx::SqlxValues;

use super::connection_url::Demands;
use super::packet::Packet;

/// How long a server lets a transaction wait for its next statement before it closes the connection: a process that is
/// stopped in a transaction does not hold its locks longer.
const IDLE_IN_TRANSACTION: &str = "15";

/// Where a database is, and how to connect to it.
#[derive(Clone)]
pub(super) enum Place {
    Sqlite {
        options: Box<SqliteConnectOptions>,
        /// Whether the database is in memory: it ends with its connection.
        is_private: bool,
        /// Whether the thread waits for each statement ([`super::simulation`]).
        is_simulated: bool,
    },
    Postgres {
        /// In the order in which they are tried.
        hosts: Vec<PgConnectOptions>,
        demands: Demands,
    },
    MySql {
        options: Box<MySqlConnectOptions>,
        demands: Demands,
        /// See [`super::Options::wsrep_sync_wait`].
        wsrep_sync_wait: Option<u8>,
    },
}

impl Place {
    pub(super) fn backend(&self) -> DbBackend {
        match self {
            Self::Sqlite { .. } => DbBackend::Sqlite,
            Self::Postgres { .. } => DbBackend::Postgres,
            Self::MySql { .. } => DbBackend::MySql,
        }
    }

    pub(super) fn is_server(&self) -> bool {
        !matches!(self, Self::Sqlite { .. })
    }

    pub(super) fn is_simulated(&self) -> bool {
        matches!(self, Self::Sqlite { is_simulated: true, .. })
    }

    pub(super) fn is_private(&self) -> bool {
        matches!(self, Self::Sqlite { is_private: true, .. })
    }
}

/// A session of a server.
pub(super) struct Session {
    /// Its number on the server.
    pub(super) number: i64,
    /// The server: behind one address, there may be several.
    pub(super) server: String,
    /// The largest statement that it takes.
    pub(super) packet: Packet,
}

pub(super) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

impl Connection {
    pub(super) async fn open(place: &Place) -> Result<Self, sqlx::Error> {
        match place {
            Place::Sqlite { options, .. } => Ok(Self::Sqlite(SqliteConnection::connect_with(options).await?)),
            Place::Postgres { hosts, demands } => {
                let demands = *demands;
                let open = |host: PgConnectOptions| async move {
                    let open = async {
                        let mut connection = PgConnection::connect_with(&host).await?;
                        let limit = format!("SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION}s'");
                        connection.execute(AssertSqlSafe(limit)).await?;
                        if demands.must_write {
                            refuse_read_only(&mut connection).await?;
                        }
                        Ok(connection)
                    };
                    demands.within(open).await
                };
                first_of(hosts, open).await.map(Self::Postgres)
            }
            Place::MySql { options, demands, wsrep_sync_wait } => {
                let mut connection = demands.within(MySqlConnection::connect_with(options)).await?;
                // No gap locks: they cause most deadlocks.
                connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
                let limit = format!("SET SESSION idle_transaction_timeout = {IDLE_IN_TRANSACTION}");
                if let Err(error) = connection.execute(AssertSqlSafe(limit)).await
                    && !is_unknown_variable(&error)
                {
                    return Err(error);
                }
                if let Some(wait) = wsrep_sync_wait {
                    connection.execute(AssertSqlSafe(format!("SET SESSION wsrep_sync_wait = {wait}"))).await?;
                }
                Ok(Self::MySql(connection))
            }
        }
    }

    /// The session on the server; `None`: the database is not a server.
    pub(super) async fn session(&mut self) -> Result<Option<Session>, sqlx::Error> {
        let text = match self {
            Self::Sqlite(_) => return Ok(None),
            Self::Postgres(_) => {
                "SELECT pg_backend_pid()::bigint, concat(inet_server_addr(), pg_postmaster_start_time()), NULL::bigint"
            }
            Self::MySql(_) => {
                "SELECT CAST(CONNECTION_ID() AS SIGNED), CONCAT(@@hostname, ':', @@port), \
                 CAST(@@max_allowed_packet AS SIGNED)"
            }
        };
        let row = self.query_one(self.statement(text)).await?.ok_or(sqlx::Error::RowNotFound)?;
        let number = row.try_get_by_index(0).map_err(undecodable)?;
        let server = row.try_get_by_index(1).map_err(undecodable)?;
        let packet: Option<i64> = row.try_get_by_index(2).map_err(undecodable)?;
        let packet = Packet(packet.and_then(|limit| usize::try_from(limit).ok()));
        Ok(Some(Session { number, server, packet }))
    }

    /// The sessions of the same user that execute a statement; true: they wait until the client reads the answer.
    pub(super) async fn working_sessions(&mut self) -> Result<HashMap<i64, bool>, sqlx::Error> {
        let text = match self {
            Self::Sqlite(_) => return Ok(HashMap::new()),
            Self::Postgres(_) => {
                "SELECT pid::bigint, CASE WHEN wait_event = 'ClientWrite' THEN 1 ELSE 0 END::bigint FROM pg_stat_activity \
                 WHERE usename = current_user AND state NOT LIKE 'idle%'"
            }
            Self::MySql(_) => {
                "SELECT CAST(id AS SIGNED), CAST(state IN ('Writing to net', 'Sending to client') AS SIGNED) \
                 FROM information_schema.processlist WHERE command <> 'Sleep'"
            }
        };
        let rows = self.query_all(self.statement(text)).await?;
        let session = |row: &QueryResult| {
            let is_sending: Option<i64> = row.try_get_by_index(1).map_err(undecodable)?;
            Ok((row.try_get_by_index(0).map_err(undecodable)?, is_sending == Some(1)))
        };
        rows.iter().map(session).collect()
    }

    fn statement(&self, text: &str) -> Statement {
        let backend = match self {
            Self::Sqlite(_) => DbBackend::Sqlite,
            Self::Postgres(_) => DbBackend::Postgres,
            Self::MySql(_) => DbBackend::MySql,
        };
        Statement::from_string(backend, text)
    }

    /// Executes a text without parameters, of one or more statements.
    pub(super) async fn execute_text(&mut self, text: String) -> Result<ExecResult, sqlx::Error> {
        let text = AssertSqlSafe(text);
        Ok(match self {
            Self::Sqlite(connection) => connection.execute(text).await?.into(),
            Self::Postgres(connection) => connection.execute(text).await?.into(),
            Self::MySql(connection) => connection.execute(text).await?.into(),
        })
    }

    pub(super) async fn execute(&mut self, statement: Statement) -> Result<ExecResult, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(connection) => for_sqlite(statement).execute(connection).await?.into(),
            Self::Postgres(connection) => query(statement).execute(connection).await?.into(),
            Self::MySql(connection) => query(statement).execute(connection).await?.into(),
        })
    }

    pub(super) async fn query_one(&mut self, statement: Statement) -> Result<Option<QueryResult>, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(connection) => for_sqlite(statement).fetch_optional(connection).await?.map(Into::into),
            Self::Postgres(connection) => query(statement).fetch_optional(connection).await?.map(Into::into),
            Self::MySql(connection) => query(statement).fetch_optional(connection).await?.map(Into::into),
        })
    }

    pub(super) async fn query_all(&mut self, statement: Statement) -> Result<Vec<QueryResult>, sqlx::Error> {
        fn all<R: Into<QueryResult>>(rows: Vec<R>) -> Vec<QueryResult> {
            rows.into_iter().map(Into::into).collect()
        }
        Ok(match self {
            Self::Sqlite(connection) => all(for_sqlite(statement).fetch_all(connection).await?),
            Self::Postgres(connection) => all(query(statement).fetch_all(connection).await?),
            Self::MySql(connection) => all(query(statement).fetch_all(connection).await?),
        })
    }

    /// Waits until everything that was sent is answered.
    pub(super) async fn ping(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => connection.ping().await,
            Self::Postgres(connection) => connection.ping().await,
            Self::MySql(connection) => connection.ping().await,
        }
    }
}

/// Opens a connection to the first host that takes it. As with libpq, the others are not asked when one refuses the user.
pub(super) async fn first_of<T, F>(
    hosts: &[PgConnectOptions],
    open: impl Fn(PgConnectOptions) -> F,
) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let mut failed = sqlx::Error::Configuration("there is no host".into());
    for host in hosts {
        failed = match open(host.clone()).await {
            Err(error) if !is_denied(&error) => error,
            answer => return answer,
        };
        if hosts.len() > 1 {
            tracing::debug!(host = host.get_host(), port = host.get_port(), error = %failed, "cannot use a host");
        }
    }
    Err(failed)
}

/// Whether the server refuses the user or the password.
fn is_denied(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().is_some_and(|code| code.starts_with("28")))
}

/// Refuses a server that only reads: `target_session_attrs=read-write`.
async fn refuse_read_only(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let read_only: String = sqlx::query_scalar("SHOW transaction_read_only").fetch_one(connection).await?;
    if read_only == "on" {
        return Err(sqlx::Error::Configuration(
            "the server only reads: target_session_attrs demands read-write".into(),
        ));
    }
    Ok(())
}

/// MySQL does not have all variables of MariaDB.
fn is_unknown_variable(error: &sqlx::Error) -> bool {
    let error = error.as_database_error().and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    error.is_some_and(|error| error.number() == 1193)
}

fn undecodable(error: sea_orm::DbErr) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}

fn query<DB>(statement: Statement) -> sqlx::query::Query<'static, DB, SqlxValues>
where
    DB: sqlx::Database,
    SqlxValues: sqlx::IntoArguments<DB>,
{
    let values = statement.values.unwrap_or_else(|| Values(Vec::new()));
    sqlx::query_with(AssertSqlSafe(statement.sql), SqlxValues(values))
}

/// A statement for SQLite, with its limit as a number: SQLite compiles a statement again in each execution if the limit is
/// a parameter.
fn for_sqlite(mut statement: Statement) -> sqlx::query::Query<'static, sqlx::Sqlite, SqlxValues> {
    if let Some(rest) = statement.sql.strip_suffix(" LIMIT ?")
        && let Some(Values(values)) = &mut statement.values
        && let Some(Value::BigUnsigned(Some(limit))) = values.last()
    {
        statement.sql = format!("{rest} LIMIT {limit}");
        values.pop();
    }
    query(statement)
}

#[cfg(test)]
mod tests {
    use sea_orm::sea_query::{Expr, ExprTrait as _, Query};

    use super::*;

    #[test]
    fn the_limit_is_no_parameter() {
        let mut select = Query::select();
        select.column("x").from("t").and_where(Expr::col("x").gt(1)).limit(2);
        let query = for_sqlite(DbBackend::Sqlite.build(&select));
        assert_eq!(sqlx::Execute::sql(query).as_str(), r#"SELECT "x" FROM "t" WHERE "x" > ? LIMIT 2"#);
        let query = for_sqlite(DbBackend::Sqlite.build(select.reset_limit()));
        assert_eq!(sqlx::Execute::sql(query).as_str(), r#"SELECT "x" FROM "t" WHERE "x" > ?"#);
    }
}
