//! The guards of a stack, as the planner heeds them.
//!
//! A guard protects objects that users have. So it does not protect what a failed operation has made from its own rollback, and no
//! object that was never finished.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kiln_resource::{
    Action, GuardRule, GuardedRequest, Operation, OperationState, Resource, ResourceType, Status, Verb,
};

/// A guard.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldGuard {
    /// What it forbids.
    pub rule: GuardRule,
    /// When it ends by itself; `None`: never.
    pub until: Option<Timestamp>,
    /// Its ID, its author and his reason, for people.
    pub words: String,
}

impl HeldGuard {
    /// Whether it has not ended by itself.
    fn is_in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// The guards of a stack, for a request to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Guards {
    /// The guards.
    pub guards: Vec<HeldGuard>,
    /// The path of the stack below its root, joined with slashes; empty for the root.
    pub path: String,
    /// What is requested of the root stack.
    pub request: GuardedRequest,
    /// A rollback: when the first operation began that it takes back.
    pub made_since: Option<Timestamp>,
}

impl Guards {
    /// Why this must not be done with a resource; `row`: its present one.
    pub fn refusal(
        &self,
        now: Timestamp,
        verb: Verb,
        resource: (&str, &str),
        row: Option<&Resource>,
    ) -> Option<String> {
        let guard = self.forbidding(now, verb, resource, row)?;
        Some(format!("it would be {}, which {} forbids", verb.participle(), guard.words))
    }

    /// The guard that forbids this.
    pub fn forbidding(
        &self,
        now: Timestamp,
        verb: Verb,
        (name, resource_type): (&str, &str),
        row: Option<&Resource>,
    ) -> Option<&HeldGuard> {
        // A nested stack heeds the guards of its own resources when it is updated.
        let is_of_others = verb == Verb::Update && row.is_some_and(|row| row.child.is_some());
        if is_of_others || row.is_some_and(|row| self.is_unfinished(row)) {
            return None;
        }
        let path = self.path_of(name);
        let forbids =
            |guard: &&HeldGuard| guard.is_in_force(now) && guard.rule.forbids(verb, &path, resource_type, self.request);
        self.guards.iter().find(forbids)
    }

    /// The guard that ignores what others do with a property, and whether the property is not written either.
    pub fn ignoring(&self, now: Timestamp, name: &str, property: &str) -> Option<(&HeldGuard, bool)> {
        let path = self.path_of(name);
        let in_force = self.guards.iter().filter(|guard| guard.is_in_force(now));
        let ignoring = in_force.filter_map(|guard| Some((guard, guard.rule.ignores(&path, property)?)));
        // If there are several, the strictest one decides.
        ignoring.max_by_key(|(_, leaves)| *leaves)
    }

    /// The properties of a resource of this type that nobody writes.
    pub fn left(&self, now: Timestamp, name: &str, resource_type: &ResourceType) -> BTreeSet<String> {
        if !self.guards.iter().any(|guard| matches!(guard.rule, GuardRule::Ignore { leave: true, .. })) {
            return BTreeSet::new();
        }
        let is_left = |property: &&String| self.ignoring(now, name, property).is_some_and(|(_, leaves)| leaves);
        resource_type.properties.keys().filter(is_left).cloned().collect()
    }

    /// The guards of the nested stack of a resource.
    #[must_use]
    pub fn inside(&self, name: &str) -> Self {
        Self { path: self.path_of(name), ..self.clone() }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    fn is_unfinished(&self, row: &Resource) -> bool {
        is_unfinished(row) || self.made_since.is_some_and(|since| row.created >= since)
    }
}

/// The entry of a resource's data that says that its object was not finished when its delete began: neither the running delete
/// nor a failed one shows it.
const UNFINISHED: &str = "kiln_unfinished";

/// Whether the object of a row is only half made.
fn is_unfinished(row: &Resource) -> bool {
    let is_half_made =
        matches!(&row.operation, OperationState::HalfMade(tried) if row.definition.as_ref() == Some(tried));
    let was_never_made = matches!(row.state.action, Action::Init | Action::Create | Action::Adopt)
        && row.state.status != Status::Complete;
    is_half_made || was_never_made || row.data.contains_key(UNFINISHED)
}

/// Notes in a row, before an operation begins on it, whether its object is only half made.
pub(crate) fn note_unfinished(row: &mut Resource, operation: &Operation) {
    match operation {
        Operation::Delete if is_unfinished(row) => _ = row.data.insert(UNFINISHED.to_owned(), true.into()),
        Operation::Create | Operation::Update { .. } | Operation::Adopt => _ = row.data.shift_remove(UNFINISHED),
        _ => {}
    }
}
