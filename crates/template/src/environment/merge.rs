//! Merging of environment files.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use kiln_value::{Class, Diagnostic, Map, Value, number, text};

use super::{fill, parse};
use crate::constraint::DataType;
use crate::parameter::ParameterSchema;
use crate::{Files, Template, source};

/// Merges environment files in order into `sections`. Later files take precedence, also over the values of the request
/// itself, unless `parameter_merge_strategies` specify that values are merged.
///
/// Parameters that neither the template nor a template among the files declares are not merged.
///
/// Errors: `KeyError` for a name that is not among the files; `ValueError` for an invalid environment file or a value
/// that cannot be merged; `ConflictingMergeStrategyForParam`, `InvalidMergeStrategyForParam`; `TypeError` or
/// `AttributeError` for values of incompatible kinds; those of [`Template::parameter_schemata`].
pub fn merge(
    environment_files: &[String],
    files: &Files,
    sections: &mut Map,
    template: &Template,
) -> Result<(), Diagnostic> {
    fill(sections);
    if environment_files.is_empty() {
        return Ok(());
    }
    let schemata = all_schemata(template, files)?;
    let mut merging = Merging { schemata: &schemata, strategies: BTreeMap::new() };
    for name in environment_files {
        let text = files.get(name).ok_or_else(|| Diagnostic::new(Class::KeyError, text::quote(name)))?;
        let mut parsed = parse(text)?;
        let of_file = parsed.shift_remove("parameter_merge_strategies").unwrap_or(Value::Map(Map::new()));
        for (section, new) in parsed {
            if !new.is_truthy() {
                continue;
            }
            let old = sections.get_mut(&section).map(std::mem::take).unwrap_or_default();
            let merged = match (section.as_str(), new) {
                ("parameters" | "parameter_defaults", Value::Map(new)) => {
                    merging.parameters(old, new, &of_file, name)?
                }
                (_, new) => merge_maps(old, new, false)?,
            };
            sections.insert(section, merged);
        }
    }
    Ok(())
}

/// The parameters of all templates among the files; those of the template itself take precedence.
fn all_schemata(template: &Template, files: &Files) -> Result<IndexMap<String, ParameterSchema>, Diagnostic> {
    let mut schemata = IndexMap::new();
    for file in files.0.values() {
        // Files that are not templates are ignored.
        let document = source::parse(file, source::ROOT, source::MAX_TEMPLATE_SIZE);
        if let Ok(nested) = document.and_then(|document| Template::from_value(document.value)) {
            schemata.extend(nested.parameter_schemata()?);
        }
    }
    schemata.extend(template.parameter_schemata()?);
    Ok(schemata)
}

/// The strategies that merge values; with every other one the later value replaces the earlier.
const MERGE: &str = "merge";
const DEEP_MERGE: &str = "deep_merge";
const OVERWRITE: &str = "overwrite";

struct Merging<'a> {
    schemata: &'a IndexMap<String, ParameterSchema>,
    /// The strategy of each parameter over all files, as written.
    strategies: BTreeMap<String, String>,
}

impl Merging<'_> {
    fn parameters(&mut self, old: Value, new: Map, of_file: &Value, file: &str) -> Result<Value, Diagnostic> {
        for (name, value) in &new {
            if !self.schemata.contains_key(name) || value.is_null() {
                continue;
            }
            let strategy = strategy(of_file, name, self.strategies.get(name))?;
            let decided = self.strategies.entry(name.clone()).or_insert_with(|| strategy.clone());
            if *decided != strategy {
                let message =
                    format!("Conflicting merge strategy '{strategy}' for parameter '{name}' in file '{file}'.");
                return Err(Diagnostic::new(Class::ConflictingMergeStrategyForParam, message));
            }
        }
        let Value::Map(mut old) = old else { return Ok(Value::Map(new)) };
        if old.is_empty() {
            return Ok(Value::Map(new));
        }
        for (name, value) in new {
            let Some(schema) = self.schemata.get(&name).filter(|_| !value.is_null()) else { continue };
            let merged = match self.strategies.get(&name).map(String::as_str) {
                Some(strategy @ (MERGE | DEEP_MERGE)) => {
                    merge_parameter(old.get(&name).cloned(), value, schema, &name, strategy == DEEP_MERGE)?
                }
                _ => value,
            };
            old.insert(name, merged);
        }
        Ok(Value::Map(old))
    }
}

/// The strategy of a file for a parameter: its own, else the one already determined, else the default of the file. An
/// invalid strategy is replaced by that default.
fn strategy(of_file: &Value, name: &str, decided: Option<&String>) -> Result<String, Diagnostic> {
    let strategies = match of_file {
        Value::Null => return Ok(OVERWRITE.to_owned()),
        Value::Map(strategies) => strategies,
        other => return Err(no_attribute(other, "get")),
    };
    let default = || strategies.get("default").map_or_else(|| OVERWRITE.to_owned(), text::str);
    let wanted = match (strategies.get(name), decided) {
        (Some(own), _) => text::str(own),
        (None, Some(decided)) => decided.clone(),
        (None, None) => return Ok(default()),
    };
    Ok(if [OVERWRITE, MERGE, DEEP_MERGE].contains(&wanted.as_str()) { wanted } else { default() })
}

fn merge_parameter(
    old: Option<Value>,
    new: Value,
    schema: &ParameterSchema,
    name: &str,
    deep: bool,
) -> Result<Value, Diagnostic> {
    let data_type = schema.typed.data_type;
    let new = match (data_type, new) {
        (DataType::Map, Value::Str(text)) if !text.is_empty() => {
            kiln_yaml::json::parse(&text).map_err(|error| invalid(&error.to_string()))?
        }
        (DataType::Map, new) | (_, new @ (Value::Str(_) | Value::List(_))) => new,
        _ => return Err(invalid("")),
    };
    match data_type {
        DataType::Map => merge_maps(old.unwrap_or_else(|| Value::Map(Map::new())), new, deep),
        DataType::List => merge_lists(old, new),
        DataType::String => joined(old.unwrap_or_else(|| "".into()), new, ""),
        DataType::Number => sum(old.unwrap_or(Value::Int(0)), new),
        _ => {
            let message = format!("Invalid merge strategy 'merge' for parameter '{name}'.");
            Err(Diagnostic::new(Class::InvalidMergeStrategyForParam, message))
        }
    }
}

fn merge_lists(old: Option<Value>, new: Value) -> Result<Value, Diagnostic> {
    match (old.filter(Value::is_truthy), new) {
        (None, new) => Ok(new),
        (Some(Value::List(mut old)), Value::List(new)) => {
            old.extend(new);
            Ok(Value::List(old))
        }
        (Some(old), Value::List(_)) => Err(no_attribute(&old, "extend")),
        (Some(old), new) => joined(old, new, ","),
    }
}

fn merge_maps(old: Value, new: Value, deep: bool) -> Result<Value, Diagnostic> {
    if !old.is_truthy() {
        return Ok(new);
    }
    let new = match new {
        Value::Map(new) => new,
        other => return Err(no_attribute(&other, "items")),
    };
    let mut old = match old {
        Value::Map(old) => old,
        _ if new.values().all(Value::is_null) => return Ok(old),
        Value::List(_) => {
            return Err(Diagnostic::new(Class::TypeError, "list indices must be integers or slices, not str"));
        }
        other => {
            let kind = other.kind().python_name();
            return Err(Diagnostic::new(Class::TypeError, format!("'{kind}' object does not support item assignment")));
        }
    };
    for (key, value) in new {
        let merged = match (deep, value) {
            (_, Value::Null) => continue,
            (true, value) => {
                let former = old.get(&key).cloned();
                match value {
                    Value::Map(_) => match former.filter(Value::is_truthy) {
                        Some(former) => merge_maps(former, value, deep)?,
                        None => value,
                    },
                    Value::List(_) => merge_lists(former, value)?,
                    Value::Str(_) => joined(former.unwrap_or_else(|| "".into()), value, "")?,
                    value => value,
                }
            }
            (false, value) => value,
        };
        old.insert(key, merged);
    }
    Ok(Value::Map(old))
}

/// Python's `separator.join([old, new])`.
fn joined(old: Value, new: Value, separator: &str) -> Result<Value, Diagnostic> {
    match (old, new) {
        (Value::Str(old), Value::Str(new)) => Ok(Value::Str(format!("{old}{separator}{new}"))),
        (Value::Str(_), other) => Err(no_text(1, &other)),
        (other, _) => Err(no_text(0, &other)),
    }
}

/// Python's `old + new`, where `new` is not a number: concatenates two strings or two lists.
fn sum(old: Value, new: Value) -> Result<Value, Diagnostic> {
    if let Some(sum) = number::add(&old, &new) {
        return Ok(sum);
    }
    match (old, new) {
        (Value::Str(old), Value::Str(new)) => Ok(Value::Str(old + &new)),
        (Value::List(mut old), Value::List(new)) => {
            old.extend(new);
            Ok(Value::List(old))
        }
        (old, new) => {
            let (old, new) = (old.kind().python_name(), new.kind().python_name());
            Err(Diagnostic::new(Class::TypeError, format!("unsupported operand type(s) for +: '{old}' and '{new}'")))
        }
    }
}

fn invalid(problem: &str) -> Diagnostic {
    Diagnostic::new(Class::ValueError, format!("Invalid parameter in environment {problem}."))
}

fn no_text(index: usize, found: &Value) -> Diagnostic {
    let kind = found.kind().python_name();
    Diagnostic::new(Class::TypeError, format!("sequence item {index}: expected str instance, {kind} found"))
}

fn no_attribute(value: &Value, name: &str) -> Diagnostic {
    let kind = value.kind().python_name();
    Diagnostic::new(Class::AttributeError, format!("'{kind}' object has no attribute '{name}'"))
}
