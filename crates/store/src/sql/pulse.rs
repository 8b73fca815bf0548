//! Whether a server still works on a statement.
//!
//! A statement may take as long as the server works on it. What is limited is silence: a connection whose other side has gone
//! without a word would wait for ever. When no answer comes for a second, a fresh connection asks the server what it does
//! for the connection that waits. If the server does nothing for it, or gives no answer on the fresh connection either, the
//! connection that waits is given up.

use std::collections::HashMap;
use std::io::{Error as IoError, ErrorKind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sea_orm::sqlx;
use tokio::time::Instant;

use super::connection::{Connection, Place, Session};
use super::simulation::block_on;
use super::statement_retry::is_answer;

/// After this time without an answer, the server is asked.
const QUIET: Duration = Duration::from_secs(1);
/// How long a fresh connection and its answer may take.
const ASK_LIMIT: Duration = Duration::from_millis(2_500);
/// How often the server must say that it does nothing for a connection: a large statement may still be on its way to it.
const IDLE_ANSWERS: u32 = 3;
/// How long a statement may take when the server cannot say what it does for the connection, for example because a proxy
/// leads the fresh connection to another server.
const UNKNOWN_LIMIT: Duration = Duration::from_mins(1);

/// What is known about the server of a store. Its pools share it.
pub(super) struct Pulse {
    place: Place,
    /// When the server has last answered to anything.
    answered: Mutex<Instant>,
    /// The last report. It is locked while a fresh connection asks for the next one.
    last: tokio::sync::Mutex<Option<LastReport>>,
    /// When the server was last found silent.
    silent: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct LastReport {
    asked: Instant,
    report: Report,
}

#[derive(Clone)]
enum Report {
    /// The server, and its sessions that execute something; true: they only send an answer.
    Works(Arc<(String, HashMap<i64, bool>)>),
    /// It answers, but does not say what it does.
    Answers,
    Silent,
}

enum Verdict {
    Works,
    Idle,
    Unknown,
    Silent,
}

impl Pulse {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            answered: Mutex::new(Instant::now()),
            last: tokio::sync::Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// Whether the server was silent, and has not answered to anything since.
    pub(super) fn is_silent(&self) -> bool {
        let silent = *self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.is_some_and(|since| self.answered_at() <= since)
    }

    fn answered_at(&self) -> Instant {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_answer(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits for an answer of the server as long as it works for the session; without a session, until it has answered to
    /// connections that were opened later.
    pub(super) async fn watch<T>(
        &self,
        session: Option<&Session>,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        if self.place.is_simulated() {
            return block_on(work);
        } else if !self.place.is_server() {
            return work.await;
        }
        let mut work = pin!(work);
        let (started, mut quiet, mut idle) = (Instant::now(), Instant::now(), 0);
        loop {
            let asked = async {
                tokio::time::sleep(QUIET).await;
                self.ask(session, quiet).await
            };
            let verdict = tokio::select! {
                biased;
                result = &mut work => {
                    if result.as_ref().err().is_none_or(is_answer) {
                        self.note_answer();
                    }
                    return result;
                }
                verdict = asked => verdict,
            };
            quiet = Instant::now();
            idle = if matches!(verdict, Verdict::Idle) { idle + 1 } else { 0 };
            match verdict {
                Verdict::Silent => return Err(silent()),
                _ if idle >= IDLE_ANSWERS => {
                    let text = "the connection does not answer, and the server does nothing for it";
                    return Err(sqlx::Error::Io(IoError::new(ErrorKind::ConnectionAborted, text)));
                }
                Verdict::Unknown if started.elapsed() > UNKNOWN_LIMIT => return Err(silent()),
                _ => {}
            }
        }
    }

    /// What the server does for a session that is silent since then.
    async fn ask(&self, session: Option<&Session>, since: Instant) -> Verdict {
        match (self.report(since).await, session) {
            (Report::Silent, _) => Verdict::Silent,
            // It has answered to a connection that was opened later.
            (Report::Works(_), None) => Verdict::Idle,
            (Report::Works(report), Some(session)) if report.0 == session.server => match report.1.get(&session.number)
            {
                Some(false) => Verdict::Works,
                Some(true) => Verdict::Unknown,
                None => Verdict::Idle,
            },
            _ => Verdict::Unknown,
        }
    }

    /// A report from after `since`. All who ask at the same time share it.
    async fn report(&self, since: Instant) -> Report {
        let mut last = self.last.lock().await;
        if let Some(told) = &*last
            && (told.asked >= since || self.is_silent())
        {
            return told.report.clone();
        }
        let asked = Instant::now();
        let report = match tokio::time::timeout(ASK_LIMIT, Box::pin(self.fresh_report())).await {
            Ok(Ok(report)) => report,
            Ok(Err(error)) if is_answer(&error) => Report::Answers,
            // Another connection may have been answered meanwhile: then the server is only slow.
            Err(_) if self.answered_at() > asked => Report::Answers,
            Ok(Err(_)) | Err(_) => Report::Silent,
        };
        if matches!(report, Report::Silent) {
            tracing::warn!("the database does not answer");
            *self.silent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        } else {
            self.note_answer();
        }
        *last = Some(LastReport { asked, report: report.clone() });
        report
    }

    async fn fresh_report(&self) -> Result<Report, sqlx::Error> {
        let mut connection = Connection::open(&self.place).await?;
        let Some(session) = connection.session().await? else { return Ok(Report::Answers) };
        Ok(Report::Works(Arc::new((session.server, connection.working_sessions().await?))))
    }
}

/// The server does not answer, on whichever connection.
pub(super) fn silent() -> sqlx::Error {
    sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, "the database does not answer"))
}
