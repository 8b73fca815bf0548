//! Rows of a batch, each once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;

use kiln_resource::{Resource, ResourceId, SnapshotId};

use crate::Snapshot;

/// A row with an ID.
pub trait Row {
    /// The type of its ID.
    type Id: Copy + Eq + std::hash::Hash;
    /// Its ID.
    fn id(&self) -> Self::Id;
}

impl Row for Resource {
    type Id = ResourceId;

    fn id(&self) -> ResourceId {
        self.id
    }
}

impl Row for Snapshot {
    type Id = SnapshotId;

    fn id(&self) -> SnapshotId {
        self.id
    }
}

/// Rows to insert or replace, in order of their first addition. A row that is added again replaces the earlier one:
/// PostgreSQL refuses a statement that writes a row twice.
#[derive(Clone, Debug)]
pub struct Distinct<T: Row> {
    rows: Vec<T>,
    places: HashMap<T::Id, usize>,
}

impl<T: Row> Distinct<T> {
    /// Adds a row, or replaces it.
    pub fn put(&mut self, row: T) {
        match self.places.entry(row.id()) {
            Entry::Occupied(place) => {
                if let Some(earlier) = self.rows.get_mut(*place.get()) {
                    *earlier = row;
                }
            }
            Entry::Vacant(place) => {
                place.insert(self.rows.len());
                self.rows.push(row);
            }
        }
    }

    /// Changes each row. Their IDs stay.
    pub fn change(&mut self, change: impl FnMut(&mut T)) {
        self.rows.iter_mut().for_each(change);
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.places.clear();
    }
}

impl<T: Row> Default for Distinct<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Row> Deref for Distinct<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.rows
    }
}

impl<T: Row> Extend<T> for Distinct<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.put(row));
    }
}

impl<T: Row> FromIterator<T> for Distinct<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut distinct = Self::default();
        distinct.extend(rows);
        distinct
    }
}

impl<T: Row> From<Vec<T>> for Distinct<T> {
    fn from(rows: Vec<T>) -> Self {
        rows.into_iter().collect()
    }
}

impl<T: Row> IntoIterator for Distinct<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'a, T: Row> IntoIterator for &'a Distinct<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}
