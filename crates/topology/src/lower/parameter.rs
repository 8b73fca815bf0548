//! Inputs become parameters.

use kiln_value::{Map, Value, value};

use super::state::State;
use crate::graph::Input;
use crate::tosca::Scalar;

impl State<'_> {
    pub(super) fn lower_inputs(&mut self) {
        for input in &self.graph.inputs {
            let parameter = Self::parameter(input);
            self.parameters.insert(input.name.clone(), parameter.into());
            let source = self.source(&input.at);
            self.lowered.sources.insert(format!("parameters.{}", input.name), source);
        }
    }

    fn parameter(input: &Input) -> Map {
        let kind = parameter_type(&input.type_name);
        let mut parameter = Map::new();
        parameter.insert("type".to_owned(), kind.into());
        if let Some(text) = input.definition.get("description").and_then(Value::as_str) {
            parameter.insert("description".to_owned(), text.trim_end().into());
        }
        if let Some(default) = input.definition.get("default").filter(|default| !default.is_null()) {
            parameter.insert("default".to_owned(), default.clone());
        } else if !input.required {
            let empty = match kind {
                "number" => Value::Int(0),
                "boolean" => Value::Bool(false),
                "json" => Value::Map(Map::new()),
                "comma_delimited_list" => Value::List(Vec::new()),
                _ => "".into(),
            };
            parameter.insert("default".to_owned(), empty);
        }
        let constraints = input.definition.get("constraints").and_then(Value::as_list).unwrap_or_default();
        let mut lowered: Vec<Value> = Vec::new();
        for (operator, wanted) in constraints.iter().filter_map(Value::as_map).flatten() {
            lowered.extend(constraint(operator, wanted, kind, &input.type_name));
        }
        if !lowered.is_empty() {
            parameter.insert("constraints".to_owned(), lowered.into());
        }
        parameter
    }
}

/// The type of parameters for a type of inputs.
fn parameter_type(name: &str) -> &'static str {
    match name {
        "integer" | "float" | "number" | "PortDef" | "tosca.datatypes.network.PortDef" => "number",
        "boolean" => "boolean",
        "list" | "range" => "json",
        "string" | "timestamp" | "version" | "xml" | "bytes" => "string",
        name if Scalar::named(name).is_some() => "string",
        _ => "json",
    }
}

/// A constraint of a parameter; `None` for those that HOT has no word for, which are checked when the template is read.
fn constraint(operator: &str, wanted: &Value, kind: &str, type_name: &str) -> Option<Value> {
    let is_integer = matches!(type_name, "integer" | "PortDef");
    let beside = |step: i64| wanted.as_i64().filter(|_| is_integer).map(|limit| Value::Int(limit + step));
    match (operator, kind) {
        ("valid_values", "string" | "number") => Some(value!({"allowed_values": wanted})),
        ("equal", "string" | "number") => Some(value!({"allowed_values": [wanted]})),
        ("greater_or_equal", "number") => Some(value!({"range": {"min": wanted}})),
        ("less_or_equal", "number") => Some(value!({"range": {"max": wanted}})),
        ("greater_than", "number") => beside(1).map(|limit| value!({"range": {"min": limit}})),
        ("less_than", "number") => beside(-1).map(|limit| value!({"range": {"max": limit}})),
        ("in_range", "number") => {
            let ends = wanted.as_list()?;
            let mut range = Map::new();
            for (key, end) in ["min", "max"].iter().zip(ends) {
                if end.as_str().is_none() {
                    range.insert((*key).to_owned(), end.clone());
                }
            }
            (!range.is_empty()).then(|| value!({"range": range}))
        }
        ("length", "string") => Some(value!({"length": {"min": wanted, "max": wanted}})),
        ("min_length", "string" | "json") => Some(value!({"length": {"min": wanted}})),
        ("max_length", "string" | "json") => Some(value!({"length": {"max": wanted}})),
        ("pattern", "string") => Some(value!({"allowed_pattern": wanted})),
        _ => None,
    }
}
