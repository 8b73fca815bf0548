//! Builds constraints from templates and definition files.

use kiln_value::{Class, Diagnostic, Map, Pattern, Value, number, text};
use num_traits::Zero;

use super::{Constraint, Rule};
use crate::hint::hinted_word;

impl Rule {
    /// A range.
    ///
    /// Errors: `InvalidSchemaError` for bounds that are not numbers, or if both are missing.
    pub fn range(min: Option<Value>, max: Option<Value>) -> Result<Self, Diagnostic> {
        numeric([&min, &max])?;
        if min.is_none() && max.is_none() {
            return schema_error("A range constraint must have a min value and/or a max value specified.");
        }
        Ok(Self::Range { min, max })
    }

    /// A length.
    ///
    /// Errors: `InvalidSchemaError` for bounds that are not integers, or if both are missing.
    pub fn length(min: Option<Value>, max: Option<Value>) -> Result<Self, Diagnostic> {
        if min.is_none() && max.is_none() {
            return schema_error("A length constraint must have a min value and/or a max value specified.");
        }
        numeric([&min, &max])?;
        if [&min, &max].into_iter().flatten().any(|bound| matches!(bound, Value::Float(_))) {
            return schema_error("min/max length must be integral");
        }
        Ok(Self::Length { min, max })
    }

    /// A modulo.
    ///
    /// Errors: `InvalidSchemaError` unless both are integers, `step` is not zero, and `offset` is smaller and has the
    /// same sign.
    pub fn modulo(step: Option<Value>, offset: Option<Value>) -> Result<Self, Diagnostic> {
        let (Some(step), Some(offset)) = (step, offset) else {
            return schema_error("A modulo constraint must have a step value and an offset value specified.");
        };
        let (step_int, offset_int) = (whole(&step)?, whole(&offset)?);
        if step_int.is_zero() {
            return schema_error("step cannot be 0.");
        }
        if offset_int.magnitude() >= step_int.magnitude() {
            return schema_error("offset must be smaller (by absolute value) than step.");
        }
        if !offset_int.is_zero() && step_int.sign() != offset_int.sign() {
            return schema_error("step and offset must be both positive or both negative.");
        }
        Ok(Self::Modulo { step, offset })
    }

    /// Allowed values.
    ///
    /// Errors: `InvalidSchemaError` if it is not a list.
    pub fn allowed_values(allowed: &Value) -> Result<Self, Diagnostic> {
        match allowed {
            Value::List(allowed) => Ok(Self::AllowedValues(allowed.clone())),
            _ => schema_error("AllowedValues must be a list"),
        }
    }

    /// An allowed pattern.
    ///
    /// Errors: `InvalidSchemaError` if it is not a string or not a regular expression. (For the latter, Heat returns an
    /// internal error.)
    pub fn allowed_pattern(pattern: &Value) -> Result<Self, Diagnostic> {
        let Value::Str(pattern) = pattern else { return schema_error("AllowedPattern must be a string") };
        match Pattern::new(pattern) {
            Ok(pattern) => Ok(Self::AllowedPattern(pattern)),
            Err(error) => schema_error(format!("Invalid allowed_pattern \"{pattern}\": {error}")),
        }
    }
}

impl Constraint {
    /// An entry of a HOT parameter's `constraints`. `modulo` enables that rule (from 2017-02-24).
    ///
    /// Errors: `InvalidSchemaError` for a wrong shape, `ValueError` for a bound that is not a number.
    pub fn from_hot(entry: &Value, modulo: bool) -> Result<Self, Diagnostic> {
        const KEYS: &[&str] =
            &["description", "length", "range", "modulo", "allowed_values", "allowed_pattern", "custom_constraint"];
        let entry = check_map(entry, KEYS, KEYS, "parameter constraints")?;
        let rule = if let (true, Some(arguments)) = (modulo, entry.get("modulo")) {
            let arguments = check_map(arguments, &["step", "offset"], &["step", "offset"], "modulo constraint")?;
            Rule::modulo(number_at(arguments, "step")?, number_at(arguments, "offset")?)?
        } else if let Some(arguments) = entry.get("range") {
            let arguments = check_map(arguments, &["min", "max"], &["min", "max"], "range constraint")?;
            Rule::range(number_at(arguments, "min")?, number_at(arguments, "max")?)?
        } else if let Some(arguments) = entry.get("length") {
            let arguments = check_map(arguments, &["min", "max"], &["min", "max"], "length constraint")?;
            Rule::length(number_at(arguments, "min")?, number_at(arguments, "max")?)?
        } else if let Some(allowed) = entry.get("allowed_values") {
            Rule::allowed_values(allowed)?
        } else if let Some(pattern) = entry.get("allowed_pattern") {
            Rule::allowed_pattern(pattern)?
        } else if let Some(name) = entry.get("custom_constraint") {
            Rule::Custom(text::str(name))
        } else {
            return schema_error("No constraint expressed");
        };
        Ok(Self { rule, description: description(entry.get("description")) })
    }

    /// The constraints among the keys of a CFN parameter.
    ///
    /// Errors: as [`Constraint::from_hot`].
    pub fn all_from_cfn(parameter: &Map) -> Result<Vec<Self>, Diagnostic> {
        let has = |keys: [&str; 2]| keys.iter().any(|key| parameter.contains_key(*key));
        let mut rules = Vec::new();
        if has(["MinValue", "MaxValue"]) {
            rules.push(Rule::range(number_at(parameter, "MinValue")?, number_at(parameter, "MaxValue")?)?);
        }
        if has(["MinLength", "MaxLength"]) {
            rules.push(Rule::length(number_at(parameter, "MinLength")?, number_at(parameter, "MaxLength")?)?);
        }
        if let Some(allowed) = parameter.get("AllowedValues") {
            rules.push(Rule::allowed_values(allowed)?);
        }
        if let Some(pattern) = parameter.get("AllowedPattern") {
            rules.push(Rule::allowed_pattern(pattern)?);
        }
        let description = description(parameter.get("ConstraintDescription"));
        Ok(rules.into_iter().map(|rule| Self { rule, description: description.clone() }).collect())
    }
}

/// The map, if it has only these keys. `known` are those of all versions.
///
/// Errors: `InvalidSchemaError`, which names the entity (`range constraint`).
pub(crate) fn check_map<'a>(
    value: &'a Value,
    keys: &[&str],
    known: &[&str],
    entity: &str,
) -> Result<&'a Map, Diagnostic> {
    let Value::Map(map) = value else { return schema_error(format!("Invalid {entity}, expected a mapping")) };
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => {
            let error = Diagnostic::new(Class::InvalidSchemaError, format!("Invalid key '{key}' for {entity}"));
            Err(hinted_word(error, key, known))
        }
        None => Ok(map),
    }
}

pub(crate) fn schema_error<T>(message: impl Into<String>) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Class::InvalidSchemaError, message))
}

fn description(value: Option<&Value>) -> Option<String> {
    value.filter(|v| !v.is_null()).map(text::str)
}

fn number_at(map: &Map, key: &str) -> Result<Option<Value>, Diagnostic> {
    map.get(key).filter(|v| !v.is_null()).map(number::str_to_num).transpose()
}

fn numeric(bounds: [&Option<Value>; 2]) -> Result<(), Diagnostic> {
    let is_number = |v: &Value| matches!(v, Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_));
    if bounds.into_iter().flatten().all(is_number) { Ok(()) } else { schema_error("min/max must be numeric") }
}

fn whole(value: &Value) -> Result<num_bigint::BigInt, Diagnostic> {
    match value {
        Value::Float(f) if f.fract() == 0.0 => Ok(num_traits::FromPrimitive::from_f64(*f).unwrap_or_default()),
        Value::Float(_) => schema_error("step/offset must be integer"),
        other => match number::integer(other) {
            Some(whole) => Ok(whole),
            None => schema_error("step/offset must be numeric"),
        },
    }
}
