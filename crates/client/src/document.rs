//! Parses templates and environments as python-heatclient does.

use kiln_template::hint::nearest;
use kiln_template::source::{self, VERSION_KEYS};
use kiln_value::{Class, Diagnostic, Map, Span, Spans, Value};
use kiln_yaml::json;

/// The sections that an environment may have.
const ENVIRONMENT_SECTIONS: [&str; 6] = [
    "parameter_defaults",
    "parameters",
    "resource_registry",
    "encrypted_param_names",
    "event_sinks",
    "parameter_merge_strategies",
];

/// Parses a template, YAML or JSON with a version, with the positions of its parts.
pub(crate) fn template(text: &str) -> Result<(Value, Spans), Diagnostic> {
    // Python strips the text first; only leading white space matters for positions.
    let start = text.trim_start();
    let (value, spans) = if start.starts_with('{') {
        json::parse_with_spans(text.trim_end()).map_err(|error| not_json(&error))?
    } else {
        let document = kiln_yaml::parse(text.trim_end()).map_err(|error| not_yaml(&error))?;
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
    if versioned { Ok((value, spans)) } else { Err(source::without_version(&value, &spans)) }
}

/// An error of the YAML parser. Python-heatclient shows its message alone.
fn not_yaml(error: &kiln_yaml::Error) -> Diagnostic {
    source::diagnostic(error, error.message.clone())
}

fn not_json(error: &json::JsonError) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(Class::ValueError, error.to_string());
    diagnostic.span = Some(Span { start: error.position, end: error.position });
    diagnostic
}

/// Parses an environment, which may only have known sections, with the positions of its parts.
pub(crate) fn environment(text: &str) -> Result<(Map, Spans), Diagnostic> {
    let document = kiln_yaml::parse(text).map_err(|error| not_yaml(&error))?;
    let entries = match document.value {
        Value::Null => Map::new(),
        Value::Map(entries) => entries,
        _ => {
            return Err(Diagnostic::new(Class::ValueError, "The environment is not a valid YAML mapping data type."));
        }
    };
    let wrong = entries.keys().zip(&document.spans.children);
    match wrong.into_iter().find(|(key, _)| !ENVIRONMENT_SECTIONS.contains(&key.as_str())) {
        Some((wrong, spans)) => {
            let error = Diagnostic::new(Class::ValueError, format!("environment has wrong section \"{wrong}\""));
            let near = nearest(wrong, ENVIRONMENT_SECTIONS).map(|near| format!("did you mean {near}?"));
            let mut error = near.into_iter().fold(error, Diagnostic::hint);
            error.span = spans.key;
            Err(error)
        }
        None => Ok((entries, document.spans)),
    }
}
