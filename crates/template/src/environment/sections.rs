//! Parsing of environments and their sections.

use kiln_value::{Class, Diagnostic, Map, Value};

use crate::source;

/// The sections of an environment.
pub const SECTIONS: [&str; 6] = [
    "parameters",
    "resource_registry",
    "parameter_defaults",
    "encrypted_param_names",
    "event_sinks",
    "parameter_merge_strategies",
];

/// Parses an environment. An empty text has no sections.
///
/// Errors: `ValueError` with the message of the YAML parser, or if it is not a map of known sections.
pub fn parse(text: &str) -> Result<Map, Diagnostic> {
    let document = kiln_yaml::parse(text).map_err(|error| source::diagnostic(&error, error.message.clone()))?;
    match document.value {
        Value::Null => Ok(Map::new()),
        Value::Map(sections) => {
            validate(&sections)?;
            Ok(sections)
        }
        _ => value_error("The environment is not a valid YAML mapping data type.".to_owned()),
    }
}

/// Checks that all sections are known and not null.
///
/// Errors: `ValueError` for the first that is not.
pub fn validate(sections: &Map) -> Result<(), Diagnostic> {
    for (name, section) in sections {
        if !SECTIONS.contains(&name.as_str()) {
            return value_error(format!("environment has wrong section \"{name}\""));
        }
        if section.is_null() {
            return value_error(format!("environment has empty section \"{name}\""));
        }
    }
    Ok(())
}

/// Adds the missing sections, empty.
pub fn fill(sections: &mut Map) {
    for name in SECTIONS.into_iter().filter(|name| *name != "parameter_merge_strategies") {
        sections.entry(name.to_owned()).or_insert_with(|| match name {
            "encrypted_param_names" | "event_sinks" => Value::List(Vec::new()),
            _ => Value::Map(Map::new()),
        });
    }
}

/// The sections of a request to create or update a stack: its `environment` (text or map; ignored if the request has
/// `environment_files`), completed with empty sections, and with its `parameters`, which take precedence.
///
/// Errors: as [`parse`].
pub fn from_request(environment: Option<&Value>, parameters: &Map) -> Result<Map, Diagnostic> {
    let mut sections = match environment {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Str(text)) => parse(text)?,
        Some(Value::Map(sections)) => {
            validate(sections)?;
            sections.clone()
        }
        Some(_) => return value_error("The environment is not a valid YAML mapping data type.".to_owned()),
    };
    fill(&mut sections);
    match sections.get_mut("parameters") {
        Some(Value::Map(own)) => own.extend(parameters.clone()),
        _ => return value_error("environment section \"parameters\" must be a map".to_owned()),
    }
    Ok(sections)
}

fn value_error<T>(message: String) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Class::ValueError, message))
}
