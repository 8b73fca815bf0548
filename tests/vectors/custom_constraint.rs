//! Vectors of the kind `custom_constraint`: constraints that need no cloud.

use kiln_resource::constraint::Judge;
use kiln_template::constraint::CustomConstraints;
use kiln_value::value;

use crate::case::{Case, Outcome};

/// A moment in 2026, between the times that the vectors call past and to come.
const NOW: f64 = 1_790_000_000.0;

/// Runs one.
pub(crate) fn run(case: &Case) -> Outcome {
    let judge = Judge { now: NOW, ..Judge::default() };
    let name = case.input("constraint").as_str().unwrap_or_default();
    let actual = match judge.validate(name, case.input("value")) {
        Ok(()) => value!({"valid": true}),
        Err(message) => value!({"valid": false, "message": message}),
    };
    case.judge(&actual)
}
