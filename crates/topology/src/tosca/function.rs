//! Functions in values: `get_input`, `get_property`, `get_attribute` and others, and the names in them.

use std::collections::{HashMap, HashSet};

use kiln_value::{Map, Path, Value, text};

use super::node::NodeParts;
use super::reader::Reader;
use super::types::Section;
use crate::graph::{Graph, Node, Operation, Target};

/// The names of the functions.
pub(super) const FUNCTIONS: [&str; 8] =
    ["get_input", "get_property", "get_attribute", "get_operation_output", "get_artifact", "concat", "join", "token"];

/// The function and its argument, if the value is a call.
pub(crate) fn call(value: &Value) -> Option<(&str, &Value)> {
    let map = value.as_map().filter(|map| map.len() == 1)?;
    let (name, argument) = map.first()?;
    FUNCTIONS.contains(&name.as_str()).then_some((name.as_str(), argument))
}

/// Whether the value is a call of a function.
pub(crate) fn is_function(value: &Value) -> bool {
    call(value).is_some()
}

/// The arguments of a call; one that is no list is the only one.
pub(crate) fn arguments(argument: &Value) -> &[Value] {
    match argument {
        Value::List(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// Who uses a function.
#[derive(Clone, Copy)]
pub(super) struct User<'g> {
    /// The node; of an operation of a relationship, its source.
    node: &'g Node,
    /// The relationship.
    relationship: Option<&'g Target>,
}

/// The names that functions may refer to.
pub(super) struct Context<'c, 'd> {
    reader: &'c Reader<'d>,
    graph: &'c Graph,
    inputs: HashSet<&'c str>,
    nodes: HashMap<&'c str, (&'c Node, &'c NodeParts<'d>)>,
}

impl<'c, 'd> Context<'c, 'd> {
    pub(super) fn new(reader: &'c Reader<'d>, graph: &'c Graph, nodes: &'c [NodeParts<'d>]) -> Self {
        let inputs = graph.inputs.iter().map(|input| input.name.as_str()).collect();
        let nodes = graph.nodes.iter().zip(nodes).map(|(node, parts)| (node.name.as_str(), (node, parts))).collect();
        Self { reader, graph, inputs, nodes }
    }

    /// Checks the functions of all nodes.
    pub(super) fn check_nodes(&self) {
        for node in &self.graph.nodes {
            let user = User { node, relationship: None };
            let at = node.at.key("properties");
            for (name, value) in &node.properties {
                check_function(self, Some(user), value, &at.key(name));
            }
            for capability in &node.capabilities {
                let at = node.at.key("capabilities").key(&capability.name).key("properties");
                for (name, value) in &capability.properties {
                    check_function(self, Some(user), value, &at.key(name));
                }
            }
            self.check_inputs(&node.operations, user);
            for target in &node.targets {
                let user = User { node, relationship: Some(target) };
                self.check_inputs(&target.operations, user);
            }
        }
    }

    fn check_inputs(&self, operations: &'c [Operation], user: User<'c>) {
        for operation in operations {
            for (name, value) in &operation.inputs {
                check_function(self, Some(user), value, &operation.at.key("inputs").key(name));
            }
        }
    }

    /// The node that the first argument names.
    fn node(&self, user: Option<User<'c>>, name: &Value, at: &Path) -> Option<(&'c Node, &'c NodeParts<'d>)> {
        let name = name.as_str().or_else(|| name.str_at("node"))?;
        let found = match (name, user) {
            ("SELF", Some(user)) => Some(user.node.name.as_str()),
            ("SOURCE", Some(User { node, relationship: Some(_) })) => Some(node.name.as_str()),
            ("TARGET", Some(User { relationship: Some(target), .. })) => Some(target.node.as_str()),
            ("SOURCE" | "TARGET", _) => {
                let message = format!("\"{name}\" can be used in relationships only.");
                self.reader.refuse("unknown-name", at, message);
                return None;
            }
            _ => Some(name),
        };
        let found = found.and_then(|name| self.nodes.get(name)).copied();
        if found.is_none() {
            let message = format!("No node template is named \"{name}\".");
            self.reader.refuse_word("unknown-name", at, message, name, self.nodes.keys().copied());
        }
        found
    }

    /// The first node along the `HostedOn` relationships for which `fits` holds.
    fn host(
        &self,
        user: User<'c>,
        fits: impl Fn(&Node, &NodeParts<'d>) -> bool,
    ) -> Option<(&'c Node, &'c NodeParts<'d>)> {
        let mut node = user.node;
        // A circle of hosts ends after as many steps as there are nodes.
        for _ in 0..self.nodes.len() {
            let host = node
                .targets
                .iter()
                .find(|target| target.is_a("tosca.relationships.HostedOn") || is_container(self, &target.node))?;
            let (host, parts) = self.nodes.get(host.node.as_str())?;
            if fits(host, parts) {
                return Some((host, parts));
            }
            node = host;
        }
        None
    }

    fn check_input(&self, arguments: &[Value], at: &Path) {
        let Some(Value::Str(name)) = arguments.first() else {
            let message = "The function \"get_input\" expects one argument, the name of an input.";
            return self.reader.refuse("bad-value", at, message);
        };
        // Further arguments select a part of the value.
        if !self.inputs.contains(name.as_str()) {
            let message = format!("No input is named \"{name}\".");
            self.reader.refuse_word("unknown-input", at, message, name, self.inputs.iter().copied());
        } else if arguments.len() > 1 && !self.is_structured(name) {
            let shown = text::repr(&Value::List(arguments.to_vec()));
            let message = format!("The function \"get_input\" expects one argument, but it has \"{shown}\".");
            self.reader.refuse("bad-value", at, message);
        }
    }

    /// Whether an input has parts that may be selected.
    fn is_structured(&self, name: &str) -> bool {
        let input = self.graph.inputs.iter().find(|input| input.name == name);
        input.is_some_and(|input| {
            matches!(input.type_name.as_str(), "list" | "map" | "json")
                || self.reader.types.find(Section::Data, &input.type_name).is_some()
        })
    }

    fn check_property(&self, user: Option<User<'c>>, arguments: &[Value], at: &Path) {
        let [of, first, rest @ ..] = arguments else {
            let message = "The function \"get_property\" expects a node and the name of a property.";
            return self.reader.refuse("bad-value", at, message);
        };
        let name = text::str(first);
        let has = |node: &Node| node.properties.contains_key(&name);
        let of_capability = |node: &Node| {
            let property = rest.first().map(text::str).unwrap_or_default();
            node.capability(&name).is_some_and(|capability| capability.properties.contains_key(&property))
        };
        if of.as_str() == Some("HOST") {
            let host = user.and_then(|user| {
                self.host(user, |node, parts| parts.kind.properties.contains_key(&name) || of_capability(node))
            });
            if host.is_none() {
                let message = format!("No host has a property \"{name}\".");
                self.reader.refuse("unknown-name", at, message);
            }
            return;
        }
        // Properties of the relationship itself.
        if let (Some("SELF"), Some(User { relationship: Some(target), .. })) = (of.as_str(), user)
            && target.properties.contains_key(&name)
        {
            return;
        }
        let Some((node, _)) = self.node(user, of, at) else { return };
        if has(node) {
            return;
        }
        let Some(property) = rest.first() else {
            let message = format!("The node template \"{}\" has no property \"{name}\".", node.name);
            return self.reader.refuse_word(
                "unknown-name",
                at,
                message,
                &name,
                node.properties.keys().map(String::as_str),
            );
        };
        self.check_part(user, node, &name, &text::str(property), "Property", at);
    }

    /// A property or attribute of a requirement's target or of a capability.
    fn check_part(&self, user: Option<User<'c>>, node: &'c Node, name: &str, part: &str, what: &str, at: &Path) {
        let target = node.targets.iter().find(|target| target.requirement == name);
        let owner = match target {
            Some(target) => match self.nodes.get(target.node.as_str()) {
                Some((owner, _)) => owner,
                None => return,
            },
            None => node,
        };
        let from = user.map_or("outputs", |user| user.node.name.as_str());
        let Some(capability) = owner.capability(name) else {
            // The node that fulfils the requirement may have the property itself.
            if target.is_some() && (owner.properties.contains_key(part) || owner.attributes.iter().any(|a| a == part)) {
                return;
            }
            let message = format!(
                "The node template \"{}\" has no requirement or capability \"{name}\", which \"{from}\" refers to.",
                owner.name
            );
            return self.reader.refuse("unknown-name", at, message);
        };
        let known = if what == "Property" {
            capability.properties.contains_key(part)
        } else {
            let kind = self.reader.types.find(Section::Capability, &capability.type_name);
            kind.is_some_and(|kind| kind.attributes.contains_key(part) || kind.properties.contains_key(part))
        };
        if !known {
            let message = format!(
                "{what} \"{part}\" is missing in the capability \"{name}\" of the node template \"{}\", which \"{from}\" \
                 refers to.",
                owner.name
            );
            self.reader.refuse("unknown-name", at, message);
        }
    }

    fn check_attribute(&self, user: Option<User<'c>>, arguments: &[Value], at: &Path) {
        let [of, first, rest @ ..] = arguments else {
            let message = "The function \"get_attribute\" expects a node and the name of an attribute.";
            return self.reader.refuse("bad-value", at, message);
        };
        let name = text::str(first);
        let has = |node: &Node, parts: &NodeParts<'d>| {
            parts.kind.attributes.contains_key(&name) || node.properties.contains_key(&name)
        };
        if of.as_str() == Some("HOST") {
            let Some(user) = user else {
                let message = "\"HOST\" has no meaning in outputs.";
                return self.reader.refuse("bad-value", at, message);
            };
            if self.host(user, |_, parts| parts.kind.attributes.contains_key(&name)).is_none() {
                let message = format!(
                    "\"get_attribute: [ HOST, ... ]\": no host of \"{}\" by \"tosca.relationships.HostedOn\" has the \
                     attribute {name}.",
                    user.node.name
                );
                self.reader.refuse("bad-value", at, message);
            }
            return;
        }
        let Some((node, parts)) = self.node(user, of, at) else { return };
        if has(node, parts) {
            if let Some(schema) = parts.kind.attributes.get(&name) {
                self.check_selection(schema, rest, at);
            }
            return;
        }
        if let Some(part) = rest.first() {
            self.check_part(user, node, &name, &text::str(part), "Attribute", at);
        } else {
            let message = format!("Attribute \"{name}\" is missing in the node template \"{}\".", node.name);
            let known = parts.kind.attributes.keys().map(String::as_str);
            self.reader.refuse_word("unknown-name", at, message, &name, known);
        }
    }

    /// Indexes and names that select a part of an attribute.
    fn check_selection(&self, schema: &Value, selection: &[Value], at: &Path) {
        let mut schema = schema.clone();
        for step in selection {
            let type_name = schema.as_str().or_else(|| schema.str_at("type")).unwrap_or_default().to_owned();
            let entry = || schema.get("entry_schema").cloned().unwrap_or_default();
            let next = match type_name.as_str() {
                "list" if step.as_i64().is_none() => {
                    let shown = text::str(step);
                    let message = format!("\"get_attribute\": \"{shown}\" is not the index of an item.");
                    self.reader.refuse("bad-value", at, message);
                    return;
                }
                "list" | "map" => entry(),
                "string" | "integer" | "float" | "number" | "boolean" | "timestamp" | "version" | "range" => {
                    let message =
                        format!("\"get_attribute\": a value of type {type_name} has no part \"{}\".", text::str(step));
                    return self.reader.refuse("bad-value", at, message);
                }
                _ => {
                    let kind = self.reader.types.find(Section::Data, &type_name);
                    let name = text::str(step);
                    if let Some(schema) = kind.as_ref().and_then(|kind| kind.properties.get(&name)) {
                        Value::clone(schema)
                    } else {
                        let message = format!("\"get_attribute\": \"{type_name}\" has no field \"{name}\".");
                        return self.reader.refuse("unknown-name", at, message);
                    }
                }
            };
            schema = next;
        }
    }

    fn check_output(&self, user: Option<User<'c>>, arguments: &[Value], at: &Path) {
        let [of, interface, operation, _] = arguments else {
            let message = "The function \"get_operation_output\" expects a node, an interface, an operation and the name \
                           of an output.";
            return self.reader.refuse("bad-value", at, message);
        };
        let relationships = &self.graph.relationships;
        if relationships.iter().any(|relationship| of.as_str() == Some(&relationship.name)) {
            return;
        }
        let Some((node, _)) = self.node(user, of, at) else { return };
        let (interface, operation) = (text::str(interface), text::str(operation));
        let short = interface.rsplit('.').next().unwrap_or(&interface);
        let of_relationship = short == "Configure";
        let known = node.all_operations().any(|known| {
            known.name == operation
                && (known.interface == interface || known.interface.rsplit('.').next() == Some(short))
        });
        if !known && !of_relationship && node.all_operations().all(|known| known.name != operation) {
            let message =
                format!("\"{}\" has no operation \"{operation}\" of an interface \"{interface}\".", node.name);
            self.reader.refuse("bad-value", at, message);
        }
    }

    fn check_token(&self, arguments: &[Value], at: &Path) {
        let [_, separator, index, ..] = arguments else {
            let message = "The function \"token\" expects a text, a separator and an index.";
            return self.reader.refuse("bad-value", at, message);
        };
        if !is_function(separator) && separator.as_str().is_none_or(|text| text.chars().count() != 1) {
            let message = "The second argument of the function \"token\" must be one character.";
            self.reader.refuse("bad-value", at, message);
        }
        if !is_function(index) && index.as_i64().is_none() {
            let message = "The third argument of the function \"token\" must be an integer.";
            self.reader.refuse("bad-value", at, message);
        }
    }
}

fn is_container(context: &Context<'_, '_>, node: &str) -> bool {
    let Some((node, _)) = context.nodes.get(node) else { return false };
    let is_one = |name: &str| {
        let kind = context.reader.types.find(Section::Capability, name);
        kind.is_some_and(|kind| kind.is_a("tosca.capabilities.Container"))
    };
    node.capabilities.iter().any(|capability| is_one(&capability.type_name))
}

/// Checks the functions in a value, also those in arguments and in parts of it.
pub(super) fn check_function<'c>(context: &Context<'c, '_>, user: Option<User<'c>>, value: &Value, at: &Path) {
    match call(value) {
        Some((name, argument)) => {
            let arguments = arguments(argument);
            match name {
                "get_input" => context.check_input(arguments, at),
                "get_property" => context.check_property(user, arguments, at),
                "get_attribute" => context.check_attribute(user, arguments, at),
                "get_operation_output" => context.check_output(user, arguments, at),
                "concat" if arguments.is_empty() => {
                    let message = "The function \"concat\" expects at least one argument.";
                    context.reader.refuse("bad-value", at, message);
                }
                "token" => context.check_token(arguments, at),
                _ => {}
            }
            if matches!(name, "concat" | "token" | "join") {
                for argument in arguments {
                    check_function(context, user, argument, at);
                }
            }
        }
        None => match value {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(i, item)| check_function(context, user, item, &at.index(i)));
            }
            Value::Map(map) => map.iter().for_each(|(key, item)| check_function(context, user, item, &at.key(key))),
            _ => {}
        },
    }
}

/// The inputs, by name, with the values that they have.
pub(crate) fn input_values(graph: &Graph) -> Map {
    let values = graph.inputs.iter().filter_map(|input| Some((input.name.clone(), input.value()?.clone())));
    values.collect()
}
