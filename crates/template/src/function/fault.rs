//! Python errors of functions, with the classes and messages that clients see.

use kiln_value::{Class, Diagnostic, Path, Subject, Value, number, text};

/// `TypeError`.
pub(crate) fn type_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Class::TypeError, message)
}

/// `ValueError`.
pub(crate) fn value_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Class::ValueError, message)
}

/// `KeyError`; Python shows its message in quotes.
pub(crate) fn key_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Class::KeyError, text::repr(&Value::Str(message.into())))
}

/// `AttributeError` of a value without this method.
pub(crate) fn no_attribute(value: &Value, attribute: &str) -> Diagnostic {
    let kind = type_name(value);
    Diagnostic::new(Class::AttributeError, format!("'{kind}' object has no attribute '{attribute}'"))
}

/// `InvalidTemplateReference`: the resource or parameter does not exist.
pub(crate) fn bad_reference(name: &str, path: &str) -> Diagnostic {
    let message = format!("The specified reference \"{name}\" (in {path}) is incorrect.");
    Diagnostic::new(Class::InvalidTemplateReference, message).about(Subject::Name(name.to_owned()))
}

/// Whether the parser turns the error into a validation error.
pub(crate) fn is_plain(error: &Diagnostic) -> bool {
    matches!(error.class, Class::TypeError | Class::ValueError | Class::KeyError | Class::UnicodeEncodeError)
}

/// Refuses values that cannot be keys of a map: `TypeError`.
pub(crate) fn check_hashable(key: &Value) -> Result<(), Diagnostic> {
    match key {
        Value::List(_) | Value::Map(_) => Err(type_error(format!("unhashable type: '{}'", type_name(key)))),
        _ => Ok(()),
    }
}

/// Converts the error to a validation error of the part at `path`, which Heat's sentence shows as `shown`.
pub(crate) fn to_validation(mut error: Diagnostic, shown: String, path: Path) -> Diagnostic {
    error.text = error.to_string();
    error.class = Class::StackValidationFailed;
    error.shown = shown;
    error.because("").at(path)
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
            .ok_or_else(|| Diagnostic::new(Class::OverflowError, "cannot convert float infinity to integer")),
        Value::Str(digits) => number::parse_int(digits)
            .ok_or_else(|| value_error(format!("invalid literal for int() with base 10: {}", text::quote(digits)))),
        other => Err(type_error(format!(
            "int() argument must be a string, a bytes-like object or a real number, not '{}'",
            type_name(other)
        ))),
    }
}
