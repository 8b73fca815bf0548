//! Where a property is written in a template.

use kiln_value::{Map, Value};

use crate::version::Words;

/// A property in the text of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PropertyPlace {
    /// The resource.
    pub resource: String,
    /// The property of a group that has the definition of its members, if the property is theirs: `resource_def`.
    pub within: Option<&'static str>,
    /// The property.
    pub property: String,
}

impl PropertyPlace {
    /// The keys from the root of the template to the property.
    pub fn keys(&self, words: &Words) -> Vec<String> {
        let mut keys = vec![words.resources.to_owned(), self.resource.clone(), words.properties.to_owned()];
        if let Some(within) = self.within {
            keys.extend([within.to_owned(), "properties".to_owned()]);
        }
        keys.push(self.property.clone());
        keys
    }
}

/// The value at these keys of a template.
pub fn value_at<'v>(template: &'v Value, keys: &[String]) -> Option<&'v Value> {
    keys.iter().try_fold(template, |value, key| value.get(key))
}

/// Sets the value at the keys of a property; a resource without properties gets them. `None`: the template has no such resource,
/// or its properties are no map.
pub fn set_value_at(template: &mut Value, keys: &[String], value: Value) -> Option<()> {
    let (property, above) = keys.split_last()?;
    let (properties, above) = above.split_last()?;
    let mut map = template.as_map_mut()?;
    for key in above {
        map = map.get_mut(key)?.as_map_mut()?;
    }
    let properties = map.entry(properties.clone()).or_insert_with(|| Map::new().into());
    properties.as_map_mut()?.insert(property.clone(), value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Dialect;
    use kiln_value::value;

    #[test]
    fn properties_of_resources_and_of_members_are_set() {
        let words = Dialect::Hot.words();
        let place =
            |resource: &str, within| PropertyPlace { resource: resource.to_owned(), within, property: "n".to_owned() };
        let mut template = value!({ "resources": {
            "bare": { "type": "T" },
            "group": { "type": "G", "properties": { "resource_def": { "type": "T" } } },
            "odd": { "type": "T", "properties": "text" },
        } });
        for place in [place("bare", None), place("group", Some("resource_def"))] {
            let keys = place.keys(words);
            assert_eq!(value_at(&template, &keys), None);
            set_value_at(&mut template, &keys, value!(1)).expect("there");
            assert_eq!(value_at(&template, &keys), Some(&value!(1)));
        }
        let before = template.clone();
        for place in [place("odd", None), place("none", None), place("bare", Some("resource_def"))] {
            assert_eq!(set_value_at(&mut template, &place.keys(words), value!(1)), None, "{place:?}");
        }
        assert_eq!(template, before);
    }
}
