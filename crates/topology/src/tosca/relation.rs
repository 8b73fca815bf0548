//! Which node fulfils each requirement, and by which relationship.

use std::collections::HashMap;

use kiln_value::{Map, Path, Value};

use super::node::NodeParts;
use super::reader::Reader;
use super::schema::map_at;
use super::types::{Kind, Section};
use crate::graph::{Graph, Operation, Relationship, Target};

impl<'d> Reader<'d> {
    /// Finds the targets of all nodes. `templates` are also those that could not be read.
    pub(super) fn relate(&self, graph: &mut Graph, nodes: &[NodeParts<'d>], templates: &Map) {
        let relationships = std::mem::take(&mut graph.relationships);
        let by_name: HashMap<&str, &Relationship> = relationships.iter().map(|r| (r.name.as_str(), r)).collect();
        for (node, parts) in graph.nodes.iter_mut().zip(nodes) {
            let items = node.requirements.as_ref().and_then(Value::as_list).unwrap_or_default();
            let mut targets = Vec::new();
            for (i, entries) in items.iter().enumerate().filter_map(|(i, item)| Some((i, item.as_map()?))) {
                for (requirement, value) in entries {
                    let at = node.at.key("requirements").index(i).key(requirement);
                    let Some(target) = self.target_name(&node.name, value, templates, &at) else { continue };
                    targets.push(self.read_target(&parts.kind, requirement, value, target, &by_name, &at));
                }
            }
            node.targets = targets;
        }
        graph.relationships = relationships;
    }

    /// The node that a requirement names.
    fn target_name(&self, name: &str, value: &Value, templates: &Map, at: &Path) -> Option<String> {
        let target = value.as_str().or_else(|| value.str_at("node")).filter(|target| !target.is_empty())?;
        if templates.contains_key(target) {
            return Some(target.to_owned());
        }
        if self.types.find(Section::Node, target).is_some() {
            let message = format!("\"{name}\" requires a node of type \"{target}\": name a node template instead.");
            self.refuse("unsupported", at, message);
        } else {
            let message = format!("No node template is named \"{target}\", which \"{name}\" requires.");
            self.refuse_word("unknown-name", at, message, target, templates.keys().map(String::as_str));
        }
        None
    }

    fn read_target(
        &self,
        kind: &Kind<'d>,
        requirement: &str,
        value: &Value,
        node: String,
        templates: &HashMap<&str, &Relationship>,
        at: &Path,
    ) -> Target {
        let defined = kind.requirements.iter().find(|(known, _)| known == requirement);
        let by_type = defined.and_then(|(_, definition)| definition.get("relationship"));
        let at_relationship = at.key("relationship");
        let mut target = Target {
            at: at.clone(),
            requirement: requirement.to_owned(),
            node,
            relationship: None,
            ancestors: Vec::new(),
            properties: Map::new(),
            operations: Vec::new(),
        };
        let given = value.get("relationship").filter(|given| given.is_truthy());
        let name = match given {
            Some(Value::Str(name)) => match templates.get(name.as_str()) {
                Some(template) => {
                    target.properties = template.properties.clone();
                    target.operations = self.operations_of(&template.name, &template.template, at);
                    Some(template.type_name.clone())
                }
                None => Some(name.clone()),
            },
            Some(Value::Map(fields)) => {
                let name = fields.get("type").and_then(Value::as_str).map(str::to_owned);
                if name.is_none() {
                    let message = format!("The \"relationship\" to \"{}\" must have the field \"type\".", target.node);
                    self.refuse("missing-field", &at_relationship, message);
                    return target;
                }
                target.properties = map_at(self, fields, "properties", &at_relationship).cloned().unwrap_or_default();
                target.operations = self.operations_of(&target.node, fields, &at_relationship);
                name
            }
            _ => by_type.and_then(|by| by.as_str().or_else(|| by.str_at("type"))).map(str::to_owned),
        };
        // What the template says may be derived from what the type demands.
        let name = name.or_else(|| by_type.and_then(Value::as_str).map(str::to_owned));
        if let Some(name) = name
            && let Some(kind) = self.kind(Section::Relationship, &name, &at_relationship)
        {
            target.relationship = Some(kind.name.clone());
            target.ancestors.clone_from(&kind.ancestors);
            for (property, schema) in &kind.properties {
                if let Some(default) = schema.get("default").filter(|_| !target.properties.contains_key(property)) {
                    target.properties.insert(property.clone(), default.clone());
                }
            }
        }
        target
    }

    fn operations_of(&self, name: &str, fields: &Map, at: &Path) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (interface, value) in map_at(self, fields, "interfaces", at).into_iter().flatten() {
            let at = at.key("interfaces").key(interface);
            operations.extend(self.read_operations(name, interface, value, None, &at));
        }
        operations
    }
}
