//! Comparison of results with expectations.

use kiln_value::{Diagnostic, Map, Value, text, value};

use crate::case::{Case, Outcome};

impl Case {
    /// Passes if `actual` equals the whole expectation. Use [`error`] for errors.
    pub(crate) fn judge(&self, actual: &Value) -> Outcome {
        compare(&self.expect, actual)
    }
}

/// `{class, message}` as in expectations.
pub(crate) fn error(error: &Diagnostic) -> Value {
    value!({"class": error.class.to_string(), "message": error.to_string()})
}

/// `{key: value}` or `{error_key: {class, message}}`.
pub(crate) fn either(result: Result<Value, Diagnostic>, key: &str, error_key: &str) -> Map {
    let (key, value) = match result {
        Ok(value) => (key, value),
        Err(problem) => (error_key, error(&problem)),
    };
    Map::from_iter([(key.to_owned(), value)])
}

/// Compares with the rules of the vectors: integers and floats differ, maps are compared without order, errors by class
/// and message unless the message is advisory or missing.
pub(crate) fn compare(expected: &Value, actual: &Value) -> Outcome {
    match difference(expected, actual, "") {
        None => Outcome::Passed,
        Some(diff) => Outcome::Failed(diff),
    }
}

fn difference(expected: &Value, actual: &Value, at: &str) -> Option<String> {
    let differs = || Some(format!("{at}: expected {}\n{at}: got      {}", short(expected), short(actual)));
    match (expected, actual) {
        (Value::Map(wanted), _) if wanted.contains_key("class") && wanted.contains_key("message") => {
            let got = actual.as_map().filter(|got| got.contains_key("class"));
            let advisory = wanted.contains_key("advisory_message");
            let same = got.is_some_and(|got| {
                let same_message = advisory || wanted["message"].is_null() || wanted["message"] == got["message"];
                same_message && (advisory || wanted["class"] == got["class"])
            });
            if same { None } else { differs() }
        }
        (Value::Map(wanted), Value::Float(got)) if wanted.len() == 1 && wanted.contains_key("__float__") => {
            if wanted["__float__"] == Value::from(text::float(*got)) { None } else { differs() }
        }
        // Values here contain only lists and strings.
        (Value::Map(wanted), Value::List(got)) if wanted.len() == 1 && wanted.contains_key("__set__") => {
            let members = wanted["__set__"].as_list().unwrap_or_default();
            let same = members.len() == got.len() && got.iter().all(|member| members.contains(member));
            if same { None } else { differs() }
        }
        (Value::Map(wanted), Value::Str(_)) if wanted.len() == 1 && wanted.contains_key("__datetime__") => {
            if wanted["__datetime__"] == *actual { None } else { differs() }
        }
        (Value::Map(wanted), Value::Float(_)) if wanted.len() == 1 && wanted.contains_key("__timespan_seconds__") => {
            if wanted["__timespan_seconds__"] == *actual {
                None
            } else {
                differs()
            }
        }
        (Value::Map(wanted), Value::Str(got)) if wanted.len() == 1 && wanted.contains_key("__bytes_hex__") => {
            let hex = got.bytes().fold(String::new(), |hex, b| hex + &format!("{b:02x}"));
            if wanted["__bytes_hex__"] == Value::from(hex) { None } else { differs() }
        }
        (Value::Map(wanted), Value::Map(got)) => {
            let mut keys: Vec<&String> = wanted.keys().chain(got.keys()).collect();
            keys.dedup();
            keys.into_iter().find_map(|key| {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                match (wanted.get(key), got.get(key)) {
                    (Some(wanted), Some(got)) => difference(wanted, got, &at),
                    (Some(wanted), None) => Some(format!("{at}: expected {}, got nothing", short(wanted))),
                    (None, got) => Some(format!("{at}: expected nothing, got {}", short(got.unwrap_or(&Value::Null)))),
                }
            })
        }
        (Value::List(wanted), Value::List(got)) if wanted.len() == got.len() => {
            let mut pairs = wanted.iter().zip(got).enumerate();
            pairs.find_map(|(i, (wanted, got))| difference(wanted, got, &format!("{at}[{i}]")))
        }
        (wanted, got) if wanted.kind() == got.kind() && wanted == got => None,
        _ => differs(),
    }
}

fn short(value: &Value) -> String {
    let whole = text::repr(value);
    match whole.char_indices().nth(400) {
        Some((end, _)) => format!("{} …", &whole[..end]),
        None => whole,
    }
}
