//! Parameters of a template.

use kiln_value::{Map, Value, text};

/// A parameter as it is described by the validate call; `as_summary` adds type and allowed values.
pub(crate) fn parameter(name: &str, about: &Value, as_summary: bool) -> Value {
    let mut shown = Map::from([("ParameterKey".to_owned(), name.into())]);
    let default = about.get("Default").map(|default| plain(default).into());
    shown.extend(default.map(|default| ("DefaultValue".to_owned(), default)));
    for key in ["Description", "NoEcho"] {
        shown.insert(key.to_owned(), about.get(key).cloned().unwrap_or_default());
    }
    if as_summary {
        shown.insert("ParameterType".to_owned(), about.get("Type").cloned().unwrap_or_default());
        if let Some(Value::List(allowed)) = about.get("AllowedValues") {
            let allowed: Value = allowed.iter().map(plain).collect();
            let constraints = Map::from([("AllowedValues".to_owned(), allowed)]);
            shown.insert("ParameterConstraints".to_owned(), constraints.into());
        }
    }
    shown.into()
}

/// A value as a text.
fn plain(value: &Value) -> String {
    match value {
        Value::Map(_) | Value::List(_) => text::json(value),
        other => text::str(other),
    }
}
