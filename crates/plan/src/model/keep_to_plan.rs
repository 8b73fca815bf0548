//! What is outside of the plan of the request: it stops the request before its call.

use kiln_resource::{Action, Failure, ResourceId, State, Status};
use kiln_value::Class;

use super::Model;
use crate::allowed::Effect;
use crate::event::{Command, Note};
use crate::{Blame, Decision};

/// The class of the failure.
const OUTSIDE_OF_PLAN: &str = "OutsideOfPlan";

impl Model {
    /// Whether a decision about a name is outside of the plan; the request then fails. This also finds an update that turned
    /// out to need a replacement, about which the node decides again.
    pub(super) fn is_outside(
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

    /// Whether the delete of a row is outside of the plan; the request then fails. A row without an object may go: there is
    /// nothing to delete.
    pub(super) fn may_not_delete(&mut self, id: ResourceId, out: &mut Vec<Command>) -> bool {
        let Some(row) = self.rows.get(&id).filter(|row| row.may_have_object()) else { return false };
        let (name, resource_type) = (row.name.clone(), row.resource_type.clone());
        self.stops(&name, Some(id), &resource_type, (Effect::Delete, Action::Delete), out)
    }

    fn stops(
        &mut self,
        name: &str,
        row: Option<ResourceId>,
        resource_type: &str,
        (effect, action): (Effect<'_>, Action),
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(allowed) = &self.request.allowed else { return false };
        let Err(reason) = allowed.check(name, resource_type, effect) else { return false };
        let blame = Blame::of(name, &Failure::other(Class::of(OUTSIDE_OF_PLAN), reason));
        if let Some(row) = row.and_then(|id| self.rows.get(&id)) {
            let state = State::new(action, Status::Failed);
            out.push(Command::Note(Box::new(Note::of(row, state, blame.to_string()))));
        }
        self.fail(blame.stack_reason(action), out);
        true
    }
}
