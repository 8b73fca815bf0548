//! Map functions: `map_merge`, `map_replace`.

use kiln_value::{Class, Diagnostic, Map, Value, text};

use super::{Function, fault};
use crate::expr::{Call, Context};

/// `map_merge`: later maps take precedence; null members count as empty.
#[derive(Debug)]
pub(crate) struct Merge;

impl Function for Merge {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let maps = match call.resolved_args(context)? {
            Value::List(maps) => maps,
            // In Python a string is a sequence: an empty one contains no maps, others contain strings.
            Value::Str(text) => text.chars().map(|c| Value::Str(c.to_string())).collect(),
            _ => {
                return Err(fault::type_error(format!(
                    "Incorrect arguments to \"{name}\" should be: \"{name}\" : [ {{ \"key1\": \"val1\" }}, {{ \
                     \"key2\": \"val2\" }} ]"
                )));
            }
        };
        let mut merged = Map::new();
        for map in maps {
            match map {
                Value::Null => {}
                Value::Map(map) => merged.extend(map),
                other => {
                    let shown: String = text::repr(&other).chars().take(200).collect();
                    let kind = other.kind().python_name();
                    return Err(fault::type_error(format!(
                        "Incorrect arguments: Items to merge must be maps. {shown} is type <class '{kind}'> instead of a \
                         dict"
                    )));
                }
            }
        }
        Ok(Some(Value::Map(merged)))
    }
}

/// `map_replace`: replaces keys and values as two maps specify; colliding keys are refused.
#[derive(Debug)]
pub(crate) struct Replace;

impl Replace {
    fn example(name: &str) -> String {
        format!(
            "\"{name}\" : [ {{ \"key1\": \"val1\" }}, {{\"keys\": {{\"key1\": \"key2\"}}, \"values\": {{\"val1\": \
             \"val2\"}}}}]"
        )
    }

    fn map(name: &str, value: Value) -> Result<Map, Diagnostic> {
        match value {
            Value::Null => Ok(Map::new()),
            Value::Map(map) => Ok(map),
            _ => Err(fault::type_error(format!(
                "Incorrect arguments: to \"{name}\", arguments must be a list of maps. Example:  {}",
                Self::example(name)
            ))),
        }
    }
}

impl Function for Replace {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let usage = || format!("Incorrect arguments to \"{name}\" should be: {}", Self::example(name));
        let mut args = match call.resolved_args(context)? {
            Value::List(args) => args.into_iter(),
            // Python looks up the key 0 in the map.
            Value::Map(_) => return Err(Diagnostic::new(Class::KeyError, "0")),
            _ => return Err(fault::type_error(usage())),
        };
        let mut next = || args.next().map(|arg| Self::map(name, arg)).transpose();
        let (Some(input), Some(mut replacements)) = (next()?, next()?) else {
            return Err(fault::type_error(usage()));
        };
        if args.next().is_some() {
            return Err(fault::type_error(usage()));
        }
        if replacements.keys().any(|key| key != "keys" && key != "values") {
            return Err(fault::value_error(usage()));
        }
        let keys = Self::map(name, replacements.swap_remove("keys").unwrap_or_default())?;
        let values = Self::map(name, replacements.swap_remove("values").unwrap_or_default())?;
        let mut output = Map::with_capacity(input.len());
        for (key, value) in &input {
            let new_key = match keys.get(key) {
                None | Some(Value::Null) => key.clone(),
                Some(new_key) => {
                    fault::check_hashable(new_key)?;
                    let new_key = key_text(new_key);
                    if new_key != *key && input.contains_key(&new_key) {
                        return Err(collision(&new_key, "input"));
                    }
                    if output.contains_key(&new_key) {
                        return Err(collision(&new_key, "output"));
                    }
                    new_key
                }
            };
            let replacement = value.as_str().and_then(|text| values.get(text));
            if let Some(replacement) = replacement {
                context.spend(call, replacement.size())?;
            }
            let new_value = replacement.unwrap_or(value);
            output.insert(new_key, new_value.clone());
        }
        Ok(Some(Value::Map(output)))
    }
}

/// A key as JSON writes it.
fn key_text(key: &Value) -> String {
    match key {
        Value::Str(key) => key.clone(),
        other => text::json(other),
    }
}

fn collision(key: &str, map: &str) -> Diagnostic {
    fault::value_error(format!("key replacement {key} collides with a key in the {map} map"))
}
