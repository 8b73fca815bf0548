//! The version of a template.

use kiln_template::Template;
use kiln_value::{Map, Value};

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let version = Template::from_value(case.input("template").clone()).map(|template| {
        let (key, version) = template.version().pair();
        [key, version].into_iter().collect::<Value>()
    });
    let actual: Map = either(version, "version", "error");
    case.judge(&Value::Map(actual))
}
