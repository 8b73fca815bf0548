//! The outbox: events that have to be sent to event sinks, to the message bus or to webhooks.
//!
//! An entry is written in the transaction of its event, one for each destination, so that no event is lost and none is
//! sent that was not stored. Couriers (`kiln_engine`) send the entries and delete them. The entries of a tree of stacks
//! for one destination are a lane: they are sent in order, by one courier at a time, and lanes do not wait for each
//! other. A webhook is a lane, with the events of all stacks.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{Status, WebhookId};
use kiln_value::{Map, Value, value};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{Digest, Error, Event, Stack, StackId, WebhookMessage};

/// The default lifetime of a message in a queue, in seconds.
const DEFAULT_TTL: i64 = 3600;
/// The end of the names of lanes for plug-ins.
const PLUGINS: &str = " plugins";
/// The beginning of the names of lanes of webhooks.
pub(crate) const WEBHOOK: &str = "webhook ";
/// The version of events and of their payload in Heat.
const VERSION: &str = "0.1";

/// Where entries are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Destination {
    /// A queue of Zaqar, with the credentials of the stack.
    ZaqarQueue {
        /// Its name.
        target: String,
        /// Lifetime of a message in seconds.
        #[serde(default = "default_ttl", deserialize_with = "ttl")]
        ttl: i64,
    },
    /// The message bus of the operator.
    Notifications,
    /// The lifecycle plug-ins of the operator, after an operation.
    Plugins,
    /// The receiver of a webhook.
    Webhook {
        /// Its ID.
        id: WebhookId,
    },
}

/// A lane with entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// The time until its first entry may be sent; zero: now.
    pub wait: Duration,
    /// How often the first entry was tried.
    pub attempts: u32,
}

impl Lane {
    /// Whether its destination is [`Destination::Plugins`], which takes more time than others.
    pub fn is_of_plugins(&self) -> bool {
        self.name.ends_with(PLUGINS)
    }

    /// Whether its destination is a webhook.
    pub fn is_of_webhook(&self) -> bool {
        self.name.starts_with(WEBHOOK)
    }
}

/// Claimed entries of a lane, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The root stack, whose credentials are used; nil for webhooks, which need none.
    pub root: StackId,
    /// Where they are sent.
    pub destination: Destination,
    /// The entries; never empty.
    pub entries: Vec<OutboxEntry>,
}

/// An entry of the outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxEntry {
    /// Its number: entries are sent in this order.
    pub number: i64,
    /// Its ID, which follows from event and destination: an entry that is sent again has the same one.
    pub id: Uuid,
    /// What to send: for a queue the event as Heat sends it, for notifications a [`Notice`], for webhooks a part of a CloudEvent.
    pub body: Value,
    /// The time since it was written.
    pub age: Duration,
    /// How often it was tried.
    pub attempts: u32,
}

/// A notification, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The event type without `orchestration.`: `stack.create.start`.
    pub event_type: String,
    /// Whether it is about an error.
    pub error: bool,
    /// The time of the event.
    pub time: Timestamp,
    /// The template of the stack, for the description in the payload.
    pub template: Digest,
    /// The payload, without the description.
    pub payload: Map,
}

/// Stores the outbox. All times are judged by the database's clock.
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// The first lane after a name, in the order of names.
    async fn next_lane(&self, after: &str) -> Result<Option<Lane>, Error>;
    /// Claims the first entries of a lane for `ttl`. `None`: there are none, another courier has them, or they may not
    /// be sent yet. `mark` identifies the claim.
    async fn claim_lane(&self, lane: &str, mark: Uuid, ttl: Duration, limit: usize) -> Result<Option<Delivery>, Error>;
    /// Deletes claimed entries, which were sent or are given up.
    async fn remove_entries(&self, mark: Uuid, numbers: &[i64]) -> Result<(), Error>;
    /// Ends a claim: the entries may be sent again after `delay`. Without a delay it does not count as an attempt.
    async fn postpone_entries(&self, mark: Uuid, numbers: &[i64], delay: Duration) -> Result<(), Error>;
    /// Changes when this process has written entries.
    fn outbox_news(&self) -> watch::Receiver<()>;
}

/// Something to announce on the message bus in addition to the events of a stack: the change of the size of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Identifies it.
    pub id: Uuid,
    /// The event type without `orchestration.`: `autoscaling.start`.
    pub event_type: String,
    /// Whether it is about an error.
    pub error: bool,
    /// Its time.
    pub time: Timestamp,
    /// The payload, in addition to that about the stack.
    pub details: Map,
}

/// A run of lifecycle plug-ins after an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginRun {
    /// Identifies it.
    pub id: Uuid,
    /// What the plug-ins are told, and how many of them.
    pub body: Value,
}

fn default_ttl() -> i64 {
    DEFAULT_TTL
}

/// Null means the default.
fn ttl<'de, D: Deserializer<'de>>(ttl: D) -> Result<i64, D::Error> {
    Ok(Option::deserialize(ttl)?.unwrap_or(DEFAULT_TTL))
}

/// An entry to write.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    pub(crate) id: Uuid,
    pub(crate) lane: String,
    pub(crate) root: StackId,
    pub(crate) destination: Destination,
    pub(crate) body: Value,
}

impl NewEntry {
    fn new(stack: &Stack, event: Uuid, destination: &Destination, body: Value) -> Self {
        let lane = lane(stack.root, destination);
        Self {
            id: Uuid::new_v5(&event, lane.as_bytes()),
            lane,
            root: stack.root,
            destination: destination.clone(),
            body,
        }
    }

    /// Something that a webhook tells.
    pub(crate) fn for_webhook(webhook: WebhookId, message: &WebhookMessage) -> Self {
        let lane = lane_of_webhook(webhook);
        Self::again(webhook, Uuid::new_v5(&message.id, lane.as_bytes()), message.body())
    }

    /// Something that a webhook tells, with the ID that it has already.
    pub(crate) fn again(webhook: WebhookId, id: Uuid, body: Value) -> Self {
        let destination = Destination::Webhook { id: webhook };
        Self { id, lane: lane_of_webhook(webhook), root: StackId(Uuid::nil()), destination, body }
    }
}

pub(crate) fn lane_of_webhook(webhook: WebhookId) -> String {
    format!("{WEBHOOK}{webhook}")
}

/// The lane of a tree of stacks and a destination.
fn lane(root: StackId, destination: &Destination) -> String {
    match destination {
        Destination::Notifications => format!("{root} notifications"),
        Destination::Plugins => format!("{root}{PLUGINS}"),
        Destination::Webhook { id } => lane_of_webhook(*id),
        Destination::ZaqarQueue { target, ttl } => {
            let digest = Digest::of(&format!("{ttl} {target}")).0;
            format!("{root} queue {digest}")
        }
    }
}

/// The event sinks in the text of an environment. Invalid ones are refused before an environment is stored.
pub(crate) fn sinks_of(environment: &str) -> Vec<Destination> {
    let environment: Value = serde_json::from_str(environment).unwrap_or_default();
    let declared = environment.get("event_sinks").and_then(Value::as_list).unwrap_or_default();
    // The same queue twice gets each event once: an entry is identified by event and destination.
    let mut sinks: Vec<Destination> = Vec::new();
    for sink in declared {
        let text = serde_json::to_string(sink).unwrap_or_default();
        match serde_json::from_str(&text) {
            Ok(Destination::Notifications | Destination::Plugins | Destination::Webhook { .. }) | Err(_) => {}
            Ok(sink) if sinks.contains(&sink) => {}
            Ok(sink) => sinks.push(sink),
        }
    }
    sinks
}

/// The entries for events of a stack.
pub(crate) fn entries_for(stack: &Stack, events: &[Event], sinks: &[Destination], notify: bool) -> Vec<NewEntry> {
    let mut entries = Vec::new();
    for event in events {
        entries.extend(sinks.iter().map(|sink| NewEntry::new(stack, event.id.0, sink, sink_body(event))));
        if notify && event.is_of_stack() && event.resource_type == "OS::Heat::Stack" {
            entries.push(NewEntry::new(stack, event.id.0, &Destination::Notifications, notice_body(stack, event)));
        }
    }
    entries
}

/// The entries for announcements of a stack.
pub(crate) fn announced(stack: &Stack, announcements: &[Announcement]) -> Vec<NewEntry> {
    let entry = |one: &Announcement| {
        let mut payload = payload(stack, &stack.state.to_string(), &stack.reason);
        payload.extend(one.details.clone());
        let body = notice(&Notice {
            event_type: one.event_type.clone(),
            error: one.error,
            time: one.time,
            template: stack.desired.template.clone(),
            payload,
        });
        NewEntry::new(stack, one.id, &Destination::Notifications, body)
    };
    announcements.iter().map(entry).collect()
}

/// The entries for runs of plug-ins.
pub(crate) fn runs(stack: &Stack, runs: &[PluginRun]) -> Vec<NewEntry> {
    runs.iter().map(|run| NewEntry::new(stack, run.id, &Destination::Plugins, run.body.clone())).collect()
}

/// An event as Heat sends it to sinks.
fn sink_body(event: &Event) -> Value {
    let properties = if event.properties.is_null() { Value::Map(Map::new()) } else { event.properties.clone() };
    value!({
        "timestamp": (event.time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()),
        "version": VERSION,
        "type": "os.heat.event",
        "id": (event.id.to_string()),
        "payload": {
            "resource_name": (event.resource_name.clone()),
            "physical_resource_id": (event.physical_id.clone()),
            "stack_id": (event.stack.to_string()),
            "resource_action": (event.action.clone()),
            "resource_status": (event.status.as_str()),
            "resource_status_reason": (event.reason.clone()),
            "resource_type": (event.resource_type.clone()),
            "resource_properties": properties,
            "version": VERSION,
        },
    })
}

/// The notice about an event of a stack.
fn notice_body(stack: &Stack, event: &Event) -> Value {
    let suffix = match event.status {
        Status::InProgress => "start",
        Status::Complete => "end",
        Status::Failed => "error",
    };
    let state = format!("{}_{}", event.action, event.status);
    notice(&Notice {
        event_type: format!("stack.{}.{suffix}", event.action.to_lowercase()),
        error: event.status == Status::Failed,
        time: event.time,
        template: stack.desired.template.clone(),
        payload: payload(stack, &state, &event.reason),
    })
}

/// The payload of every notification about a stack.
fn payload(stack: &Stack, state: &str, reason: &str) -> Map {
    let time = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let tags: Vec<Value> = stack.tags.iter().map(|tag| tag.as_str().into()).collect();
    let payload = value!({
        "tenant_id": (stack.project.clone()),
        "user_id": (stack.username.clone()),
        "user_identity": (stack.user_id.clone()),
        "username": (stack.username.clone()),
        "stack_identity": (stack.id.to_string()),
        "stack_name": (stack.name.clone()),
        "state": state,
        "state_reason": reason,
        "create_at": (time(stack.created)),
        "tags": (Value::List(tags)),
        "updated_at": (stack.updated.map(time)),
    });
    match payload {
        Value::Map(payload) => payload,
        _ => Map::new(),
    }
}

/// A notice has only keys that are strings.
fn notice(notice: &Notice) -> Value {
    let text = serde_json::to_string(notice).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
