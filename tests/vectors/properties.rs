//! Vectors of the kind `properties`: validity, and the value or error of each property.

use kiln_resource::constraint::Judge;
use kiln_resource::properties::Judged;
use kiln_resource::{properties, translation};
use kiln_value::path::Segment;
use kiln_value::{Diagnostic, Map, Path, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::{either, error};
use crate::schema;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let schema = schema::schema(case.input("schema"));
    if let Some(problem) = schema.values().find_map(|property| property.check().err()) {
        return case.judge(&value!({"schema_error": (error(&problem))}));
    }
    let rules = schema::translation(case.input("translation_rules"));
    let data = case.input("data").as_map().cloned().unwrap_or_default();
    let given = data.clone();
    // The paths of Heat's errors contain the section.
    let at = if case.input("section").is_truthy() { Path::root().key("Properties") } else { Path::root() };
    let (translated, wrong) = translation::attempt(&rules, data.clone(), &translation::Answers::new());
    let faults = match translation::apply(&rules, data, &translation::Answers::new(), &at) {
        Ok(_) => {
            let moved = translation::moved(&rules, &given, &translated);
            let is_moved = |path: &Path| moved.iter().any(|place| path.0.starts_with(&place.0));
            let judged = |path: &Path| if is_moved(path) { Judged::Not } else { Judged::Wholly };
            properties::validate(&schema, &translated, &judged, &Judge::default(), &at)
        }
        Err(problem) => vec![problem],
    };
    let mut actual = match faults.first() {
        None => Map::from([("valid".to_owned(), true.into())]),
        Some(problem) => Map::from([("validate_error".to_owned(), error(problem))]),
    };
    let value = |name: &str, property| {
        let below = |problem: &&Diagnostic| problem.path.0.first() == Some(&Segment::Key(name.to_owned()));
        match wrong.iter().find(below) {
            Some(problem) => Err(problem.clone()),
            None => properties::value(name, property, &translated),
        }
    };
    let values: Value =
        schema.iter().map(|(name, p)| (name.clone(), Value::from(either(value(name, p), "value", "error")))).collect();
    actual.insert("values".to_owned(), values);
    case.judge(&actual.into())
}
