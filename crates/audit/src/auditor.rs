//! Writes the events of requests.

use std::sync::Arc;

use jiff::Timestamp;
use kiln_value::{Map, Value};
use uuid::Uuid;

use crate::event::{self, Attachment, Request};
use crate::map::AuditMap;
use crate::rules::Rules;
use crate::spool::{Notification, Spool};

/// The target of the lines of the log.
const TARGET: &str = "kiln_audit";

/// Where events are written.
#[derive(Debug)]
pub enum Trail {
    /// To the log: a line for each, at INFO.
    Log,
    /// To files, from which they are delivered.
    Spool(Arc<Spool>),
}

impl Trail {
    fn write(&self, notification: &Notification) -> std::io::Result<()> {
        match self {
            Self::Log => {
                let payload = serde_json::to_string(&notification.payload).unwrap_or_default();
                tracing::info!(target: TARGET, event_type = notification.event_type, "{payload}");
                Ok(())
            }
            Self::Spool(spool) => spool.write(notification),
        }
    }
}

/// What happens to a request whose event cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It is carried out; the log has an error.
    #[default]
    Continue,
    /// It is refused.
    Refuse,
}

/// The event of a request cannot be written, and requests without one are refused.
#[derive(Debug, thiserror::Error)]
#[error("the audit event of the request cannot be written")]
pub struct Refused;

/// Writes the events of requests.
#[derive(Debug)]
pub struct Auditor {
    rules: Rules,
    map: AuditMap,
    trail: Trail,
    on_failure: OnFailure,
}

/// A request whose first event is written.
#[derive(Clone, Debug)]
pub struct Entry {
    event: Map,
}

impl Auditor {
    /// Audits the requests that the rules take.
    pub fn new(rules: Rules, map: AuditMap, trail: Trail, on_failure: OnFailure) -> Self {
        Self { rules, map, trail, on_failure }
    }

    /// The files to deliver, if there are any.
    pub fn spool(&self) -> Option<&Arc<Spool>> {
        match &self.trail {
            Trail::Log => None,
            Trail::Spool(spool) => Some(spool),
        }
    }

    /// Writes `audit.http.request`, before the work; `None`: the rules leave the request out.
    ///
    /// # Errors
    /// The event cannot be written, and such requests are refused.
    pub fn begin(
        &self,
        request: &Request<'_>,
        mut uuid: impl FnMut() -> Uuid,
        now: Timestamp,
    ) -> Result<Option<Entry>, Refused> {
        if !self.rules.take(request.method, &request.decoded_path()) {
            return Ok(None);
        }
        let mut event = request.event(&self.map);
        event::identified(&mut event, uuid(), uuid(), now);
        let entry = Entry { event };
        match self.write("audit.http.request", &entry, uuid(), now) {
            Err(_) if self.on_failure == OnFailure::Refuse => Err(Refused),
            _ => Ok(Some(entry)),
        }
    }

    /// Writes `audit.http.response`, after the work.
    pub fn end(&self, mut entry: Entry, status: u16, attachments: Vec<Attachment>, id: Uuid, now: Timestamp) {
        event::ended(&mut entry.event, status, attachments, now);
        // The work is done: the log is all that is left.
        _ = self.write("audit.http.response", &entry, id, now);
    }

    /// Writes `audit.http.response` for a request whose client has gone away: what came of it is unknown.
    pub fn abandon(&self, mut entry: Entry, id: Uuid, now: Timestamp) {
        event::abandoned(&mut entry.event, now);
        _ = self.write("audit.http.response", &entry, id, now);
    }

    fn write(&self, event_type: &str, entry: &Entry, id: Uuid, time: Timestamp) -> std::io::Result<()> {
        let payload = Value::Map(entry.event.clone());
        let notification = Notification { id, event_type: event_type.to_owned(), time, payload };
        let written = self.trail.write(&notification);
        if let Err(error) = &written {
            tracing::error!(%error, event_type, "an audit event cannot be written");
        }
        written
    }
}
