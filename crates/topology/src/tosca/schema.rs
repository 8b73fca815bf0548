//! Values and their definitions: types, entries, constraints.

use std::cmp::Ordering;

use kiln_value::{Map, Path, Pattern, Value, number, text, value};

use super::function::is_function;
use super::reader::Reader;
use super::scalar::Scalar;
use super::types::Section;

/// Data types that contain each other deeper than this are not checked further.
const MAX_DEPTH: usize = 100;

impl Reader<'_> {
    /// The value of a property or input in its usual form. Functions are not checked here.
    pub(super) fn checked(&self, name: &str, schema: &Value, value: &Value, at: &Path) -> Value {
        let Some(type_name) = self.schema_type(name, schema, at) else { return value.clone() };
        if is_function(value) {
            return value.clone();
        }
        let value = if type_name == "string" { Value::Str(text::str(value)) } else { value.clone() };
        let value = self.of_type(type_name, schema, &value, name, at, 0);
        self.constrain(name, type_name, schema.get("constraints"), &value, at);
        value
    }

    /// The type that a definition says.
    fn schema_type<'s>(&self, name: &str, schema: &'s Value, at: &Path) -> Option<&'s str> {
        let found = schema.as_str().or_else(|| schema.str_at("type"));
        if found.is_none() {
            self.refuse("bad-schema", at, format!("The definition of \"{name}\" must have a \"type\"."));
        }
        found
    }

    fn refuse_value(&self, value: &Value, what: &str, at: &Path) {
        self.refuse("bad-value", at, format!("\"{}\" is not {what}.", text::str(value)));
    }

    /// The value of a type in its usual form.
    fn of_type(&self, type_name: &str, schema: &Value, value: &Value, name: &str, at: &Path, depth: usize) -> Value {
        if is_function(value) || depth > MAX_DEPTH {
            return value.clone();
        }
        let plain = type_name.strip_prefix("tosca:").unwrap_or(type_name);
        if let Some(scalar) = Scalar::named(plain) {
            return scalar.normal(value).map_or_else(
                || {
                    self.refuse_value(value, "a valid scalar-unit", at);
                    value.clone()
                },
                Value::Str,
            );
        }
        let fits = match plain {
            "string" => value.as_str().is_some(),
            "integer" => match integer(value) {
                Some(integer) => return integer,
                None => false,
            },
            "float" | "number" => matches!(value, Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Bool(_)),
            "boolean" => match boolean(value) {
                Some(boolean) => return boolean.into(),
                None => false,
            },
            "range" => is_range(value),
            "timestamp" | "version" => !matches!(value, Value::List(_) | Value::Map(_) | Value::Null),
            "list" => value.as_list().is_some(),
            "map" => value.as_map().is_some(),
            "json" | "xml" | "bytes" | "nil" => true,
            _ => return self.of_data_type(type_name, value, name, at, depth),
        };
        if !fits {
            let article = if plain == "integer" { "an" } else { "a" };
            self.refuse_value(value, &format!("{article} {plain}"), at);
            return value.clone();
        }
        if plain == "version" {
            return Value::Str(version(&text::str(value)));
        }
        self.check_entries(schema, value, name, at, depth);
        value.clone()
    }

    fn check_entries(&self, schema: &Value, value: &Value, name: &str, at: &Path, depth: usize) {
        let check = |schema: &Value, value: &Value, at: &Path| {
            if let Some(type_name) = self.schema_type(name, schema, at) {
                self.of_type(type_name, schema, value, name, at, depth + 1);
                self.constrain(name, type_name, schema.get("constraints"), value, at);
            }
        };
        let entry = schema.get("entry_schema").filter(|entry| !entry.is_null());
        match value {
            Value::List(items) => {
                let Some(entry) = entry else { return };
                items.iter().enumerate().for_each(|(i, item)| check(entry, item, &at.index(i)));
            }
            Value::Map(entries) => {
                let keys = schema.get("key_schema").filter(|keys| !keys.is_null());
                for (key, value) in entries {
                    if let Some(keys) = keys {
                        check(keys, &Value::from(key), &at.key(key));
                    }
                    if let Some(entry) = entry {
                        check(entry, value, &at.key(key));
                    }
                }
            }
            _ => {}
        }
    }

    /// A value of a data type; missing fields get their defaults.
    fn of_data_type(&self, type_name: &str, value: &Value, name: &str, at: &Path, depth: usize) -> Value {
        let Some(kind) = self.types.find(Section::Data, type_name) else {
            self.refuse("unknown-type", at, format!("No type is named \"{type_name}\"."));
            return value.clone();
        };
        let simple = kind.line[0].get("type").and_then(Value::as_str);
        let derived = kind.ancestors.last().map(String::as_str).filter(|last| !last.contains('.'));
        if let Some(base) = simple.or(derived.filter(|_| kind.properties.is_empty())) {
            let definition = Value::Map(kind.line[0].clone());
            let value = self.of_type(base, &definition, value, name, at, depth + 1);
            self.constrain(name, base, kind.line[0].get("constraints"), &value, at);
            return value;
        }
        let Some(fields) = value.as_map() else {
            let shown = text::str(value);
            self.refuse("wrong-shape", at, format!("\"{shown}\" must be a map: \"{}\" is a data type.", kind.name));
            return value.clone();
        };
        let mut fields = fields.clone();
        for field in fields.keys().filter(|field| !kind.properties.contains_key(*field)) {
            let message = format!("A value of type \"{}\" has no field \"{field}\".", kind.name);
            self.refuse("unknown-field", &at.key(field), message);
        }
        let mut missing = Vec::new();
        for (field, schema) in &kind.properties {
            if fields.contains_key(field) {
                continue;
            }
            match schema.get("default").filter(|default| default.is_truthy()) {
                Some(default) => drop(fields.insert(field.clone(), default.clone())),
                None if is_required(schema) => missing.push(field.as_str()),
                None => {}
            }
        }
        if !missing.is_empty() {
            let message =
                format!("A value of type \"{}\" must have the field \"{}\".", kind.name, missing.join("\", \""));
            self.refuse("missing-field", at, message);
        }
        for (field, value) in &fields {
            let Some(schema) = kind.properties.get(field) else { continue };
            let at = at.key(field);
            let Some(type_name) = self.schema_type(field, schema, &at) else { continue };
            self.of_type(type_name, schema, value, field, &at, depth + 1);
            self.constrain(field, type_name, schema.get("constraints"), value, &at);
        }
        if kind.name == "tosca.datatypes.network.PortSpec" {
            self.check_port_spec(&fields, at);
        }
        fields.into()
    }

    /// What a port specification demands beyond its fields: a port or a range, and ports in their ranges.
    fn check_port_spec(&self, fields: &Map, at: &Path) {
        let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let ends = [("source", "source_range"), ("target", "target_range")];
        if ends.iter().all(|(port, range)| given(port).is_none() && given(range).is_none()) {
            let message = "A port specification must have a source, a target or a range of them.".to_owned();
            self.refuse("missing-field", at, message);
        }
        for (name, range) in ends {
            if let (Some(port), Some(range)) = (given(name), given(range)) {
                let constraint = value!([{"in_range": (range.clone())}]);
                self.constrain(name, "integer", Some(&constraint), port, &at.key(name));
            }
        }
    }

    /// Checks the constraints of a definition.
    pub(super) fn constrain(&self, name: &str, type_name: &str, constraints: Option<&Value>, value: &Value, at: &Path) {
        if is_function(value) {
            return;
        }
        for constraint in constraints.and_then(Value::as_list).into_iter().flatten() {
            let entry = constraint.as_map().filter(|map| map.len() == 1).and_then(|map| map.first());
            let Some((operator, wanted)) = entry else {
                self.refuse("bad-schema", at, format!("A constraint of \"{name}\" must have one operator."));
                continue;
            };
            match holds(operator, wanted, value, type_name) {
                Some(true) => {}
                Some(false) => {
                    let message = format!(
                        "The value \"{}\" of property \"{name}\" does not satisfy {operator}: \"{}\".",
                        text::str(value),
                        text::str(wanted)
                    );
                    self.refuse("invalid", at, message);
                }
                None => {
                    let message = format!("The constraint \"{operator}\" of \"{name}\" is not valid for {type_name}.");
                    self.refuse("bad-schema", at, message);
                }
            }
        }
    }
}

/// The operators of constraints.
const OPERATORS: [&str; 12] = [
    "equal",
    "greater_than",
    "greater_or_equal",
    "less_than",
    "less_or_equal",
    "in_range",
    "valid_values",
    "length",
    "min_length",
    "max_length",
    "pattern",
    "schema",
];

impl Reader<'_> {
    /// Checks the constraints of a definition without a value.
    pub(super) fn check_operators(&self, name: &str, schema: &Value, at: &Path) {
        for (i, constraint) in schema.get("constraints").and_then(Value::as_list).into_iter().flatten().enumerate() {
            let at = at.index(i);
            let Some((operator, wanted)) = constraint.as_map().filter(|map| map.len() == 1).and_then(|map| map.first())
            else {
                self.refuse("bad-schema", &at, format!("A constraint of \"{name}\" must have one operator."));
                continue;
            };
            if !OPERATORS.contains(&operator.as_str()) {
                let message = format!("No operator of constraints is named \"{operator}\".");
                self.refuse_word("bad-schema", &at, message, operator, OPERATORS);
            } else if operator == "pattern" && wanted.as_str().is_none_or(|text| Pattern::new(text).is_err()) {
                self.refuse("bad-schema", &at, format!("\"{}\" is not a pattern.", text::str(wanted)));
            }
        }
    }
}

/// Whether a definition demands a value.
pub(crate) fn is_required(schema: &Value) -> bool {
    schema.get("required").and_then(Value::as_bool) != Some(false)
}

fn integer(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) | Value::BigInt(_) | Value::Bool(_) => Some(value.clone()),
        Value::Str(text) => number::parse_int(text),
        Value::Float(float) if float.fract() == 0.0 => number::parse_int(&format!("{float:.0}")),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(bool) => Some(*bool),
        Value::Str(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::Str(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn is_range(value: &Value) -> bool {
    let Some([from, to]) = value.as_list() else { return false };
    let unbounded = |end: &Value| end.as_str() == Some("UNBOUNDED");
    let is_number = |end: &Value| matches!(end, Value::Int(_) | Value::BigInt(_) | Value::Float(_));
    let ends = (unbounded(from) || is_number(from)) && (unbounded(to) || is_number(to));
    ends && number::compare(from, to) != Some(Ordering::Greater)
}

/// A version with at least two numbers: `2` is `2.0`.
fn version(text: &str) -> String {
    let whole = text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() && text != "0";
    if whole { format!("{text}.0") } else { text.to_owned() }
}

/// Whether a value satisfies a constraint; `None` if the operator does not exist or does not fit the type.
fn holds(operator: &str, wanted: &Value, value: &Value, type_name: &str) -> Option<bool> {
    let scalar = Scalar::named(type_name);
    let amount = |value: &Value| match scalar {
        Some(scalar) => scalar.amount(value).map_or(Value::Null, Value::Float),
        None => value.clone(),
    };
    let compared = |wanted: &Value| number::compare(&amount(value), &amount(wanted));
    let length = || match value {
        Value::Str(text) => Some(text.chars().count()),
        Value::List(items) => Some(items.len()),
        Value::Map(entries) => Some(entries.len()),
        _ => None,
    };
    let limit = || wanted.as_i64().and_then(|limit| usize::try_from(limit).ok());
    Some(match operator {
        "equal" => amount(value) == amount(wanted),
        "greater_than" => compared(wanted) == Some(Ordering::Greater),
        "greater_or_equal" => matches!(compared(wanted), Some(Ordering::Greater | Ordering::Equal)),
        "less_than" => compared(wanted) == Some(Ordering::Less),
        "less_or_equal" => matches!(compared(wanted), Some(Ordering::Less | Ordering::Equal)),
        "in_range" => {
            let [from, to] = wanted.as_list()? else { return None };
            let unbounded = |end: &Value| end.as_str() == Some("UNBOUNDED");
            // A range is in a range if both of its ends are.
            let inside = |value: &Value| {
                let least =
                    unbounded(from) || number::compare(&amount(value), &amount(from)).is_some_and(Ordering::is_ge);
                let most = unbounded(to) || number::compare(&amount(value), &amount(to)).is_some_and(Ordering::is_le);
                least && most
            };
            match value {
                Value::List(ends) => ends.iter().all(|end| unbounded(end) || inside(end)),
                value => inside(value),
            }
        }
        "valid_values" => {
            let valid = wanted.as_list()?;
            match value {
                Value::List(items) => items.iter().all(|item| valid.contains(item)),
                value => valid.contains(value),
            }
        }
        "length" => length()? == limit()?,
        "min_length" => length()? >= limit()?,
        "max_length" => length()? <= limit()?,
        "pattern" => Pattern::new(wanted.as_str()?).ok()?.matches_all(value.as_str()?),
        "schema" => true,
        _ => return None,
    })
}

/// The value of a key that must be a map; other values are refused.
pub(super) fn map_at<'v>(reader: &Reader<'_>, of: &'v Map, key: &str, at: &Path) -> Option<&'v Map> {
    match of.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::Map(map)) => Some(map),
        Some(_) => {
            reader.refuse("wrong-shape", &at.key(key), format!("\"{key}\" must be a map."));
            None
        }
    }
}
