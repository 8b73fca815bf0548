//! Entries of a list of resources.

use std::collections::HashMap;

use kiln_resource::{Resource, StackId};
use kiln_stack::Backends;
use kiln_store::{Stack, StackQuery};
use kiln_view::Listing;

use super::resource::ResourceEntry;
use crate::error::ApiError;
use crate::link::Links;

/// The resources of a stack with the data for their entries.
pub(crate) struct ResourceList {
    pub(crate) stack: Stack,
    pub(crate) rows: Vec<Resource>,
    /// The direct dependants of each resource.
    required_by: HashMap<String, Vec<String>>,
    /// Nested stacks of resources, by ID.
    nested: HashMap<StackId, Stack>,
}

impl ResourceList {
    /// Loads the resources of a stack. A resource without a row is `INIT_COMPLETE`.
    pub(crate) async fn of(backends: &Backends, stack: Stack) -> Result<Self, ApiError> {
        let Listing { rows, required_by } = Listing::of(backends, &stack).await?;
        let nested = nested_of(backends, stack.id, &rows).await?;
        Ok(Self { stack, rows, required_by, nested })
    }

    /// The nested stack of a resource.
    pub(crate) fn nested(&self, row: &Resource) -> Option<&Stack> {
        self.nested.get(&row.child?)
    }

    /// The entry of a resource.
    pub(crate) fn entry<'a>(&'a self, row: &'a Resource, links: &Links) -> ResourceEntry<'a> {
        let required_by = self.required_by.get(&row.name).into_iter().flatten().map(String::as_str).collect();
        ResourceEntry::new(&self.stack, row, self.nested(row), required_by, links)
    }
}

/// The nested stacks of the resources of a stack, by ID.
pub(super) async fn nested_of(
    backends: &Backends,
    stack: StackId,
    rows: &[Resource],
) -> Result<HashMap<StackId, Stack>, ApiError> {
    if rows.iter().all(|row| row.child.is_none()) {
        return Ok(HashMap::new());
    }
    let query = StackQuery { parent: Some(stack), nested: true, deleted: true, ..StackQuery::default() };
    Ok(backends.store.stacks(&query).await?.into_iter().map(|stack| (stack.id, stack)).collect())
}
