//! Merging of environment files.

use kiln_template::{Files, Template, environment};
use kiln_value::{Value, text};

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let mut sections = case.input("initial_environment").as_map().cloned().unwrap_or_default();
    let names: Vec<String> =
        case.input("environment_files").as_list().unwrap_or_default().iter().map(text::str).collect();
    let files = case.input("files").as_map().into_iter().flatten();
    let files = Files(files.map(|(name, file)| (name.clone(), text::str(file))).collect());
    let merged = Template::from_value(case.input("template").clone())
        .and_then(|template| environment::merge(&names, &files, &mut sections, &template))
        .map(|()| Value::Map(sections));
    case.judge(&Value::Map(either(merged, "environment", "error")))
}
