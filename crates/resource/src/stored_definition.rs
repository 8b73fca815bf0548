//! The resolved definition of a resource, as stored in its row.

use kiln_value::{Map, Value};
use serde::{Deserialize, Serialize};

/// The current version of the format.
const FORMAT: u32 = 1;

/// The resolved definition of a resource.
///
/// A name in the properties (the image of a server) is stored twice: as given, and as the ID that it had at the last change
/// of the resource. Releases up to 0.1 looked names up in every update, and stored what they found only if they changed
/// the resource, so this is true of their rows too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredDefinition {
    /// The version of this format.
    format: u32,
    /// The type name in the template.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// The properties as given by the template; `None` if they are the same as [`StoredDefinition::properties`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<Map>,
    /// The properties after defaults, coercion and translation, without null values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub properties: Map,
    /// The metadata section.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// `Delete`, `Retain` or `Snapshot`.
    #[serde(default = "delete", skip_serializing_if = "is_delete")]
    pub deletion_policy: String,
    /// The update policy; null if there is none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub update_policy: Value,
    /// The names in `depends_on`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The ID of the existing object that the resource represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

fn delete() -> String {
    "Delete".to_owned()
}

fn is_delete(policy: &str) -> bool {
    policy == "Delete"
}

impl StoredDefinition {
    /// About how many bytes it takes in memory, without its names.
    pub fn size(&self) -> usize {
        let given = self.given.as_ref().map_or(0, Map::size);
        given + self.properties.size() + self.metadata.size() + self.update_policy.size() + self.description.len()
    }

    /// A definition with only a type.
    pub fn of_type(resource_type: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            resource_type: resource_type.into(),
            given: None,
            properties: Map::new(),
            metadata: Map::new(),
            deletion_policy: delete(),
            update_policy: Value::Null,
            depends_on: Vec::new(),
            description: String::new(),
            external_id: None,
        }
    }

    /// The properties as given by the template, with resolved functions.
    pub fn given(&self) -> &Map {
        self.given.as_ref().unwrap_or(&self.properties)
    }

    /// The same with both forms of the properties; equal forms are stored once.
    #[must_use]
    pub fn with_properties(mut self, given: Map, properties: Map) -> Self {
        self.given = (given != properties).then_some(given);
        self.properties = properties;
        self
    }

    /// Whether the object is kept when the resource is deleted.
    pub fn is_retained(&self) -> bool {
        self.deletion_policy == "Retain"
    }

    /// Whether two definitions are equal except for the forms of property values.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.says_the_same_beside_properties(other) && self.given() == other.given()
    }

    /// Whether two definitions are equal except for their properties.
    pub fn says_the_same_beside_properties(&self, other: &Self) -> bool {
        self.resource_type == other.resource_type
            && self.metadata == other.metadata
            && self.deletion_policy == other.deletion_policy
            && self.update_policy == other.update_policy
            && self.depends_on == other.depends_on
            && self.description == other.description
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_storing_and_keeps_what_is_the_same_once() {
        let map = |n| Map::from_iter([("size".to_owned(), Value::Int(n))]);
        for (given, properties) in [(map(1), map(1)), (map(1), map(2)), (Map::new(), Map::new())] {
            let mut definition = StoredDefinition::of_type("T").with_properties(given.clone(), properties);
            definition.metadata = map(3);
            definition.external_id = Some("id".to_owned());
            let text = serde_json::to_string(&definition).unwrap();
            let read: StoredDefinition = serde_json::from_str(&text).unwrap();
            assert_eq!(read, definition);
            assert_eq!(read.given(), &given);
        }
        let plain = serde_json::to_string(&StoredDefinition::of_type("T")).unwrap();
        assert_eq!(plain, r#"{"format":1,"type":"T"}"#);
    }
}
