//! Parsing of environments.

use kiln_template::environment;
use kiln_value::Value;

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let text = case.input("text").as_str().unwrap_or_default();
    let read = environment::parse(text).map(|mut sections| {
        environment::fill(&mut sections);
        Value::Map(sections)
    });
    case.judge(&Value::Map(either(read, "value", "error")))
}
