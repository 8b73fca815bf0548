//! Python errors of functions, with the classes and messages that clients see.

use kiln_value::{Diagnostic, Path, Value, number, text};

/// `TypeError`.
pub(crate) fn type_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new("TypeError", message)
}

/// `ValueError`.
pub(crate) fn value_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new("ValueError", message)
}

/// `KeyError`; Python shows its message in quotes.
pub(crate) fn key_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new("KeyError", text::repr(&Value::Str(message.into())))
}

/// `AttributeError` of a value without this method.
pub(crate) fn no_attribute(value: &Value, attribute: &str) -> Diagnostic {
    let kind = type_name(value);
    Diagnostic::new("AttributeError", format!("'{kind}' object has no attribute '{attribute}'"))
}

/// `InvalidTemplateReference`: the resource or parameter does not exist.
pub(crate) fn bad_reference(name: &str, path: &str) -> Diagnostic {
    let message = format!("The specified reference \"{name}\" (in {path}) is incorrect.");
    Diagnostic::new("InvalidTemplateReference", message)
}

/// Whether the parser turns the error into a validation error.
pub(crate) fn is_plain(error: &Diagnostic) -> bool {
    matches!(&*error.class, "TypeError" | "ValueError" | "KeyError" | "UnicodeEncodeError")
}

/// Refuses values that cannot be keys of a map: `TypeError`.
pub(crate) fn check_hashable(key: &Value) -> Result<(), Diagnostic> {
    match key {
        Value::List(_) | Value::Map(_) => Err(type_error(format!("unhashable type: '{}'", type_name(key)))),
        _ => Ok(()),
    }
}

/// Converts the error to a validation error with a prefix and another location.
pub(crate) fn to_validation(mut error: Diagnostic, prefix: String, path: Path) -> Diagnostic {
    error.class = "StackValidationFailed".into();
    error.message = prefix + &error.message;
    error.at(path)
}

/// Python's name of the value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    value.kind().python_name()
}

/// Python's `int(value)`.
pub(crate) fn int(value: &Value) -> Result<Value, Diagnostic> {
    match value {
        Value::Int(_) | Value::BigInt(_) => Ok(value.clone()),
        Value::Bool(truth) => Ok(Value::Int(i64::from(*truth))),
        Value::Float(float) if float.is_nan() => Err(value_error("cannot convert float NaN to integer")),
        Value::Float(float) => <num_bigint::BigInt as num_traits::FromPrimitive>::from_f64(*float)
            .map(Value::from)
            .ok_or_else(|| Diagnostic::new("OverflowError", "cannot convert float infinity to integer")),
        Value::Str(digits) => number::parse_int(digits)
            .ok_or_else(|| value_error(format!("invalid literal for int() with base 10: {}", text::quote(digits)))),
        other => Err(type_error(format!(
            "int() argument must be a string, a bytes-like object or a real number, not '{}'",
            type_name(other)
        ))),
    }
}
