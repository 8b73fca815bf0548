//! Sets, and views of dictionaries that behave like sets.

mod order;

use std::rc::Rc;

use indexmap::IndexSet;

use crate::Error;
use crate::dict::Dict;
use crate::object::{Key, Measure, Object};

/// The members of a set, in iteration order.
pub(crate) type Members = IndexSet<Key>;

/// A set, or the keys or items of a dictionary.
#[derive(Clone, Debug)]
pub(crate) enum Set {
    /// Python's `frozenset`.
    Frozen(Rc<FrozenSet>),
    /// `dict.keys()`.
    Keys(Dict),
    /// `dict.items()`, pairs.
    Items(Dict),
}

/// The content of a real set.
#[derive(Debug)]
pub(crate) struct FrozenSet {
    members: Members,
    measure: Measure,
}

impl Set {
    pub(crate) fn new(members: Members) -> Result<Self, Error> {
        let measure = Measure::around(members.iter().map(Key::object))?;
        let members = order::as_walked(members);
        Ok(Self::Frozen(Rc::new(FrozenSet { members, measure })))
    }

    /// A set of values.
    ///
    /// Errors: one is unhashable.
    pub(crate) fn of(values: impl IntoIterator<Item = Object>) -> Result<Self, Error> {
        Self::new(values.into_iter().map(Key::new).collect::<Result<_, _>>()?)
    }

    pub(crate) fn measure(&self) -> Measure {
        match self {
            Self::Frozen(set) => set.measure,
            Self::Keys(dict) | Self::Items(dict) => dict.measure(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Frozen(set) => set.members.len(),
            Self::Keys(dict) | Self::Items(dict) => dict.len(),
        }
    }

    /// The type name of a view; `None` for a real set.
    pub(crate) fn view_name(&self) -> Option<&'static str> {
        match self {
            Self::Frozen(_) => None,
            Self::Keys(dict) if dict.is_frozen() => Some("KeysView"),
            Self::Items(dict) if dict.is_frozen() => Some("ItemsView"),
            Self::Keys(_) => Some("dict_keys"),
            Self::Items(_) => Some("dict_items"),
        }
    }

    /// The member at a position.
    pub(crate) fn at(&self, index: usize) -> Result<Option<Object>, Error> {
        match self {
            Self::Frozen(set) => Ok(set.members.get_index(index).map(|key| key.object().clone())),
            Self::Keys(dict) => Ok(dict.at(index).map(|(key, _)| key.clone())),
            Self::Items(dict) => {
                dict.at(index).map(|(key, value)| Object::tuple(vec![key.clone(), value.clone()])).transpose()
            }
        }
    }

    /// All members.
    pub(crate) fn to_vec(&self) -> Result<Vec<Object>, Error> {
        (0..self.len()).filter_map(|index| self.at(index).transpose()).collect()
    }

    /// Errors: the value is unhashable.
    pub(crate) fn contains(&self, value: &Object) -> Result<bool, Error> {
        match self {
            Self::Frozen(set) => Ok(set.members.contains(&Key::new(value.clone())?)),
            Self::Keys(dict) => Ok(dict.get(value)?.is_some()),
            Self::Items(dict) => match pair(value) {
                Ok((key, value)) => Ok(dict.get(&key)? == Some(&value)),
                // The items view of a frozen dictionary unpacks the value first.
                Err(error) if dict.is_frozen() => Err(error),
                Err(_) => Ok(false),
            },
        }
    }

    /// The members of a real set.
    ///
    /// Errors: views do not have the methods of sets.
    pub(crate) fn members(&self, method: &str) -> Result<&Members, Error> {
        match (self, self.view_name()) {
            (Self::Frozen(set), _) => Ok(&set.members),
            (_, name) => {
                let message = format!("'{}' object has no attribute '{method}'", name.unwrap_or_default());
                Err(Error::new("AttributeError", message))
            }
        }
    }

    /// Whether every member is one of the other set.
    pub(crate) fn is_subset(&self, other: &Self) -> Result<bool, Error> {
        if self.len() > other.len() {
            return Ok(false);
        }
        for member in self.to_vec()? {
            if !other.contains(&member)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The two items of a pair.
fn pair(value: &Object) -> Result<(Object, Object), Error> {
    let parts = match value {
        Object::List(list) => list.items().to_vec(),
        Object::Set(set) => set.to_vec()?,
        Object::Dict(dict) => dict.iter().map(|(key, _)| key.clone()).collect(),
        Object::Str(text) => text.chars().map(|c| Object::text(c.to_string())).collect(),
        other => {
            let message = format!("cannot unpack non-iterable {} object", other.type_name());
            return Err(Error::type_error(message));
        }
    };
    match <[Object; 2]>::try_from(parts) {
        Ok([key, value]) => Ok((key, value)),
        Err(parts) if parts.len() > 2 => Err(Error::value("too many values to unpack (expected 2)")),
        Err(parts) => Err(Error::value(format!("not enough values to unpack (expected 2, got {})", parts.len()))),
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Frozen(a), Self::Frozen(b)) => a.members == b.members,
            _ => self.len() == other.len() && self.is_subset(other).unwrap_or(false),
        }
    }
}
