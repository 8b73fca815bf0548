//! Checks of type files when all types are known: parents, schemas, names, and the words of what they become.

use std::collections::HashSet;
use std::sync::Arc;

use kiln_value::{Path, Value};

use super::expression::{self, Known};
use super::set::Parsed;
use super::{TypeFile, TypeFiles};
use crate::Refusal;
use crate::blueprint::Library;
use crate::lower::Rules;
use crate::tosca::{Definitions, Section, TypeChecker, Types};

/// The keys of the definition of a property.
pub(super) const PROPERTY: [&str; 9] =
    ["type", "description", "required", "default", "status", "constraints", "entry_schema", "key_schema", "metadata"];

/// The keys of a requirement.
pub(super) const REQUIREMENT: [&str; 5] = ["capability", "node", "relationship", "occurrences", "description"];

/// Checks files that are to be added to `base`; `extended` has both.
///
/// Errors: all in the files, with their positions.
pub(super) fn check(base: &TypeFiles, extended: &TypeFiles, parsed: &[Parsed]) -> Result<(), Vec<Refusal>> {
    let extended = Arc::new(extended.clone());
    let definitions = Definitions::of_all_profiles(&extended)?;
    let rules = Rules::of(&extended)?;
    let known = Library::parse(include_str!("../../../../topology-types/blueprint.yaml"))?;
    let library = Library::of(&extended);
    let mut all = Vec::new();
    for (this, document) in parsed {
        let mut refusals = Vec::new();
        let node_types = Types::new(&definitions);
        check_name(this, base, &definitions, &rules, &known, &mut refusals);
        let checker = TypeChecker::new(&node_types);
        check_definition(this, &checker, &mut refusals);
        refusals.extend(checker.refusals());
        if refusals.is_empty() {
            check_words(this, &checker, &rules, &mut refusals);
        }
        if let Err(wrong) = &library {
            refusals.extend(
                wrong
                    .iter()
                    .filter(|refusal| is_about(refusal, this))
                    .map(|refusal| Refusal { at: Path::root().key("component"), ..refusal.clone() }),
            );
        }
        all.extend(refusals.into_iter().map(|refusal| refusal.placed(&this.file, document)));
    }
    match library {
        Err(wrong) if all.is_empty() => Err(wrong),
        _ if all.is_empty() => Ok(()),
        _ => Err(all),
    }
}

/// Whether an error in the library of component types is about a type.
fn is_about(refusal: &Refusal, this: &TypeFile) -> bool {
    matches!(refusal.at.0.get(1), Some(kiln_value::Segment::Key(name)) if *name == this.name)
}

/// A type takes the place of another one only if it says so.
fn check_name(
    this: &TypeFile,
    base: &TypeFiles,
    definitions: &Definitions,
    rules: &Rules,
    library: &Library,
    refusals: &mut Vec<Refusal>,
) {
    let exists = if let Some(other) = base.get(&this.name) {
        Some(format!("is defined in {}", other.file))
    } else {
        let shipped = definitions.has_profile_type(&this.name)
            || rules.has_shipped(&this.name)
            || library.find_component(&this.name).is_some();
        shipped.then(|| "is a type of Kiln".to_owned())
    };
    match exists {
        Some(exists) if !this.replaces => {
            let at = Path::root().key(super::NAME);
            let refusal = Refusal::new("duplicate-id", &at, format!("{} {exists}.", this.name));
            refusals.push(refusal.hint("Choose another name, or write replaces: true to take its place."));
        }
        None if this.replaces => {
            let at = Path::root().key("replaces");
            let message = format!("No type is named {}: there is nothing to replace.", this.name);
            refusals.push(Refusal::new("unknown-type", &at, message));
        }
        _ => {}
    }
}

fn check_definition(this: &TypeFile, checker: &TypeChecker<'_>, refusals: &mut Vec<Refusal>) {
    let root = Path::root();
    if !checker.has(Section::Node, this.parent()) {
        let message = format!("No type is named {}.", this.parent());
        refusals.push(Refusal::new("unknown-type", &root.key("derived_from"), message));
        return;
    }
    let mut refuse = |kind: &'static str, at: &Path, message: String| refusals.push(Refusal::new(kind, at, message));
    for key in ["properties", "attributes"] {
        for (name, schema) in part(&this.definition, key) {
            let at = root.key(key).key(name);
            let Some(fields) = schema.as_map() else {
                refuse("bad-schema", &at, format!("The definition of {name} must be a map with a type."));
                continue;
            };
            for key in fields.keys().filter(|key| !PROPERTY.contains(&key.as_str())) {
                refuse("unknown-field", &at.key(key), format!("A definition has no key {key}."));
            }
            checker.check_schema(name, schema, &at);
        }
    }
    for (name, capability) in part(&this.definition, "capabilities") {
        let at = root.key("capabilities").key(name);
        match capability.as_str().or_else(|| capability.str_at("type")) {
            Some(kind) if checker.has(Section::Capability, kind) => {}
            Some(kind) => refuse("unknown-type", &at, format!("No type of capabilities is named {kind}.")),
            None => refuse("bad-schema", &at, format!("The capability {name} must have a type.")),
        }
    }
    let requirements = this.definition.get("requirements").and_then(Value::as_list).unwrap_or_default();
    for (i, entry) in requirements.iter().enumerate() {
        let at = root.key("requirements").index(i);
        let Some((name, fields)) = entry
            .as_map()
            .filter(|map| map.len() == 1)
            .and_then(|map| map.first())
            .and_then(|(k, v)| Some((k, v.as_map()?)))
        else {
            refuse("bad-schema", &at, "A requirement must be a map of its name to its definition.".to_owned());
            continue;
        };
        let at = at.key(name);
        for key in fields.keys().filter(|key| !REQUIREMENT.contains(&key.as_str())) {
            refuse("unknown-field", &at.key(key), format!("A requirement has no key {key}."));
        }
        let sections =
            [("node", Section::Node), ("capability", Section::Capability), ("relationship", Section::Relationship)];
        for (key, section) in sections {
            let Some(value) = fields.get(key) else { continue };
            let kind = value.as_str().or_else(|| value.str_at("type")).unwrap_or_default();
            if !checker.has(section, kind) {
                refuse("unknown-type", &at.key(key), format!("No type is named {kind}."));
            }
        }
        if !fields.contains_key("node") && !fields.contains_key("capability") {
            refuse("missing-field", &at, format!("The requirement {name} must have a node or a capability."));
        }
    }
}

fn part<'d>(definition: &'d Value, key: &str) -> impl Iterator<Item = (&'d String, &'d Value)> {
    definition.get(key).and_then(Value::as_map).into_iter().flatten()
}

fn check_words(this: &TypeFile, checker: &TypeChecker<'_>, rules: &Rules, refusals: &mut Vec<Refusal>) {
    let Some(names) = checker.names(&this.name) else { return };
    let line: Vec<&str> = names.line.iter().map(String::as_str).collect();
    let rule = rules.of_line(&line);
    let resources: HashSet<&str> = rule.iter().flat_map(|rule| rule.suffixes()).collect();
    let known = Known {
        properties: names.properties.iter().map(String::as_str).collect(),
        capabilities: names.capabilities.iter().map(String::as_str).collect(),
        requirements: names.requirements.iter().map(String::as_str).collect(),
        resources,
    };
    let at = Path::root().key("hot");
    if let Some(existing) = this.hot.get("existing").and_then(Value::as_str)
        && !known.properties.contains(existing)
    {
        let message = format!("The type has no property {existing}.");
        refusals.push(Refusal::new("bad-value", &at.key("existing"), message));
    }
    for (suffix, resource) in this.resources() {
        let at = at.key("resources").key(suffix);
        let is_complete = rule.as_ref().and_then(|rule| rule.resource(suffix)?.str_at("type")).is_some();
        if !resource.is_null() && !is_complete {
            refusals.push(Refusal::new("missing-field", &at, "A resource must have a type."));
        }
        for key in ["properties", "metadata", "update_policy"] {
            if let Some(value) = resource.get(key) {
                expression::check(value, &at.key(key), &known, refusals);
            }
        }
        if let Some(when) = resource.get("when") {
            expression::check_path("when", when, &at.key("when"), &known, refusals);
        }
        for other in resource.get("depends_on").and_then(Value::as_list).into_iter().flatten() {
            if !other.as_str().is_some_and(|suffix| known.resources.contains(suffix)) {
                let message = format!("The type has no resource with the suffix \"{}\".", kiln_value::text::str(other));
                refusals.push(Refusal::new("bad-value", &at.key("depends_on"), message));
            }
        }
    }
    for key in ["attributes", "operations"] {
        for (name, value) in this.hot.get(key).and_then(Value::as_map).into_iter().flatten() {
            expression::check(value, &at.key(key).key(name), &known, refusals);
        }
    }
}
