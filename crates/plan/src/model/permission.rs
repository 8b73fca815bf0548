//! What the plan of the request, or a guard, does not permit: it stops the request before its call.

use kiln_resource::{Action, Failure, Operation, Resource, ResourceId, State, Status, Verb};
use kiln_value::Class;

use super::Model;
use crate::allowed::Effect;
use crate::event::{Command, Note};
use crate::{Blame, Decision};

/// The classes of the failures.
const OUTSIDE_OF_PLAN: &str = "OutsideOfPlan";
const GUARDED: &str = "Guarded";

impl Model {
    /// Whether a decision about a name is not permitted; the request then fails. This also finds an update that turned out to
    /// need a replacement, about which the node decides again.
    pub(super) fn may_not_follow(
        &mut self,
        name: &str,
        row: Option<ResourceId>,
        resource_type: &str,
        decision: &Decision,
        out: &mut Vec<Command>,
    ) -> bool {
        let is_nested = row.and_then(|id| self.rows.get(&id)).is_some_and(|row| row.child.is_some());
        let (effect, action) = match decision {
            Decision::Create { definition } => (Effect::Create(definition), Action::Create),
            Decision::Update { .. } if is_nested => (Effect::UpdateNested, Action::Update),
            Decision::Update { changed, .. } => (Effect::Update(changed), Action::Update),
            Decision::Replace { definition, .. } => (Effect::Replace(&definition.properties), Action::Update),
            Decision::Keep { .. } | Decision::Refuse { .. } | Decision::Restrict { .. } => return false,
        };
        self.stops(name, row, resource_type, (effect, action), out)
    }

    /// Whether the delete of a row is not permitted; the request then fails. A row without an object may go: there is nothing to
    /// delete.
    pub(super) fn may_not_delete(&mut self, id: ResourceId, out: &mut Vec<Command>) -> bool {
        let Some(row) = self.rows.get(&id).filter(|row| row.may_have_object()) else { return false };
        let (name, resource_type) = (row.name.clone(), row.resource_type.clone());
        self.stops(&name, Some(id), &resource_type, (Effect::Delete, Action::Delete), out)
    }

    /// The guard that forbids the operation of a row, if its call has not begun: the guard may be newer than the operation.
    pub fn guarded(&self, id: ResourceId) -> Option<Failure> {
        let row = self.rows.get(&id)?;
        let old = row.replaces.and_then(|old| self.rows.get(&old));
        let (verb, subject) = match (&row.running()?.operation, old) {
            (Operation::Create, Some(old)) => (Verb::Replace, Some(old)),
            // Its row is that of an object that is not made yet.
            (Operation::Create, None) => (Verb::Create, None),
            (Operation::Update { .. }, _) => (Verb::Update, Some(row)),
            (Operation::Delete, _) => (verb_of_delete(row), Some(row)),
            _ => return None,
        };
        let reason = self.refusal(verb, (&row.name, &row.resource_type), subject)?;
        Some(Failure::other(Class::of(GUARDED), reason))
    }

    fn refusal(&self, verb: Verb, resource: (&str, &str), row: Option<&Resource>) -> Option<String> {
        self.request.guards.as_ref()?.refusal(self.now, verb, resource, row)
    }

    fn stops(
        &mut self,
        name: &str,
        row: Option<ResourceId>,
        resource_type: &str,
        (effect, action): (Effect<'_>, Action),
        out: &mut Vec<Command>,
    ) -> bool {
        let of_plan = self.request.allowed.as_ref().map(|allowed| allowed.check(name, resource_type, effect));
        let row = row.and_then(|id| self.rows.get(&id));
        let (class, reason) = match of_plan {
            Some(Err(reason)) => (OUTSIDE_OF_PLAN, reason),
            _ => match self.guarded_effect(name, row, resource_type, effect) {
                Some(reason) => (GUARDED, reason),
                None => return false,
            },
        };
        let blame = Blame::of(name, &Failure::other(Class::of(class), reason));
        if let Some(row) = row {
            let state = State::new(action, Status::Failed);
            out.push(Command::Note(Box::new(Note::of(row, state, blame.to_string()))));
        }
        self.fail(blame.stack_reason(action), out);
        true
    }

    fn guarded_effect(
        &self,
        name: &str,
        row: Option<&Resource>,
        resource_type: &str,
        effect: Effect<'_>,
    ) -> Option<String> {
        let (verb, row) = match (effect, row) {
            (Effect::Create(_), _) => (Verb::Create, None),
            (Effect::Update(_), row) => (Verb::Update, row),
            // The nested stack heeds the guards of its own resources.
            (Effect::UpdateNested, _) => return None,
            (Effect::Replace(_), row) => (Verb::Replace, row),
            (Effect::Delete, row) => (row.map_or(Verb::Delete, verb_of_delete), row),
        };
        self.refusal(verb, (name, resource_type), row)
    }
}

/// The delete of a row whose object is replaced completes the replacement.
fn verb_of_delete(row: &Resource) -> Verb {
    if row.replaced_by.is_some() { Verb::Replace } else { Verb::Delete }
}
