//! Unknown values.

use std::sync::Arc;

use crate::{Class, Diagnostic, Value};

/// The source of an unknown value: an attribute or the reference of a resource that a plan has not processed, or a
/// parameter without a value.
///
/// Only previews and validation without a service create such values. They are never stored or sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unknown(Arc<str>);

impl Unknown {
    /// The source of the value: `resource`, `resource.attribute` or a parameter.
    pub fn of(place: &str) -> Self {
        Self(place.into())
    }

    /// `resource`, `resource.attribute` or a parameter.
    pub fn place(&self) -> &str {
        &self.0
    }

    /// The error of a decision that depends on the value; its class is [`Class::NotKnownYet`].
    pub fn undecided(&self, what: &str) -> Diagnostic {
        Diagnostic::new(Class::NotKnownYet, format!("{what} depends on {}, which is not known yet.", self.0))
            .of_unknown_value()
    }
}

impl Value {
    /// The first unknown part; `None` if everything is known.
    pub fn unknown(&self) -> Option<&Unknown> {
        match self {
            Self::Unknown(unknown) => Some(unknown),
            Self::List(items) => items.iter().find_map(Self::unknown),
            Self::Map(map) => map.values().find_map(Self::unknown),
            _ => None,
        }
    }

    /// The value with unknown parts replaced by those of `known`.
    #[must_use]
    pub fn assuming(&self, known: &Self) -> Self {
        match (self, known) {
            (Self::Unknown(_), known) => known.clone(),
            (Self::List(items), Self::List(known)) if items.len() == known.len() => {
                items.iter().zip(known).map(|(item, known)| item.assuming(known)).collect()
            }
            (Self::Map(map), Self::Map(known)) => map
                .iter()
                .map(|(key, value)| (key.clone(), value.assuming(known.get(key).unwrap_or(&Self::Null))))
                .collect(),
            (value, _) => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn unknown_parts_are_found_and_replaced() {
        let unknown = Value::Unknown(Unknown::of("v.value"));
        let partly = value!({"a": 1, "b": [2, (unknown.clone())]});
        assert_eq!(partly.unknown().map(Unknown::place), Some("v.value"));
        assert_eq!(partly.assuming(&value!({"a": 5, "b": [7, 8]})), value!({"a": 1, "b": [2, 8]}));
        assert_eq!(value!({"a": 1}).unknown(), None);
        assert_ne!(unknown, Value::Null);
    }
}
