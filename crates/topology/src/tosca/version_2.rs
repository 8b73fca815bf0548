//! The syntax of TOSCA 2.0 in the form of the older versions: functions with a dollar, validation clauses.

use kiln_value::{Map, Path, Value, value};

use super::function::FUNCTIONS;
use crate::Refusal;

/// The version with this syntax.
const VERSION: &str = "tosca_2_0";

/// Rewrites a document of TOSCA 2.0; others are left as they are. Returns what has no older form.
pub(super) fn rewrite(document: &mut Value) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if document.str_at("tosca_definitions_version") == Some(VERSION) {
        walk(document, &Path::root(), &mut refusals);
    }
    refusals
}

fn walk(value: &mut Value, at: &Path, refusals: &mut Vec<Refusal>) {
    match value {
        Value::List(items) => {
            items.iter_mut().enumerate().for_each(|(index, item)| walk(item, &at.index(index), refusals));
        }
        Value::Map(map) => {
            if map.contains_key("type")
                && let Some(clause) = map.get("validation").and_then(Value::as_map)
            {
                let mut constraints = Vec::new();
                match constrain(clause, &mut constraints) {
                    Ok(()) => {
                        map.shift_remove("validation");
                        map.insert("constraints".to_owned(), constraints.into());
                    }
                    Err(word) => {
                        let message = format!("The validation \"{word}\" is not supported here.");
                        refusals.push(Refusal::new("unsupported", &at.key("validation"), message));
                        map.shift_remove("validation");
                    }
                }
            }
            let only = map.first().filter(|_| map.len() == 1).and_then(|(key, _)| key.strip_prefix('$'));
            if let Some(name) = only.filter(|name| !name.starts_with('$')).map(str::to_owned) {
                if FUNCTIONS.contains(&name.as_str()) {
                    let argument = map.shift_remove_index(0).map(|(_, value)| value);
                    map.insert(name, argument.unwrap_or_default());
                } else {
                    let message = format!("The function \"${name}\" is not supported.");
                    refusals.push(Refusal::new("unsupported", at, message));
                }
            }
            for (key, value) in map.iter_mut() {
                walk(value, &at.key(key), refusals);
            }
        }
        _ => {}
    }
}

/// Adds the constraints of a validation clause.
///
/// # Errors
/// The function that has no constraint.
fn constrain(clause: &Map, constraints: &mut Vec<Value>) -> Result<(), String> {
    let Some((function, arguments)) = clause.first().filter(|_| clause.len() == 1) else {
        return Err("more than one function".to_owned());
    };
    let refused = || function.clone();
    let arguments = arguments.as_list().ok_or_else(refused)?;
    if function == "$and" {
        for part in arguments {
            constrain(part.as_map().ok_or_else(refused)?, constraints)?;
        }
        return Ok(());
    }
    let [subject, wanted] = arguments else { return Err(refused()) };
    let operator = match (function.as_str(), Subject::of(subject).ok_or_else(refused)?) {
        ("$equal", Subject::Value) => "equal",
        ("$greater_than", Subject::Value) => "greater_than",
        ("$greater_or_equal", Subject::Value) => "greater_or_equal",
        ("$less_than", Subject::Value) => "less_than",
        ("$less_or_equal", Subject::Value) => "less_or_equal",
        ("$in_range", Subject::Value) => "in_range",
        ("$valid_values", Subject::Value) => "valid_values",
        ("$matches", Subject::Value) => "pattern",
        ("$equal", Subject::Length) => "length",
        ("$greater_or_equal", Subject::Length) => "min_length",
        ("$less_or_equal", Subject::Length) => "max_length",
        _ => return Err(refused()),
    };
    constraints.push(value!({operator: (wanted.clone())}));
    Ok(())
}

/// What a function of a validation clause compares.
enum Subject {
    Value,
    Length,
}

impl Subject {
    fn of(argument: &Value) -> Option<Self> {
        let is_value = |argument: &Value| argument.as_str() == Some("$value") || argument.get("$value").is_some();
        if is_value(argument) {
            return Some(Self::Value);
        }
        match argument.get("$length")? {
            Value::List(of) => matches!(of.as_slice(), [only] if is_value(only)).then_some(Self::Length),
            of => is_value(of).then_some(Self::Length),
        }
    }
}
