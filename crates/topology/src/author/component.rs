//! Words of blueprints.

use std::fmt::Write as _;

use kiln_value::{Path, Segment, Value};

use super::{Sort, Word, at, keys};
use crate::TypeFiles;
use crate::blueprint::{ComponentTypeId, Library};

/// The keys of every component.
const KEYS: [&str; 5] = ["type", "id", "content", "tags", "requires"];

fn named<'n>(names: impl IntoIterator<Item = &'n str>, sort: Sort) -> Vec<Word> {
    names.into_iter().map(|name| Word::new(name, sort)).collect()
}

pub(super) fn words(document: &Value, path: &Path, is_key: bool, library: &Library) -> Vec<Word> {
    let path = &path.0[..];
    let names = keys(path);
    match names.first() {
        None => return if is_key { named(["name", "components", "requires"], Sort::Key) } else { Vec::new() },
        Some(&"requires") => {
            return if names.len() == 1 { named(library.global_requirements(), Sort::Key) } else { Vec::new() };
        }
        Some(&"components") => {}
        Some(_) => return Vec::new(),
    }
    if !is_key && names.last() == Some(&"type") {
        return named(library.component_words(), Sort::Type);
    }
    let is_requires = |segment: &Segment| matches!(segment, Segment::Key(key) if key == "requires");
    if let Some(place) = path.iter().rposition(is_requires) {
        let kind = type_at(document, &path[..place], library);
        return match (&keys(&path[place + 1..])[..], is_key) {
            ([], _) => kind.map(|kind| named(library.requirement_names(kind), Sort::Key)).unwrap_or_default(),
            ([requirement], true) => {
                let own = at(document, path).and_then(|value| value.str_at("type"));
                match own.and_then(|name| library.find_component(name)) {
                    Some(kind) => of_component(kind, library),
                    None => {
                        [named(["type"], Sort::Key), named(library.requirement_attributes(requirement), Sort::Property)]
                            .concat()
                    }
                }
            }
            ([requirement], false) if library.is_fulfilled(requirement) => ids(document),
            ([_, "fulfillment"], false) => ids(document),
            _ => Vec::new(),
        };
    }
    // A component, or an attribute that describes one.
    let is_component = path.len() == 2 || type_at(document, path, library).is_some();
    if is_key && is_component {
        return match type_at(document, path, library) {
            Some(kind) => of_component(kind, library),
            None => named(KEYS, Sort::Key),
        };
    }
    Vec::new()
}

/// What a component of a type may have.
fn of_component(kind: ComponentTypeId, library: &Library) -> Vec<Word> {
    [named(KEYS, Sort::Key), named(library.attribute_names(kind), Sort::Property)].concat()
}

/// The type that a component says, or that an attribute describes by default.
fn type_at(document: &Value, path: &[Segment], library: &Library) -> Option<ComponentTypeId> {
    let of = at(document, path);
    if let Some(name) = of.and_then(|of| of.str_at("type")) {
        return library.find_component(name);
    }
    let (Segment::Key(attribute), outer) = path.split_last()? else { return None };
    (outer.len() >= 2).then(|| library.spec(type_at(document, outer, library)?, attribute))?
}

fn ids(document: &Value) -> Vec<Word> {
    match document.get("components") {
        Some(Value::Map(map)) => named(map.keys().map(String::as_str), Sort::Name),
        Some(Value::List(items)) => named(items.iter().filter_map(|item| item.str_at("id")), Sort::Name),
        _ => Vec::new(),
    }
}

pub(super) fn explain(
    document: &Value,
    path: &Path,
    is_key: bool,
    library: &Library,
    types: &TypeFiles,
) -> Option<String> {
    let names = keys(&path.0);
    let last = *names.last()?;
    if !is_key && last == "type" {
        let kind = library.find_component(at(document, &path.0)?.as_str()?)?;
        return Some(describe(kind, library, types));
    }
    if is_key && names.len() == 2 && names[0] == "components" {
        return Some(describe(type_at(document, &path.0, library)?, library, types));
    }
    let (_, outer) = path.0.split_last()?;
    if let Some(kind) = type_at(document, outer, library).filter(|_| is_key)
        && let Some(definition) = property(library, types, kind, last)
    {
        return Some(format!("**{last}** {}", super::service::described(definition)));
    }
    if !is_key || !library.requirement_words().contains(&last) {
        return None;
    }
    let attributes = library.requirement_attributes(last).join(", ");
    let by = library.fulfilled_by(last).map(|by| format!("\n\nFulfilled by: {by}")).unwrap_or_default();
    Some(format!("**{last}**: a requirement\n\nAttributes: {attributes}{by}"))
}

/// The definition of a property of a type file.
fn property<'t>(library: &Library, types: &'t TypeFiles, kind: ComponentTypeId, name: &str) -> Option<&'t Value> {
    let mut line = library.line(kind).filter_map(|kind| types.get(&kind.name));
    line.find_map(|this| this.properties().find(|(known, _)| *known == name).map(|(_, definition)| definition))
}

fn describe(kind: ComponentTypeId, library: &Library, types: &TypeFiles) -> String {
    let name = &library.component(kind).name;
    let mut text = format!("**{name}**");
    if let Some(description) = types.get(name).and_then(|this| this.description.as_ref()) {
        text.push_str("\n\n");
        text.push_str(description);
    }
    let parents: Vec<&str> = library.line(kind).skip(1).map(|kind| kind.name.as_str()).collect();
    let parts = [
        ("Derived from", parents.join(", ")),
        ("Attributes", library.attribute_names(kind).join(", ")),
        ("Requirements", library.requirement_names(kind).join(", ")),
    ];
    for (what, names) in parts.into_iter().filter(|(_, names)| !names.is_empty()) {
        _ = write!(text, "\n\n{what}: {names}");
    }
    text
}
