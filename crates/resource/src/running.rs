//! The progress of an operation on a resource, as stored in its row, so that any engine can continue it.

use std::sync::Arc;
use std::time::Duration;

use kiln_value::{Map, Value, value};
use serde::{Deserialize, Serialize};

use crate::{Operation, ResourceId, StoredDefinition};

/// The format that this version writes. Higher formats are not changed ([`OperationState::Unknown`]).
const FORMAT: u32 = 1;

/// The state of the operation on a resource, as stored in its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OperationState {
    /// No operation is running.
    #[default]
    Idle,
    /// An operation is running.
    Running(Box<Running>),
    /// The update was not possible in place: the next decision replaces the resource.
    MustReplace,
    /// A create or an update with this definition failed: it is unknown which of its properties the object has. A create
    /// is recorded by the operation after it; until then, the status says it.
    HalfMade(Arc<StoredDefinition>),
    /// Another version of Kiln wrote it. This version must not change the row.
    Unknown(Value),
}

/// A running operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// The operation.
    pub operation: Operation,
    /// The definition after an update; `None` for other operations.
    pub definition: Option<Arc<StoredDefinition>>,
    /// The phase.
    pub phase: Phase,
    /// Identifies this attempt, so that the object of a lost call can be found. A UUID.
    pub token: String,
    /// Number of failed attempts.
    pub attempt: u32,
    /// The rows that the resource requires after an update. Until then it may also require the previous ones.
    pub requires: Vec<ResourceId>,
    /// What the row records when the operation is done, as it did before: a check, suspend, resume or snapshot replaces
    /// the status, but does not finish what failed. Never [`OperationState::Running`].
    pub afterwards: OperationState,
}

/// The phase of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// A call is about to be made, or in progress: it is unknown whether it was made.
    Intent,
    /// As [`Phase::Intent`], but the engine that would have made the call has failed. Nobody makes the call before the
    /// phase is stored as `Intent` again, so engines that take over one after the other do not restart the wait.
    Lost(LostCall),
    /// The call was made; contains the state that the driver needs to continue.
    Wait(Value),
    /// A create failed; its remains are deleted before the next attempt. Null: the delete has not started.
    Undo(Value),
    /// A snapshot is created before a delete (`deletion_policy: Snapshot`). Null: the snapshot has not started.
    Snapshot(Value),
    /// Only the attributes that other resources need remain to be read.
    Read,
}

/// A create call that an engine may have made before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LostCall {
    /// How long it takes until a missing object was certainly not created: from the last report of the engine before it
    /// claimed the lease, so that the time for which another engine has seen no later report has passed. No clock of two
    /// machines is compared.
    pub left: Duration,
    /// The epoch of the lease under which this was stored. Versions that do not know this phase take it for `Intent`:
    /// `left` is void when another engine has worked on the stack since.
    pub epoch: i64,
}

impl LostCall {
    fn read(state: &Value) -> Option<Self> {
        let number = |key| state.get(key).and_then(Value::as_i64);
        let left = u64::try_from(number("left")?).ok()?;
        Some(Self { left: Duration::from_micros(left), epoch: number("epoch")? })
    }
}

impl OperationState {
    /// The running operation, if this version can read it.
    pub fn running(&self) -> Option<&Running> {
        match self {
            Self::Running(running) => Some(running),
            _ => None,
        }
    }

    /// Whether no operation is running and nothing is recorded.
    pub fn is_idle(&self) -> bool {
        *self == Self::Idle
    }
}

impl Running {
    /// What the row records when the operation ends without success.
    pub fn given_up(self) -> OperationState {
        match (self.operation, self.definition) {
            (Operation::Update { .. }, Some(tried)) => OperationState::HalfMade(tried),
            _ => self.afterwards,
        }
    }
}

impl From<Running> for OperationState {
    fn from(running: Running) -> Self {
        Self::Running(Box::new(running))
    }
}

/// The stored form. All names in it are part of the format.
#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    operation: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<PhaseName>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    state: Value,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    token: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Arc<StoredDefinition>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requires: Vec<ResourceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Map>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Map>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tried: Option<Arc<StoredDefinition>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    must_replace: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Create,
    Update,
    Delete,
    Check,
    Suspend,
    Resume,
    Adopt,
    Snapshot,
    /// Not an operation: [`OperationState::MustReplace`].
    Replace,
    /// Not an operation: [`OperationState::HalfMade`].
    HalfUpdated,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PhaseName {
    Intent,
    Wait,
    Undo,
    Snapshot,
    Read,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Record {
    fn of(running: &Running) -> Self {
        let (operation, before, changed) = match &running.operation {
            Operation::Create => (Name::Create, None, None),
            Operation::Update { before, changed } => (Name::Update, Some(before.clone()), Some(changed.clone())),
            Operation::Delete => (Name::Delete, None, None),
            Operation::Check => (Name::Check, None, None),
            Operation::Suspend => (Name::Suspend, None, None),
            Operation::Resume => (Name::Resume, None, None),
            Operation::Adopt => (Name::Adopt, None, None),
            Operation::Snapshot => (Name::Snapshot, None, None),
        };
        let (phase, state) = match &running.phase {
            Phase::Intent => (PhaseName::Intent, Value::Null),
            Phase::Lost(lost) => (
                PhaseName::Intent,
                value!({"left": (i64::try_from(lost.left.as_micros()).unwrap_or(i64::MAX)), "epoch": (lost.epoch)}),
            ),
            Phase::Wait(state) => (PhaseName::Wait, state.clone()),
            Phase::Undo(state) => (PhaseName::Undo, state.clone()),
            Phase::Snapshot(state) => (PhaseName::Snapshot, state.clone()),
            Phase::Read => (PhaseName::Read, Value::Null),
        };
        Self {
            format: FORMAT,
            operation,
            phase: Some(phase),
            state,
            token: running.token.clone(),
            attempt: running.attempt,
            definition: running.definition.clone(),
            requires: running.requires.clone(),
            before,
            changed,
            tried: match &running.afterwards {
                OperationState::HalfMade(tried) => Some(Arc::clone(tried)),
                _ => None,
            },
            must_replace: running.afterwards == OperationState::MustReplace,
        }
    }

    /// The record of an operation that has ended.
    fn note(operation: Name, definition: Option<Arc<StoredDefinition>>) -> Self {
        Self {
            format: FORMAT,
            operation,
            phase: None,
            state: Value::Null,
            token: String::new(),
            attempt: 0,
            definition,
            requires: Vec::new(),
            before: None,
            changed: None,
            tried: None,
            must_replace: false,
        }
    }

    fn read(self) -> Option<OperationState> {
        let operation = match self.operation {
            Name::Replace => return Some(OperationState::MustReplace),
            Name::HalfUpdated => return self.definition.map(OperationState::HalfMade),
            Name::Create => Operation::Create,
            Name::Update => Operation::Update { before: self.before?, changed: self.changed? },
            Name::Delete => Operation::Delete,
            Name::Check => Operation::Check,
            Name::Suspend => Operation::Suspend,
            Name::Resume => Operation::Resume,
            Name::Adopt => Operation::Adopt,
            Name::Snapshot => Operation::Snapshot,
        };
        let phase = match self.phase? {
            PhaseName::Intent => LostCall::read(&self.state).map_or(Phase::Intent, Phase::Lost),
            PhaseName::Wait => Phase::Wait(self.state),
            PhaseName::Undo => Phase::Undo(self.state),
            PhaseName::Snapshot => Phase::Snapshot(self.state),
            PhaseName::Read => Phase::Read,
        };
        let Self { definition, token, attempt, requires, .. } = self;
        let afterwards = match self.tried {
            Some(tried) => OperationState::HalfMade(tried),
            None if self.must_replace => OperationState::MustReplace,
            None => OperationState::Idle,
        };
        Some(Running { operation, definition, phase, token, attempt, requires, afterwards }.into())
    }
}

impl Serialize for OperationState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Idle => serializer.serialize_none(),
            Self::Running(running) => Record::of(running).serialize(serializer),
            Self::MustReplace => Record::note(Name::Replace, None).serialize(serializer),
            Self::HalfMade(definition) => {
                Record::note(Name::HalfUpdated, Some(Arc::clone(definition))).serialize(serializer)
            }
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OperationState {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.is_null() {
            return Ok(Self::Idle);
        }
        // An unreadable record is from another version and is kept unchanged.
        let record = serde_json::to_value(&value).and_then(serde_json::from_value::<Record>).ok();
        let record = record.filter(|record| record.format == FORMAT);
        Ok(record.and_then(Record::read).unwrap_or(Self::Unknown(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives(state: &OperationState) {
        let text = serde_json::to_string(state).unwrap();
        assert_eq!(&serde_json::from_str::<OperationState>(&text).unwrap(), state, "{text}");
    }

    #[test]
    fn stored_operations_are_read_back() {
        let changed: Map = [("size".to_owned(), Value::Int(2))].into_iter().collect();
        let update = Operation::Update { before: Map::new(), changed };
        for operation in [
            Operation::Create,
            update,
            Operation::Delete,
            Operation::Check,
            Operation::Suspend,
            Operation::Adopt,
            Operation::Snapshot,
        ] {
            for phase in [
                Phase::Intent,
                Phase::Lost(LostCall { left: Duration::from_micros(7), epoch: 3 }),
                Phase::Wait(value!({"n": 1})),
                Phase::Wait(Value::Null),
                Phase::Undo(Value::Null),
                Phase::Snapshot(Value::Null),
            ] {
                let definition = match operation {
                    Operation::Update { .. } => Some(Arc::new(StoredDefinition::of_type("T"))),
                    _ => None,
                };
                let afterwards = match operation {
                    Operation::Check => OperationState::HalfMade(Arc::new(StoredDefinition::of_type("U"))),
                    Operation::Suspend => OperationState::MustReplace,
                    _ => OperationState::Idle,
                };
                let (token, attempt, requires) = ("t".to_owned(), 2, vec![ResourceId(uuid::Uuid::nil())]);
                survives(
                    &Running { operation: operation.clone(), definition, phase, token, attempt, requires, afterwards }
                        .into(),
                );
            }
        }
        survives(&OperationState::Idle);
        survives(&OperationState::MustReplace);
        survives(&OperationState::HalfMade(Arc::new(StoredDefinition::of_type("T"))));
    }

    #[test]
    fn records_of_other_versions_are_kept_and_not_idle() {
        for text in [
            r#"{"format":1,"operation":"resize","phase":"intent","token":"t"}"#,
            r#"{"format":1,"operation":"create","phase":"paused","token":"t"}"#,
            r#"{"format":2,"operation":"create","phase":"intent","token":"t"}"#,
            r#"{"operation":"create"}"#,
            "[1]",
        ] {
            let state: OperationState = serde_json::from_str(text).unwrap();
            assert!(matches!(state, OperationState::Unknown(_)), "{text}");
            assert_eq!(serde_json::to_string(&state).unwrap(), text);
        }
    }
}
