//! An object in the cloud as it was when a plan was made.

use kiln_value::{Map, Value};
use serde::{Deserialize, Serialize};

/// An object that a plan changes or deletes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedObject {
    /// The path of its resource.
    pub path: String,
    /// Its ID.
    pub id: String,
    /// The properties that its type can read, as the template would write them; `None`: it did not exist.
    pub properties: Option<Map>,
}

/// What has changed of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Moved {
    /// It does not exist any more.
    Gone,
    /// It exists, and did not.
    Back,
    /// A property has another value.
    Property {
        /// The property.
        name: String,
        /// When the plan was made.
        before: Value,
        /// Now.
        now: Value,
    },
}

impl ObservedObject {
    /// The name of its resource.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// What has changed since, in an object that could be read both times.
    pub fn moved(&self, now: &Self) -> Vec<Moved> {
        match (&self.properties, &now.properties) {
            (None, None) => Vec::new(),
            (Some(_), None) => vec![Moved::Gone],
            (None, Some(_)) => vec![Moved::Back],
            (Some(before), Some(now)) => {
                let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
                let value = |map: &Map, name: &str| map.get(name).cloned().unwrap_or_default();
                let differing = names.filter(|name| before.get(*name) != now.get(*name));
                let moved = differing.map(|name| Moved::Property {
                    name: name.clone(),
                    before: value(before, name),
                    now: value(now, name),
                });
                moved.collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn an_object_has_moved_if_it_is_gone_or_has_other_values() {
        let object = |properties: Option<Value>| ObservedObject {
            path: "web".to_owned(),
            id: "1".to_owned(),
            properties: properties.and_then(|value| value.as_map().cloned()),
        };
        let (before, gone) = (object(Some(value!({"a": 1, "b": [2]}))), object(None));
        assert_eq!((before.moved(&before), gone.moved(&gone)), (Vec::new(), Vec::new()));
        assert_eq!((before.moved(&gone), gone.moved(&before)), (vec![Moved::Gone], vec![Moved::Back]));
        let property = |name: &str, before: Value, now: Value| Moved::Property { name: name.to_owned(), before, now };
        let now = object(Some(value!({"b": [2, 3], "c": 4})));
        let expected = [
            property("a", value!(1), Value::Null),
            property("b", value!([2]), value!([2, 3])),
            property("c", Value::Null, value!(4)),
        ];
        assert_eq!(before.moved(&now), expected);
    }
}
