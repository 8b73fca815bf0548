//! Node templates: their properties, capabilities, requirements and operations.

use std::collections::HashSet;
use std::rc::Rc;

use kiln_value::{Map, Path, Value, number};

use super::function::is_function;
use super::reader::Reader;
use super::schema::{is_required, map_at};
use super::types::{Kind, Section};
use crate::graph::{Capability, Graph, Node, Operation};

/// What reading needs of a node besides the graph.
pub(super) struct NodeParts<'d> {
    pub(super) kind: Rc<Kind<'d>>,
}

const KEYS: [&str; 13] = [
    "derived_from",
    "properties",
    "requirements",
    "interfaces",
    "capabilities",
    "type",
    "description",
    "directives",
    "attributes",
    "artifacts",
    "node_filter",
    "copy",
    "metadata",
];

const STANDARD: [&str; 2] = ["Standard", "tosca.interfaces.node.lifecycle.Standard"];
/// The operations of the life of a node, in their order.
pub(crate) const STANDARD_OPERATIONS: [&str; 5] = ["create", "configure", "start", "stop", "delete"];
const CONFIGURE: [&str; 2] = ["Configure", "tosca.interfaces.relationship.Configure"];
const CONFIGURE_OPERATIONS: [&str; 8] = [
    "pre_configure_source",
    "pre_configure_target",
    "post_configure_source",
    "post_configure_target",
    "add_target",
    "add_source",
    "target_changed",
    "remove_target",
];

/// Keys of interface definitions that are not operations.
const NO_OPERATIONS: [&str; 7] =
    ["type", "inputs", "derived_from", "version", "description", "notifications", "operations"];

impl<'d> Reader<'d> {
    /// A node, if its type is known.
    pub(super) fn read_node(&self, name: &str, template: &Value, at: &Path) -> Option<(Node, NodeParts<'d>)> {
        let Some(fields) = template.as_map() else {
            self.refuse("missing-field", at, format!("The template \"{name}\" must have the field \"type\"."));
            return None;
        };
        self.check_keys(&format!("The node template \"{name}\""), fields, &KEYS, at);
        if fields.contains_key("copy") {
            self.refuse("unsupported", &at.key("copy"), "Copies of node templates are not supported.");
        }
        let Some(type_name) = fields.get("type").and_then(Value::as_str) else {
            self.refuse("missing-field", at, format!("The template \"{name}\" must have the field \"type\"."));
            return None;
        };
        let kind = self.kind(Section::Node, type_name, &at.key("type"))?;
        let mut node = Node {
            at: at.clone(),
            name: name.to_owned(),
            type_name: kind.name.clone(),
            ancestors: kind.ancestors.clone(),
            requirements: fields.get("requirements").filter(|value| !value.is_null()).cloned(),
            artifacts: map_at(self, fields, "artifacts", at).cloned(),
            attributes: kind.attributes.keys().cloned().collect(),
            template: fields.clone(),
            ..Node::default()
        };
        self.read_capabilities(&mut node, &kind, fields, at);
        self.check_requirements(name, &kind, fields, at);
        node.properties = self.read_properties(name, &kind, fields, at);
        node.operations = self.read_interfaces(name, &kind, fields, at);
        node.type_operations = self.inherited_operations(&node, &kind);
        for definition in &kind.line {
            for (name, artifact) in definition.get("artifacts").and_then(Value::as_map).into_iter().flatten() {
                node.type_artifacts.entry(name.clone()).or_insert_with(|| artifact.clone());
            }
        }
        Some((node, NodeParts { kind }))
    }

    /// The properties of a template with the defaults of its type.
    pub(super) fn read_properties(&self, name: &str, kind: &Kind<'d>, fields: &Map, at: &Path) -> Map {
        let empty = Map::new();
        let given = map_at(self, fields, "properties", at).unwrap_or(&empty);
        let at = at.key("properties");
        self.check_names(name, "properties", given, &kind.properties, &at);
        let mut properties = Map::new();
        for (property, value) in given {
            if let Some(schema) = kind.properties.get(property) {
                properties.insert(property.clone(), self.checked(property, schema, value, &at.key(property)));
            }
        }
        for (property, schema) in kind.properties.iter().filter(|(property, _)| !given.contains_key(*property)) {
            if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
                properties.insert(property.clone(), self.checked(property, schema, default, &at));
            }
        }
        properties
    }

    /// Refuses names that a type does not define, and missing ones that it demands.
    fn check_names(&self, name: &str, what: &str, given: &Map, known: &Map<&'d Value>, at: &Path) {
        for key in given.keys().filter(|key| !known.contains_key(*key)) {
            let message = format!("The \"{what}\" of \"{name}\" have no field \"{key}\".");
            self.refuse_word("unknown-field", &at.key(key), message, key, known.keys().map(String::as_str));
        }
        let missing: Vec<&str> = known
            .iter()
            .filter(|(_, schema)| is_required(schema) && schema.get("default").is_none_or(Value::is_null))
            .map(|(key, _)| key.as_str())
            .filter(|key| !given.contains_key(*key))
            .collect();
        if !missing.is_empty() {
            let message = format!("The \"{what}\" of \"{name}\" must have the field \"{}\".", missing.join("\", \""));
            self.refuse("missing-field", at, message);
        }
    }

    fn read_capabilities(&self, node: &mut Node, kind: &Kind<'d>, fields: &Map, at: &Path) {
        let empty = Map::new();
        let given = map_at(self, fields, "capabilities", at).unwrap_or(&empty);
        let at = at.key("capabilities");
        for key in given.keys().filter(|key| !kind.capabilities.contains_key(*key)) {
            let message = format!("The \"capabilities\" of \"{}\" have no field \"{key}\".", node.name);
            let known = kind.capabilities.keys().map(String::as_str);
            self.refuse_word("unknown-field", &at.key(key), message, key, known);
        }
        // Given ones first, as written, then those of the type.
        let names = given.keys().filter(|name| kind.capabilities.contains_key(*name));
        let names = names.chain(kind.capabilities.keys().filter(|name| !given.contains_key(*name)));
        for name in names {
            let Some(definition) = kind.capabilities.get(name) else { continue };
            let Some(type_name) = definition.as_str().or_else(|| definition.str_at("type")) else { continue };
            let at = at.key(name);
            let Some(capability) = self.kind(Section::Capability, type_name, &at) else { continue };
            let mut properties = Map::new();
            // The definition in the node type may give other defaults than the type of the capability.
            for (property, schema) in capability.line[0].get("properties").and_then(Value::as_map).into_iter().flatten()
            {
                if let Some(default) = schema.get("default") {
                    properties.insert(property.clone(), default.clone());
                }
            }
            if let Some(Value::Map(given)) = given.get(name)
                && let Some(values) = map_at(self, given, "properties", &at)
            {
                let at = at.key("properties");
                self.check_names(&node.name, "properties", values, &capability.properties, &at);
                for (property, value) in values {
                    if let Some(schema) = capability.properties.get(property) {
                        self.checked(property, schema, value, &at.key(property));
                    }
                    properties.insert(property.clone(), value.clone());
                }
                if name == "scalable" {
                    self.check_instances(&node.name, values, &at);
                }
            }
            // Values that no type defines have no meaning.
            properties.retain(|property, _| capability.properties.contains_key(property));
            node.capabilities.push(Capability { name: name.clone(), type_name: capability.name.clone(), properties });
        }
    }

    fn check_instances(&self, name: &str, values: &Map, at: &Path) {
        let (least, most) = (values.get("min_instances"), values.get("max_instances"));
        if let (Some(default), Some(least), Some(most)) = (values.get("default_instances"), least, most)
            && ![default, least, most].into_iter().any(is_function)
        {
            let ordered = |a, b| number::compare(a, b).is_some_and(std::cmp::Ordering::is_le);
            if !(ordered(least, default) && ordered(default, most)) {
                let message = format!(
                    "The \"properties\" of \"{name}\" have \"default_instances\" that are not between \"min_instances\" \
                     and \"max_instances\"."
                );
                self.refuse("invalid", at, message);
            }
        }
    }

    fn check_requirements(&self, name: &str, kind: &Kind<'d>, fields: &Map, at: &Path) {
        const KEYS: [&str; 8] =
            ["node", "capability", "relationship", "occurrences", "node_filter", "description", "directives", "count"];
        let at = at.key("requirements");
        let items = match fields.get("requirements") {
            None | Some(Value::Null) => return,
            Some(Value::List(items)) => items,
            Some(_) => {
                return self.refuse("wrong-shape", &at, format!("The \"requirements\" of \"{name}\" must be a list."));
            }
        };
        for (i, item) in items.iter().enumerate() {
            let at = at.index(i);
            let Some(entries) = item.as_map() else {
                self.refuse("wrong-shape", &at, format!("A requirement of \"{name}\" must be a map."));
                continue;
            };
            for (requirement, value) in entries {
                let at = at.key(requirement);
                match value {
                    Value::Map(fields) => {
                        self.check_keys(&format!("The \"requirements\" of \"{name}\""), fields, &KEYS, &at);
                        if let Some(occurrences) = fields.get("occurrences") {
                            self.check_range(occurrences, &at.key("occurrences"));
                        }
                    }
                    _ if kind.requirements.iter().any(|(known, _)| known == requirement) => {}
                    _ => {
                        let message = format!("The \"requirements\" of \"{name}\" have no field \"{requirement}\".");
                        let known = kind.requirements.iter().map(|(known, _)| known.as_str());
                        self.refuse_word("unknown-field", &at, message, requirement, known);
                    }
                }
            }
        }
    }

    fn check_range(&self, occurrences: &Value, at: &Path) {
        let fits = match occurrences.as_list() {
            Some([Value::Int(least), Value::Int(most)]) => *least >= 0 && least <= most && *most > 0,
            Some([Value::Int(least), Value::Str(most)]) => *least >= 0 && most == "UNBOUNDED",
            _ => false,
        };
        if !fits {
            let shown = kiln_value::text::repr(occurrences);
            self.refuse("bad-occurrences", at, format!("\"{shown}\" is not a pair of a least and a largest number."));
        }
    }

    fn read_interfaces(&self, name: &str, kind: &Kind<'d>, fields: &Map, at: &Path) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (interface, value) in map_at(self, fields, "interfaces", at).into_iter().flatten() {
            let at = at.key("interfaces").key(interface);
            let Some(known) = self.known_operations(name, kind, interface, &at) else { continue };
            operations.extend(self.read_operations(name, interface, value, Some(&known), &at));
        }
        operations
    }

    /// The operations that the type implements, the nearest ancestor first, without those of the node.
    fn inherited_operations(&self, node: &Node, kind: &Kind<'d>) -> Vec<Operation> {
        let mut found: Vec<Operation> = Vec::new();
        let mut seen: HashSet<(String, String)> =
            node.operations.iter().map(|operation| (operation.interface.clone(), operation.name.clone())).collect();
        let interfaces = kind.line.iter().filter_map(|definition| definition.get("interfaces")?.as_map()).flatten();
        for (interface, value) in interfaces {
            let Some(entries) = value.as_map() else { continue };
            let entries = entries.get("operations").and_then(Value::as_map).unwrap_or(entries);
            for (name, value) in entries.iter().filter(|(name, _)| !NO_OPERATIONS.contains(&name.as_str())) {
                if !seen.insert((interface.clone(), name.clone())) {
                    continue;
                }
                let operation = self.read_operation(&node.name, interface, name, value, &node.at.key("type"));
                found.extend(Some(operation).filter(|operation| operation.implementation.is_some()));
            }
        }
        found
    }

    /// The operations and notifications that an interface of a node may have; an unknown interface is refused.
    fn known_operations(&self, name: &str, kind: &Kind<'d>, interface: &str, at: &Path) -> Option<Vec<String>> {
        let fixed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        if STANDARD.contains(&interface) {
            return Some(fixed(&STANDARD_OPERATIONS));
        }
        if CONFIGURE.contains(&interface) {
            return Some(fixed(&CONFIGURE_OPERATIONS));
        }
        let Some(definition) = kind.interfaces.get(interface).and_then(|definition| definition.as_map()) else {
            let message = format!("The \"interfaces\" of \"{name}\" have no field \"{interface}\".");
            let known = kind.interfaces.keys().map(String::as_str).chain(["Standard"]);
            self.refuse_word("unknown-field", at, message, interface, known);
            return None;
        };
        let mut known = operations_of(definition);
        if let Some(type_name) = definition.get("type").and_then(Value::as_str) {
            match self.types.find(Section::Interface, type_name) {
                Some(kind) => kind.line.iter().for_each(|definition| known.extend(operations_of(definition))),
                None => self.refuse("unknown-type", at, format!("No type is named \"{type_name}\".")),
            }
        }
        Some(known)
    }

    /// The operations of an interface in a template.
    pub(super) fn read_operations(
        &self,
        name: &str,
        interface: &str,
        value: &Value,
        known: Option<&[String]>,
        at: &Path,
    ) -> Vec<Operation> {
        let Some(entries) = value.as_map() else {
            self.refuse("wrong-shape", at, format!("The interface \"{interface}\" of \"{name}\" must be a map."));
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut add = |entries: &Map, at: &Path| {
            for (operation, value) in entries {
                let at = at.key(operation);
                if let Some(known) = known.filter(|known| !known.iter().any(|known| known == operation)) {
                    let message = format!("The \"interfaces\" of \"{name}\" have no field \"{operation}\".");
                    self.refuse_word("unknown-field", &at, message, operation, known.iter().map(String::as_str));
                }
                found.push(self.read_operation(name, interface, operation, value, &at));
            }
        };
        for key in ["notifications", "operations"] {
            if let Some(entries) = entries.get(key).and_then(Value::as_map) {
                add(entries, &at.key(key));
            }
        }
        // With `operations`, all other keys belong to the interface.
        if !entries.contains_key("operations") {
            let plain = |key: &str| key != "notifications" && !(known.is_none() && NO_OPERATIONS.contains(&key));
            let rest: Map = entries.iter().filter(|(key, _)| plain(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            add(&rest, at);
        }
        found
    }

    fn read_operation(&self, name: &str, interface: &str, operation: &str, value: &Value, at: &Path) -> Operation {
        let mut implementation = None;
        let mut inputs = Map::new();
        match value {
            Value::Map(fields) => {
                let keys = ["implementation", "inputs", "outputs", "description"];
                self.check_keys(&format!("The \"interfaces\" of \"{name}\""), fields, &keys, at);
                implementation = fields.get("implementation").cloned();
                inputs = map_at(self, fields, "inputs", at).cloned().unwrap_or_default();
            }
            Value::Null => {}
            value => implementation = Some(value.clone()),
        }
        Operation {
            at: at.clone(),
            interface: interface.to_owned(),
            name: operation.to_owned(),
            implementation: implementation.filter(Value::is_truthy),
            inputs,
        }
    }

    /// Checks how often each requirement of a type is given.
    pub(super) fn check_occurrences(&self, graph: &Graph, nodes: &[NodeParts<'d>]) {
        for (node, parts) in graph.nodes.iter().zip(nodes) {
            let mut counts: Map<i64> = Map::new();
            let mut count = |requirements: Option<&Value>| {
                for name in
                    requirements.and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_map).flatten()
                {
                    *counts.entry(name.0.clone()).or_insert(0) += 1;
                }
            };
            count(node.requirements.as_ref());
            // The topology that stands for a node may fulfil its requirements.
            for nested in graph.nested.iter().filter(|nested| nested.node == node.name) {
                let mapped = nested.graph.substitution.as_ref().and_then(|mappings| mappings.get("requirements"));
                match mapped {
                    Some(Value::Map(map)) => {
                        let list: Vec<Value> =
                            map.iter().map(|(k, v)| Value::from_iter([(k.clone(), v.clone())])).collect();
                        count(Some(&Value::List(list)));
                    }
                    other => count(other),
                }
                let same = nested.graph.nodes.iter().find(|inner| inner.type_name == node.type_name);
                count(same.and_then(|inner| inner.requirements.as_ref()));
            }
            for (requirement, definition) in &parts.kind.requirements {
                let count = counts.get(requirement).copied().unwrap_or(0);
                let range = definition.get("occurrences").and_then(Value::as_list).unwrap_or_default();
                let least = range.first().and_then(Value::as_i64).unwrap_or(1);
                let most = range.get(1).and_then(Value::as_i64).unwrap_or(i64::MAX);
                if count < least || count > most {
                    let message =
                        format!("\"{}\" has a wrong number of the requirement \"{requirement}\": {count}.", node.name);
                    let at = node.at.key("requirements");
                    let hint = match definition.str_at("node").or_else(|| definition.str_at("capability")) {
                        Some(by) => format!("Name a node for it, of type or with the capability {by}."),
                        None => "Name a node for it.".to_owned(),
                    };
                    self.refuse_with(crate::Refusal::new("invalid", &at, message).hint(hint));
                }
            }
        }
    }
}

fn operations_of(definition: &Map) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for key in ["operations", "notifications"] {
        names.extend(definition.get(key).and_then(Value::as_map).into_iter().flat_map(Map::keys).cloned());
    }
    names.extend(definition.keys().filter(|key| !NO_OPERATIONS.contains(&key.as_str())).cloned());
    names
}
