//! The result of a message to a resource.

use kiln_value::{Map, Value, text};

use crate::SoftwareChange;

/// What a driver made of a message: stored once, in one commit with the removal of the message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// The object's id, if it changed.
    pub physical_id: Option<String>,
    /// Entries to put into the resource's data; null removes one.
    pub data: Map,
    /// The resource's metadata, if they changed.
    pub metadata: Option<Map>,
    /// Changes of software configs and deployments.
    pub software: Vec<SoftwareChange>,
    /// The event about it; if a group is to change its size, it comes when that is done.
    pub event: ReceivedEvent,
    /// The group that is to change its size. Then nothing but the event may be given.
    pub scale: Option<ScaleRequest>,
}

/// A request to a scaling group.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleRequest {
    /// The reference ID of the group.
    pub group: Value,
    /// The adjustment, for the driver of the group ([`crate::Group::rescale`]).
    pub adjustment: Value,
}

/// How a scaling group changes its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Rescale {
    /// What [`crate::NestedFacts::step`] holds for the new template of the nested stack.
    pub step: Value,
    /// The metadata of the group during the change.
    pub metadata: Map,
}

/// The event about a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReceivedEvent {
    /// An event that describes the message, as Heat does ([`Received::reason`]).
    #[default]
    Described,
    /// An event with the result: `Signal: <result>`.
    Result(String),
    /// No event: there was nothing to do (Heat's `NoActionRequired`).
    None,
}

impl Received {
    /// The event with a result.
    #[must_use]
    pub fn result(mut self, text: impl Into<String>) -> Self {
        self.event = ReceivedEvent::Result(text.into());
        self
    }

    /// Nothing was done: there is no event.
    pub fn nothing() -> Self {
        Self { event: ReceivedEvent::None, ..Self::default() }
    }

    /// The same with an entry of data to store.
    #[must_use]
    pub fn data(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.data.insert(key.into(), value.into());
        self
    }

    /// The same with new metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Map) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with a change of a software deployment.
    #[must_use]
    pub fn software(mut self, change: SoftwareChange) -> Self {
        self.software.push(change);
        self
    }

    /// The reason of the event about a message with this body; `None`: there is no event.
    pub fn reason(&self, body: &Value) -> Option<String> {
        match &self.event {
            ReceivedEvent::Described => Some(described(body)),
            ReceivedEvent::Result(text) => Some(format!("Signal: {text}")),
            ReceivedEvent::None => None,
        }
    }
}

/// What a signal is about, in Heat's words: alarms name their states.
fn described(body: &Value) -> String {
    match body {
        Value::Null => "No signal details provided".to_owned(),
        Value::Str(text) => text.clone(),
        _ => match (body.get("previous"), body.get("current"), body.get("reason")) {
            (Some(previous), Some(current), Some(reason)) => {
                let [previous, current, reason] = [previous, current, reason].map(text::str);
                format!("alarm state changed from {previous} to {current} ({reason})")
            }
            _ => "Unknown".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    #[test]
    fn reasons_of_events() {
        let of = |body: Value| Received::default().reason(&body);
        assert_eq!(of(Value::Null).as_deref(), Some("No signal details provided"));
        assert_eq!(of(value!("hello")).as_deref(), Some("hello"));
        assert_eq!(of(value!({"previous": "ok", "current": "alarm"})).as_deref(), Some("Unknown"));
        let alarm = value!({"previous": "ok", "current": "alarm", "reason": "hot", "more": 1});
        assert_eq!(of(alarm).as_deref(), Some("alarm state changed from ok to alarm (hot)"));
        assert_eq!(Received::default().result("done").reason(&Value::Null).as_deref(), Some("Signal: done"));
        assert_eq!(Received::nothing().reason(&Value::Null), None);
    }
}
