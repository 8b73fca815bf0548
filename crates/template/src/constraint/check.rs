//! Checks values against constraints.

use std::cmp::Ordering;

use kiln_value::steps::{self, Exhausted};
use kiln_value::{Class, Diagnostic, Value, number, text};

use super::build::schema_error;
use super::{Constraint, CustomConstraints, Rule, Typed, bound_text};
use crate::function::seen::Seen;

impl Constraint {
    /// Checks a value. If a type is given, allowed values are compared after conversion to it.
    ///
    /// Errors: `ValueError` if the value violates the rule; `TypeError` if the rule cannot check values of its kind (an
    /// internal error in Heat).
    pub fn check(&self, value: &Value, typed: Option<Typed>, custom: &dyn CustomConstraints) -> Result<(), Diagnostic> {
        let Some(message) = self.rule.broken_by(value, typed, custom)? else { return Ok(()) };
        let message = self.description.clone().filter(|d| !d.is_empty()).unwrap_or(message);
        Err(Diagnostic::new(Class::ValueError, message))
    }
}

/// Checks that each constraint fits the type.
///
/// Errors: `InvalidSchemaError` for the first that does not.
pub fn check_fit(constraints: &[Constraint], typed: Typed) -> Result<(), Diagnostic> {
    match constraints.iter().find(|c| !c.rule.fits(typed.data_type)) {
        Some(c) => schema_error(format!("{} constraint invalid for {}", c.rule.title(), typed.name)),
        None => Ok(()),
    }
}

/// Checks a value against several constraints; the first violation is reported.
///
/// Errors: `StackValidationFailed` with the constraint's message, or its `TypeError`.
pub fn check_all(
    constraints: &[Constraint],
    value: &Value,
    typed: Typed,
    custom: &dyn CustomConstraints,
) -> Result<(), Diagnostic> {
    constraints.iter().try_for_each(|constraint| {
        constraint.check(value, Some(typed), custom).map_err(|mut error| {
            if error.class == Class::ValueError {
                error.class = Class::StackValidationFailed;
            }
            error
        })
    })
}

impl Rule {
    /// The generated message, if the value violates the rule.
    fn broken_by(
        &self,
        value: &Value,
        typed: Option<Typed>,
        custom: &dyn CustomConstraints,
    ) -> Result<Option<String>, Diagnostic> {
        let broken = match self {
            Self::Range { min, max } => {
                if within(&number::str_to_num(value)?, min.as_ref(), max.as_ref()) {
                    return Ok(None);
                }
                let (min, max) = (bound_text(min.as_ref()), bound_text(max.as_ref()));
                format!("{} is out of range (min: {min}, max: {max})", text::str(value))
            }
            Self::Length { min, max } => {
                let length = length(value)?;
                if within(&Value::from(length), min.as_ref(), max.as_ref()) {
                    return Ok(None);
                }
                let (min, max) = (bound_text(min.as_ref()), bound_text(max.as_ref()));
                format!("length ({length}) is out of range (min: {min}, max: {max})")
            }
            Self::Modulo { step, offset } => {
                if number::modulo(&number::str_to_num(value)?, step).as_ref() == Some(offset) {
                    return Ok(None);
                }
                let (step, offset) = (text::str(step), text::str(offset));
                format!("{} is not a multiple of {step} with an offset of {offset}", text::str(value))
            }
            Self::AllowedValues(allowed) => {
                if is_allowed(value, allowed, typed)? {
                    return Ok(None);
                }
                format!("{} is not an allowed value {}", text::json(value), text::json(&Value::List(allowed.clone())))
            }
            Self::AllowedPattern(pattern) => {
                let Value::Str(text) = value else {
                    let kind = value.kind().python_name();
                    let message = format!("expected string or bytes-like object, got '{kind}'");
                    return Err(Diagnostic::new(Class::TypeError, message));
                };
                let found = pattern.matches_all(text);
                steps::check().map_err(Exhausted::report)?;
                if found {
                    return Ok(None);
                }
                format!("\"{text}\" does not match pattern \"{}\"", pattern.as_str())
            }
            Self::Custom(name) => return Ok(custom.validate(name, value).err()),
        };
        Ok(Some(broken))
    }
}

/// Whether a number is within the bounds; NaN always is.
fn within(number: &Value, min: Option<&Value>, max: Option<&Value>) -> bool {
    min.is_none_or(|min| number::compare(number, min) != Some(Ordering::Less))
        && max.is_none_or(|max| number::compare(number, max) != Some(Ordering::Greater))
}

fn length(value: &Value) -> Result<usize, Diagnostic> {
    match value {
        Value::Str(s) => Ok(s.chars().count()),
        Value::List(items) => Ok(items.len()),
        Value::Map(entries) => Ok(entries.len()),
        other => {
            let kind = other.kind().python_name();
            Err(Diagnostic::new(Class::TypeError, format!("object of type '{kind}' has no len()")))
        }
    }
}

fn is_allowed(value: &Value, allowed: &[Value], typed: Option<Typed>) -> Result<bool, Diagnostic> {
    match (value, typed) {
        (Value::List(items), _) => {
            let mut known = Seen::default();
            for value in allowed {
                known.insert(value);
            }
            Ok(items.iter().all(|item| known.contains(item)))
        }
        (value, None) => Ok(allowed.contains(value)),
        (value, Some(typed)) => {
            let allowed: Vec<Value> = allowed.iter().map(|a| typed.convert(a)).collect::<Result<_, _>>()?;
            Ok(allowed.contains(&typed.convert(value)?))
        }
    }
}
