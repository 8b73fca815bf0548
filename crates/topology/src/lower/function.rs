//! Functions of TOSCA become functions of HOT.

use kiln_value::{Map, Path, Value, steps, text, value};

use super::state::State;
use crate::graph::{Node, Target};
use crate::tosca::{arguments, call};

/// Properties that refer to properties that refer to properties, and so on.
const MAX_DEPTH: usize = 50;
/// Steps of a request for a value.
const STEPS_A_VALUE: usize = 20;
/// Bytes that are copied in a step.
const BYTES_A_STEP: usize = 64;
/// The size of a value without its text.
const BYTES_A_VALUE: usize = 64;

/// Who uses a value.
#[derive(Clone, Copy)]
pub(super) struct User<'g> {
    node: Option<&'g Node>,
    relationship: Option<&'g Target>,
    depth: usize,
}

impl<'g> State<'g> {
    /// The value of a node or of one of its relationships.
    pub(super) fn value(
        &mut self,
        node: &'g Node,
        relationship: Option<&'g Target>,
        value: &Value,
        at: &Path,
    ) -> Value {
        let user = User { node: Some(node), relationship, depth: 0 };
        self.lower_value(user, value, at).unwrap_or_default()
    }

    /// The value of an output; `None` if it was refused.
    pub(super) fn output_value(&mut self, value: &Value, at: &Path) -> Option<Value> {
        self.lower_value(User { node: None, relationship: None, depth: 0 }, value, at)
    }

    fn lower_value(&mut self, user: User<'g>, value: &Value, at: &Path) -> Option<Value> {
        if user.depth > MAX_DEPTH {
            self.refuse(at, "Properties refer to each other in a circle.");
            return None;
        }
        // A list of two references to a list of two references, and so on, doubles with each step.
        let text = value.as_str().map_or(0, str::len);
        if steps::spend(STEPS_A_VALUE + text / BYTES_A_STEP).is_err() {
            return None;
        }
        if user.depth > 0 && !self.take(BYTES_A_VALUE + text, at) {
            return None;
        }
        let Some((name, argument)) = call(value) else {
            return match value {
                Value::List(items) => items
                    .iter()
                    .map(|item| self.lower_value(user, item, at))
                    .collect::<Option<Vec<Value>>>()
                    .map(Value::from),
                Value::Map(map) => {
                    let entries = map.iter().map(|(key, item)| Some((key.clone(), self.lower_value(user, item, at)?)));
                    entries.collect::<Option<Map>>().map(Value::Map)
                }
                plain => Some(plain.clone()),
            };
        };
        let arguments = arguments(argument);
        match name {
            "get_input" => {
                let [name, path @ ..] = arguments else { return None };
                Some(if path.is_empty() {
                    value!({"get_param": name})
                } else {
                    value!({"get_param": (arguments.to_vec())})
                })
            }
            "get_property" => self.property(user, arguments, at),
            "get_attribute" => self.attribute(user, arguments, at),
            "get_operation_output" => self.operation_output(user, arguments, at),
            "get_artifact" => {
                let [of, name, ..] = arguments else { return None };
                let node = self.named(user, of, at)?;
                let artifact = node.artifact(&text::str(name));
                let file = artifact.and_then(|artifact| artifact.as_str().or_else(|| artifact.str_at("file")));
                match file {
                    // Servers read addresses themselves.
                    Some(file) if file.contains("://") => Some(file.into()),
                    Some(file) => Some(self.file(file, at)),
                    None => {
                        self.refuse(at, format!("{} has no artifact {} with a file.", node.name, text::str(name)));
                        None
                    }
                }
            }
            "concat" => {
                let parts = self.lower_value(user, &Value::List(arguments.to_vec()), at)?;
                Some(value!({"list_join": ["", parts]}))
            }
            "join" => {
                let [items, rest @ ..] = arguments else { return None };
                let items = self.lower_value(user, items, at)?;
                let between = rest.first().map(text::str).unwrap_or_default();
                Some(value!({"list_join": [between, items]}))
            }
            _ => {
                let [text, separator, index] = arguments else { return None };
                let text = self.lower_value(user, text, at)?;
                Some(value!({"str_split": [separator, text, index]}))
            }
        }
    }

    /// The node that a name stands for.
    fn named(&mut self, user: User<'g>, name: &Value, at: &Path) -> Option<&'g Node> {
        let name = name.as_str().or_else(|| name.str_at("node"))?;
        let found = match (name, user) {
            ("SELF" | "SOURCE", User { node: Some(node), .. }) => Some(node),
            ("TARGET", User { relationship: Some(target), .. }) => self.nodes.get(target.node.as_str()).copied(),
            ("HOST", User { node: Some(node), .. }) => self.servers(&node.name).first().copied(),
            _ => self.nodes.get(name).copied(),
        };
        if found.is_none() {
            self.refuse(at, format!("The node {name} is unknown here."));
        }
        found
    }

    fn property(&mut self, user: User<'g>, arguments: &[Value], at: &Path) -> Option<Value> {
        let [of, name, rest @ ..] = arguments else { return None };
        let name = text::str(name);
        let deeper = |node: &'g Node| User { node: Some(node), relationship: None, depth: user.depth + 1 };
        // Properties of the relationship itself.
        if let (Some("SELF"), Some(target)) = (of.as_str(), user.relationship)
            && let Some(value) = target.properties.get(&name)
        {
            let user = User { depth: user.depth + 1, ..user };
            return self.lower_value(user, value, at);
        }
        let mut node =
            if of.as_str() == Some("HOST") { self.host_with(user, &name, rest)? } else { self.named(user, of, at)? };
        if let Some(value) = node.properties.get(&name) {
            return self.part(deeper(node), value, rest, at);
        }
        let Some((property, rest)) = rest.split_first() else {
            // An optional property without a value.
            return Some("".into());
        };
        if let Some(target) = node.targets.iter().find(|target| target.requirement == name)
            && let Some(fulfils) = self.nodes.get(target.node.as_str())
        {
            node = fulfils;
        }
        let property = text::str(property);
        let of_capability = node.capability(&name).and_then(|capability| capability.properties.get(&property));
        if let Some(value) = of_capability.or_else(|| node.properties.get(&property)) {
            return self.part(deeper(node), value, rest, at);
        }
        self.refuse(at, format!("{} has no property {property} in {name}.", node.name));
        None
    }

    /// The first host that has a property, itself or in a capability.
    fn host_with(&self, user: User<'g>, name: &str, rest: &[Value]) -> Option<&'g Node> {
        let mut node = user.node?;
        let property = rest.first().map(text::str).unwrap_or_default();
        for _ in 0..self.graph.nodes.len() {
            let target = node.targets.iter().find(|target| target.is_a("tosca.relationships.HostedOn"))?;
            node = self.nodes.get(target.node.as_str()).copied()?;
            let has = node.capability(name).is_some_and(|capability| capability.properties.contains_key(&property));
            if has || node.properties.contains_key(name) {
                return Some(node);
            }
        }
        None
    }

    /// A part of a value, by indexes and names.
    fn part(&mut self, user: User<'g>, value: &Value, path: &[Value], at: &Path) -> Option<Value> {
        let mut value = value;
        for step in path {
            let next = match (value, step) {
                (Value::List(items), step) => {
                    let index = step.as_i64().or_else(|| step.as_str()?.parse().ok());
                    index.and_then(|index| items.get(usize::try_from(index).ok()?))
                }
                (Value::Map(map), step) => map.get(&text::str(step)),
                _ => None,
            };
            let Some(next) = next else {
                self.refuse(at, format!("The value has no part {}.", text::str(step)));
                return None;
            };
            value = next;
        }
        self.lower_value(user, value, at)
    }

    fn attribute(&mut self, user: User<'g>, arguments: &[Value], at: &Path) -> Option<Value> {
        let [of, name, rest @ ..] = arguments else { return None };
        let name = text::str(name);
        let node = self.named(user, of, at)?;
        match name.as_str() {
            "tosca_id" if self.resources.contains_key(&node.name) => return Some(self.reference(node, at)),
            "tosca_name" => return Some((&node.name).into()),
            _ => {}
        }
        if self.substituted.contains(&node.name) {
            let mut path = vec![Value::from(&node.name), name.into()];
            path.extend(rest.iter().cloned());
            return Some(value!({"get_attr": path}));
        }
        if let Some(value) = self.attribute_of(node, &name, rest, at) {
            return Some(value);
        }
        if let Some(value) = node.properties.get(&name) {
            let user = User { node: Some(node), relationship: None, depth: user.depth + 1 };
            return self.part(user, value, rest, at);
        }
        // A requirement or capability, and one of its attributes.
        if let Some((attribute, rest)) = rest.split_first() {
            let attribute = text::str(attribute);
            let target = node.targets.iter().find(|target| target.requirement == name);
            let owner = target.and_then(|target| self.nodes.get(target.node.as_str()).copied()).unwrap_or(node);
            if attribute == "ip_address" || attribute == "private_address" {
                if let Some(server) = self.servers(&owner.name).first().copied() {
                    return Some(value!({"get_attr": [(&server.name), "first_address"]}));
                }
            } else if let Some(value) = owner
                .capability(&name)
                .and_then(|capability| capability.properties.get(&attribute))
                .or_else(|| owner.properties.get(&attribute))
            {
                let user = User { node: Some(owner), relationship: None, depth: user.depth + 1 };
                return self.part(user, value, rest, at);
            }
        }
        // Software has the addresses of its server.
        if let Some(server) = self.servers(&node.name).first().copied().filter(|server| server.name != node.name)
            && let Some(value) = self.attribute_of(server, &name, rest, at)
        {
            return Some(value);
        }
        // An operation of the node may return it.
        if let Some(deployment) = Self::last_own(node) {
            self.expect_output(&deployment, &name);
            let mut path = vec![Value::from(format!("{deployment}_deploy")), name.into()];
            path.extend(rest.iter().cloned());
            return Some(value!({"get_attr": path}));
        }
        let message = format!("The attribute {name} of {} ({}) has no value in OpenStack.", node.name, node.type_name);
        if user.node.is_none() {
            self.note(at, format!("{message} The output is left out."));
        } else {
            self.refuse(at, message);
        }
        None
    }

    fn operation_output(&mut self, user: User<'g>, arguments: &[Value], at: &Path) -> Option<Value> {
        let [of, _, operation, output] = arguments else { return None };
        let (operation, output) = (text::str(operation), text::str(output));
        let node = self.named(user, of, at)?;
        if !node.all_operations().any(|known| known.name == operation && known.implementation.is_some()) {
            self.refuse(at, format!("{} has no implementation of {operation}.", node.name));
            return None;
        }
        let name = format!("{}_{operation}", node.name);
        self.expect_output(&name, &output);
        Some(value!({"get_attr": [(format!("{name}_deploy")), output]}))
    }
}
