//! The words of type files, which stand for values of the node: which there are, and whether they name what exists.

use std::collections::HashSet;

use kiln_template::hint::nearest;
use kiln_value::{Path, Value};

use crate::Refusal;
use crate::tosca::arguments;

/// What the argument of a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// A property, or a list of a property and parts in it, or of a capability and its property.
    Property,
    /// A requirement of the type.
    Requirement,
    /// A list of a requirement and an attribute or property of the node that fulfils it.
    RequirementAttribute,
    /// The suffix of a resource of the type.
    Resource,
    /// A list of a suffix and an attribute of that resource.
    ResourceAttribute,
    /// A text of its own.
    Text,
}

/// All words.
pub(crate) const WORDS: [(&str, Names); 23] = [
    ("$property", Names::Property),
    ("$gib", Names::Property),
    ("$mib", Names::Property),
    ("$bytes", Names::Property),
    ("$kbps", Names::Property),
    ("$cidr", Names::Property),
    ("$content", Names::Property),
    ("$base64", Names::Property),
    ("$target", Names::Requirement),
    ("$network", Names::Requirement),
    ("$target_attribute", Names::RequirementAttribute),
    ("$target_property", Names::RequirementAttribute),
    ("$resource", Names::Resource),
    ("$value", Names::Resource),
    ("$flavor", Names::Text),
    ("$resource_attribute", Names::ResourceAttribute),
    ("$attribute", Names::Text),
    ("$ports", Names::Text),
    ("$image", Names::Text),
    ("$format", Names::Text),
    ("$host", Names::Text),
    ("$artifact", Names::Text),
    ("$node", Names::Text),
];

/// Functions of HOT that name parts of a template, which a type cannot know.
const NAMING: [(&str, &str); 3] =
    [("get_resource", "$resource"), ("get_attr", "$resource_attribute"), ("get_file", "$content")];

/// What the words of a type may name.
pub(super) struct Known<'k> {
    pub(super) properties: HashSet<&'k str>,
    pub(super) capabilities: HashSet<&'k str>,
    pub(super) requirements: HashSet<&'k str>,
    /// Suffixes.
    pub(super) resources: HashSet<&'k str>,
}

/// Checks all words in a value.
pub(super) fn check(value: &Value, at: &Path, known: &Known<'_>, refusals: &mut Vec<Refusal>) {
    match value {
        Value::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| check(item, &at.index(i), known, refusals));
        }
        Value::Map(map) => {
            if map.len() == 1
                && let Some((word, argument)) = map.first()
            {
                if word.starts_with('$') {
                    return check_word(word, argument, &at.key(word), known, refusals);
                }
                if let Some((_, instead)) = NAMING.iter().find(|(name, _)| name == word) {
                    let message = format!("A type does not know the names of a template: use {instead}, not {word}.");
                    refusals.push(Refusal::new("bad-value", &at.key(word), message));
                    return;
                }
                let is_own = |name: &Value| !name.as_str().is_some_and(|name| name.starts_with("OS::"));
                if word == "get_param" && arguments(argument).first().is_none_or(is_own) {
                    let message = "A type does not know the parameters of a template: use $property, not get_param.";
                    refusals.push(Refusal::new("bad-value", &at.key(word), message));
                    return;
                }
            }
            map.iter().for_each(|(key, value)| check(value, &at.key(key), known, refusals));
        }
        _ => {}
    }
}

/// Checks a property that stands without a word.
pub(super) fn check_path(key: &str, value: &Value, at: &Path, known: &Known<'_>, refusals: &mut Vec<Refusal>) {
    check_argument(key, Names::Property, value, at, known, refusals);
}

fn check_word(word: &str, argument: &Value, at: &Path, known: &Known<'_>, refusals: &mut Vec<Refusal>) {
    if let Some((_, names)) = WORDS.iter().find(|(name, _)| *name == word) {
        return check_argument(word, *names, argument, at, known, refusals);
    }
    let refusal = Refusal::new("bad-value", at, format!("No word is named {word}."));
    refusals.push(match nearest(word, WORDS.iter().map(|(name, _)| *name)) {
        Some(near) => refusal.hint(format!("did you mean {near}?")),
        None => refusal,
    });
}

fn check_argument(
    word: &str,
    names: Names,
    argument: &Value,
    at: &Path,
    known: &Known<'_>,
    refusals: &mut Vec<Refusal>,
) {
    let mut refuse = |message: String, near: Option<&str>| {
        let refusal = Refusal::new("bad-value", at, message);
        refusals.push(match near {
            Some(near) => refusal.hint(format!("did you mean {near}?")),
            None => refusal,
        });
    };
    let path = arguments(argument);
    let Some(first) = path.first().and_then(Value::as_str) else {
        return refuse(format!("{word} must have a name, or a list that begins with one."), None);
    };
    let missing = |what: &str, all: &HashSet<&str>, refuse: &mut dyn FnMut(String, Option<&str>)| {
        let mut sorted: Vec<&str> = all.iter().copied().collect();
        sorted.sort_unstable();
        refuse(format!("The type has no {what} {first}."), nearest(first, sorted));
    };
    match names {
        Names::Property => {
            let of_capability = path.len() > 1 && known.capabilities.contains(first);
            if !known.properties.contains(first) && !of_capability {
                missing("property", &known.properties, &mut refuse);
            }
        }
        Names::Requirement | Names::RequirementAttribute => {
            if !known.requirements.contains(first) {
                missing("requirement", &known.requirements, &mut refuse);
            } else if names == Names::RequirementAttribute && path.len() < 2 {
                refuse(format!("{word} must have a requirement and an attribute."), None);
            }
        }
        Names::Resource | Names::ResourceAttribute => {
            if !known.resources.contains(first) {
                let mut sorted: Vec<&str> = known.resources.iter().copied().collect();
                sorted.sort_unstable();
                refuse(format!("The type has no resource with the suffix \"{first}\"."), nearest(first, sorted));
            } else if names == Names::ResourceAttribute && path.len() < 2 {
                refuse(format!("{word} must have a suffix and an attribute."), None);
            }
        }
        Names::Text => {}
    }
}
