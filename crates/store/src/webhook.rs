//! Webhooks: URLs of users to which events of a project are sent.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{Status, WebhookId, words};
use kiln_value::{Map, Secret, Value, value};
use uuid::Uuid;

use crate::{
    Announcement, Author, DriftReport, DriftedResource, Error, Event, Guard, OutboxEntry, Plan, Stack, StackId,
};

/// What the type of each event begins with, as those of notifications.
const PREFIX: &str = "orchestration.";
/// What events are about: the word behind the prefix.
const SUBJECTS: [&str; 6] = ["stack", "resource", "plan", "guard", "drift", "webhook"];

/// A webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// Its ID.
    pub id: WebhookId,
    /// Project ID.
    pub project: String,
    /// What its user has set.
    pub terms: WebhookTerms,
    /// Whether its receiver takes events.
    pub receiver: Receiver,
    /// Who made it.
    pub author: Author,
    /// When.
    pub created: Timestamp,
    /// The number of its last change by a user.
    pub version: i64,
}

/// What the user of a webhook sets.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookTerms {
    /// Where events are sent. It may contain a password or a token.
    pub url: Secret<String>,
    /// The keys of the signatures, the newest first; never empty.
    pub keys: Vec<WebhookKey>,
    /// Which events are sent.
    pub events: Vec<EventPattern>,
    /// Only events of the tree of this root stack.
    pub stack: Option<StackId>,
    /// What it is for; may be empty.
    pub description: String,
    /// Whether the receiver must allow Kiln to send, by the handshake of `CloudEvents`.
    pub handshake: bool,
    /// Why nothing is sent; `None`: events are sent.
    pub disabled: Option<String>,
}

/// A key of signatures.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookKey {
    /// `whsec_` and base64.
    pub secret: Secret<String>,
    /// The end of a key that was replaced.
    pub until: Option<Timestamp>,
}

/// What is known of the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// When it allowed Kiln to send.
    pub allowed: Option<Timestamp>,
    /// How many requests it takes in a minute; `None`: any number.
    pub rate: Option<u32>,
    /// Since when no attempt has succeeded, if the last one failed. A series of failures ends if nothing is tried for 6 hours.
    pub failing_since: Option<Timestamp>,
}

/// A pattern of types of events, without their prefix: `stack.*.error`. A star is any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPattern(String);

/// A pattern that no event can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no event has the type {0:?}: types are such as stack.create.error, resource.*, plan.*, guard.* and *")]
pub struct NoSuchEvent(pub String);

impl EventPattern {
    /// Reads a pattern, with or without the prefix.
    ///
    /// # Errors
    /// [`NoSuchEvent`]
    pub fn new(text: &str) -> Result<Self, NoSuchEvent> {
        let pattern = text.strip_prefix(PREFIX).unwrap_or(text);
        let subject = pattern.split('.').next().unwrap_or_default();
        let is_one = |known: &&str| fits(subject, known);
        let is_plain = pattern.bytes().all(|byte| byte.is_ascii_lowercase() || b"._*".contains(&byte));
        if !is_plain || subject.is_empty() || !SUBJECTS.iter().any(is_one) {
            return Err(NoSuchEvent(text.to_owned()));
        }
        Ok(Self(pattern.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn matches(&self, event_type: &str) -> bool {
        fits(&self.0, event_type.strip_prefix(PREFIX).unwrap_or(event_type))
    }
}

/// Whether a text fits a pattern, whose stars are any text. This takes time in proportion to the product of the lengths at most.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// Something that webhooks tell.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookMessage {
    /// Identifies what happened.
    pub id: Uuid,
    /// Its type with the prefix: `orchestration.stack.create.end`.
    pub event_type: String,
    /// The root stack, if it is about one.
    pub root: Option<StackId>,
    /// What it is about, as a path of the API.
    pub source: String,
    /// The part of the source that it is about: a resource, a plan.
    pub subject: String,
    /// When it happened.
    pub time: Timestamp,
    /// The rest.
    pub data: Map,
}

impl WebhookMessage {
    /// The message about an event of a stack.
    pub(crate) fn of_event(stack: &Stack, event: &Event) -> Self {
        let end = match event.status {
            Status::InProgress => "start",
            Status::Complete => "end",
            Status::Failed => "error",
        };
        let is_of_stack = event.is_of_stack() && event.resource_type == "OS::Heat::Stack";
        let about = if is_of_stack { "stack" } else { "resource" };
        let mut data = of_stack(stack);
        let details = value!({
            "action": (event.action.as_str()),
            "status": (event.status.as_str()),
            "reason": (event.reason.as_str()),
            "operation_id": (event.operation.map(|operation| operation.to_string())),
            "event_id": (event.id.to_string()),
        });
        extend(&mut data, details);
        if !is_of_stack {
            let resource = value!({
                "resource_name": (event.resource_name.as_str()),
                "resource_type": (event.resource_type.as_str()),
                "physical_resource_id": (event.physical_id.clone()),
            });
            extend(&mut data, resource);
        }
        Self {
            id: event.id.0,
            event_type: format!("{PREFIX}{about}.{}.{end}", event.action.to_lowercase()),
            root: Some(stack.root),
            source: source(&stack.project, &format!("stacks/{}/{}", stack.name, stack.id)),
            subject: event.resource_name.clone(),
            time: event.time,
            data,
        }
    }

    /// The message about a change of a plan. `what`: `saved`, `approved`, `rejected` or `executed`.
    pub(crate) fn of_plan(plan: &Plan, what: &str, by: Option<&Author>, time: Timestamp) -> Self {
        let name = format!("{what} {}", by.map_or("", |author| author.user_id.as_str()));
        let data = value!({
            "plan_id": (plan.id.to_string()),
            "stack_id": (plan.stack.to_string()),
            "stack_name": (plan.stack_name.as_str()),
            "action": (plan.action.as_str()),
            "user_id": (by.map(|author| author.user_id.clone())),
            "user_name": (by.map(|author| author.username.clone())),
        });
        Self {
            id: Uuid::new_v5(&plan.id.0, name.as_bytes()),
            event_type: format!("{PREFIX}plan.{what}"),
            root: Some(plan.stack),
            source: source(&plan.project, "plans"),
            subject: plan.id.to_string(),
            time,
            data: map(data),
        }
    }

    /// The message about a guard. `what`: `added` or `lifted`.
    pub(crate) fn of_guard(guard: &Guard, what: &str, by: &Author, time: Timestamp) -> Self {
        let data = value!({
            "guard_id": (guard.id.to_string()),
            "stack_id": (guard.stack.map(|stack| stack.to_string())),
            "reason": (guard.terms.reason.as_str()),
            "user_id": (by.user_id.as_str()),
            "user_name": (by.username.as_str()),
        });
        Self {
            id: Uuid::new_v5(&guard.id.0, what.as_bytes()),
            event_type: format!("{PREFIX}guard.{what}"),
            root: guard.stack,
            source: source(&guard.project, "guards"),
            subject: guard.id.to_string(),
            time,
            data: map(data),
        }
    }

    /// The message about what a comparison has found. `news`: `found`, `changed` or `resolved`.
    pub(crate) fn of_drift(stack: &Stack, report: &DriftReport, news: &str, time: Timestamp) -> Self {
        let mut data = of_stack(stack);
        let details = value!({
            "drift_status": (report.status.as_str()),
            "drifted_resources": (i64::try_from(report.drifted).unwrap_or(i64::MAX)),
            "resources": (report.resources.iter().map(DriftedResource::document).collect::<Value>()),
            "no_longer_repaired": (report.stopped.iter().map(DriftedResource::document).collect::<Value>()),
        });
        extend(&mut data, details);
        Self {
            id: Uuid::new_v5(&stack.id.0, format!("drift {news} {}", time.as_microsecond()).as_bytes()),
            event_type: format!("{PREFIX}drift.{news}"),
            root: Some(stack.root),
            source: source(&stack.project, &format!("stacks/{}/{}", stack.name, stack.id)),
            subject: stack.name.clone(),
            time,
            data,
        }
    }

    /// The same for the message bus.
    pub(crate) fn announcement(&self, error: bool) -> Announcement {
        let event_type = self.event_type.strip_prefix(PREFIX).unwrap_or(&self.event_type).to_owned();
        Announcement { id: self.id, event_type, error, time: self.time, details: self.data.clone() }
    }

    /// A message that only says that the webhook works.
    pub fn test(webhook: &Webhook, id: Uuid, time: Timestamp) -> Self {
        Self {
            id,
            event_type: format!("{PREFIX}webhook.test"),
            root: None,
            source: source(&webhook.project, "webhooks"),
            subject: webhook.id.to_string(),
            time,
            data: map(value!({ "webhook_id": (webhook.id.to_string()) })),
        }
    }

    /// Whether a webhook for these events, of a root stack or of all, tells it.
    pub(crate) fn is_for(&self, events: &[EventPattern], stack: Option<StackId>) -> bool {
        stack.is_none_or(|stack| self.root == Some(stack))
            && events.iter().any(|pattern| pattern.matches(&self.event_type))
    }

    /// The attributes of the `CloudEvent`, without those of its delivery.
    pub(crate) fn body(&self) -> Value {
        value!({
            "type": (self.event_type.as_str()),
            "source": (self.source.as_str()),
            "subject": (self.subject.as_str()),
            "time": (self.time.strftime("%Y-%m-%dT%H:%M:%S%.fZ").to_string()),
            "data": (Value::Map(self.data.clone())),
        })
    }
}

/// A path of the REST API.
fn source(project: &str, rest: &str) -> String {
    format!("/v1/{project}/{rest}")
}

fn of_stack(stack: &Stack) -> Map {
    map(value!({
        "project_id": (stack.project.as_str()),
        "stack_id": (stack.id.to_string()),
        "stack_name": (stack.name.as_str()),
        "root_stack_id": (stack.root.to_string()),
    }))
}

fn map(value: Value) -> Map {
    match value {
        Value::Map(map) => map,
        _ => Map::new(),
    }
}

fn extend(data: &mut Map, more: Value) {
    data.extend(map(more));
}

words! {
    /// How a delivery stands.
    Outcome {
        /// It is being sent, or will be sent again.
        Pending = "pending",
        /// The receiver has it.
        Delivered = "delivered",
        /// It was given up.
        Failed = "failed",
    }
}

/// A delivery of an event to a webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookDelivery {
    /// Its ID, which the receiver gets with each attempt.
    pub id: Uuid,
    /// The type of the event.
    pub event_type: String,
    /// Its place among the events of the webhook, from 1. A receiver that misses one can see that.
    pub sequence: i64,
    /// How it stands.
    pub outcome: Outcome,
    /// How often it was tried.
    pub attempts: u32,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// How long the last attempt took.
    pub took: Option<std::time::Duration>,
    /// Time of the first attempt.
    pub created: Timestamp,
    /// Time of the last attempt.
    pub tried: Option<Timestamp>,
}

/// A list of deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryQuery {
    /// Only these.
    pub outcome: Option<Outcome>,
    /// Only deliveries before this one.
    pub marker: Option<Uuid>,
    /// Maximum number.
    pub limit: Option<u64>,
}

/// What happened when an entry of a webhook's lane was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The claim.
    pub mark: Uuid,
    /// The number of the entry.
    pub number: i64,
    /// Its ID.
    pub id: Uuid,
    /// [`Outcome::Pending`]: it is sent again, and the entry stays.
    pub outcome: Outcome,
    /// Whether the receiver was called.
    pub was_sent: bool,
    /// Whether it has answered and does not take the event.
    pub was_refused: bool,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Why it failed.
    pub error: Option<String>,
    /// How long it took.
    pub took: std::time::Duration,
}

/// Webhooks and their deliveries.
///
/// The entries of a webhook are a lane of the outbox of their own. A delivery is stored before it is sent for the first time, which
/// gives it its place among the events of the webhook.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Adds a webhook. This is idempotent by ID.
    async fn add_webhook(&self, webhook: &Webhook) -> Result<(), Error>;
    /// The webhooks of a project, oldest first.
    async fn webhooks(&self, project: &str) -> Result<Vec<Webhook>, Error>;
    /// A webhook.
    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, Error>;
    /// Changes the terms of a webhook, and its version; false if it has another version now, or is removed. What is known of the
    /// receiver is forgotten, and what waits for the next attempt is sent at once.
    async fn change_webhook(&self, webhook: &Webhook) -> Result<bool, Error>;
    /// Removes a webhook; false if there was none. What waits for it is dropped.
    async fn remove_webhook(&self, project: &str, id: WebhookId) -> Result<bool, Error>;
    /// Sends a message to one webhook, whatever its events are; returns the ID of its delivery.
    async fn send_to_webhook(&self, id: WebhookId, message: &WebhookMessage) -> Result<Uuid, Error>;
    /// Sends a delivery again; false if there is none. One that is pending stays as it is.
    async fn redeliver(&self, id: WebhookId, delivery: Uuid) -> Result<bool, Error>;
    /// Deliveries, newest first. [`Error::NotFound`]: the marker.
    async fn deliveries(&self, id: WebhookId, query: &DeliveryQuery) -> Result<Vec<WebhookDelivery>, Error>;

    /// Stores deliveries of claimed entries, unless they are stored. Returns their places, in order, and how often the receiver has
    /// refused them; nothing if the webhook was removed.
    async fn begin_deliveries(&self, id: WebhookId, entries: &[OutboxEntry]) -> Result<Vec<(i64, u32)>, Error>;
    /// Stores the result of an attempt, and what it says of the receiver, unless the claim has expired and another courier has the entry.
    async fn end_attempt(&self, id: WebhookId, attempt: &Attempt) -> Result<(), Error>;
    /// Stores that the receiver allows Kiln to send, and how often.
    async fn allow_webhook(&self, id: WebhookId, rate: Option<u32>) -> Result<(), Error>;
    /// Disables a webhook, unless it is disabled.
    async fn disable_webhook(&self, id: WebhookId, why: &str) -> Result<(), Error>;
    /// Notes that the receiver could not be asked whether it allows Kiln to send.
    async fn note_failure(&self, id: WebhookId) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_types_of_events() {
        let matches = |pattern: &str, event: &str| EventPattern::new(pattern).unwrap().matches(event);
        assert!(matches("stack.*", "orchestration.stack.create.end"));
        assert!(matches("orchestration.stack.*.error", "orchestration.stack.update.error"));
        assert!(matches("*", "orchestration.guard.added"));
        assert!(matches("*.error", "orchestration.resource.create.error"));
        assert!(matches("s*.error", "orchestration.stack.delete.error"));
        assert!(!matches("stack.*.error", "orchestration.stack.create.end"));
        assert!(!matches("stack.create", "orchestration.stack.create.end"));
        assert!(!matches("stack.*end.*end", "orchestration.stack.create.end"));
        for unknown in ["", "stacks.*", "Stack.*", "drifts.*", "stack *", "stäck.*"] {
            assert!(EventPattern::new(unknown).is_err(), "{unknown}");
        }
    }
}
