//! Suggestions for unknown names.

use kiln_plan::ResourceTypes;
use kiln_template::hint::nearest;
use kiln_value::Path;

use super::complete::{CONSTRAINTS, PARAMETER_KEYS, PARAMETER_TYPES};
use super::diagnose::Trouble;
use super::surroundings::Surroundings;
use crate::Page;
use crate::mention::{Manner, Mention, Role, mentions};
use crate::types::type_or_child;
use crate::walk::value_at;

/// Points errors about unknown names at the name, and adds a hint with the most similar one.
pub fn suggest(page: &Page, troubles: &mut [Trouble], catalog: &ResourceTypes, around: &Surroundings) {
    for trouble in troubles.iter_mut() {
        if let Some(path) = wrong_key(page, trouble) {
            trouble.span = page.span(&path);
            trouble.path = path;
        }
        if trouble.hints.is_empty() {
            trouble.hints.extend(known_word(page, &trouble.message));
        }
    }
    let about_names =
        ["The specified reference ", "The Parameter (", "The Referenced Attribute (", "Invalid condition "];
    let is_about_name = |trouble: &Trouble| about_names.iter().any(|part| trouble.message.contains(part));
    if !troubles.iter().any(is_about_name) {
        return;
    }
    let all = mentions(page);
    for trouble in troubles.iter_mut().filter(|trouble| is_about_name(trouble)) {
        let quoted = |name: &str| [format!("\"{name}\""), format!("({name})"), format!(" {name})")];
        let is_meant = |mention: &&Mention| {
            mention.manner != Manner::Declared
                && mention.path.0.starts_with(&trouble.path.0)
                && quoted(&mention.name).iter().any(|name| trouble.message.contains(name))
                && !is_declared(&all, mention)
        };
        let Some(mention) = all.iter().find(is_meant) else { continue };
        trouble.span = mention.span;
        trouble.path = mention.path.clone();
        if !trouble.hints.is_empty() {
            continue;
        }
        let near = match &mention.role {
            Role::Attribute(resource) => {
                page.type_of(resource).and_then(|name| type_or_child(catalog, around, name)).and_then(|found| {
                    nearest(&mention.name, found.attributes.keys().map(String::as_str)).map(str::to_owned)
                })
            }
            role => {
                let declared = all.iter().filter(|other| other.manner == Manner::Declared && other.role == *role);
                nearest(&mention.name, declared.map(|other| other.name.as_str())).map(str::to_owned)
            }
        };
        trouble.hints.extend(near.map(|near| format!("did you mean {near}?")));
    }
}

/// The path of the key that a message begins or ends with, if it is in the part that the error is about.
fn wrong_key(page: &Page, trouble: &Trouble) -> Option<Path> {
    let message = &trouble.message;
    let first = || message.strip_prefix('"')?.split_once('"').map(|(key, _)| key);
    let last = || message.strip_prefix("The template section is invalid: ");
    let path = trouble.path.key(first().or_else(last)?);
    value_at(page.value(), &path).map(|_| path)
}

/// A hint with the most similar word of the language.
fn known_word(page: &Page, message: &str) -> Option<String> {
    let dialect = page.release().dialect();
    let words = dialect.words();
    let sections = [
        dialect.version_key(),
        words.description,
        words.parameters,
        words.conditions,
        words.resources,
        words.outputs,
        "parameter_groups",
    ];
    let known: [(&str, &str, &[&str]); 4] = [
        ("The template section is invalid: ", "", &sections),
        ("Invalid key '", "' for parameter constraints", &CONSTRAINTS),
        ("Invalid key '", "' for parameter (", &PARAMETER_KEYS),
        ("Invalid type (", ")", &PARAMETER_TYPES),
    ];
    known.into_iter().find_map(|(before, behind, words)| {
        let rest = message.split_once(before)?.1;
        let wrong = if behind.is_empty() { rest } else { rest.split_once(behind)?.0 };
        match nearest(wrong, words.iter().copied())? {
            near if near == wrong => Some(format!("a newer version of templates has {wrong}")),
            near => Some(format!("did you mean {near}?")),
        }
    })
}

fn is_declared(all: &[Mention], mention: &Mention) -> bool {
    all.iter().any(|other| other.manner == Manner::Declared && other.role == mention.role && other.name == mention.name)
}
