//! Parses templates and environments as python-heatclient does.

use kiln_template::hint::nearest;
use kiln_value::{Map, Position, Span, Spans, Value};

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
pub(crate) fn template(text: &str) -> Result<(Value, Spans), Fault> {
    // Python strips the text first; only leading white space matters for positions.
    let start = text.trim_start();
    let (value, spans) = if start.starts_with('{') {
        kiln_yaml::json::parse_with_spans(text.trim_end())?
    } else {
        let document = kiln_yaml::parse(text.trim_end())?;
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
    if versioned { Ok((value, spans)) } else { Err(Fault::without_version(&value, &spans)) }
}

/// Why a document cannot be read.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The text of python-heatclient.
    pub(crate) reason: String,
    /// Where.
    pub(crate) span: Option<Span>,
    /// What helps.
    pub(crate) hint: Option<String>,
}

impl Fault {
    fn without_version(value: &Value, spans: &Spans) -> Self {
        let keys = value.as_map().into_iter().flat_map(Map::keys).zip(&spans.children);
        let mut near = keys.filter_map(|(key, spans)| Some((nearest(key, VERSION_KEYS)?, spans.key)));
        let (span, hint) = match near.next() {
            Some((near, span)) => (span, format!("did you mean {near}?")),
            None => (None, "a template needs a version, such as heat_template_version: 2018-08-31".to_owned()),
        };
        Self { reason: "Template format version not found.".to_owned(), span, hint: Some(hint) }
    }
}

impl From<kiln_yaml::Error> for Fault {
    fn from(error: kiln_yaml::Error) -> Self {
        let is_tab = error.message.contains("'\\t' that cannot start any token");
        let hint = is_tab.then(|| "YAML does not allow tabs for indentation: use spaces".to_owned());
        let span = error.position.map(|start| Span { start, end: Position { column: start.column + 1, ..start } });
        Self { reason: error.message, span, hint }
    }
}

impl From<kiln_yaml::json::JsonError> for Fault {
    fn from(error: kiln_yaml::json::JsonError) -> Self {
        let start = error.position;
        let span = Some(Span { start, end: Position { column: start.column + 1, ..start } });
        Self { reason: error.to_string(), span, hint: None }
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), span: None, hint: None }
    }
}

/// Parses an environment, which may only have known sections, with the positions of its parts.
pub(crate) fn environment(text: &str) -> Result<(Map, Spans), Fault> {
    let document = kiln_yaml::parse(text)?;
    let entries = match document.value {
        Value::Null => Map::new(),
        Value::Map(entries) => entries,
        _ => return Err("The environment is not a valid YAML mapping data type.".into()),
    };
    let wrong = entries.keys().zip(&document.spans.children);
    match wrong.into_iter().find(|(key, _)| !ENVIRONMENT_SECTIONS.contains(&key.as_str())) {
        Some((wrong, spans)) => Err(Fault {
            reason: format!("environment has wrong section \"{wrong}\""),
            span: spans.key,
            hint: nearest(wrong, ENVIRONMENT_SECTIONS).map(|near| format!("did you mean {near}?")),
        }),
        None => Ok((entries, document.spans)),
    }
}
