//! Whole templates: sections, conditions, definitions, outputs.

use kiln_template::{Definition, Output};
use kiln_value::{Diagnostic, Map, Path, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::{either, error};
use crate::stack::Stack;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let stack = match Stack::of(case) {
        Ok(stack) => stack,
        Err(problem) => return case.judge(&value!({"template_error": (error(&problem))})),
    };
    let bound = &stack.bound;
    let sections = bound.template().validate_sections().map(|()| true.into());
    let mut actual = either(sections, "template_valid", "template_validate_error");

    match conditions(&stack) {
        Ok(shown) => actual.extend(shown),
        Err(problem) => _ = actual.insert("conditions_error".to_owned(), error(&problem)),
    }
    let definitions = bound.definitions();
    let definitions =
        definitions.map(|all| all.iter().map(|(name, d)| (name.as_str(), definition(d, &stack))).collect());
    actual.extend(either(definitions, "resources", "resources_error"));
    let outputs = bound.outputs().map(|all| all.iter().map(|(name, o)| (name.as_str(), output(o, &stack))).collect());
    actual.extend(either(outputs, "outputs", "outputs_error"));
    case.judge(&Value::Map(actual))
}

fn conditions(stack: &Stack) -> Result<Map, Diagnostic> {
    let conditions = stack.bound.conditions()?;
    let mut shown = Map::new();
    if let Err(problem) = conditions.validate(&stack.bound) {
        shown.insert("conditions_validate_error".to_owned(), error(&problem));
    }
    let outcome = |name| Value::Map(either(conditions.holds(&stack.bound, name).map(Value::from), "enabled", "error"));
    let outcomes: Map = conditions.names().map(|name| (name.to_owned(), outcome(name))).collect();
    if !outcomes.is_empty() {
        shown.insert("conditions".to_owned(), Value::Map(outcomes));
    }
    Ok(shown)
}

fn definition(definition: &Definition, stack: &Stack) -> Value {
    let mut shown = Map::from_iter([
        ("type".to_owned(), Value::from(&definition.resource_type)),
        ("deletion_policy".to_owned(), definition.deletion_policy().as_str().into()),
        ("explicit_depends_on".to_owned(), definition.depends_on.iter().collect()),
    ]);
    let required = definition.requires(stack).map(|mut names| {
        names.sort_unstable();
        names.into_iter().collect()
    });
    shown.extend(either(required, "required_resources", "required_resources_error"));
    shown.extend(either(definition.properties.value(stack), "properties", "properties_error"));
    let external_id = definition.external_id.clone().unwrap_or_default();
    let optional = [
        ("metadata", &definition.metadata),
        ("update_policy", &definition.update_policy),
        ("external_id", &external_id),
    ];
    for (key, expr) in optional {
        if !expr.is_null() {
            shown.extend(either(expr.value(stack), key, &format!("{key}_error")));
        }
    }
    Value::Map(shown)
}

fn output(output: &Output, stack: &Stack) -> Value {
    let mut shown = Map::from_iter([("description".to_owned(), Value::from(&output.description))]);
    if let Err(problem) = output.value.validate(stack, &Path::root().key("Value")) {
        shown.insert("validate_error".to_owned(), error(&problem));
    }
    shown.extend(either(output.value.value(stack), "value", "value_error"));
    Value::Map(shown)
}
