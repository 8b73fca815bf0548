//! Arguments of requests, parsed as in Heat (`common/param_utils.py`). Clients see the error texts.

use kiln_value::{Class, Diagnostic, Value, number, text};

/// Maximum length of a tag.
const MAX_TAG: usize = 80;

fn invalid<T>(message: String) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Class::ValueError, message))
}

/// `true` or `false` in any case.
///
/// Errors: `ValueError` for anything else, including `yes` and 1.
pub fn boolean(name: &str, value: &Value) -> Result<bool, Diagnostic> {
    let shown = text::str(value);
    match shown.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => invalid(format!("Unrecognized value \"{shown}\" for \"{name}\", acceptable values are: true, false.")),
    }
}

/// An integer, or its exact representation as a string. Null remains `None`.
///
/// Errors: `ValueError` for other values, for 0 unless `allow_zero` and for negative numbers unless `allow_negative`.
pub fn integer(name: &str, value: &Value, allow_zero: bool, allow_negative: bool) -> Result<Option<Value>, Diagnostic> {
    if value.is_null() {
        return Ok(None);
    }
    let shown = text::str(value);
    let read = match value {
        Value::Str(s) => number::parse_int(s),
        Value::Int(_) | Value::BigInt(_) => Some(value.clone()),
        _ => None,
    };
    let Some(read) = read.filter(|read| text::str(read) == shown) else {
        return invalid(format!("Only integer is acceptable by '{name}'."));
    };
    if !read.is_truthy() && !allow_zero {
        return invalid(format!("Only non-zero integer is acceptable by '{name}'."));
    }
    if shown.starts_with('-') && !allow_negative {
        return invalid(format!("Value '{shown}' is invalid for '{name}' which only accepts non-negative integer."));
    }
    Ok(Some(read))
}

/// Tags, separated by commas; spaces are part of a tag.
///
/// Errors: `ValueError` for a tag of more than 80 characters.
pub fn tags(text: &str) -> Result<Vec<String>, Diagnostic> {
    let tags: Vec<String> = text.split(',').map(str::to_owned).collect();
    match tags.iter().find(|tag| tag.chars().count() > MAX_TAG) {
        Some(tag) => invalid(format!("Invalid tag, \"{tag}\" is longer than 80 characters")),
        None => Ok(tags),
    }
}

/// The items of a comma-separated list; none for an empty string.
pub fn list(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
}

/// `cfn` or `hot` in any case.
///
/// Errors: `ValueError` for anything else.
pub fn template_type(text: &str) -> Result<&'static str, Diagnostic> {
    match text.to_lowercase().as_str() {
        "cfn" => Ok("cfn"),
        "hot" => Ok("hot"),
        _ => invalid(format!("Invalid template type \"{text}\", valid types are: cfn, hot.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_exactly() {
        assert_eq!(integer("n", &"5".into(), true, false), Ok(Some(Value::Int(5))));
        for (wrong, message) in [
            ("+5", "Only integer is acceptable by 'n'."),
            ("0", "Only non-zero integer is acceptable by 'n'."),
            ("-1", "Value '-1' is invalid for 'n' which only accepts non-negative integer."),
        ] {
            assert_eq!(integer("n", &wrong.into(), false, false).unwrap_err().text, message);
        }
    }
}
