//! The rows of a stack. A copy of a model shares the rows that neither of the two has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_resource::{Resource, ResourceId};

/// Rows by ID, each with its number in the order of their creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    rows: BTreeMap<ResourceId, (u64, Arc<Resource>)>,
    last: u64,
}

impl Rows {
    pub(crate) fn get(&self, id: &ResourceId) -> Option<&Resource> {
        self.rows.get(id).map(|(_, row)| &**row)
    }

    pub(crate) fn shared(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        self.rows.get(&id).map(|(_, row)| row)
    }

    pub(crate) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Resource> {
        self.rows.get_mut(id).map(|(_, row)| Arc::make_mut(row))
    }

    pub(crate) fn contains_key(&self, id: &ResourceId) -> bool {
        self.rows.contains_key(id)
    }

    pub(crate) fn insert(&mut self, row: Resource) {
        self.last += 1;
        self.rows.insert(row.id, (self.last, Arc::new(row)));
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) -> Option<Resource> {
        self.rows.remove(id).map(|(_, row)| Arc::unwrap_or_clone(row))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Resource> {
        self.rows.values().map(|(_, row)| &**row)
    }

    /// The rows in the reverse order of their creation. A database has them in this order: whoever removes many of them in
    /// any other order reads and writes each page of the table many times.
    pub(crate) fn newest_first(&self) -> Vec<&Resource> {
        let mut rows: Vec<&(u64, Arc<Resource>)> = self.rows.values().collect();
        rows.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        rows.into_iter().map(|(_, row)| &**row).collect()
    }
}

impl FromIterator<Resource> for Rows {
    /// The rows are in the order of their creation.
    fn from_iter<T: IntoIterator<Item = Resource>>(rows: T) -> Self {
        let mut this = Self::default();
        rows.into_iter().for_each(|row| this.insert(row));
        this
    }
}
