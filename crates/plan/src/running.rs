//! How far an operation on a resource is, as stored in its row: enough for any engine to go on with it.

use kiln_resource::Operation;
use kiln_value::{Map, Value, value};

/// An operation under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// What is being done.
    pub operation: Operation,
    /// The resolved definition that holds once an update is done; null for anything else.
    pub definition: Value,
    /// Where it stands.
    pub phase: Phase,
    /// Marks this attempt, so that what a lost call made is found again. A UUID.
    pub token: String,
    /// Attempts that failed before.
    pub attempt: u32,
}

/// Where an operation stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// About to call, or calling: whether the call was made is not known.
    Intent,
    /// The call was made; `state` is what the driver needs to go on.
    Wait(Value),
    /// A create failed; what it left is being deleted before the next attempt. Null: the delete is not begun.
    Undo(Value),
}

impl Running {
    /// As stored in [`kiln_resource::Resource::step`].
    pub fn to_value(&self) -> Value {
        let (kind, before, changed) = match &self.operation {
            Operation::Create => ("create", None, None),
            Operation::Update { before, changed } => ("update", Some(before.clone()), Some(changed.clone())),
            Operation::Delete => ("delete", None, None),
            Operation::Check => ("check", None, None),
            Operation::Suspend => ("suspend", None, None),
            Operation::Resume => ("resume", None, None),
        };
        let (phase, state) = match &self.phase {
            Phase::Intent => ("intent", Value::Null),
            Phase::Wait(state) => ("wait", state.clone()),
            Phase::Undo(state) => ("undo", state.clone()),
        };
        let mut step = value!({
            "operation": kind,
            "phase": phase,
            "state": state,
            "token": self.token.as_str(),
            "attempt": self.attempt,
        });
        if let (Some(step), Some(before), Some(changed)) = (step.as_map_mut(), before, changed) {
            step.insert("definition".to_owned(), self.definition.clone());
            step.insert("before".to_owned(), before.into());
            step.insert("changed".to_owned(), changed.into());
        }
        step
    }

    /// Reads a stored step; `None` if no operation is under way.
    pub fn from_value(step: &Value) -> Option<Self> {
        let map_at = |key: &str| step.get(key).and_then(Value::as_map).cloned().unwrap_or_else(Map::new);
        let operation = match step.str_at("operation")? {
            "create" => Operation::Create,
            "update" => Operation::Update { before: map_at("before"), changed: map_at("changed") },
            "delete" => Operation::Delete,
            "check" => Operation::Check,
            "suspend" => Operation::Suspend,
            "resume" => Operation::Resume,
            _ => return None,
        };
        let state = step.get("state").cloned().unwrap_or_default();
        let phase = match step.str_at("phase")? {
            "wait" => Phase::Wait(state),
            "undo" => Phase::Undo(state),
            _ => Phase::Intent,
        };
        Some(Self {
            operation,
            definition: step.get("definition").cloned().unwrap_or_default(),
            phase,
            token: step.str_at("token").unwrap_or_default().to_owned(),
            attempt: step.get("attempt").and_then(Value::as_i64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_storing() {
        let changed: Map = [("size".to_owned(), Value::Int(2))].into_iter().collect();
        for operation in [Operation::Create, Operation::Update { before: Map::new(), changed }, Operation::Delete] {
            for phase in [Phase::Intent, Phase::Wait(value!({"n": 1})), Phase::Undo(Value::Null)] {
                let running = Running {
                    operation: operation.clone(),
                    definition: match operation {
                        Operation::Update { .. } => value!({"type": "T"}),
                        _ => Value::Null,
                    },
                    phase,
                    token: "t".to_owned(),
                    attempt: 2,
                };
                assert_eq!(Running::from_value(&running.to_value()), Some(running));
            }
        }
        assert_eq!(Running::from_value(&Value::Null), None);
    }
}
