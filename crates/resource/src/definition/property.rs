//! Properties, attributes and support status in a definition file.

use indexmap::IndexMap;
use kiln_template::constraint::{Constraint, DataType};
use kiln_value::{Map, Value};

use super::node::{Node, dotted};
use crate::property::type_named;
use crate::translation::{Rule, Source, Translation};
use crate::{AttributeSchema, Inner, PropertySchema, Support, SupportStatus, Unread, Wire};

/// The keys of a property.
pub(super) const KEYS: [&str; 23] = [
    "type",
    "description",
    "required",
    "update",
    "immutable",
    "default",
    "properties",
    "items",
    "allowed",
    "range",
    "length",
    "modulo",
    "pattern",
    "is",
    "find",
    "formerly",
    "drop",
    "since",
    "status",
    "implemented",
    "as",
    "merge",
    "unread",
];

/// The properties of a type or the members of a map at `path`. Their translation rules are added to `rules`.
pub(super) fn properties(
    node: &Node<'_>,
    path: &[String],
    rules: &mut Vec<Translation>,
) -> IndexMap<String, PropertySchema> {
    node.entries()
        .into_iter()
        .map(|(name, node)| {
            let path = [path, &[name.to_owned()]].concat();
            (name.to_owned(), property(&node, &path, rules))
        })
        .collect()
}

fn property(node: &Node<'_>, path: &[String], rules: &mut Vec<Translation>) -> PropertySchema {
    if node.value.as_str().is_some() {
        return PropertySchema::new(kind(node).unwrap_or(DataType::Any));
    }
    node.only(&KEYS);
    let mut schema = PropertySchema::new(required_kind(node));
    schema.description = node.text_at("description");
    schema.required = node.flag_at("required", false);
    schema.update_allowed = node.flag_at("update", false);
    schema.immutable = node.flag_at("immutable", false);
    if schema.update_allowed && schema.immutable {
        node.complain("update and immutable cannot both be true");
    }
    schema.default = node.get("default").map(|d| d.value.clone()).filter(|d| !d.is_null());
    schema.implemented = node.flag_at("implemented", true);
    schema.support = support(node);
    schema.inner = inner(node, schema.kind, path, rules);
    schema.constraints = constraints(node, schema.kind);
    if let Err(error) = schema.check() {
        node.complain(error.to_string());
    }
    schema.wire = wire(node);
    schema.unread = node.get("unread").and_then(|node| unread(&node));
    translation(node, path, rules);
    schema
}

fn required_kind(node: &Node<'_>) -> DataType {
    let Some(word) = node.get("type") else {
        node.complain("missing key type");
        return DataType::Any;
    };
    kind(&word).unwrap_or(DataType::Any)
}

fn kind(node: &Node<'_>) -> Option<DataType> {
    let word = node.text()?;
    let kind = type_named(&word);
    if kind.is_none() {
        node.complain(format!("unknown type {word}"));
    }
    kind
}

fn inner(node: &Node<'_>, kind: DataType, path: &[String], rules: &mut Vec<Translation>) -> Option<Inner> {
    let (members, items) = (node.get("properties"), node.get("items"));
    match (kind, members, items) {
        (_, None, None) => None,
        (DataType::Map, Some(members), None) => Some(Inner::Members(properties(&members, path, rules))),
        (DataType::List, None, Some(items)) => Some(Inner::Items(Box::new(property(&items, path, rules)))),
        _ => {
            node.complain("only a map has properties, and only a list has items");
            None
        }
    }
}

fn unread(node: &Node<'_>) -> Option<Unread> {
    let word = node.text()?;
    let unread = match word.as_str() {
        "secret" => Unread::Secret,
        "request" => Unread::Request,
        "kiln" => Unread::Kiln,
        _ => {
            node.complain(format!("unknown reason {word}: secret, request or kiln"));
            return None;
        }
    };
    Some(unread)
}

/// Constraints in the order in which they are written; `find` adds one of its own.
fn constraints(node: &Node<'_>, kind: DataType) -> Vec<Constraint> {
    let mut written = Vec::new();
    for (key, value) in node.entries() {
        let name = match key {
            "range" | "length" | "modulo" => key,
            "allowed" => "allowed_values",
            "pattern" => "allowed_pattern",
            "is" if value.value.as_bool() == Some(false) => continue,
            "is" => "custom_constraint",
            "find" if kind != DataType::List && node.get("is").is_none() => "custom_constraint",
            _ => continue,
        };
        let hot: Value = Map::from([(name.to_owned(), value.value.clone())]).into();
        match Constraint::from_hot(&hot, true) {
            Ok(constraint) => written.push(constraint),
            Err(error) => value.complain(error.to_string()),
        }
    }
    written
}

fn wire(node: &Node<'_>) -> Wire {
    if node.flag_at("merge", false) {
        return Wire::Merged;
    }
    match node.get("as") {
        None => Wire::Same,
        Some(name) if name.value.as_bool() == Some(false) => Wire::Never,
        Some(name) => name.text().map_or(Wire::Same, Wire::As),
    }
}

fn translation(node: &Node<'_>, path: &[String], rules: &mut Vec<Translation>) {
    let mut push = |rule| rules.push(Translation { path: path.to_vec(), rule, when: None });
    if let Some(old) = node.text_at("formerly") {
        push(Rule::Replace(Source::Sibling(dotted(&old))));
    }
    if let Some(finder) = node.text_at("find") {
        push(Rule::Find(finder));
    }
    if node.flag_at("drop", false) {
        push(Rule::Delete);
    }
}

/// The attributes of a type.
pub(super) fn attributes(node: &Node<'_>) -> IndexMap<String, AttributeSchema> {
    node.entries().into_iter().map(|(name, node)| (name.to_owned(), attribute(&node))).collect()
}

fn attribute(node: &Node<'_>) -> AttributeSchema {
    match node.value {
        Value::Null => AttributeSchema::default(),
        Value::Str(_) => AttributeSchema { kind: kind(node), ..AttributeSchema::default() },
        _ => {
            node.only(&["type", "description", "since", "status", "live", "as"]);
            AttributeSchema {
                kind: node.get("type").and_then(|word| kind(&word)),
                description: node.text_at("description"),
                support: support(node),
                live: node.flag_at("live", false),
                wire: node.text_at("as").map(|path| dotted(&path)).unwrap_or_default(),
            }
        }
    }
}

/// The keys `since` and `status`.
pub(super) fn support(node: &Node<'_>) -> SupportStatus {
    if let Some(history) = node.get("status") {
        let newest_first: Vec<_> = history.items().iter().filter_map(period).collect();
        return newest_first
            .into_iter()
            .rev()
            .reduce(|older, newer| SupportStatus { previous: Some(Box::new(older)), ..newer })
            .unwrap_or_default();
    }
    SupportStatus { version: node.get("since").and_then(|s| s.release()), ..SupportStatus::default() }
}

/// An entry of `status`: a string `deprecated 2014.2` or a map.
fn period(node: &Node<'_>) -> Option<SupportStatus> {
    let (word, version, message) = if node.value.as_map().is_some() {
        node.only(&["status", "since", "message"]);
        (node.text_at("status")?, node.get("since").and_then(|s| s.release()), node.text_at("message"))
    } else {
        let text = node.text()?;
        match text.split_once(' ') {
            Some((word, version)) => (word.to_owned(), Some(version.to_owned()), None),
            None => (text, None, None),
        }
    };
    let status = Support::from_name(&word);
    if status.is_none() {
        node.complain(format!("unknown status {word}"));
    }
    Some(SupportStatus { status: status?, version, message, previous: None })
}
