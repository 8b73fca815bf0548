//! Parses templates and environments as python-heatclient does.

use kiln_value::{Map, Spans, Value};

/// The sections that an environment may have.
const ENVIRONMENT_SECTIONS: [&str; 6] = [
    "parameter_defaults",
    "parameters",
    "resource_registry",
    "encrypted_param_names",
    "event_sinks",
    "parameter_merge_strategies",
];

/// The version keys of templates.
const VERSION_KEYS: [&str; 3] = ["HeatTemplateFormatVersion", "heat_template_version", "AWSTemplateFormatVersion"];

/// Parses a template, YAML or JSON with a version, with the positions of its parts.
pub(crate) fn template(text: &str) -> Result<(Value, Spans), String> {
    // Python strips the text first; only leading white space matters for positions.
    let start = text.trim_start();
    let (value, spans) = if start.starts_with('{') {
        kiln_yaml::json::parse_with_spans(text.trim_end()).map_err(|error| error.to_string())?
    } else {
        let document = kiln_yaml::parse(text.trim_end()).map_err(|error| error.to_string())?;
        (document.value, document.spans)
    };
    let value = if value.is_null() { Map::new().into() } else { value };
    // The reference client checks `key in template`, which for a string means "contains".
    let versioned = VERSION_KEYS.iter().any(|key| match &value {
        Value::Map(entries) => entries.contains_key(*key),
        Value::List(items) => items.iter().any(|item| item.as_str() == Some(key)),
        Value::Str(text) => text.contains(key),
        _ => false,
    });
    if versioned { Ok((value, spans)) } else { Err("Template format version not found.".to_owned()) }
}

/// Parses an environment, which may only have known sections.
pub(crate) fn environment(text: &str) -> Result<Map, String> {
    let value = kiln_yaml::parse(text).map_err(|error| error.to_string())?.value;
    let entries = match value {
        Value::Null => Map::new(),
        Value::Map(entries) => entries,
        _ => return Err("The environment is not a valid YAML mapping data type.".to_owned()),
    };
    match entries.keys().find(|key| !ENVIRONMENT_SECTIONS.contains(&key.as_str())) {
        Some(wrong) => Err(format!("environment has wrong section \"{wrong}\"")),
        None => Ok(entries),
    }
}
