//! Dictionaries.

use std::rc::Rc;

use indexmap::IndexMap;

use crate::Error;
use crate::object::{Key, Measure, Object};

/// The content of a dictionary, in insertion order.
pub(crate) type Entries = IndexMap<Key, Object>;

/// An immutable dictionary.
#[derive(Clone, Debug)]
pub(crate) struct Dict {
    /// Whether it is the frozen type of yaql, which is hashable; Python's `dict` is not.
    frozen: bool,
    body: Rc<Body>,
}

#[derive(Debug)]
struct Body {
    entries: Entries,
    measure: Measure,
}

impl Dict {
    /// The type of literals and input data.
    pub(crate) fn frozen(entries: Entries) -> Result<Self, Error> {
        Self::new(true, entries)
    }

    /// Python's `dict`, which some functions return.
    pub(crate) fn plain(entries: Entries) -> Result<Self, Error> {
        Self::new(false, entries)
    }

    fn new(frozen: bool, entries: Entries) -> Result<Self, Error> {
        let measure = Measure::around(entries.iter().flat_map(|(key, value)| [key.object(), value]))?;
        Ok(Self { frozen, body: Rc::new(Body { entries, measure }) })
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    pub(crate) fn measure(&self) -> Measure {
        self.body.measure
    }

    pub(crate) fn address(&self) -> usize {
        Rc::as_ptr(&self.body).addr()
    }

    pub(crate) fn len(&self) -> usize {
        self.body.entries.len()
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.body.entries
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Object, &Object)> {
        self.body.entries.iter().map(|(key, value)| (key.object(), value))
    }

    /// The value of a key.
    ///
    /// Errors: the key is unhashable.
    pub(crate) fn get(&self, key: &Object) -> Result<Option<&Object>, Error> {
        Ok(self.body.entries.get(&Key::new(key.clone())?))
    }

    /// The entry at a position in insertion order.
    pub(crate) fn at(&self, index: usize) -> Option<(&Object, &Object)> {
        self.body.entries.get_index(index).map(|(key, value)| (key.object(), value))
    }
}

impl PartialEq for Dict {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.body, &other.body) || self.body.entries == other.body.entries
    }
}
