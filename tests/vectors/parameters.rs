//! Parameters: schemata, values, representations and validation.

use kiln_resource::constraint::Judge;
use kiln_template::StackIdentity;
use kiln_template::Template;
use kiln_template::parameter::Parameters;
use kiln_value::{Diagnostic, Map, Value};

use crate::case::{Case, Outcome};
use crate::expectation::{either, error};

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let mut actual = Map::new();
    match parameters(case) {
        Err(problem) => _ = actual.insert("schema_error".to_owned(), error(&problem)),
        Ok(parameters) => {
            match parameters.validate(&Judge::default(), true).first() {
                None => actual.insert("valid".to_owned(), true.into()),
                Some(problem) => actual.insert("validate_error".to_owned(), error(problem)),
            };
            let all = case.input("show_pseudo").is_truthy();
            let shown = || parameters.iter().filter(|p| all || parameters.schemata().contains_key(p.name()));
            let values = shown().map(|p| (p.name(), Value::Map(either(p.value().cloned(), "value", "error"))));
            actual.insert("values".to_owned(), values.collect());
            actual.insert("texts".to_owned(), shown().map(|p| (p.name(), p.text().ok())).collect());
        }
    }
    case.judge(&Value::Map(actual))
}

/// The parameters of a vector's template, for each version.
pub(crate) fn parameters(case: &Case) -> Result<Parameters, Diagnostic> {
    let identity = case.input("stack");
    let part = |key: &str, default: &str| identity.str_at(key).unwrap_or(default).to_owned();
    let identity = StackIdentity::new(
        part("tenant", "tenant-1"),
        part("stack_name", "teststack"),
        part("stack_id", "11111111-2222-4333-8444-555555555555"),
    )?;
    let env = case.input("env");
    let given = |key: &str| env.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
    let template = Template::from_value(case.input("template").clone())?;
    template.parameters(Some(&identity), &given("parameters"), &given("parameter_defaults"))
}
