//! Parameters as the validate call shows them.

use kiln_value::{Map, Value};

use crate::case::{Case, Outcome};
use crate::expectation::error;
use crate::parameters::parameters;

/// Runs one.
pub(crate) fn run(case: &Case) -> Outcome {
    let actual = match parameters(case) {
        Ok(parameters) => ("parameters", Value::Map(parameters.validate_view())),
        Err(problem) => ("error", error(&problem)),
    };
    case.judge(&Value::Map(Map::from_iter([(actual.0.to_owned(), actual.1)])))
}
