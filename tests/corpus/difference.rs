//! Differences between values.

use kiln_value::{Diagnostic, Value, text, value};

/// `{class, message}` as in the records.
pub(crate) fn error(error: &Diagnostic) -> Value {
    value!({"class": error.class.to_string(), "message": error.to_string()})
}

/// The first difference between two values; `None` if they are equal. Maps are compared without order, and integers
/// differ from floats.
pub(crate) fn difference(expected: &Value, actual: &Value) -> Option<String> {
    below(expected, actual, "")
}

fn below(expected: &Value, actual: &Value, at: &str) -> Option<String> {
    match (expected, actual) {
        (Value::Map(wanted), Value::Map(got)) => {
            let missing = wanted.keys().find(|key| !got.contains_key(*key)).map(|key| (key, "missing"));
            let extra = got.keys().find(|key| !wanted.contains_key(*key)).map(|key| (key, "not expected"));
            if let Some((key, what)) = missing.or(extra) {
                return Some(format!("{at}.{key}: {what}"));
            }
            wanted.iter().find_map(|(key, wanted)| below(wanted, got.get(key)?, &format!("{at}.{key}")))
        }
        (Value::List(wanted), Value::List(got)) if wanted.len() == got.len() => {
            let mut pairs = wanted.iter().zip(got).enumerate();
            pairs.find_map(|(i, (wanted, got))| below(wanted, got, &format!("{at}[{i}]")))
        }
        (wanted, got) if wanted.kind() == got.kind() && wanted == got => None,
        (wanted, got) => Some(format!("{at}: expected {}\n{at}: got      {}", short(wanted), short(got))),
    }
}

fn short(value: &Value) -> String {
    let whole = text::repr(value);
    match whole.char_indices().nth(400) {
        Some((end, _)) => format!("{} …", &whole[..end]),
        None => whole,
    }
}
