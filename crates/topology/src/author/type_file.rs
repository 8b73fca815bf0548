//! Words of type files.

use kiln_value::{Path, Value};

use super::service::{describe, types};
use super::{Sort, Word, at, keys};
use crate::tosca::{Section, TypeChecker};
use crate::type_file::{Names, WORDS, keys_at};

pub(super) fn words(document: &Value, path: &Path, is_key: bool, checker: &TypeChecker<'_>) -> Vec<Word> {
    let names = keys(&path.0);
    if is_key {
        if let Some(known) = keys_at(&names) {
            return known.into_iter().map(|key| Word::new(key, Sort::Key)).collect();
        }
        let is_value = names.first() == Some(&"hot") && names.len() >= 3;
        return if is_value { WORDS.iter().map(|(word, _)| Word::new(*word, Sort::Key)).collect() } else { Vec::new() };
    }
    match names[..] {
        ["derived_from"] | ["requirements", _, "node"] => return types(checker, Section::Node),
        ["requirements", _, "capability"] | ["capabilities", _] | ["capabilities", _, "type"] => {
            return types(checker, Section::Capability);
        }
        ["requirements", _, "relationship"] => return types(checker, Section::Relationship),
        _ => {}
    }
    let Some((_, kind)) = names.last().and_then(|last| WORDS.iter().find(|(word, _)| word == last)) else {
        return Vec::new();
    };
    let own = |section: &str| -> Vec<String> {
        match document.get(section) {
            Some(Value::Map(map)) => map.keys().cloned().collect(),
            Some(Value::List(items)) => {
                items.iter().filter_map(Value::as_map).flat_map(|map| map.keys().cloned()).collect()
            }
            _ => Vec::new(),
        }
    };
    let parent = document.str_at("derived_from").and_then(|parent| checker.names(parent));
    let (mut found, inherited) = match kind {
        Names::Property => (own("properties"), parent.map(|names| names.properties)),
        Names::Requirement | Names::RequirementAttribute => {
            (own("requirements"), parent.map(|names| names.requirements))
        }
        Names::Resource | Names::ResourceAttribute => {
            let resources = document.get("hot").and_then(|hot| hot.get("resources")?.as_map());
            (resources.map(|map| map.keys().cloned().collect()).unwrap_or_default(), None)
        }
        Names::Text => (Vec::new(), None),
    };
    found.extend(inherited.into_iter().flatten());
    found.into_iter().map(|name| Word::new(name, Sort::Name)).collect()
}

pub(super) fn explain(document: &Value, path: &Path, is_key: bool, checker: &TypeChecker<'_>) -> Option<String> {
    match (&keys(&path.0)[..], is_key) {
        (["derived_from"] | ["requirements", _, "node"], false) => describe(checker, at(document, &path.0)?.as_str()?),
        _ => None,
    }
}
