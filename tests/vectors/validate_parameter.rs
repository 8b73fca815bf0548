//! Parameters in the format of the validate call.

use kiln_value::{Map, Value};

use crate::case::{Case, Outcome};
use crate::expectation::error;
use crate::parameters::parameters;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let actual = match parameters(case) {
        Ok(parameters) => ("parameters", Value::Map(parameters.validate_view())),
        Err(problem) => ("error", error(&problem)),
    };
    case.judge(&Value::Map(Map::from_iter([(actual.0.to_owned(), actual.1)])))
}
