//! Validation and conversion of properties with Heat's rules and messages (docs/heat-behaviour.md §6).
//!
//! The input is the properties of a template after the evaluation of functions and the translation.

use indexmap::IndexMap;
use kiln_template::constraint::{CustomConstraints, DataType, check_all};
use kiln_template::hint::nearest;
use kiln_value::{Class, Diagnostic, Map, Path, Subject, Value, number, text};
use num_bigint::BigInt;
use num_traits::FromPrimitive;

use crate::PropertySchema;

/// A schema by property name.
pub type Schema = IndexMap<String, PropertySchema>;

/// How far a value is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Its type and its constraints.
    Wholly,
    /// Only its type, and null is accepted for every type: the value refers to something that does not exist yet.
    ByKind,
    /// Not checked: see [`crate::translation::moved`].
    Not,
}

/// All errors in the data; the first one has Heat's own message.
///
/// * `judged` returns for a path below the properties how far its value is checked.
/// * `custom` evaluates custom constraints.
/// * `at` is the path of the properties: `resources.server.properties`.
pub fn validate(
    schema: &Schema,
    data: &Map,
    judged: &dyn Fn(&Path) -> Judged,
    custom: &dyn CustomConstraints,
    at: &Path,
) -> Vec<Diagnostic> {
    let mut reader = Reader { check: Some(Check { judged, custom }), faults: Vec::new() };
    reader.members(schema, data, &Path::root());
    reader.faults.into_iter().map(|fault| fault.diagnose(at)).collect()
}

/// The errors in the names of properties, regardless of their values: unknown names, and known ones that may not be
/// used.
pub fn validate_names(schema: &Schema, names: &[String], at: &Path) -> Vec<Diagnostic> {
    let root = Path::root();
    let unknown = names.iter().filter(|name| !schema.contains_key(*name)).map(|name| unknown_name(name, schema, &root));
    let absent = schema.iter().filter(|(name, property)| !property.implemented && names.contains(name));
    let absent = absent.map(|(name, _)| not_implemented(name, &root));
    unknown.chain(absent).map(|fault| fault.diagnose(at)).collect()
}

/// All properties of the schema with their values: converted, with defaults, null without a value. Names that are not
/// in the schema are omitted.
///
/// # Errors
/// `ValueError` for the first property with an invalid value.
pub fn resolve(schema: &Schema, data: &Map) -> Result<Map, Diagnostic> {
    schema.iter().map(|(name, property)| Ok((name.clone(), value(name, property, data)?))).collect()
}

/// The value of one property, as in [`resolve`].
///
/// # Errors
/// `ValueError` if the value is invalid.
pub fn value(name: &str, property: &PropertySchema, data: &Map) -> Result<Value, Diagnostic> {
    let mut reader = Reader { check: None, faults: Vec::new() };
    let value = reader.member(name, property, data, &Path::root());
    match reader.faults.into_iter().next() {
        Some(fault) => Err(Diagnostic::new(Class::ValueError, fault.text).at(fault.path)),
        None => Ok(value),
    }
}

/// Uses the `description` of a resource in the template for the property of this name, if the type has one that can be
/// updated and the template does not specify it.
pub fn describe(schema: &Schema, data: &mut Map, description: Option<&str>) {
    let wanted = schema.get("description").is_some_and(|p| p.update_allowed && p.default.is_none() && !p.required);
    if let (true, Some(text)) = (wanted, description.filter(|text| !text.is_empty())) {
        data.entry("description".to_owned()).or_insert_with(|| text.into());
    }
}

struct Check<'a> {
    judged: &'a dyn Fn(&Path) -> Judged,
    custom: &'a dyn CustomConstraints,
}

/// An error at a path below the properties.
struct Fault {
    path: Path,
    text: String,
    subject: Option<Subject>,
    hint: Option<String>,
}

impl Fault {
    fn diagnose(self, at: &Path) -> Diagnostic {
        let mut path = at.clone();
        path.0.extend(self.path.0);
        let error = self.hint.into_iter().fold(Diagnostic::of_property(&path, self.text), Diagnostic::hint);
        let Some(subject) = self.subject else { return error };
        // The text names the path only.
        let place = match &subject {
            Subject::UnknownProperty(name) | Subject::UnbuiltProperty(name) => path.key(name.as_str()),
            _ => path,
        };
        error.at(place).about(subject)
    }
}

fn unknown_name(name: &str, schema: &Schema, at: &Path) -> Fault {
    let near = nearest(name, schema.keys().map(String::as_str));
    Fault {
        path: at.clone(),
        text: format!("Unknown Property {name}"),
        subject: Some(Subject::UnknownProperty(name.to_owned())),
        hint: near.map(|near| format!("did you mean {near}?")),
    }
}

fn not_implemented(name: &str, at: &Path) -> Fault {
    let subject = Some(Subject::UnbuiltProperty(name.to_owned()));
    Fault { path: at.clone(), text: format!("Property {name} not implemented yet"), subject, hint: None }
}

fn not_assigned(name: &str, at: &Path) -> Fault {
    let subject = Some(Subject::MissingProperty(name.to_owned()));
    Fault { path: at.clone(), text: format!("Property {name} not assigned"), subject, hint: None }
}

/// Traverses data along a schema and collects errors; with `check` also unknown names and constraints.
struct Reader<'a> {
    check: Option<Check<'a>>,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, path: &Path, text: impl Into<String>) {
        self.faults.push(Fault { path: path.clone(), text: text.into(), subject: None, hint: None });
    }

    fn judged(&self, path: &Path) -> Judged {
        self.check.as_ref().map_or(Judged::Wholly, |check| (check.judged)(path))
    }

    fn members(&mut self, schema: &Schema, data: &Map, at: &Path) -> Map {
        if self.check.is_some() {
            for name in data.keys().filter(|name| !schema.contains_key(*name)) {
                self.faults.push(unknown_name(name, schema, at));
            }
        }
        schema.iter().map(|(name, property)| (name.clone(), self.member(name, property, data, at))).collect()
    }

    fn member(&mut self, name: &str, property: &PropertySchema, data: &Map, at: &Path) -> Value {
        let path = at.key(name);
        if self.judged(&path) == Judged::Not {
            return data.get(name).cloned().unwrap_or_default();
        }
        let value = match data.get(name) {
            Some(given) => self.value(property, given, &path),
            None if property.default.is_some() => self.value(property, &Value::Null, &path),
            None => {
                if property.required {
                    self.faults.push(not_assigned(name, at));
                }
                Value::Null
            }
        };
        if self.check.is_some() && !property.implemented && data.contains_key(name) {
            self.faults.push(not_implemented(name, at));
        }
        value
    }

    fn value(&mut self, property: &PropertySchema, given: &Value, path: &Path) -> Value {
        let unknown = self.judged(path) == Judged::ByKind;
        if unknown && given.is_null() {
            return Value::Null;
        }
        let awaited = given.unknown();
        if let Some(awaited) = awaited {
            let keeps_parts = match given {
                Value::List(_) => matches!(property.kind, DataType::List | DataType::Any),
                Value::Map(_) => matches!(property.kind, DataType::Map | DataType::Any),
                _ => false,
            };
            if !keeps_parts {
                return Value::Unknown(awaited.clone());
            }
        }
        let unknown = unknown || awaited.is_some();
        let before = self.faults.len();
        let value = match self.coerce(property, given, path) {
            Ok(value) => value,
            Err(message) => {
                self.fault(path, message);
                return Value::Null;
            }
        };
        if let Some(check) = self.check.as_ref().filter(|_| !unknown && self.faults.len() == before) {
            let typed = property.kind.property();
            if let Err(error) = check_all(&property.constraints, &value, typed, check.custom) {
                self.fault(path, error.text.as_str());
            }
        }
        value
    }

    fn coerce(&mut self, property: &PropertySchema, given: &Value, path: &Path) -> Result<Value, String> {
        let empty;
        let given = if given.is_null() {
            empty = fallback(property);
            &empty
        } else {
            given
        };
        match property.kind {
            DataType::Any => Ok(given.clone()),
            DataType::String => string(given),
            DataType::Integer => integer(given),
            DataType::Number => number::str_to_num(given).map_err(|e| e.text.clone()),
            DataType::Boolean => boolean(given),
            DataType::Map => self.map(property, given, path),
            DataType::List => self.list(property, given, path),
        }
    }

    fn map(&mut self, property: &PropertySchema, given: &Value, path: &Path) -> Result<Value, String> {
        match given {
            Value::Map(map) => Ok(match property.members() {
                Some(schema) => self.members(schema, map, path).into(),
                None => given.clone(),
            }),
            Value::Str(_) if property.allow_conversion => Ok(given.clone()),
            Value::List(_) if property.allow_conversion => Ok(text::json(given).into()),
            other => Err(format!("\"{}\" is not a map", text::str(other))),
        }
    }

    fn list(&mut self, property: &PropertySchema, given: &Value, path: &Path) -> Result<Value, String> {
        let split: Vec<Value>;
        let items = match given {
            Value::List(items) => items,
            Value::Str(joined) if property.allow_conversion => {
                split = if joined.is_empty() { Vec::new() } else { joined.split(',').map(Value::from).collect() };
                &split
            }
            other => return Err(format!("\"{}\" is not a list", text::repr(other))),
        };
        Ok(match property.items() {
            Some(schema) => {
                items.iter().enumerate().map(|(i, item)| self.value(schema, item, &path.index(i))).collect()
            }
            None => Value::List(items.clone()),
        })
    }
}

/// The value used for null: the default, else the empty value of the type.
fn fallback(property: &PropertySchema) -> Value {
    match (&property.default, property.kind) {
        (_, DataType::Any) => Value::Null,
        (Some(default), DataType::Map) => default.clone(),
        (Some(default), _) if default.is_truthy() => default.clone(),
        (_, DataType::String) => "".into(),
        (_, DataType::Integer | DataType::Number) => Value::Int(0),
        (_, DataType::Boolean) => false.into(),
        (_, DataType::Map) => Map::new().into(),
        (_, DataType::List) => Value::List(Vec::new()),
    }
}

fn string(given: &Value) -> Result<Value, String> {
    match given {
        Value::Str(_) => Ok(given.clone()),
        Value::Bool(_) | Value::Int(_) | Value::BigInt(_) => Ok(text::str(given).into()),
        other => Err(format!("Value must be a string; got {}", text::repr(other))),
    }
}

/// Python's `int(value)`: strings are parsed, floats are truncated.
fn integer(given: &Value) -> Result<Value, String> {
    let refused = || format!("Value '{}' is not an integer", text::str(given));
    match given {
        Value::Bool(b) => Ok(Value::Int(i64::from(*b))),
        Value::Float(f) if f.is_infinite() => Err("cannot convert float infinity to integer".to_owned()),
        Value::Float(f) => BigInt::from_f64(f.trunc()).map(Value::from).ok_or_else(refused),
        Value::Str(digits) => number::parse_int(digits).ok_or_else(refused),
        other => number::str_to_num(other).map_err(|e| e.text.clone()),
    }
}

fn boolean(given: &Value) -> Result<Value, String> {
    match given {
        Value::Bool(_) => Ok(given.clone()),
        Value::Str(word) => match word.to_lowercase().as_str() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            other => Err(format!("\"{other}\" is not a valid boolean")),
        },
        other => Err(format!("\"{}\" is not a valid boolean", text::str(other))),
    }
}
