//! Inserts inputs into a structured configuration (`OS::Heat::StructuredDeployment`).

use kiln_value::{Class, Diagnostic, Map, Value};

/// The configuration with every `{<input_key>: name}` replaced by that input; values put in are not searched again.
///
/// # Errors
/// `UserParameterMissing` for an input that is not there, if `strict`; else it is null.
pub fn substitute(config: &Value, inputs: &Map, input_key: &str, strict: bool) -> Result<Value, Diagnostic> {
    match config {
        Value::Map(map) => match input_name(map, input_key) {
            Some(name) => match inputs.get(name) {
                Some(value) => Ok(value.clone()),
                None if strict => Err(Diagnostic::new(
                    Class::UserParameterMissing,
                    format!("The Parameter ({name}) was not provided."),
                )),
                None => Ok(Value::Null),
            },
            None => map
                .iter()
                .map(|(key, value)| Ok((key.clone(), substitute(value, inputs, input_key, strict)?)))
                .collect::<Result<Map, _>>()
                .map(Value::Map),
        },
        Value::List(items) => items
            .iter()
            .map(|item| substitute(item, inputs, input_key, strict))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::List),
        other => Ok(other.clone()),
    }
}

/// The name in `{<input_key>: name}`; none for any other map.
fn input_name<'a>(map: &'a Map, input_key: &str) -> Option<&'a str> {
    if map.len() == 1 { map.get(input_key)?.as_str() } else { None }
}
