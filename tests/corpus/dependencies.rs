//! Dependencies, and the names that a create looks up in the cloud.

use std::collections::BTreeSet;

use kiln_plan::{Blueprint, Draft};
use kiln_resource::{Inner, PropertySchema};
use kiln_template::constraint::{Constraint, Rule};
use kiln_value::{Map, Value};

use crate::Verdict;
use crate::difference::difference;
use crate::record::Record;

/// Checks `requires`, `dependencies`, `needs` and `looks_up`.
pub(crate) fn judge(record: &Record, blueprint: &Blueprint) -> Vec<(&'static str, Verdict)> {
    let mut verdicts = Vec::new();
    if record.has("requires") {
        let requires = record.field("requires");
        verdicts.push(("requires", difference(requires, &required(blueprint))));
        let expected = if record.has("dependencies") { record.field("dependencies") } else { requires };
        let actual = blueprint.definitions().keys().map(|name| (name.clone(), sorted(blueprint.requires(name))));
        verdicts.push(("dependencies", difference(expected, &actual.collect::<Map>().into())));
        let mut names = BTreeSet::new();
        for schema in blueprint.parameters().schemata().values() {
            note(&mut names, &schema.constraints);
        }
        verdicts.push(("needs", named(record.field("needs"), &names)));
        verdicts.push(("looks_up", named(record.field("looks_up"), &looked_up(blueprint))));
    }
    verdicts
}

/// The dependencies from the template alone.
fn required(blueprint: &Blueprint) -> Value {
    let draft = Draft::of(blueprint);
    let required = blueprint.definitions().values().map(|definition| {
        let names =
            definition.dependencies(&draft).map_or_else(|error| error.to_string().into(), |names| sorted(&names));
        (definition.name.clone(), names)
    });
    required.collect::<Map>().into()
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a String>) -> Value {
    let names: BTreeSet<&String> = names.into_iter().collect();
    names.into_iter().collect()
}

fn named(expected: &Value, names: &BTreeSet<String>) -> Verdict {
    let none = Value::List(Vec::new());
    difference(if expected.is_null() { &none } else { expected }, &sorted(names))
}

/// The custom constraints of the specified properties, at all depths.
fn looked_up(blueprint: &Blueprint) -> BTreeSet<String> {
    let template = blueprint.bound().template();
    let words = template.words();
    let mut names = BTreeSet::new();
    for name in blueprint.definitions().keys() {
        let Some(kind) = blueprint.kind(name) else { continue };
        let resource = template.as_value().get(words.resources).and_then(|resources| resources.get(name));
        let given = resource.and_then(|resource| resource.get(words.properties)).and_then(Value::as_map);
        for (name, value) in given.into_iter().flatten() {
            if let Some(schema) = kind.resource_type().properties.get(name) {
                note_given(&mut names, schema, value);
            }
        }
    }
    names
}

fn note_given(names: &mut BTreeSet<String>, schema: &PropertySchema, value: &Value) {
    note(names, &schema.constraints);
    match (&schema.inner, value) {
        (Some(Inner::Items(schema)), Value::List(items)) => {
            for item in items {
                note_given(names, schema, item);
            }
        }
        (Some(Inner::Members(schemata)), Value::Map(entries)) => {
            for (name, value) in entries {
                if let Some(schema) = schemata.get(name) {
                    note_given(names, schema, value);
                }
            }
        }
        _ => {}
    }
}

fn note(names: &mut BTreeSet<String>, constraints: &[Constraint]) {
    names.extend(constraints.iter().filter_map(|constraint| match &constraint.rule {
        Rule::Custom(name) => Some(name.clone()),
        _ => None,
    }));
}
