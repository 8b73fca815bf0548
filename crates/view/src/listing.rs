//! The resources of a stack for lists: read without their definitions and data, so that a list of a large stack costs
//! little.

use std::collections::HashMap;

use kiln_plan::Model;
use kiln_resource::{Action, Resource};
use kiln_stack::Backends;
use kiln_stack::load;
use kiln_stack::view::add_waiting;
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
            let blueprint = blueprint.map_err(|error| Error::Damaged(error.message.clone()))?;
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
        let mut rows = Model::new(rows).into_shown(stack.state.action == Action::Rollback);
        add_waiting(&mut rows, stack, names.iter().map(|(name, kind)| (name.as_str(), kind.as_str())));
        Ok(Self { rows, required_by })
    }
}
