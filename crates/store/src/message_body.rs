//! What messages say.
//!
//! The kind of a message is the format of its body: a body whose meaning changes gets another kind. Engines leave messages of
//! kinds that they do not know to newer ones. New fields have a default, because an older version does not write them.

use kiln_resource::{Parting, SnapshotId, words};
use kiln_value::Value;
use serde::{Deserialize, Serialize};

macro_rules! message_bodies {
    ($($(#[$doc:meta])* $variant:ident($content:ty) = $word:literal,)*) => {
        words! {
            /// The kind of a message.
            MessageKind { $($(#[$doc])* $variant = $word,)* }
        }

        /// What a message says.
        #[derive(Clone, Debug, PartialEq)]
        pub enum MessageBody { $($(#[$doc])* $variant($content),)* }

        impl MessageBody {
            /// Its kind.
            pub fn kind(&self) -> MessageKind {
                match self { $(Self::$variant(_) => MessageKind::$variant,)* }
            }

            /// The JSON of the content.
            pub(crate) fn to_json(&self) -> serde_json::Result<String> {
                match self { $(Self::$variant(content) => serde_json::to_string(content),)* }
            }

            fn of_json(kind: MessageKind, json: &str) -> serde_json::Result<Self> {
                match kind { $(MessageKind::$variant => serde_json::from_str(json).map(Self::$variant),)* }
            }
        }
    };
}

message_bodies! {
    /// A signal to a resource, with the data of its sender.
    Signal(Value) = "SIGNAL",
    /// A signal that was refused because of the action of the resource, for the event about it.
    RefusedSignal(RefusedSignal) = "REFUSED_SIGNAL",
    /// A request to mark a resource unhealthy.
    MarkUnhealthy(HealthMark) = "MARK_UNHEALTHY",
    /// A request to cancel the running operation.
    Cancel(Cancel) = "CANCEL",
    /// A group is changing its size: the engine records the end.
    Scaling(GroupResize) = "SCALING",
    /// The members of a group, for its load balancer.
    Members(GroupMembers) = "MEMBERS",
    /// A request to clear a hook of a resource.
    ClearHook(HookClearing) = "CLEAR_HOOK",
    /// A request to delete a snapshot.
    DeleteSnapshot(SnapshotRemoval) = "DELETE_SNAPSHOT",
    /// A request to forget a resource that cannot be deleted.
    Forget(Parting) = "FORGET",
    /// A timer that the engine of the stack has set.
    Timer(Timer) = "TIMER",
}

impl MessageBody {
    /// Whether nothing is stored of it.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::Signal(Value::Null)
    }

    /// The content from JSON; `None`: nothing was stored.
    pub(crate) fn from_json(kind: MessageKind, json: Option<&str>) -> serde_json::Result<Self> {
        let empty = if kind == MessageKind::Signal { "null" } else { "{}" };
        Self::of_json(kind, json.unwrap_or(empty))
    }

    /// The data of a signal; null for other messages.
    pub fn details(&self) -> &Value {
        const NULL: &Value = &Value::Null;
        if let Self::Signal(details) = self { details } else { NULL }
    }
}

/// A signal that was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedSignal {
    /// The action of the resource: `SUSPEND`.
    pub action: String,
}

/// A mark of a user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthMark {
    /// Whether the resource is unhealthy; false removes a mark.
    #[serde(rename = "mark_unhealthy")]
    pub unhealthy: bool,
    /// The reason of the user.
    pub reason: Option<String>,
}

/// The end of a request before it is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cancel {
    /// The number of the request that it is for; `None`: whichever runs.
    pub generation: Option<i64>,
    /// Whether running calls are interrupted.
    pub interrupt: bool,
    /// Whether the time of the request is over.
    pub out_of_time: bool,
}

/// A change of the size of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupResize {
    /// The name of the policy that asked for it.
    pub policy: String,
    /// The reason of the event of the policy; `None`: it has none.
    pub reason: Option<String>,
    /// What the policy asked for.
    pub adjustment: Value,
    /// The reference ID of the group; `None`: a version that did not store it.
    pub group: Option<String>,
    /// The number of members that the group gets.
    pub size: usize,
}

/// The members of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupMembers {
    /// The name of the group.
    pub group: String,
    /// The reference IDs of its members.
    pub members: Vec<Value>,
}

/// A hook that a user clears.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookClearing {
    /// Its word: `pre-create`.
    #[serde(rename = "unset_hook")]
    pub hook: String,
}

/// A snapshot that is deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotRemoval {
    /// Its ID.
    pub snapshot: SnapshotId,
}

/// A timer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timer {
    /// The metadata of a server are written where its agent reads them; false: the engine only looks at the stack.
    pub push_metadata: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    fn read(kind: MessageKind, json: &str) -> MessageBody {
        MessageBody::from_json(kind, Some(json)).unwrap()
    }

    #[test]
    fn bodies_of_earlier_versions_can_be_read() {
        let cancel = Cancel { generation: Some(4), interrupt: true, out_of_time: false };
        let without_time = r#"{"generation": 4, "interrupt": true}"#;
        assert_eq!(read(MessageKind::Cancel, without_time), MessageBody::Cancel(cancel));
        let resizing =
            GroupResize { policy: "p".to_owned(), adjustment: value!({ "by": 1 }), ..GroupResize::default() };
        let without_group = r#"{"policy": "p", "reason": null, "adjustment": {"by": 1}}"#;
        assert_eq!(read(MessageKind::Scaling, without_group), MessageBody::Scaling(resizing));
        assert_eq!(MessageBody::from_json(MessageKind::Timer, None).unwrap(), MessageBody::Timer(Timer::default()));
        let mark = HealthMark { unhealthy: true, reason: None };
        let without_reason = r#"{"mark_unhealthy": true, "reason": null}"#;
        assert_eq!(read(MessageKind::MarkUnhealthy, without_reason), MessageBody::MarkUnhealthy(mark));
        let hook = HookClearing { hook: "pre-create".to_owned() };
        let whole_signal = r#"{"unset_hook": "pre-create", "note": "of the user"}"#;
        assert_eq!(read(MessageKind::ClearHook, whole_signal), MessageBody::ClearHook(hook));
    }

    #[test]
    fn a_body_of_another_shape_is_damaged() {
        assert!(MessageBody::from_json(MessageKind::DeleteSnapshot, Some("{}")).is_err());
        assert!(MessageBody::from_json(MessageKind::Cancel, Some(r#"{"interrupt": "yes"}"#)).is_err());
    }

    #[test]
    fn every_kind_comes_back() {
        let parting = Parting { user_id: "u".to_owned(), region: Some("r".to_owned()), ..Parting::default() };
        let snapshot = SnapshotId("6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().unwrap());
        let bodies = [
            MessageBody::Signal(value!({ "a": [1, null] })),
            MessageBody::RefusedSignal(RefusedSignal { action: "SUSPEND".to_owned() }),
            MessageBody::MarkUnhealthy(HealthMark { unhealthy: true, reason: Some("hot".to_owned()) }),
            MessageBody::Cancel(Cancel { generation: Some(2), interrupt: false, out_of_time: true }),
            MessageBody::Scaling(GroupResize { group: Some("g".to_owned()), size: 3, ..GroupResize::default() }),
            MessageBody::Members(GroupMembers { group: "g".to_owned(), members: vec![value!("m")] }),
            MessageBody::ClearHook(HookClearing { hook: "pre-update".to_owned() }),
            MessageBody::DeleteSnapshot(SnapshotRemoval { snapshot }),
            MessageBody::Forget(parting),
            MessageBody::Timer(Timer { push_metadata: true }),
        ];
        assert_eq!(bodies.clone().map(|body| body.kind()), MessageKind::ALL);
        for body in bodies {
            assert_eq!(read(body.kind(), &body.to_json().unwrap()), body);
        }
    }
}
