//! Vectors of the kind `structured_config`: inputs of a structured configuration.

use kiln_drivers::heat::structured::substitute;

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let inputs = case.input("inputs").as_map().cloned().unwrap_or_default();
    let key = case.input("input_key").as_str().unwrap_or_default();
    let strict = case.input("input_values_validate").as_str() == Some("STRICT");
    case.judge(&either(substitute(case.input("config"), &inputs, key, strict), "value", "error").into())
}
