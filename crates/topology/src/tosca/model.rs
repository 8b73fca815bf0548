//! A graph as data: the format of `kiln template lower --show model` and of the tests.

use kiln_value::{Map, Value, value};

use super::function::{arguments, call, input_values};
use crate::graph::{Graph, Node, Operation, Policy};

impl Graph {
    /// The model: version, inputs, nodes and so on; empty parts are left out.
    pub fn model(&self) -> Value {
        let mut model = Map::new();
        let mut put = |key: &str, value: Value| {
            if value.is_truthy() {
                model.insert(key.to_owned(), value);
            }
        };
        put("version", self.version.clone().into());
        put("description", self.description.clone().into());
        put(
            "inputs",
            self.inputs
                .iter()
                .map(|input| {
                    let mut map = Map::new();
                    map.insert("type".to_owned(), (&input.type_name).into());
                    map.insert("required".to_owned(), input.required.into());
                    for key in ["default", "constraints"] {
                        if let Some(value) = input.definition.get(key).filter(|value| !value.is_null()) {
                            map.insert(key.to_owned(), value.clone());
                        }
                    }
                    (input.name.clone(), Value::Map(map))
                })
                .collect(),
        );
        let inputs = input_values(self);
        put("node_templates", self.nodes.iter().map(|node| (node.name.clone(), node_model(node, &inputs))).collect());
        put(
            "relationship_templates",
            self.relationships
                .iter()
                .map(|relationship| {
                    let mut map = Map::new();
                    map.insert("type".to_owned(), (&relationship.type_name).into());
                    put_map(&mut map, "properties", relationship.properties.clone());
                    (relationship.name.clone(), Value::Map(map))
                })
                .collect(),
        );
        put(
            "outputs",
            self.outputs
                .iter()
                .map(|output| {
                    let is_attribute = call(&output.value).is_some_and(|(name, _)| name == "get_attribute");
                    let value = if is_attribute { listed(&output.value) } else { output.value.clone() };
                    (output.name.clone(), value)
                })
                .collect(),
        );
        put(
            "groups",
            self.groups
                .iter()
                .map(|group| {
                    (group.name.clone(), value!({"type": (&group.type_name), "members": (group.members.clone())}))
                })
                .collect(),
        );
        put("policies", self.policies.iter().map(|policy| (policy.name.clone(), policy_model(policy))).collect());
        put(
            "substitution_mappings",
            self.substitution
                .iter()
                .flatten()
                .filter(|(key, _)| matches!(key.as_str(), "node_type" | "requirements" | "capabilities"))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        );
        put("nested", self.nested.iter().map(|nested| nested.graph.model()).collect::<Vec<Value>>().into());
        model.into()
    }
}

fn put_map(map: &mut Map, key: &str, value: Map) {
    if !value.is_empty() {
        map.insert(key.to_owned(), value.into());
    }
}

/// A function with a list of arguments, whether it was written as one or not.
fn listed(value: &Value) -> Value {
    match call(value) {
        Some((name, argument)) => Value::from_iter([(name, Value::List(arguments(argument).to_vec()))]),
        None => value.clone(),
    }
}

/// The same for the properties of relationships in requirements.
fn list_functions(requirements: &mut Value) {
    let Value::List(items) = requirements else { return };
    for value in items.iter_mut().filter_map(Value::as_map_mut).flat_map(|map| map.values_mut()) {
        let properties = value
            .as_map_mut()
            .and_then(|value| value.get_mut("relationship")?.as_map_mut()?.get_mut("properties")?.as_map_mut());
        for property in properties.into_iter().flat_map(|map| map.values_mut()) {
            *property = listed(property);
        }
    }
}

fn node_model(node: &Node, inputs: &Map) -> Value {
    let mut map = Map::new();
    map.insert("type".to_owned(), (&node.type_name).into());
    if !node.ancestors.is_empty() {
        map.insert("ancestors".to_owned(), node.ancestors.clone().into());
    }
    put_map(
        &mut map,
        "properties",
        node.properties.iter().map(|(name, value)| (name.clone(), listed(value))).collect(),
    );
    if let Some(requirements) = node.requirements.as_ref().filter(|requirements| requirements.is_truthy()) {
        let mut requirements = requirements.clone();
        list_functions(&mut requirements);
        map.insert("requirements".to_owned(), requirements);
    }
    let related = node
        .targets
        .iter()
        .filter_map(|target| Some((target.node.clone(), Value::from(target.relationship.as_ref()?))));
    put_map(&mut map, "related", related.collect());
    let capabilities = node.capabilities.iter().map(|capability| {
        let mut shown = Map::new();
        shown.insert("type".to_owned(), (&capability.type_name).into());
        let values = capability.properties.iter().filter_map(|(name, value)| {
            let value = match call(value) {
                Some(("get_input", argument)) => inputs.get(arguments(argument).first()?.as_str()?)?.clone(),
                _ => value.clone(),
            };
            (!value.is_null()).then(|| (name.clone(), value))
        });
        put_map(&mut shown, "properties", values.collect());
        (capability.name.clone(), Value::Map(shown))
    });
    put_map(&mut map, "capabilities", capabilities.collect());
    if !node.operations.is_empty() {
        map.insert("operations".to_owned(), node.operations.iter().map(operation_model).collect());
    }
    if let Some(artifacts) = &node.artifacts {
        put_map(&mut map, "artifacts", artifacts.clone());
    }
    map.into()
}

fn operation_model(operation: &Operation) -> Value {
    let mut map = Map::new();
    map.insert("interface".to_owned(), (&operation.interface).into());
    map.insert("operation".to_owned(), (&operation.name).into());
    if let Some(implementation) = &operation.implementation {
        map.insert("implementation".to_owned(), implementation.clone());
    }
    put_map(&mut map, "inputs", operation.inputs.iter().map(|(name, value)| (name.clone(), listed(value))).collect());
    map.into()
}

fn policy_model(policy: &Policy) -> Value {
    let mut map = Map::new();
    map.insert("type".to_owned(), (&policy.type_name).into());
    if !policy.targets.is_empty() {
        map.insert("targets".to_owned(), policy.targets.clone().into());
        let kind = if policy.of_groups { "groups" } else { "node_templates" };
        map.insert("targets_type".to_owned(), kind.into());
    }
    put_map(&mut map, "properties", policy.properties.clone().unwrap_or_default());
    if !policy.triggers.is_empty() {
        map.insert("triggers".to_owned(), policy.triggers.keys().collect());
    }
    map.into()
}
