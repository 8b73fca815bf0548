//! Substitution mappings: a topology that stands for a node.

use kiln_value::{Map, Path, Value};

use super::reader::Reader;
use super::schema::is_required;
use super::types::Section;
use crate::graph::{Graph, Node};

const KEYS: [&str; 7] =
    ["node_type", "requirements", "capabilities", "properties", "attributes", "interfaces", "substitution_filter"];

impl Reader<'_> {
    /// Checks the mappings against the type of the node, and the node that they stand for.
    pub(super) fn check_substitution(&self, mappings: &Map, at: &Path, graph: &Graph, node: Option<&Node>) {
        self.check_keys("SubstitutionMappings", mappings, &KEYS, at);
        let Some(type_name) = mappings.get("node_type").and_then(Value::as_str) else {
            let message = "SubstitutionMappings of a topology must have the field \"node_type\".";
            return self.refuse("missing-field", at, message);
        };
        let Some(kind) = self.kind(Section::Node, type_name, &at.key("node_type")) else { return };
        let place = at.key("node_type");
        let has_input = |name: &str| graph.inputs.iter().any(|input| input.name == name);
        let needed =
            kind.properties.iter().filter(|(_, schema)| is_required(schema) && schema.get("default").is_none());
        for (property, _) in needed.filter(|(property, _)| !has_input(property)) {
            let message =
                format!("The topology for {type_name} must have the input \"{property}\", which is required.");
            self.refuse("missing-input", &place, message);
        }
        for property in node.into_iter().flat_map(|node| node.properties.keys()) {
            if kind.properties.contains_key(property) && !has_input(property) {
                let message =
                    format!("The topology for {type_name} must have the input \"{property}\", which is given.");
                self.refuse("missing-input", &place, message);
            }
        }
        for input in &graph.inputs {
            let has_value = input.definition.get("default").is_some_and(|default| !default.is_null());
            if !kind.properties.contains_key(&input.name) && !has_value {
                let message =
                    format!("The input \"{}\" must have a default: {type_name} has no such property.", input.name);
                self.refuse("missing-default", &input.at, message);
            }
        }
        for output in graph.outputs.iter().filter(|output| !kind.attributes.contains_key(&output.name)) {
            let message = format!("The output \"{}\" is not an attribute of {type_name}.", output.name);
            self.refuse("unknown-output", &output.at, message);
        }
        self.check_filter(mappings, at);
    }

    fn check_filter(&self, mappings: &Map, at: &Path) {
        let at = at.key("substitution_filter");
        for (key, value) in mappings.get("substitution_filter").and_then(Value::as_map).into_iter().flatten() {
            let at = at.key(key);
            if key != "node_filter" {
                let message = "SubstitutionMappings have no such field in \"substitution_filter\".";
                self.refuse("unknown-field", &at, message);
            }
            let Some(filter) = value.as_map() else { continue };
            if filter.keys().any(|name| !["properties", "capabilities"].contains(&name.as_str())) {
                self.refuse("unknown-field", &at, format!("SubstitutionMappings have an unknown field in \"{key}\"."));
            }
            for name in ["properties", "capabilities"] {
                if filter.get(name).is_some_and(|conditions| conditions.as_list().is_none()) {
                    let message = format!("The {name} of a node filter must be a \"list\".");
                    self.refuse("wrong-shape", &at.key(name), message);
                }
            }
        }
    }
}
