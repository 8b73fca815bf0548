//! The inputs and outputs of software configs.

use kiln_value::{Map, Value, text};
use kiln_yaml::json;

/// An input or output is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSchema(String);

/// The types of inputs and outputs.
const TYPES: [&str; 5] = ["String", "Number", "CommaDelimitedList", "Json", "Boolean"];

/// Inputs as they are stored: with their type, and the default converted to it.
pub fn inputs(given: Vec<Value>) -> Result<Vec<Value>, InvalidSchema> {
    given.into_iter().map(input).collect()
}

/// Outputs as they are stored.
pub fn outputs(given: Vec<Value>) -> Result<Vec<Value>, InvalidSchema> {
    given.into_iter().map(output).collect()
}

fn input(given: Value) -> Result<Value, InvalidSchema> {
    let mut given = entries(given, &["name", "description", "type", "default", "replace_on_change", "value"])?;
    let value = given.shift_remove("value");
    let default = match (given.shift_remove("default"), given.get("type").and_then(Value::as_str)) {
        // Heat keeps the empty default of older clients.
        (Some(default), Some(kind)) if default.as_str() == Some("") && kind != "String" => Some(default),
        (Some(default), Some(kind)) if !default.is_null() => Some(convert(default, kind)?),
        (default, _) => default,
    };
    let replaces = flag(&mut given, "replace_on_change")?;
    let mut stored = common(given)?;
    stored.extend(default.filter(|default| !default.is_null()).map(|default| ("default".to_owned(), default)));
    stored.extend(replaces.then(|| ("replace_on_change".to_owned(), true.into())));
    stored.extend(value.map(|value| ("value".to_owned(), value)));
    Ok(stored.into())
}

fn output(given: Value) -> Result<Value, InvalidSchema> {
    let mut given = entries(given, &["name", "description", "type", "error_output"])?;
    let is_error = flag(&mut given, "error_output")?;
    let mut stored = common(given)?;
    stored.insert("error_output".to_owned(), is_error.into());
    Ok(stored.into())
}

/// The entries of an input or output, if all of them are known.
fn entries(given: Value, known: &[&str]) -> Result<Map, InvalidSchema> {
    let Value::Map(given) = given else { return Err(invalid("Software Config I/O Schema must be a dict")) };
    match given.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(invalid(format!("Unknown Property {key}"))),
        None => Ok(given),
    }
}

/// Name, description and type.
fn common(mut given: Map) -> Result<Map, InvalidSchema> {
    let mut text_at = |key: &str| given.shift_remove(key).filter(|value| !value.is_null()).map(scalar).transpose();
    let name = text_at("name")?.ok_or_else(|| invalid("Property name not assigned"))?;
    let description = text_at("description")?;
    let kind = text_at("type")?.unwrap_or_else(|| "String".to_owned());
    if !TYPES.contains(&kind.as_str()) {
        return Err(invalid(format!("\"{kind}\" is not an allowed value {TYPES:?}")));
    }
    let mut stored = Map::from_iter([("name".to_owned(), name.into())]);
    stored.extend(description.map(|description| ("description".to_owned(), description.into())));
    stored.insert("type".to_owned(), kind.into());
    Ok(stored)
}

fn flag(given: &mut Map, key: &str) -> Result<bool, InvalidSchema> {
    match given.shift_remove(key) {
        None | Some(Value::Null) => Ok(false),
        Some(value) => boolean(&value),
    }
}

fn boolean(value: &Value) -> Result<bool, InvalidSchema> {
    match text::str(value).to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(format!("\"{}\" is not a valid boolean", text::str(value)))),
    }
}

fn scalar(value: Value) -> Result<String, InvalidSchema> {
    match value {
        Value::Str(text) => Ok(text),
        Value::Bool(_) | Value::Int(_) | Value::BigInt(_) => Ok(text::str(&value)),
        _ => Err(invalid("Value must be a string")),
    }
}

/// A default as a value of its type.
fn convert(value: Value, kind: &str) -> Result<Value, InvalidSchema> {
    let parsed = |text: &str| json::parse(text).ok();
    match (kind, value) {
        ("Number", value @ (Value::Int(_) | Value::BigInt(_) | Value::Float(_))) => Ok(value),
        ("Number", Value::Str(text)) => match parsed(&text) {
            Some(number @ (Value::Int(_) | Value::BigInt(_) | Value::Float(_))) => Ok(number),
            _ => Err(invalid(format!("Value '{text}' is not a number"))),
        },
        ("CommaDelimitedList", value @ Value::List(_)) | ("Json", value @ (Value::Map(_) | Value::List(_))) => {
            Ok(value)
        }
        ("CommaDelimitedList", Value::Str(text)) => Ok(text.split(',').map(|item| Value::from(item.trim())).collect()),
        ("Json", Value::Str(text)) => match parsed(&text) {
            Some(value @ (Value::Map(_) | Value::List(_))) => Ok(value),
            _ => Err(invalid(format!("Value must be valid JSON: {text}"))),
        },
        ("Boolean", value) => boolean(&value).map(Value::from),
        ("String", value) => scalar(value).map(Value::from),
        (kind, value) => Err(invalid(format!("{} is not a value of type {kind}", text::str(&value)))),
    }
}

fn invalid(text: impl Into<String>) -> InvalidSchema {
    InvalidSchema(text.into())
}
