//! Words of service templates.

use std::fmt::Write as _;

use kiln_value::{Path, Value};

use super::{Sort, Word, at, keys, shape};
use crate::tosca::{STANDARD_OPERATIONS, Section, TOPOLOGY, TypeChecker};

/// The keys of a template and of a node.
const TEMPLATE: [&str; 14] = [
    "tosca_definitions_version",
    "description",
    "metadata",
    "imports",
    "repositories",
    "topology_template",
    "node_types",
    "capability_types",
    "relationship_types",
    "data_types",
    "interface_types",
    "policy_types",
    "group_types",
    "artifact_types",
];
const NODE: [&str; 7] =
    ["type", "description", "properties", "requirements", "capabilities", "interfaces", "artifacts"];
const REQUIREMENT: [&str; 4] = ["node", "capability", "relationship", "occurrences"];
const OPERATION: [&str; 2] = ["implementation", "inputs"];
const INPUT: [&str; 6] = ["type", "description", "default", "required", "constraints", "entry_schema"];

fn fixed(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| Word::new(*word, Sort::Key)).collect()
}

/// All types of a kind, with what they are derived from.
pub(super) fn types(checker: &TypeChecker<'_>, section: Section) -> Vec<Word> {
    let mut names = checker.all(section);
    names.sort_unstable();
    names.into_iter().map(|name| Word::new(name, Sort::Type)).collect()
}

/// The properties of a type with their definitions.
pub(super) fn properties(checker: &TypeChecker<'_>, section: Section, name: &str) -> Vec<Word> {
    let word = |(name, definition): (String, Value)| Word {
        detail: shape(&definition),
        documentation: definition.str_at("description").unwrap_or_default().to_owned(),
        ..Word::new(name, Sort::Property)
    };
    checker.properties(section, name).into_iter().map(word).collect()
}

pub(super) fn words(document: &Value, path: &Path, is_key: bool, checker: &TypeChecker<'_>) -> Vec<Word> {
    let names = keys(&path.0);
    let section = if document.get("service_template").is_some() { "service_template" } else { "topology_template" };
    let topology = document.get(section);
    let of_topology = |key: &str| -> Vec<Word> {
        let names = topology.and_then(|topology| topology.get(key)?.as_map()).into_iter().flat_map(kiln_names);
        names.map(|name| Word::new(name, Sort::Name)).collect()
    };
    match (names.last().copied().unwrap_or_default().trim_start_matches('$'), is_key) {
        ("get_input", false) => return of_topology("inputs"),
        ("get_property" | "get_attribute" | "get_operation_output" | "get_artifact", false) => {
            let reserved = ["SELF", "HOST", "SOURCE", "TARGET"].map(|word| Word::new(word, Sort::Key));
            return [of_topology("node_templates"), reserved.to_vec()].concat();
        }
        _ => {}
    }
    if names.is_empty() {
        return if is_key { fixed(&TEMPLATE) } else { Vec::new() };
    }
    if names[0] != section {
        return match (&names[..], is_key) {
            (["node_types", _, "derived_from"], false) => types(checker, Section::Node),
            _ => Vec::new(),
        };
    }
    match (&names[1..], is_key) {
        // Workflows are not supported.
        ([], true) => fixed(&TOPOLOGY).into_iter().filter(|word| word.label != "workflows").collect(),
        (["inputs", _], true) => fixed(&INPUT),
        (["node_templates", _], true) => fixed(&NODE),
        (["node_templates", _, "type"], false) => types(checker, Section::Node),
        (["policies", _, "type"], false) => types(checker, Section::Policy),
        (["groups", _, "type"], false) => types(checker, Section::Group),
        (["relationship_templates", _, "type"], false) => types(checker, Section::Relationship),
        (["node_templates", node, rest @ ..], is_key) => {
            let kind = topology.and_then(|topology| topology.get("node_templates")?.get(node)?.str_at("type"));
            let Some(kind) = kind else { return Vec::new() };
            match (rest, is_key) {
                (["requirements", _] | ["requirements", _, "node"], false) => of_topology("node_templates"),
                _ => of_node(rest, is_key, kind, checker),
            }
        }
        _ => Vec::new(),
    }
}

fn of_node(rest: &[&str], is_key: bool, kind: &str, checker: &TypeChecker<'_>) -> Vec<Word> {
    let named =
        |names: Vec<String>| -> Vec<Word> { names.into_iter().map(|name| Word::new(name, Sort::Property)).collect() };
    match (rest, is_key) {
        (["properties"], true) => properties(checker, Section::Node, kind),
        (["capabilities"], true) => named(checker.names(kind).map(|names| names.capabilities).unwrap_or_default()),
        (["capabilities", _], true) => fixed(&["properties"]),
        (["capabilities", capability, "properties"], true) => checker
            .capability_type(kind, capability)
            .map(|name| properties(checker, Section::Capability, &name))
            .unwrap_or_default(),
        (["requirements"], true) => {
            let mut found = checker.names(kind).map(|names| names.requirements).unwrap_or_default();
            found.dedup();
            named(found)
        }
        (["requirements", _], true) => fixed(&REQUIREMENT),
        (["interfaces"], true) => fixed(&["Standard"]),
        (["interfaces", "Standard"] | ["interfaces", "Standard", "operations"], true) => fixed(&STANDARD_OPERATIONS),
        (["interfaces", _, _], true) => fixed(&OPERATION),
        _ => Vec::new(),
    }
}

fn kiln_names(map: &kiln_value::Map) -> impl Iterator<Item = &str> {
    map.keys().map(String::as_str)
}

pub(super) fn explain(document: &Value, path: &Path, is_key: bool, checker: &TypeChecker<'_>) -> Option<String> {
    let names = keys(&path.0);
    let topology = ["topology_template", "service_template"].iter().find_map(|key| document.get(key))?;
    let kind = |node: &str| topology.get("node_templates")?.get(node)?.str_at("type");
    match (names.get(1..)?, is_key) {
        (["node_templates", node], true) => describe(checker, kind(node)?),
        (["node_templates", _, "type"], false) => describe(checker, at(document, &path.0)?.as_str()?),
        (["node_templates", node, "properties", property], true) => {
            let all = checker.properties(Section::Node, kind(node)?);
            let (name, definition) = all.into_iter().find(|(name, _)| name == property)?;
            Some(format!("**{name}** {}", described(&definition)))
        }
        (["node_templates", node, "capabilities", capability, "properties", property], true) => {
            let all = checker.properties(Section::Capability, &checker.capability_type(kind(node)?, capability)?);
            let (name, definition) = all.into_iter().find(|(name, _)| name == property)?;
            Some(format!("**{name}** {}", described(&definition)))
        }
        _ => None,
    }
}

/// The type of values and the description of a property.
pub(super) fn described(definition: &Value) -> String {
    let description = definition.str_at("description").map(|text| format!("\n\n{text}")).unwrap_or_default();
    format!("({}){description}", shape(definition))
}

/// A type of nodes.
pub(super) fn describe(checker: &TypeChecker<'_>, name: &str) -> Option<String> {
    let names = checker.names(name)?;
    let mut text = format!("**{}**", names.line.first()?);
    if let Some(description) = checker.description(name) {
        text.push_str("\n\n");
        text.push_str(&description);
    }
    let parts = [
        ("Derived from", &names.line[1..]),
        ("Properties", &names.properties),
        ("Capabilities", &names.capabilities),
        ("Requirements", &names.requirements),
    ];
    for (what, names) in parts.into_iter().filter(|(_, names)| !names.is_empty()) {
        _ = write!(text, "\n\n{what}: {}", names.join(", "));
    }
    Some(text)
}
