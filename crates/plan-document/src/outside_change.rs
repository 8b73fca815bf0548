//! What others have changed in an object that a plan changes or deletes.

use kiln_value::Value;
use serde::{Deserialize, Serialize};

use crate::{Decision, Entry};

/// A property of an object that others have changed since Kiln last wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutsideChange {
    /// The property.
    pub property: String,
    /// The value that Kiln last wrote.
    pub applied: Value,
    /// What the object showed when it had settled after that, if it was another value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Value>,
    /// The value in the object.
    pub live: Value,
    /// What the plan does about it.
    pub then: Then,
}

/// What a plan does about a change of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It writes the property.
    Overwritten,
    /// It leaves the object's value.
    Kept,
    /// It deletes the object, and perhaps makes another one as the template says.
    Deleted,
}

impl Then {
    /// What happens to a property. `writes_all`: an update of the type writes all properties.
    pub fn of(entry: &Entry, property: &str, writes_all: bool) -> Self {
        match entry.decision.at_most {
            Decision::Replace | Decision::Delete => Self::Deleted,
            _ if writes_all || entry.properties.iter().any(|one| one.name == property) => Self::Overwritten,
            _ => Self::Kept,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Overwritten => "the plan overwrites it",
            Self::Kept => "it stays",
            Self::Deleted => "it goes with the object",
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;
    use crate::{Bounds, Property, Side};

    #[test]
    fn what_happens_to_a_change_of_others_follows_from_the_plan() {
        let entry = |decision| Entry {
            decision: Bounds::certain(decision),
            properties: vec![Property::new("name".to_owned(), None, Some(Side::from(value!("n"))))],
            ..Entry::kept("a".to_owned(), "T".to_owned())
        };
        let update = entry(Decision::Update);
        assert_eq!(Then::of(&update, "name", false), Then::Overwritten);
        assert_eq!(
            (Then::of(&update, "size", false), Then::of(&update, "size", true)),
            (Then::Kept, Then::Overwritten)
        );
        assert_eq!(Then::of(&entry(Decision::Replace), "size", true), Then::Deleted);
        assert_eq!(Then::of(&entry(Decision::Delete), "name", false), Then::Deleted);
    }
}
