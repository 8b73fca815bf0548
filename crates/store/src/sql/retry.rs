//! Which failures are worth another try, and how often.

use std::fmt;
use std::time::Duration;

use sea_orm::sqlx::mysql::MySqlDatabaseError;
use sea_orm::sqlx::{self, postgres::PgDatabaseError, sqlite::SqliteError};
use sea_orm::{DbErr, RuntimeErr, SqlErr};

use crate::Error;

/// How often a transaction is tried.
const ATTEMPTS: u32 = 12;
/// The longest wait before the second try; it doubles with each.
const FIRST_DELAY: Duration = Duration::from_millis(4);
/// No wait is longer.
const LAST_DELAY: Duration = Duration::from_secs(1);

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database failed.
    Database(DbErr),
    /// The store refuses, or cannot go on.
    Refused(Error),
}

impl From<DbErr> for Fault {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<sea_orm::sea_query::error::Error> for Fault {
    fn from(error: sea_orm::sea_query::error::Error) -> Self {
        Self::Refused(Error::Database(error.to_string()))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            fault if fault.is_of_the_data() => Self::Invalid(fault.to_string()),
            Fault::Database(error) => Self::Database(error.to_string()),
            Fault::Refused(error) => error,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl Fault {
    fn sqlx(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database(
                DbErr::Exec(RuntimeErr::SqlxError(error))
                | DbErr::Query(RuntimeErr::SqlxError(error))
                | DbErr::Conn(RuntimeErr::SqlxError(error)),
            ) => Some(error),
            _ => None,
        }
    }

    /// Whether the database undid the whole transaction and says that it may well succeed another time.
    ///
    /// A lost connection is not among them: a commit may have been done before it was lost.
    pub(super) fn is_transient(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
            // Deadlock (also a lost certification of Galera); waited too long for a lock.
            return matches!(error.number(), 1213 | 1205);
        }
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            // Serialization failure; deadlock.
            return matches!(error.code(), "40001" | "40P01");
        }
        if error.try_downcast_ref::<SqliteError>().is_some() {
            // SQLITE_BUSY and SQLITE_LOCKED; the higher bits tell more.
            let code = error.code().and_then(|code| code.parse::<i32>().ok());
            return code.is_some_and(|code| matches!(code & 0xff, 5 | 6));
        }
        false
    }

    /// Whether the database can never hold the data: too long, out of range, not representable.
    fn is_of_the_data(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
            // Packet too large; out of range; incorrect value for the type; no such character; data too long.
            return matches!(error.number(), 1153 | 1264 | 1292 | 1366 | 1406 | 3988);
        }
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            // The class of data exceptions; program limit exceeded (the row of an index is too long).
            return error.code().starts_with("22") || error.code() == "54000";
        }
        // SQLITE_TOOBIG.
        error.try_downcast_ref::<SqliteError>().is_some() && error.code().is_some_and(|code| code == "18")
    }

    /// Whether a statement that defines something was done before: MariaDB's and MySQL's
    /// 1050 (table), 1060 (column), 1061 (index).
    pub(super) fn says_exists(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        error.try_downcast_ref::<MySqlDatabaseError>().is_some_and(|error| matches!(error.number(), 1050 | 1060 | 1061))
    }

    /// Whether a unique index whose name (or column) contains the word refused a row.
    pub(super) fn is_duplicate_of(&self, word: &str) -> bool {
        let Self::Database(error) = self else { return false };
        matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(text)) if text.contains(word))
    }
}

/// Does the work, a whole transaction, until it succeeds or fails for good.
pub(super) async fn retry<T, F>(work: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut attempt = 1;
    loop {
        match work().await {
            Err(fault) if fault.is_transient() && attempt < ATTEMPTS => {
                tracing::debug!(attempt, ?fault, "transaction is tried again");
                tokio::time::sleep(delay(attempt)).await;
                attempt += 1;
            }
            done => return done.map_err(Error::from),
        }
    }
}

/// A random part of a limit that doubles with each attempt, so that two who collided part.
fn delay(attempt: u32) -> Duration {
    let limit = FIRST_DELAY.saturating_mul(1 << attempt.min(16)).min(LAST_DELAY);
    limit.mul_f64(rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_but_not_without_end() {
        assert!((0..100).all(|_| delay(1) <= FIRST_DELAY * 2));
        assert!((0..100).all(|_| delay(60) <= LAST_DELAY));
        assert!((0..100).any(|_| delay(60) > FIRST_DELAY * 8));
    }

    #[test]
    fn refusals_are_final() {
        assert!(!Fault::Refused(Error::NotFound("x".into())).is_transient());
        assert!(!Fault::Database(DbErr::Custom("x".into())).is_transient());
    }
}
