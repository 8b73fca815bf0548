//! A property in a plan.

use kiln_value::{Map, Value};
use serde::{Deserialize, Serialize};

use crate::Element;
use crate::element::differences;

/// A property before and after a change. A value that is known only later, or a part of one, is `{"known_after": PLACE}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Side>,
    /// After it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Side>,
    /// Where two lists or two maps differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<Element>,
}

impl Property {
    /// A property with what differs. A null is no value, except where a failed update tried to set one.
    pub fn new(name: String, before: Option<Side>, after: Option<Side>) -> Self {
        let [before, after] =
            [before, after].map(|side| side.filter(|side| !side.value.is_null() || side.tried.is_some()));
        let elements = match (&before, &after) {
            (Some(before), Some(after)) => differences(&name, &before.value, &after.value),
            _ => Vec::new(),
        };
        Self { name, before, after, elements }
    }
}

/// One side of a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The value.
    pub value: Value,
    /// The names that the template gives for IDs, by their places: `networks[0].network`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub names: Map,
    /// The resources and attributes from which values are, by their places.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub from: Map,
    /// The value that a failed update tried to set: the object has this one or the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Value>,
}

impl From<Value> for Side {
    fn from(value: Value) -> Self {
        Self { value, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn a_null_is_no_value_unless_a_failed_update_tried_to_set_one() {
        let nothing = || Side::from(Value::Null);
        let property = Property::new("p".to_owned(), Some(nothing()), Some(value!(1).into()));
        assert_eq!((property.before, property.after), (None, Some(value!(1).into())));
        let tried = || Side { tried: Some(value!(1)), ..nothing() };
        let property = Property::new("p".to_owned(), Some(tried()), Some(nothing()));
        assert_eq!((property.before, property.after), (Some(tried()), None));
    }
}
