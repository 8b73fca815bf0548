//! Which failures are retried, and how often.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sea_orm::sqlx::mysql::MySqlDatabaseError;
use sea_orm::sqlx::{self, postgres::PgDatabaseError, sqlite::SqliteError};
use sea_orm::{DbErr, RuntimeErr, SqlErr};
use tokio::time::Instant;

use super::SqlStore;
use super::packet::LostInLarge;
use crate::Error;

/// A transaction that takes this long, with its repetitions, is told.
const SLOW: Duration = Duration::from_secs(5);

/// Maximum number of attempts of a transaction that conflicts with others.
const ATTEMPTS: u32 = 12;
/// How long a transaction is retried after its connection was lost, or while the server does not answer. (Connecting may
/// take the same time again.)
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The same for a transaction that a client waits for: it gets the error within 5 s.
pub(super) const REQUEST_PATIENCE: Duration = Duration::from_secs(3);
/// How often a connection may be lost in the same large statement: then the statement is the reason.
const LARGE_ATTEMPTS: u32 = 4;
/// The delay before a large statement is sent again.
const LARGE_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay before the second attempt; it doubles with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(4);
/// How long a database counts as full after it had no room.
const FULL_FOR: Duration = Duration::from_mins(1);
/// How often a health check tries whether the database has room.
const PROBE_EACH: Duration = Duration::from_secs(10);
/// Upper limit of the delay.
const LAST_DELAY: Duration = Duration::from_secs(1);

/// Why a transaction failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database failed.
    Database(DbErr),
    /// The store refused the operation, or cannot continue.
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
        Self::Refused(Error::Database(error.into()))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            fault if fault.is_of_the_data() => Self::Invalid(fault.into()),
            fault if fault.is_lost() || fault.is_without_connection() => {
                let may_have_happened = fault.may_have_happened();
                Self::Unavailable { why: fault.into(), may_have_happened }
            }
            Fault::Database(_) => Self::Database(fault.into()),
            Fault::Refused(error) => error,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.sqlx()) {
            // See `packet`.
            (_, Some(sqlx::Error::Encode(error))) => error.fmt(f),
            // The texts of the other databases contain their codes.
            (Self::Database(error), Some(sqlx::Error::Database(answer))) => {
                match answer.try_downcast_ref::<PgDatabaseError>() {
                    Some(answer) => write!(f, "{error} (SQLSTATE {})", answer.code()),
                    None => error.fmt(f),
                }
            }
            (Self::Database(error), _) => error.fmt(f),
            (Self::Refused(error), _) => error.fmt(f),
        }
    }
}

impl std::error::Error for Fault {
    /// What [`fmt::Display`] shows, without its outer text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match (self, self.sqlx()) {
            (_, Some(sqlx::Error::Encode(error))) => error.source(),
            // The library does not name it as the source of its own error.
            (_, Some(error)) => Some(error),
            (Self::Database(error), _) => Some(error),
            (Self::Refused(error), _) => error.source(),
        }
    }
}

/// The connection was lost in the same large statement each time.
#[derive(Debug)]
struct AlwaysLost {
    times: u32,
    fault: Fault,
}

impl fmt::Display for AlwaysLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(lost) = self.fault.lost_in_large() {
            write!(f, "{lost}, ")?;
        }
        write!(f, "{} times: the database, or a proxy in front of it, may only take smaller ones", self.times)
    }
}

impl std::error::Error for AlwaysLost {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.fault.lost_in_large()?.source()
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

    /// Why client and server do not agree on encryption, if that is it.
    pub(super) fn disagreement(&self) -> Option<String> {
        super::tls::disagreement(self.sqlx()?)
    }

    /// Whether the database rolled the transaction back and a retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
            // Deadlock (also a failed certification in Galera); lock wait timeout.
            return matches!(error.number(), 1213 | 1205);
        }
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            // Serialization failure; deadlock.
            return matches!(error.code(), "40001" | "40P01");
        }
        if error.try_downcast_ref::<SqliteError>().is_some() {
            // SQLITE_BUSY and SQLITE_LOCKED; the higher bits contain details.
            let code = error.code().and_then(|code| code.parse::<i32>().ok());
            return code.is_some_and(|code| matches!(code & 0xff, 5 | 6));
        }
        false
    }

    /// Whether the connection was lost. The transaction may have been committed, or may still be.
    pub(super) fn is_lost(&self) -> bool {
        self.sqlx().is_some_and(is_loss)
    }

    /// The large statement in which the connection was lost.
    fn lost_in_large(&self) -> Option<&LostInLarge> {
        match self.sqlx() {
            Some(sqlx::Error::Io(error)) => error.get_ref()?.downcast_ref(),
            _ => None,
        }
    }

    /// Whether all connections were in use for too long.
    fn is_without_connection(&self) -> bool {
        matches!(self, Self::Database(DbErr::ConnectionAcquire(_)))
    }

    /// Whether the connection was lost after something was sent that the database may have done.
    fn may_have_happened(&self) -> bool {
        self.is_lost() && matches!(self, Self::Database(DbErr::Exec(_)))
    }

    /// Whether the database had no room for the data.
    fn is_full(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
            // Disk full; the table is full; error writing a file.
            return matches!(error.number(), 1021 | 1114 | 3);
        }
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            return error.code() == "53100";
        }
        // SQLITE_FULL; SQLITE_IOERR_WRITE, at a quota or a limit of the size of files.
        let is_sqlite = error.try_downcast_ref::<SqliteError>().is_some();
        is_sqlite && error.code().is_some_and(|code| matches!(code.as_ref(), "13" | "778"))
    }

    /// Whether a unique index rejected a row.
    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Database(error) if matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_))))
    }

    /// Whether the database can never store the data: too long, out of range, not representable.
    fn is_of_the_data(&self) -> bool {
        let error = match self.sqlx() {
            Some(sqlx::Error::Database(error)) => error,
            // See `packet`.
            Some(sqlx::Error::Encode(_)) => return true,
            _ => return false,
        };
        if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
            // Packet too large; out of range; incorrect value for the type; invalid character; data too long.
            return matches!(error.number(), 1153 | 1264 | 1292 | 1366 | 1406 | 3988);
        }
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            // Class of data exceptions; program limit exceeded (index row too long).
            return error.code().starts_with("22") || error.code() == "54000";
        }
        // SQLITE_TOOBIG.
        error.try_downcast_ref::<SqliteError>().is_some() && error.code().is_some_and(|code| code == "18")
    }

    /// Whether a DDL statement has already been executed: errors 1050 (table), 1060 (column), 1061 (index) of MariaDB
    /// and MySQL.
    pub(super) fn says_exists(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        error.try_downcast_ref::<MySqlDatabaseError>().is_some_and(|error| matches!(error.number(), 1050 | 1060 | 1061))
    }

    /// Whether a table does not exist.
    pub(super) fn says_missing(&self) -> bool {
        let Some(sqlx::Error::Database(error)) = self.sqlx() else { return false };
        if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
            return error.number() == 1146;
        }
        error.code().is_some_and(|code| code == "42P01") || error.message().starts_with("no such table")
    }

    /// Whether the store refused a name that is in use.
    pub(super) fn is_name_taken(&self) -> bool {
        matches!(self, Self::Refused(Error::NameTaken(_)))
    }

    /// Whether a unique index with this word in its name (or column) rejected a row.
    pub(super) fn is_duplicate_of(&self, word: &str) -> bool {
        let Self::Database(error) = self else { return false };
        matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(text)) if text.contains(word))
    }
}

/// Whether the error is an answer of the database, which goes on to use the connection.
pub(super) fn is_answer(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(_)) && !is_loss(error)
}

/// Whether the error means that the connection was lost.
pub(super) fn is_loss(error: &sqlx::Error) -> bool {
    let error = match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => return true,
        sqlx::Error::Database(error) => error,
        _ => return false,
    };
    if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
        // A node of Galera that is not in the cluster at the moment.
        if error.number() == 1180 && error.message().contains("provider status") {
            return true;
        }
        // Shutdown in progress; node not ready (Galera); network errors; the server only reads by now; interrupted, when
        // killed during a statement; killed; disconnected because idle.
        return matches!(error.number(), 1053 | 1047 | 1158..=1161 | 1290 | 1317 | 1836 | 1927 | 4031);
    }
    if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
        // Terminated by an administrator; crash; starting or stopping; idle timeout; the server only reads by now;
        // connection exceptions.
        return matches!(error.code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006")
            || error.code().starts_with("08");
    }
    false
}

/// The time of the last lost connection: connections that have been idle since then are not used again. And the times when
/// the database last had no room, and when that was last tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(Arc<Mutex<Last>>);

#[derive(Debug, Default)]
struct Last {
    lost: Option<Instant>,
    full: Option<Instant>,
    probed: Option<Instant>,
}

impl Losses {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self) {
        self.last().lost = Some(Instant::now());
    }

    /// Whether a connection with this idle time has been idle since before the last loss.
    pub(super) fn doubt(&self, idle_for: Duration) -> bool {
        self.last().lost.is_some_and(|last| idle_for >= last.elapsed())
    }

    fn note_full(&self) {
        self.last().full = Some(Instant::now());
    }

    /// Whether nobody has tried for a while whether the database has room. The caller does.
    pub(super) fn may_probe(&self) -> bool {
        let mut last = self.last();
        let may = last.probed.is_none_or(|probed| probed.elapsed() >= PROBE_EACH);
        if may {
            last.probed = Some(Instant::now());
        }
        may
    }

    /// Whether the database had no room for something a short time ago.
    pub(super) fn is_full(&self) -> bool {
        self.last().full.is_some_and(|last| last.elapsed() < FULL_FOR)
    }
}

/// Runs a whole transaction until it succeeds, fails permanently, or was lost for longer than the patience.
///
/// When the connection is lost, it is unknown whether the database has committed. So the work must be idempotent. It
/// receives the number of the attempt, from 1.
pub(super) async fn retry<T, F>(losses: &Losses, patience: Duration, work: impl Fn(u32) -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Fault>>,
{
    let started = Instant::now();
    let (mut attempt, mut large, mut happened) = (1, 0, false);
    loop {
        let fault = match work(attempt).await {
            Ok(done) => {
                let spent = started.elapsed();
                if spent >= SLOW {
                    tracing::warn!(?spent, attempt, "a transaction was slow");
                }
                let us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
                tracing::trace!(target: "kiln::metric", metric = "store", us, retried = attempt > 1);
                return Ok(done);
            }
            Err(fault) => fault,
        };
        happened |= fault.may_have_happened();
        let mut pause = delay(attempt);
        if fault.lost_in_large().is_some() {
            (large, pause) = (large + 1, LARGE_DELAY);
            if large >= LARGE_ATTEMPTS {
                return Err(Error::Invalid(AlwaysLost { times: large, fault }.into()));
            }
        }
        if fault.is_lost() && started.elapsed() < patience {
            losses.note();
            if matches!(fault, Fault::Database(DbErr::Conn(_))) {
                tracing::warn!(attempt, %fault, "cannot connect to the database; trying again");
            } else {
                tracing::warn!(attempt, %fault, "lost the connection to the database; retrying with a new one");
            }
        } else if fault.is_transient() && attempt < ATTEMPTS {
            tracing::debug!(attempt, ?fault, "retrying the transaction");
        } else {
            if fault.is_full() {
                tracing::error!(%fault, "the database has no room");
                losses.note_full();
            }
            return Err(match fault.into() {
                Error::Unavailable { why, .. } => Error::Unavailable { why, may_have_happened: happened },
                error => error,
            });
        }
        tracing::trace!(target: "kiln::metric", metric = "store_retries", lost = fault.is_lost());
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

impl SqlStore {
    /// [`retry`] for work that does not need the attempt number.
    pub(super) async fn retry<T, F>(&self, work: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        self.retry_numbered(|_| work()).await
    }

    /// [`retry`] with the patience of this store.
    pub(super) async fn retry_numbered<T, F>(&self, work: impl Fn(u32) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let _call = self.calls.begin();
        retry(&self.losses, self.patience, work).await
    }
}

/// A random delay up to a limit that doubles with each attempt, so that conflicting transactions separate.
fn delay(attempt: u32) -> Duration {
    let limit = FIRST_DELAY.saturating_mul(1 << attempt.min(16)).min(LAST_DELAY);
    #[expect(clippy::disallowed_methods, reason = "only the length of a pause, and a store has no seed")]
    limit.mul_f64(rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use kiln_value::Chain;
    use kiln_value::chain::innermost;

    use super::super::packet::lost_in;
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

    fn lost() -> Fault {
        let error = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        Fault::Database(DbErr::Query(RuntimeErr::SqlxError(error.into())))
    }

    #[test]
    fn errors_keep_their_source_and_show_its_text_once() {
        let error = Error::from(lost());
        let Error::Unavailable { why, .. } = &error else { panic!("{error:?}") };
        let why: &(dyn std::error::Error + 'static) = &**why;
        assert_eq!(Chain(why).to_string(), lost().to_string());
        let innermost = innermost(&error).downcast_ref::<std::io::Error>();
        assert_eq!(innermost.map(std::io::Error::kind), Some(std::io::ErrorKind::ConnectionReset));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_large_statement_keeps_its_source() {
        let large = || {
            let error = lost_in(2 << 20, sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()));
            Fault::Database(DbErr::Exec(RuntimeErr::SqlxError(error.into())))
        };
        let error = retry(&Losses::default(), PATIENCE, |_| async { Err::<(), _>(large()) }).await.unwrap_err();
        let text = "the connection was lost in a statement of 2097152 bytes, 4 times: the database, or a proxy in front of \
                    it, may only take smaller ones";
        assert_eq!(error.to_string(), format!("the database cannot hold this: {text}"));
        let innermost = innermost(&error).downcast_ref::<std::io::Error>();
        assert_eq!(innermost.map(std::io::Error::kind), Some(std::io::ErrorKind::BrokenPipe));
        let chain = Chain(&error).to_string();
        assert_eq!(chain.matches("the connection was lost").count(), 1, "{chain}");
        assert!(chain.ends_with("broken pipe"), "{chain}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_lost_is_done_again() {
        let losses = Losses::default();
        assert!(!losses.doubt(Duration::MAX));
        let done =
            retry(&losses, PATIENCE, |attempt| async move { if attempt < 30 { Err(lost()) } else { Ok(attempt) } })
                .await;
        assert_eq!(done.unwrap(), 30);
        assert!(losses.doubt(Duration::from_secs(1)), "idle since before the loss");
        assert!(!losses.doubt(Duration::ZERO), "used since");
    }
}
