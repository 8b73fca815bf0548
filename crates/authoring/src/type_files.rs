//! Resource types and properties in type files that do not exist.

use kiln_plan::ResourceTypes;
use kiln_template::hint::nearest;
use kiln_topology::type_file::{TypeFile, is_type_file};
use kiln_topology::{Refusal, TypeFiles};
use kiln_value::{Path, Span, Value};

use crate::type_named;

/// Resource types that do not exist, and properties that they do not have.
pub fn unknown_resources(this: &TypeFile, catalog: &ResourceTypes) -> Vec<Refusal> {
    let mut wrong = Vec::new();
    for (suffix, resource) in this.resources() {
        let at = Path::root().key("hot").key("resources").key(suffix);
        let Some(name) = resource.str_at("type") else { continue };
        let Some(known) = type_named(catalog, name) else {
            let refusal = Refusal::new("unknown-type", &at.key("type"), format!("No resource type is named {name}."));
            let all = catalog.types.iter().map(|known| known.resource_type.name.as_str());
            wrong.push(match nearest(name, all) {
                Some(near) => refusal.hint(format!("did you mean {near}?")),
                None => refusal,
            });
            continue;
        };
        for property in resource.get("properties").and_then(Value::as_map).into_iter().flatten().map(|(name, _)| name) {
            if known.properties.contains_key(property) {
                continue;
            }
            let place = at.key("properties").key(property);
            let refusal = Refusal::new("unknown-field", &place, format!("{name} has no property {property}."));
            wrong.push(match nearest(property, known.properties.keys().map(String::as_str)) {
                Some(near) => refusal.hint(format!("did you mean {near}?")),
                None => refusal,
            });
        }
    }
    wrong
}

/// The same for the text of a type file, if it has no other errors; with their ranges in it.
pub fn unknown_resources_of(
    text: &str,
    file: &str,
    types: &TypeFiles,
    catalog: &ResourceTypes,
) -> Vec<(Refusal, Span)> {
    let (Ok(document), Ok(with)) = (kiln_yaml::parse(text), types.with_changed(file, text)) else { return Vec::new() };
    let this = with.all().rev().find(|this| this.file == file).filter(|_| is_type_file(&document.value));
    let wrong = this.map(|this| unknown_resources(this, catalog)).unwrap_or_default();
    let placed = wrong.into_iter().map(|refusal| {
        let spans = document.spans.find(&document.value, &refusal.at);
        let span = spans.key.unwrap_or(spans.value);
        (refusal, span)
    });
    placed.collect()
}
