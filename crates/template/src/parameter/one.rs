//! A parameter: its schema and its specified value.

use std::fmt;

use kiln_value::{Class, Diagnostic, Map, Subject, Value, number, text};

use super::{HIDDEN, ParameterSchema};
use crate::constraint::{CustomConstraints, DataType, Rule, check_all};

/// A parameter with its value, if it has one.
#[derive(Clone)]
pub struct Parameter {
    name: String,
    schema: ParameterSchema,
    user_value: Option<Value>,
    user_default: Option<Value>,
    /// Computed once: templates read some parameters thousands of times.
    value: Result<Value, Diagnostic>,
}

impl Parameter {
    /// Creates a parameter. A `user_value` of null counts as none; `user_default` (from `parameter_defaults`) takes
    /// precedence over the default of the schema.
    pub fn new(name: &str, schema: ParameterSchema, user_value: Option<Value>, user_default: Option<Value>) -> Self {
        let user_value = user_value.filter(|v| !v.is_null());
        let user_default = user_default.filter(|v| !v.is_null());
        let given = user_value.as_ref().or(user_default.as_ref()).or(schema.default.as_ref());
        let value = match (given, schema.typed.data_type) {
            (Some(given), data_type) => read(given, data_type),
            // Heat reads the missing value of a boolean as a string.
            (None, DataType::Boolean) => {
                number::bool_from_string(&Value::Null).map(Value::Bool).map_err(Diagnostic::of_unknown_value)
            }
            (None, _) => Err(missing(name)),
        };
        Self { name: name.to_owned(), schema, user_value, user_default, value }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema.
    pub fn schema(&self) -> &ParameterSchema {
        &self.schema
    }

    /// The value, converted to its type: that of the user, else that of `parameter_defaults`, else the template's
    /// default.
    ///
    /// Errors: `UserParameterMissing` if there is none, `ValueError` or `TypeError` if it does not have the type.
    pub fn value(&self) -> Result<&Value, Diagnostic> {
        self.value.as_ref().map_err(Clone::clone)
    }

    /// Whether it has a value or a default.
    pub fn has_value(&self) -> bool {
        self.given().is_some()
    }

    /// Whether the value must not be shown.
    pub fn hidden(&self) -> bool {
        self.schema.hidden
    }

    /// The value as a stack shows it: lists joined by commas, maps as JSON, hidden ones as [`HIDDEN`].
    ///
    /// Errors: as [`Parameter::value`].
    pub fn text(&self) -> Result<String, Diagnostic> {
        let value = self.value()?;
        if value.unknown().is_some() {
            return Err(missing(&self.name));
        }
        if self.hidden() {
            return Ok(HIDDEN.to_owned());
        }
        Ok(match (self.schema.typed.data_type, value) {
            (DataType::List, Value::List(items)) => items.iter().map(text::str).collect::<Vec<_>>().join(","),
            (DataType::Map, value) => text::json(value),
            (_, value) => text::str(value),
        })
    }

    /// Validates the schema, and with `with_value` also the value.
    ///
    /// Errors: `InvalidSchemaError`, `StackValidationFailed`, `UserParameterMissing`; `TypeError` if a constraint
    /// cannot check values of this kind.
    pub fn validate(&self, custom: &dyn CustomConstraints, with_value: bool) -> Result<(), Diagnostic> {
        let judged = self.schema.check().and_then(|()| match self.given() {
            _ if !with_value => Ok(()),
            Some(given) => {
                self.validate_value(given, custom).map_err(|error| error.about(Subject::Parameter(self.name.clone())))
            }
            None => Err(missing(&self.name)),
        });
        judged.map_err(|mut error| {
            if matches!(error.class, Class::StackValidationFailed | Class::InvalidSchemaError) {
                error.text = format!("Parameter '{}' is invalid: {}", self.name, error.text);
            }
            error
        })
    }

    fn validate_value(&self, given: &Value, custom: &dyn CustomConstraints) -> Result<(), Diagnostic> {
        let data_type = self.schema.typed.data_type;
        if given.unknown().is_some() {
            return Ok(());
        }
        let read = match data_type {
            DataType::String => match named_secret(given) {
                Some(name) => return Err(Diagnostic::invalid(format!("Kiln does not read values from {name}"))),
                None => Ok(Value::Null),
            },
            _ => read(given, data_type),
        };
        let read = read.map_err(|error| Diagnostic::invalid(error.text.clone()))?;
        // Lists and maps are checked as parsed, scalars as given.
        let value = if matches!(data_type, DataType::List | DataType::Map) { &read } else { given };
        check_all(&self.schema.constraints, value, self.schema.typed, custom)
    }

    fn given(&self) -> Option<&Value> {
        self.user_value.as_ref().or_else(|| self.default())
    }

    fn default(&self) -> Option<&Value> {
        self.user_default.as_ref().or(self.schema.default.as_ref())
    }

    /// The entry of the parameter in the response of the validate call (docs/heat-behaviour.md §20).
    pub fn validate_view(&self) -> Value {
        let schema = &self.schema;
        let mut view = Map::new();
        let mut set = |key: &str, value: Value| _ = view.insert(key.to_owned(), value);
        set("Type", schema.api_type().into());
        set("Description", schema.description.clone().filter(Value::is_truthy).unwrap_or_else(|| "".into()));
        set("NoEcho", if schema.hidden { "true" } else { "false" }.into());
        set("Label", schema.label.clone().filter(Value::is_truthy).unwrap_or_else(|| self.name.as_str().into()));
        if let Some(default) = self.default() {
            set("Default", default.clone());
        }
        if let Some(value) = self.user_value.as_ref().filter(|v| v.is_truthy() && v.unknown().is_none()) {
            set("Value", value.clone());
        }
        if !schema.tags.is_empty() {
            set("Tags", Value::List(schema.tags.clone()));
        }
        let mut set_bound = |key: &str, bound: &Option<Value>| {
            if let Some(bound) = bound {
                set(key, bound.clone());
            }
        };
        let mut descriptions = Vec::new();
        for constraint in &schema.constraints {
            match &constraint.rule {
                Rule::Length { min, max } => {
                    set_bound("MinLength", min);
                    set_bound("MaxLength", max);
                }
                Rule::Range { min, max } => {
                    set_bound("MinValue", min);
                    set_bound("MaxValue", max);
                }
                Rule::Modulo { step, offset } => {
                    set_bound("Step", &Some(step.clone()));
                    set_bound("Offset", &Some(offset.clone()));
                }
                Rule::AllowedValues(_) => set_bound("AllowedValues", &Some(constraint.rule.arguments())),
                Rule::AllowedPattern(_) => set_bound("AllowedPattern", &Some(constraint.rule.arguments())),
                Rule::Custom(_) => set_bound("CustomConstraint", &Some(constraint.rule.arguments())),
            }
            descriptions.extend(constraint.description.as_deref().filter(|d| !d.is_empty()));
        }
        if !descriptions.is_empty() {
            set("ConstraintDescription", descriptions.join(" ").into());
        }
        Value::Map(view)
    }
}

/// Without the values, which may be secrets.
impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameter").field("name", &self.name).field("text", &self.text().ok()).finish_non_exhaustive()
    }
}

fn missing(name: &str) -> Diagnostic {
    let message = format!("The Parameter ({name}) was not provided.");
    Diagnostic::new(Class::UserParameterMissing, message).of_unknown_value()
}

/// A given value, converted to its type.
fn read(given: &Value, data_type: DataType) -> Result<Value, Diagnostic> {
    if let Some(unknown) = given.unknown() {
        return Ok(match (data_type, given) {
            (DataType::Map | DataType::Any, _) | (DataType::List, Value::List(_)) => given.clone(),
            _ => Value::Unknown(unknown.clone()),
        });
    }
    match (data_type, given) {
        (DataType::Number | DataType::Integer, given) => number::str_to_num(given),
        (DataType::Boolean, given) => number::bool_from_string(given).map(Value::Bool),
        (DataType::List, Value::List(items)) => Ok(items.iter().map(|item| Value::Str(text::str(item))).collect()),
        (DataType::List, Value::Str(text)) if text.is_empty() => Ok(Value::List(Vec::new())),
        (DataType::List, Value::Str(text)) => Ok(text.split(',').map(Value::from).collect()),
        (DataType::List, other) => {
            let kind = other.kind().python_name();
            let message =
                format!("Value must be a comma-delimited list string: '{kind}' object has no attribute 'split'");
            Err(Diagnostic::new(Class::ValueError, message))
        }
        (DataType::Map, Value::Str(text)) if !text.is_empty() => kiln_yaml::json::parse(text)
            .map_err(|error| Diagnostic::new(Class::ValueError, format!("Value must be valid JSON: {error}"))),
        (DataType::Map | DataType::Any, given) => Ok(given.clone()),
        (DataType::String, given) => Ok(Value::Str(text::str(given))),
    }
}

/// The name of a secret that a user gives instead of a text: `{secret: 'vault:…'}` or `{secret: 'barbican:…'}`. As in Heat, a map
/// would become a text in JSON, and the name would be taken for the password.
fn named_secret(given: &Value) -> Option<&str> {
    let name = given.as_map().filter(|map| map.len() == 1)?.get("secret")?.as_str()?;
    (name.starts_with("vault:") || name.starts_with("barbican:")).then_some(name)
}
