//! Formats of objects that several actions share.

pub(crate) mod change_set;
pub(crate) mod parameter;
pub(crate) mod property_differences;
pub(crate) mod resource;

use std::fmt;

use jiff::Timestamp;
use kiln_resource::Action;
use kiln_store::Stack;
use kiln_template::StackIdentity;
use kiln_value::{Value, value};

/// The ARN of a stack, or with a path that of a part of it.
pub(crate) fn arn(stack: &Stack, path: &str) -> String {
    let identity = StackIdentity {
        tenant: stack.project.clone(),
        stack_name: stack.name.clone(),
        stack_id: stack.id.to_string(),
        path: path.to_owned(),
    };
    identity.arn()
}

/// `2026-11-20T06:52:45Z`: whole seconds.
pub(crate) fn instant(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The state of a stack. AWS has two words for a rollback: waiters would wait for the end of an update that was rolled
/// back until their time is over, because they do not know `ROLLBACK_COMPLETE` there. Nor do they know `ADOPT_COMPLETE`,
/// which is `IMPORT_COMPLETE` on AWS, also if the stack existed before.
pub(crate) fn status(stack: &Stack) -> String {
    if stack.adopts() {
        return format!("IMPORT_{}", stack.state.status);
    }
    if stack.state.action == Action::Rollback && stack.previous.is_some() {
        return format!("UPDATE_{}", stack.state);
    }
    stack.state.to_string()
}

/// The state of a resource, or in an event: an adopt is an import on AWS.
pub(crate) fn state(action: &str, status: impl fmt::Display) -> String {
    format!("{}_{status}", if action == Action::Adopt.as_str() { "IMPORT" } else { action })
}

/// The tags of a stack: `key=value`.
pub(crate) fn tags(tags: &[String]) -> Value {
    let tags = tags.iter().map(|tag| {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        value!({ "Key": key, "Value": value })
    });
    tags.collect()
}
