//! Notifications on the message bus of the operator.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{Failure, FailureKind};
use kiln_stack::Backends;
use kiln_store::{Notice, OutboxEntry};
use kiln_template::Template;
use kiln_value::{Class, Map, Value};
use uuid::Uuid;

/// Heat's description of a template without one.
const NO_DESCRIPTION: &str = "No description";

/// A message for the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its ID; a message that is sent again has the same one.
    pub id: Uuid,
    /// The event type: `orchestration.stack.create.start`.
    pub event_type: String,
    /// Whether its priority is ERROR; else it is the usual one.
    pub error: bool,
    /// The time of the event.
    pub time: Timestamp,
    /// The payload.
    pub payload: Map,
}

/// The message bus of the operator.
#[async_trait]
pub trait MessageBus: Send + Sync {
    /// Sends messages in order. Succeeds when the bus has confirmed that it has all of them.
    async fn send(&self, messages: &[Message]) -> Result<(), Failure>;
}

/// Sends notices.
pub(super) async fn send(
    backends: &Backends,
    bus: Option<&dyn MessageBus>,
    entries: &[OutboxEntry],
) -> Result<(), Failure> {
    let Some(bus) = bus else {
        return Err(Failure::new(FailureKind::NotSent, Class::NotConfigured, "this engine has no message bus"));
    };
    let mut messages = Vec::with_capacity(entries.len());
    for entry in entries {
        messages.extend(message(backends, entry).await?);
    }
    bus.send(&messages).await
}

/// The message of an entry; `None` if the entry cannot be read.
async fn message(backends: &Backends, entry: &OutboxEntry) -> Result<Option<Message>, Failure> {
    let read = serde_json::to_string(&entry.body).and_then(|text| serde_json::from_str::<Notice>(&text));
    let notice = match read {
        Ok(notice) => notice,
        Err(error) => {
            tracing::warn!(entry = %entry.id, %error, "a stored notification cannot be read and is not sent");
            return Ok(None);
        }
    };
    let mut payload = notice.payload;
    let description = match backends.store.content(&notice.template).await {
        Ok(text) => description_of(&text),
        // The template was replaced long ago.
        Err(kiln_store::Error::NotFound(_)) => NO_DESCRIPTION.into(),
        Err(error) => return Err(Failure::new(FailureKind::NotSent, Class::Database, error.to_string())),
    };
    payload.insert("description".to_owned(), description);
    Ok(Some(Message {
        id: entry.id,
        event_type: format!("orchestration.{}", notice.event_type),
        error: notice.error,
        time: notice.time,
        payload,
    }))
}

fn description_of(template: &str) -> Value {
    let template = serde_json::from_str::<Value>(template).ok();
    let template = template.and_then(|template| Template::from_value(std::sync::Arc::new(template)).ok());
    template.map_or_else(|| NO_DESCRIPTION.into(), |template| template.description().into())
}
