//! Suggestions for unknown names.

use kiln_plan::ResourceTypes;
use kiln_template::hint::nearest;

use super::diagnose::Trouble;
use super::surroundings::Surroundings;
use crate::Page;
use crate::mention::{Manner, Mention, Role, mentions};
use crate::types::type_or_child;

/// Points errors about unknown names at the name, and adds a hint with the most similar one.
pub fn suggest(page: &Page, troubles: &mut [Trouble], catalog: &ResourceTypes, around: &Surroundings) {
    if troubles.iter().all(|trouble| trouble.name.is_none()) {
        return;
    }
    let all = mentions(page);
    for trouble in troubles.iter_mut() {
        let Some(name) = &trouble.name else { continue };
        let is_meant = |mention: &&Mention| {
            mention.manner != Manner::Declared
                && mention.name == *name
                && mention.path.0.starts_with(&trouble.path.0)
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

fn is_declared(all: &[Mention], mention: &Mention) -> bool {
    all.iter().any(|other| other.manner == Manner::Declared && other.role == mention.role && other.name == mention.name)
}
