//! Template snippets: parsed, validated, resolved.

use kiln_template::{AttributeUse, Expr, Wanted};
use kiln_value::{Map, Path, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::{either, error};
use crate::stack::Stack;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let stack = match Stack::of(case) {
        Ok(stack) => stack,
        Err(problem) => return case.judge(&value!({"template_error": (error(&problem))})),
    };
    let parse = match case.input("context").as_str() {
        Some("condition") => Expr::parse_condition,
        _ => Expr::parse,
    };
    let expr = match parse(&stack.bound, case.input("snippet"), &Path::root()) {
        Ok(expr) => expr,
        Err(problem) => return case.judge(&value!({"parse_error": (error(&problem))})),
    };
    let mut actual = Map::new();
    if let Err(problem) = expr.validate(&stack, &Path::root()) {
        actual.insert("validate_error".to_owned(), error(&problem));
    }
    if case.input("report_dependencies").is_truthy() {
        let names = expr.requires(&stack, "").map(|mut names| {
            names.sort_unstable();
            names.into_iter().collect()
        });
        actual.extend(either(names, "dependencies", "dependencies_error"));
        let uses = expr.attributes(&stack).iter().map(shown).collect();
        actual.insert("attributes_required".to_owned(), uses);
    }
    actual.extend(either(expr.value(&stack), "value", "resolve_error"));
    case.judge(&Value::Map(actual))
}

/// The format of attributes in the vectors: name, `*` for all, or name and path.
fn shown(attribute: &AttributeUse) -> Value {
    let wanted = match &attribute.wanted {
        Wanted::All => value!("*"),
        Wanted::One { name, path } if path.is_empty() => name.clone(),
        Wanted::One { name, path } => std::iter::once(name).chain(path).collect(),
    };
    Value::List(vec![Value::from(&attribute.resource), wanted])
}
