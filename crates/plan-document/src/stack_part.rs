//! A part of a saved plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kiln_value::Value;

use crate::{Entry, FORMAT, ObservedObject, PlanDocument};

/// Some resources of one stack of a saved plan. A plan has a part for each stack of its tree at least, so that an engine reads
/// only those of the stack that it works on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackPart {
    /// The number of the format ([`FORMAT`]).
    pub format: u32,
    /// The numbers of the last requests to the stacks with the path of the part, by their IDs. There is more than one while a
    /// replaced stack still exists.
    #[serde(default)]
    pub generations: BTreeMap<String, i64>,
    /// The resources.
    pub resources: Vec<Entry>,
    /// The objects that the plan changes or deletes, as they were. They have values that the plan does not show.
    #[serde(default)]
    pub observed: Vec<ObservedObject>,
    /// The properties whose planned values are masked in the entries.
    #[serde(default)]
    pub hidden: Vec<HiddenProperty>,
}

/// A property with a planned value that nobody is shown. The engine compares it with what it is about to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HiddenProperty {
    /// The path of the resource.
    pub path: String,
    /// The name of the property.
    pub name: String,
    /// The value, with `{"known_after": PLACE}` for parts that are known only later.
    pub value: Value,
}

impl HiddenProperty {
    /// The properties whose values differ between a plan and what is shown of it.
    pub fn all(shown: &PlanDocument, whole: PlanDocument) -> Vec<Self> {
        let mut hidden = Vec::new();
        for (shown, entry) in shown.resources.iter().zip(whole.resources).filter(|(shown, _)| !shown.former) {
            for (shown, property) in shown.properties.iter().zip(entry.properties) {
                if let Some(side) = property.after.filter(|side| shown.after.as_ref() != Some(side)) {
                    hidden.push(Self { path: entry.path.clone(), name: property.name, value: side.value });
                }
            }
        }
        hidden
    }
}

/// Maximum size of the content of a part in bytes, as JSON. A resource may be larger.
const MOST: usize = 256 << 10;

/// What a part has one after the other.
enum Item {
    Resource(Box<Entry>),
    Observed(ObservedObject),
    Hidden(HiddenProperty),
}

impl StackPart {
    /// The parts of a plan by the paths of the resources that own their stacks, the root first.
    ///
    /// # Errors
    /// An entry that cannot be written as JSON.
    pub fn split(
        resources: Vec<Entry>,
        observed: Vec<ObservedObject>,
        hidden: Vec<HiddenProperty>,
        generations: &BTreeMap<String, BTreeMap<String, i64>>,
    ) -> Result<Vec<(String, Self)>, serde_json::Error> {
        let mut stacks: BTreeMap<String, Vec<(Item, usize)>> = BTreeMap::new();
        for path in generations.keys().cloned().chain([String::new()]) {
            stacks.entry(path).or_default();
        }
        for entry in resources {
            let (path, size) = (entry.parent.clone().unwrap_or_default(), serde_json::to_string(&entry)?.len());
            stacks.entry(path).or_default().push((Item::Resource(Box::new(entry)), size));
        }
        let parent = |path: &str| path.rsplit_once('/').map(|(path, _)| path).unwrap_or_default().to_owned();
        for property in hidden {
            let (path, size) = (parent(&property.path), serde_json::to_string(&property)?.len());
            stacks.entry(path).or_default().push((Item::Hidden(property), size));
        }
        for object in observed {
            let path = parent(&object.path);
            let size = serde_json::to_string(&object)?.len();
            stacks.entry(path).or_default().push((Item::Observed(object), size));
        }
        let mut split = Vec::new();
        for (path, items) in stacks {
            let empty = Self {
                format: FORMAT,
                generations: generations.get(&path).cloned().unwrap_or_default(),
                resources: Vec::new(),
                observed: Vec::new(),
                hidden: Vec::new(),
            };
            let (mut part, mut total) = (empty.clone(), 0);
            for (item, size) in items {
                if total > 0 && total + size > MOST {
                    split.push((path.clone(), std::mem::replace(&mut part, empty.clone())));
                    total = 0;
                }
                total += size;
                match item {
                    Item::Resource(entry) => part.resources.push(*entry),
                    Item::Observed(object) => part.observed.push(object),
                    Item::Hidden(property) => part.hidden.push(property),
                }
            }
            split.push((path, part));
        }
        Ok(split)
    }

    /// The resources and the objects of all parts.
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> (Vec<Entry>, Vec<ObservedObject>) {
        let (mut resources, mut observed) = (Vec::new(), Vec::new());
        for part in parts {
            resources.extend(part.resources);
            observed.extend(part.observed);
        }
        (resources, observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_split_by_stacks_and_by_size() {
        let entry = |path: &str| Entry::kept(path.to_owned(), "OS::Heat::Value".to_owned());
        let large = Entry { reasons: vec!["x".repeat(MOST)], ..entry("group/0") };
        let resources = vec![entry("a"), entry("group"), large.clone(), entry("group/1"), entry("z")];
        let generation = |id: &str| BTreeMap::from([(id.to_owned(), 3)]);
        let generations =
            BTreeMap::from([("group".to_owned(), generation("g")), ("empty".to_owned(), generation("e"))]);
        let object = ObservedObject { path: "group/1".to_owned(), id: "1".to_owned(), properties: None };
        let secret = HiddenProperty { path: "a".to_owned(), name: "value".to_owned(), value: "geheim".into() };
        let parts =
            StackPart::split(resources.clone(), vec![object.clone()], vec![secret.clone()], &generations).unwrap();
        let paths: Vec<&str> = parts.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["", "empty", "group", "group"]);
        assert_eq!((&parts[1].1.generations, parts[1].1.resources.len()), (&generation("e"), 0));
        assert_eq!((&parts[3].1.generations, &parts[2].1.resources), (&generation("g"), &vec![large]));
        assert_eq!(parts[0].1.hidden, [secret]);
        let (mut joined, observed) = StackPart::joined(parts.into_iter().map(|(_, part)| part));
        joined.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!((joined, observed), (resources, vec![object]));
    }
}
