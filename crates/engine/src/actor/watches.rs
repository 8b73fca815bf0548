//! The running operations that read other resources, and are polled at once when those have changed.

use std::collections::{BTreeMap, BTreeSet};

use kiln_resource::ResourceId;

/// The rows that running operations read.
#[derive(Debug, Default)]
pub(super) struct Watches {
    readers: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    read: BTreeMap<ResourceId, Vec<ResourceId>>,
}

impl Watches {
    /// The operation on `reader` reads these rows.
    pub(super) fn set(&mut self, reader: ResourceId, read: Vec<ResourceId>) {
        if self.read.get(&reader).is_some_and(|before| *before == read) {
            return;
        }
        self.remove(reader);
        if read.is_empty() {
            return;
        }
        for row in &read {
            self.readers.entry(*row).or_default().insert(reader);
        }
        self.read.insert(reader, read);
    }

    /// The operation on `reader` has ended.
    pub(super) fn remove(&mut self, reader: ResourceId) {
        for row in self.read.remove(&reader).unwrap_or_default() {
            if let Some(readers) = self.readers.get_mut(&row) {
                readers.remove(&reader);
                if readers.is_empty() {
                    self.readers.remove(&row);
                }
            }
        }
    }

    /// The operations that read a row.
    pub(super) fn readers_of(&self, row: ResourceId) -> Vec<ResourceId> {
        self.readers.get(&row).into_iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_known_until_they_end() {
        let id = |n| ResourceId(uuid::Uuid::from_u128(n));
        let mut watches = Watches::default();
        watches.set(id(1), vec![id(8), id(9)]);
        watches.set(id(2), vec![id(9)]);
        assert_eq!(watches.readers_of(id(9)), [id(1), id(2)]);
        watches.set(id(1), vec![id(9)]);
        assert_eq!(watches.readers_of(id(8)), []);
        watches.remove(id(1));
        watches.remove(id(2));
        assert!(watches.readers.is_empty() && watches.read.is_empty());
    }
}
