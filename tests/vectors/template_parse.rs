//! Parsing of templates.

use kiln_template::source;
use kiln_value::Value;

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let text = case.input("text").as_str().unwrap_or_default();
    let read = source::parse(text, source::ROOT, source::MAX_TEMPLATE_SIZE).map(|document| document.value);
    if case.expect.get("not_json").is_some() {
        // Non-string keys cannot be represented in JSON: only check that parsing succeeds.
        return if read.is_ok() { Outcome::Passed } else { Outcome::Failed("refused".to_owned()) };
    }
    case.judge(&Value::Map(either(read, "value", "error")))
}
