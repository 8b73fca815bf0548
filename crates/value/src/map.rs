//! An ordered map.

use std::fmt;
use std::ops::{Deref, DerefMut};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::Value;

/// The content of a [`Map`]. Its hashes are seeded randomly, and its order does not depend on them.
pub type Entries<V = Value> = IndexMap<String, V, RandomState>;

/// A map that keeps the insertion order of its keys.
///
/// The size of one pointer, so that a [`Value`] has four words instead of ten: most values are not maps. Its methods
/// are those of [`IndexMap`].
#[derive(Clone)]
pub struct Map<V = Value>(Box<Entries<V>>);

impl<V> Map<V> {
    /// A map without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// A map with capacity for this number of entries.
    pub fn with_capacity(entries: usize) -> Self {
        Self(Box::new(IndexMap::with_capacity_and_hasher(entries, RandomState::default())))
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries in order.
    pub fn iter(&self) -> indexmap::map::Iter<'_, String, V> {
        self.0.iter()
    }

    /// The keys in order.
    pub fn keys(&self) -> indexmap::map::Keys<'_, String, V> {
        self.0.keys()
    }

    /// The values in order.
    pub fn values(&self) -> indexmap::map::Values<'_, String, V> {
        self.0.values()
    }

    /// The keys, by value.
    pub fn into_keys(self) -> indexmap::map::IntoKeys<String, V> {
        self.0.into_keys()
    }

    /// The values, by value.
    pub fn into_values(self) -> indexmap::map::IntoValues<String, V> {
        self.0.into_values()
    }
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<V> Deref for Map<V> {
    type Target = Entries<V>;

    fn deref(&self) -> &Entries<V> {
        &self.0
    }
}

impl<V> DerefMut for Map<V> {
    fn deref_mut(&mut self) -> &mut Entries<V> {
        &mut self.0
    }
}

impl<V: PartialEq> PartialEq for Map<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<V> FromIterator<(String, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(entries: I) -> Self {
        Self(Box::new(entries.into_iter().collect()))
    }
}

impl<V, const N: usize> From<[(String, V); N]> for Map<V> {
    fn from(entries: [(String, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<V> Extend<(String, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = indexmap::map::IntoIter<String, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a Map<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = indexmap::map::Iter<'a, String, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, V> IntoIterator for &'a mut Map<V> {
    type Item = (&'a String, &'a mut V);
    type IntoIter = indexmap::map::IterMut<'a, String, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Entries::deserialize(deserializer).map(|entries| Self(Box::new(entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_four_words() {
        assert_eq!(size_of::<Value>(), 4 * size_of::<usize>());
    }
}
