//! The resources of a stack for lists: read without their definitions and data, so that a list of a large stack costs
//! little.

use std::collections::{BTreeSet, HashMap};

use kiln_plan::Model;
use kiln_resource::{Action, Resource, ResourceId};
use kiln_stack::load;
use kiln_stack::{Backends, LoadedStack};
use kiln_store::{Error, Stack};

/// Rows per query.
const PAGE: u64 = 1_000;

/// The resources of a stack, as users see them.
pub struct Listing {
    /// The current rows without definition, metadata, data, attributes and operation, by name; then, unless the stack is
    /// deleted, one in the state `INIT_COMPLETE` for every resource of the template without a row.
    pub rows: Vec<Resource>,
    /// The names of the direct dependants of each resource.
    pub required_by: HashMap<String, Vec<String>>,
}

impl Listing {
    /// Loads it.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Damaged`] if the stored template is invalid.
    pub async fn of(backends: &Backends, stack: &Stack) -> Result<Self, Error> {
        // The template is dropped before the rows are read.
        let (names, required_by) = {
            let blueprint = load::blueprint(backends, stack, &stack.desired).await?;
            let blueprint = blueprint.map_err(|error| Error::Damaged(error.into()))?;
            let definitions = blueprint.definitions().values();
            let names: Vec<_> = definitions.map(|one| (one.name.clone(), one.resource_type.clone())).collect();
            (names, blueprint.required_by())
        };
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = backends.store.resources_in_brief(stack.id, after, PAGE).await?;
            let is_last = u64::try_from(page.rows.len()).is_ok_and(|count| count < PAGE);
            after = page.last;
            rows.extend(page.rows);
            if is_last {
                break;
            }
        }
        let mut rows = Model::new(rows).into_shown(stack.rollback());
        add_waiting(&mut rows, stack, names.iter().map(|(name, kind)| (name.as_str(), kind.as_str())));
        Ok(Self { rows, required_by })
    }
}

/// The rows of a stack as users see them: the current ones and, unless the stack is deleted, one in the state
/// `INIT_COMPLETE` for every resource of the template without a row.
pub fn listed(view: &LoadedStack) -> Vec<Resource> {
    let mut rows: Vec<Resource> = view.resources().cloned().collect();
    let definitions = view.blueprint.definitions().values();
    add_waiting(&mut rows, &view.stack, definitions.map(|one| (one.name.as_str(), one.resource_type.as_str())));
    rows
}

/// Adds a row in the state `INIT_COMPLETE` for every resource (name and type) of the template without a row, unless the
/// stack is deleted.
fn add_waiting<'a>(rows: &mut Vec<Resource>, stack: &Stack, resources: impl Iterator<Item = (&'a str, &'a str)>) {
    if stack.state.action == Action::Delete {
        return;
    }
    let known: BTreeSet<String> = rows.iter().map(|row| row.name.clone()).collect();
    let nil = ResourceId(uuid::Uuid::nil());
    let waiting = resources.filter(|(name, _)| !known.contains(*name));
    rows.extend(waiting.map(|(name, kind)| Resource::new(stack.id, nil, name, kind, stack.created)));
}
