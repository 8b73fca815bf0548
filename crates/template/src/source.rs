//! Parsing of templates.

use kiln_value::{Class, Diagnostic, Map, Span, Spans, Value};
use kiln_yaml::{Document, ErrorKind, json};

use crate::hint::nearest;

/// Default of `max_template_size`, in characters.
pub const MAX_TEMPLATE_SIZE: usize = 524_288;

/// The version keys of templates.
pub const VERSION_KEYS: [&str; 3] = ["HeatTemplateFormatVersion", "heat_template_version", "AWSTemplateFormatVersion"];

/// The name of the root template in messages; nested ones are named by their URL.
pub const ROOT: &str = "[root stack]";

/// Parses the text of a template, JSON first, then YAML (docs/heat-behaviour.md §4), and checks that it has a version
/// key.
///
/// `limit` is in characters. Errors: `RequestLimitExceeded` for a longer text; `ValueError` with `template` (a URL or
/// [`ROOT`]) and the message of the YAML parser, or if it is not a map with a version.
pub fn parse(text: &str, template: &str, limit: usize) -> Result<Document, Diagnostic> {
    let size = text.chars().count();
    if size > limit {
        let message = format!(
            "Request limit exceeded: Template size ({size} bytes) exceeds maximum allowed size ({limit} bytes)."
        );
        return Err(Diagnostic::new(Class::RequestLimitExceeded, message));
    }
    let document = read(text, template)?;
    let Value::Map(sections) = &document.value else {
        return Err(Diagnostic::new(Class::ValueError, "The template is not a JSON object or YAML mapping."));
    };
    if VERSION_KEYS.iter().any(|key| sections.contains_key(*key)) {
        Ok(document)
    } else {
        Err(without_version(&document.value, &document.spans))
    }
}

/// The error of a template without a version key: at the key that is nearly one, if there is one.
pub fn without_version(template: &Value, spans: &Spans) -> Diagnostic {
    let error = Diagnostic::new(Class::ValueError, "Template format version not found.");
    let mut keys = template.as_map().into_iter().flat_map(Map::keys).zip(&spans.children);
    let Some((near, span)) = keys.find_map(|(key, spans)| Some((nearest(key, VERSION_KEYS)?, spans.key))) else {
        return error.hint("a template needs a version, such as heat_template_version: 2018-08-31");
    };
    let mut error = error.hint(format!("did you mean {near}?"));
    error.span = span;
    error
}

fn read(text: &str, template: &str) -> Result<Document, Diagnostic> {
    if let Ok((value, spans)) = json::parse_with_spans(text) {
        return Ok(Document { value, spans });
    }
    let mut document = kiln_yaml::parse(text).map_err(|error| {
        let message = match error.kind {
            ErrorKind::Syntax => format!("Error parsing template {template} {error}"),
            ErrorKind::Value => error.message.clone(),
        };
        diagnostic(&error, message)
    })?;
    if document.value.is_null() {
        document.value = Value::Map(kiln_value::Map::new());
    }
    Ok(document)
}

/// A `ValueError` at the position where the parser stopped.
pub fn diagnostic(error: &kiln_yaml::Error, message: String) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(Class::ValueError, message);
    diagnostic.span = error.position.map(|at| Span { start: at, end: at });
    if error.message.contains("'\\t' that cannot start any token") {
        return diagnostic.hint("YAML does not allow tabs for indentation: use spaces");
    }
    diagnostic
}
