//! The saved plan that a request keeps to.

use kiln_plan::{Allowed, StackInPlan};
use kiln_plan_document::{Bounds, Decision, Entry, FORMAT, StackPart};
use kiln_resource::Action;
use kiln_store::{Error, OperationQuery, Operations, Planned};
use serde::Deserialize;

use super::Work;
use crate::planned_object::PlannedObjects;

/// The format of a part, which a newer version of Kiln may have written.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

impl Work {
    /// What the plan of the current request allows, and the objects that it has seen; `None`: there is no plan. The inner error
    /// says why the request must not begin.
    pub(super) async fn read_plan(&self) -> Result<Result<Option<(Allowed, PlannedObjects)>, String>, Error> {
        let Some(planned) = &self.stack.details.planned else { return Ok(Ok(None)) };
        let action = self.stack.state.action;
        if matches!(action, Action::Check | Action::Suspend | Action::Resume | Action::Snapshot) {
            return Ok(Ok(None));
        }
        let (store, id) = (&self.actor.backends.store, planned.plan);
        let Some(plan) = store.plan(&self.stack.project, id).await? else {
            return Ok(Err(format!("the plan {id} no longer exists")));
        };
        if plan.digest.is_empty() {
            // A change set of the release before names no resources.
            return Ok(Ok(None));
        }
        let stored = store.plan_parts(id, Some(&planned.path)).await?;
        if stored.is_empty() && planned.path.is_empty() {
            return Ok(Err(format!("the plan {id} has no resources")));
        }
        let mut parts = Vec::with_capacity(stored.len());
        for part in &stored {
            match read(part) {
                Ok(Some(part)) => parts.push(part),
                Ok(None) => return Ok(Err(format!("the plan {id} is of a newer version of Kiln"))),
                Err(error) => return Ok(Err(format!("the plan {id} cannot be read: {error}"))),
            }
        }
        let stack = self.stack.id.to_string();
        let generation = parts.iter().find_map(|part| part.generations.get(&stack).copied());
        if let Some(generation) = generation
            && self.has_moved(generation).await?
        {
            let name = &self.stack.name;
            return Ok(Err(format!("the nested stack {name} has changed since the plan {id} was made")));
        }
        let place = match generation {
            None if self.stack.parent.is_some() => StackInPlan::New,
            _ if self.stack.details.batch => StackInPlan::Batch,
            _ => StackInPlan::Known,
        };
        let hidden: Vec<_> = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.hidden)).collect();
        let (resources, seen) = StackPart::joined(parts);
        let key = self.actor.backends.chance.uuid();
        let is_replaced =
            |entry: &&Entry| action == Action::Update && entry.decision == Bounds::certain(Decision::Replace);
        let replaced = resources.iter().filter(is_replaced).filter_map(|entry| entry.object.clone()).collect();
        let objects = PlannedObjects::of(seen, &replaced, self.model.rows(), self.stack.generation);
        Ok(Ok(Some((Allowed::new(id, key, place, resources, &hidden), objects))))
    }

    /// Whether the nested stack had a request since this one which was no part of the operation: a signal to a group, for
    /// example. The request of a root stack was checked together with the version of its tree.
    async fn has_moved(&self, planned: i64) -> Result<bool, Error> {
        if self.stack.parent.is_none() || self.stack.generation == planned + 1 {
            return Ok(false);
        }
        let query = OperationQuery { of: Operations::Revisions(self.stack.id), marker: None, limit: Some(1) };
        let last = self.actor.backends.store.operations(&query).await?;
        Ok(last.iter().any(|own| own.generation > planned))
    }

    /// The plan for the nested stack of a resource; `None` also if the plan does not know what will be in it. `in_place`: an
    /// existing nested stack is updated.
    pub(super) fn planned_inside(&self, resource: &str, resource_type: &str, in_place: bool) -> Option<Planned> {
        let planned = self.stack.details.planned.as_ref()?;
        let name = match &self.request.allowed {
            Some(allowed) => allowed.inside(resource, resource_type, in_place)?,
            // The nested stack finds what this one has found.
            None => resource,
        };
        Some(planned.inside(name))
    }
}

/// A part; `None` if it has a newer format.
fn read(part: &str) -> Result<Option<StackPart>, serde_json::Error> {
    let Numbered { format } = serde_json::from_str(part)?;
    if format > FORMAT { Ok(None) } else { serde_json::from_str(part).map(Some) }
}
