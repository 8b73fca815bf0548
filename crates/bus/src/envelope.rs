//! The form of a notification of oslo.messaging.

use kiln_engine::Message;
use kiln_value::{Value, text, value};

/// The version of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// The message itself (driver `messaging`).
    One,
    /// The message as a text in an envelope (driver `messagingv2`).
    Two,
}

/// What is the same in all notifications.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    pub(super) version: Version,
    /// `orchestration.HOST`.
    pub(super) publisher: String,
    /// The priority of notifications that are not about errors, in capitals.
    pub(super) level: String,
}

impl Envelope {
    /// The priority of a message.
    pub(super) fn priority(&self, message: &Message) -> &str {
        if message.error { "ERROR" } else { &self.level }
    }

    /// A message with its sender and priority. The context has no credentials, unlike Heat's.
    pub(super) fn content(&self, message: &Message) -> Value {
        let of_payload = |key: &str| message.payload.get(key).cloned().unwrap_or_default();
        value!({
            "message_id": (message.id.to_string()),
            "publisher_id": (self.publisher.clone()),
            "event_type": (message.event_type.clone()),
            "priority": (self.priority(message)),
            "payload": (Value::Map(message.payload.clone())),
            "timestamp": (message.time.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string()),
            "_unique_id": (message.id.simple().to_string()),
            "_context_user_id": (of_payload("user_identity")),
            "_context_username": (of_payload("username")),
            "_context_project_id": (of_payload("tenant_id")),
        })
    }

    /// A message in its envelope.
    pub(super) fn wrap(&self, message: &Message) -> Vec<u8> {
        let inside = self.content(message);
        let whole = match self.version {
            Version::One => inside,
            Version::Two => value!({"oslo.version": "2.0", "oslo.message": (text::json(&inside))}),
        };
        text::json(&whole).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    #[test]
    fn messages_have_the_form_of_oslo_messaging() {
        let payload = value!({"tenant_id": "p", "user_identity": "u", "username": "alice", "description": "ä"});
        let mut message = Message {
            id: "3f1b4b9e-6c8c-4a3e-9a54-0d1f4a2f6a11".parse().unwrap(),
            event_type: "orchestration.stack.create.start".to_owned(),
            error: false,
            time: "2026-11-23T01:02:03.004Z".parse().unwrap(),
            payload: payload.as_map().unwrap().clone(),
        };
        let mut envelope =
            Envelope { version: Version::Two, publisher: "orchestration.h".to_owned(), level: "INFO".to_owned() };
        let read = |bytes: &[u8]| serde_json::from_slice::<Json>(bytes).unwrap();
        let whole = read(&envelope.wrap(&message));
        assert_eq!(whole["oslo.version"], "2.0");
        let inside = read(whole["oslo.message"].as_str().unwrap().as_bytes());
        let expected = json!({
            "message_id": "3f1b4b9e-6c8c-4a3e-9a54-0d1f4a2f6a11",
            "publisher_id": "orchestration.h",
            "event_type": "orchestration.stack.create.start",
            "priority": "INFO",
            "payload": {"tenant_id": "p", "user_identity": "u", "username": "alice", "description": "ä"},
            "timestamp": "2026-11-23 01:02:03.004000",
            "_unique_id": "3f1b4b9e6c8c4a3e9a540d1f4a2f6a11",
            "_context_user_id": "u",
            "_context_username": "alice",
            "_context_project_id": "p",
        });
        assert_eq!(inside, expected);
        message.error = true;
        envelope.version = Version::One;
        assert_eq!(read(&envelope.wrap(&message))["priority"], "ERROR");
    }
}
