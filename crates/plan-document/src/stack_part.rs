//! A part of a saved plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Entry, FORMAT};

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
}

/// Maximum size of the resources of a part in bytes, as JSON. A resource may be larger.
const MOST: usize = 256 << 10;

impl StackPart {
    /// The parts of a plan by the paths of the resources that own their stacks, the root first.
    ///
    /// # Errors
    /// An entry that cannot be written as JSON.
    pub fn split(
        resources: Vec<Entry>,
        mut generations: BTreeMap<String, BTreeMap<String, i64>>,
    ) -> Result<Vec<(String, Self)>, serde_json::Error> {
        let mut stacks: BTreeMap<String, Vec<(Vec<Entry>, usize)>> = BTreeMap::new();
        stacks.entry(String::new()).or_default();
        for path in generations.keys() {
            stacks.entry(path.clone()).or_default();
        }
        for entry in resources {
            let size = serde_json::to_string(&entry)?.len();
            let parts = stacks.entry(entry.parent.clone().unwrap_or_default()).or_default();
            match parts.last_mut() {
                Some((entries, total)) if *total + size <= MOST => {
                    entries.push(entry);
                    *total += size;
                }
                _ => parts.push((vec![entry], size)),
            }
        }
        let mut split = Vec::new();
        for (path, mut parts) in stacks {
            if parts.is_empty() {
                parts.push((Vec::new(), 0));
            }
            let generations = generations.remove(&path).unwrap_or_default();
            for (resources, _) in parts {
                split.push((path.clone(), Self { format: FORMAT, generations: generations.clone(), resources }));
            }
        }
        Ok(split)
    }

    /// The resources of all parts, as a plan shows them.
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Vec<Entry> {
        parts.into_iter().flat_map(|part| part.resources).collect()
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
        let parts = StackPart::split(resources.clone(), generations).unwrap();
        let paths: Vec<&str> = parts.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["", "empty", "group", "group"]);
        assert_eq!((&parts[1].1.generations, parts[1].1.resources.len()), (&generation("e"), 0));
        assert_eq!((&parts[3].1.generations, &parts[2].1.resources), (&generation("g"), &vec![large]));
        let mut joined = StackPart::joined(parts.into_iter().map(|(_, part)| part));
        joined.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(joined, resources);
    }
}
