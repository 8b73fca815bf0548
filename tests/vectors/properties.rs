//! Vectors of the kind `properties`: validity, and the value or error of each property.

use kiln_resource::constraint::Judge;
use kiln_resource::{properties, translation};
use kiln_value::{Map, Path, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::{either, error};
use crate::schema;

/// Runs one.
pub(crate) fn run(case: &Case) -> Outcome {
    let schema = schema::schema(case.input("schema"));
    if let Some(problem) = schema.values().find_map(|property| property.check().err()) {
        return case.judge(&value!({"schema_error": (error(&problem))}));
    }
    let rules = schema::translation(case.input("translation_rules"));
    let data = case.input("data").as_map().cloned().unwrap_or_default();
    // Heat names the section in the paths of its errors.
    let at = if case.input("section").is_truthy() { Path::root().key("Properties") } else { Path::root() };
    let translated = match translation::apply(&rules, data, &translation::Answers::new(), &at) {
        Ok(data) => data,
        Err(problem) => return case.judge(&value!({"validate_error": (error(&problem))})),
    };
    let faults = properties::validate(&schema, &translated, &|_| false, &Judge::default(), &at);
    let mut actual = match faults.first() {
        None => Map::from([("valid".to_owned(), true.into())]),
        Some(problem) => Map::from([("validate_error".to_owned(), error(problem))]),
    };
    let values: Value = schema
        .iter()
        .map(|(name, p)| (name.clone(), either(properties::value(name, p, &translated), "value", "error")))
        .collect();
    actual.insert("values".to_owned(), values);
    case.judge(&actual.into())
}
