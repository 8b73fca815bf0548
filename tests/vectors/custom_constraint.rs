//! Vectors of the kind `custom_constraint`: constraints that need no cloud.

use kiln_resource::constraint::Judge;
use kiln_template::constraint::CustomConstraints;
use kiln_value::value;

use crate::case::{Case, Outcome};

/// A time in 2026, between the past and future times in the vectors.
const NOW: f64 = 1_790_000_000.0;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let judge = Judge { now: NOW, ..Judge::default() };
    let name = case.input("constraint").as_str().unwrap_or_default();
    let actual = match judge.validate(name, case.input("value")) {
        Ok(()) => value!({"valid": true}),
        Err(message) => value!({"valid": false, "message": message}),
    };
    case.judge(&actual)
}
