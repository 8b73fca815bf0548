//! The top level of a definition file.

use super::node::{Node, dotted};
use super::{finder, property, rest};
use crate::translation::{Rule, Source, Translation};
use crate::{DriverKind, Loss, ResourceType};

/// The keys of a definition.
pub(super) const KEYS: [&str; 24] = [
    "type",
    "summary",
    "class",
    "service",
    "extension",
    "driver",
    "since",
    "status",
    "policy",
    "name_limit",
    "deferred_auth",
    "nested",
    "signals",
    "open",
    "becomes",
    "replace_on_check_failed",
    "loses",
    "properties",
    "attributes",
    "update_policy",
    "translate",
    "rest",
    "finder",
    "finders",
];

/// The type that a file defines; `None` if its name is missing.
pub(super) fn read(node: &Node<'_>) -> Option<ResourceType> {
    node.only(&KEYS);
    let Some(name) = node.text_at("type") else {
        node.complain("missing key type");
        return None;
    };
    let mut this = ResourceType::new(name);
    match node.text_at("summary") {
        Some(summary) => this.summary = summary,
        None => node.complain("missing key summary"),
    }
    if let Some(class) = node.text_at("class") {
        this.class = class;
    }
    this.service = match node.get("service") {
        Some(one) if one.value.as_str().is_some() => one.text().into_iter().collect(),
        Some(several) => several.texts(),
        None => Vec::new(),
    };
    this.extension = node.text_at("extension");
    this.support = property::support(node);
    this.policy = node.text_at("policy");
    if let Some(limit) = node.get("name_limit").and_then(|n| n.count()) {
        this.physical_name_limit = limit;
    }
    this.deferred_auth = node.flag_at("deferred_auth", false);
    this.nested = node.flag_at("nested", false);
    this.signals = node.flag_at("signals", false);
    this.becomes = node.text_at("becomes");
    this.replace_on_check_failed = node.flag_at("replace_on_check_failed", true);
    this.loses = node.get("loses").and_then(|node| loss(&node));
    for open in node.get("open").map(|n| n.items()).unwrap_or_default() {
        match open.value.as_str() {
            Some("properties") => this.open_properties = true,
            Some("attributes") => this.open_attributes = true,
            _ => open.complain("only properties and attributes can be open"),
        }
    }
    if let Some(properties) = node.get("properties") {
        this.properties = property::properties(&properties, &[], &mut this.translation);
    }
    if let Some(attributes) = node.get("attributes") {
        this.attributes = property::attributes(&attributes);
    }
    if let Some(policy) = node.get("update_policy") {
        this.update_policy = property::properties(&policy, &[], &mut Vec::new());
    }
    if let Some(rules) = node.get("translate") {
        this.translation.extend(rules.items().iter().filter_map(rule));
    }
    this.rest = node.get("rest").and_then(|rest| rest::read(&rest, &this));
    let own = node.get("finder").and_then(|finder| finder::read(&finder, &this));
    let others = node.get("finders").map(|others| others.items()).unwrap_or_default();
    let others = others.iter().filter_map(|other| finder::read_other(other, &this));
    this.finders = own.into_iter().chain(others).collect();
    this.driver = driver(node, this.rest.is_some());
    if this.driver == DriverKind::Placeholder {
        this.open_properties = true;
        this.open_attributes = true;
    }
    Some(this)
}

fn driver(node: &Node<'_>, has_rest: bool) -> DriverKind {
    let Some(word) = node.get("driver") else {
        return if has_rest { DriverKind::Rest } else { DriverKind::Code };
    };
    match word.value.as_str() {
        Some("rest") if has_rest => DriverKind::Rest,
        Some("code") => DriverKind::Code,
        Some("none") => DriverKind::None,
        Some("placeholder") => DriverKind::Placeholder,
        Some("rest") => {
            word.complain("driver rest requires a rest section");
            DriverKind::None
        }
        _ => {
            word.complain("expected rest, code, placeholder or none");
            DriverKind::None
        }
    }
}

fn rule(node: &Node<'_>) -> Option<Translation> {
    node.only(&["add", "delete", "from", "value", "when"]);
    let when = node.text_at("when");
    if let Some(path) = node.text_at("delete") {
        return Some(Translation { path: dotted(&path), rule: Rule::Delete, when });
    }
    let Some(path) = node.text_at("add") else {
        node.complain("expected either add or delete");
        return None;
    };
    let source = match (node.text_at("from"), node.get("value")) {
        (Some(from), None) => Source::Sibling(dotted(&from)),
        (None, Some(value)) => Source::Value(value.value.clone()),
        _ => {
            node.complain("add requires either from or value");
            return None;
        }
    };
    Some(Translation { path: dotted(&path), rule: Rule::Add(source), when })
}

/// What a delete of the object loses: a map, or a text alone for data of no particular kind.
fn loss(node: &Node<'_>) -> Option<Loss> {
    if node.value.as_str().is_some() {
        return Some(Loss { kind: "data".to_owned(), what: node.text()? });
    }
    node.only(&["kind", "what"]);
    Some(Loss { kind: node.text_at("kind")?, what: node.text_at("what")? })
}
