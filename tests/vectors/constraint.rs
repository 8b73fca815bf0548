//! Values with constraints, and invalid schemata.

use kiln_resource::constraint::Judge;
use kiln_template::constraint::{Constraint, check_all};
use kiln_value::{Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::error;
use crate::schema;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let written = case.input("schema");
    let entries = written.get("constraints").and_then(Value::as_list).unwrap_or_default();
    if let Some(problem) = entries.iter().find_map(|entry| Constraint::from_hot(entry, true).err()) {
        return case.judge(&value!({"schema_error": (error(&problem))}));
    }
    let property = schema::property(written);
    if let Err(problem) = property.check() {
        return case.judge(&value!({"schema_error": (error(&problem))}));
    }
    // Vectors about the schema do not check the value.
    if case.group == "schema_validity" {
        return case.judge(&value!({"valid": true}));
    }
    match check_all(&property.constraints, case.input("value"), property.kind.property(), &Judge::default()) {
        Ok(()) => case.judge(&value!({"valid": true})),
        Err(problem) => case.judge(&value!({"error": (error(&problem))})),
    }
}
