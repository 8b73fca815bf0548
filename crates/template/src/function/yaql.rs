//! `yaql`.

use kiln_value::{Class, Diagnostic, Map, Value};
use kiln_yaql::{Expression, Limits};

use super::{Function, fault};
use crate::expr::{Call, Context, Node, validate_args};

/// A YAQL expression evaluated on data.
#[derive(Debug)]
pub(crate) struct Yaql;

impl Function for Yaql {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let Some(map) = args.as_map() else {
            return Err(fault::type_error(format!("Arguments to \"{name}\" must be a map.")));
        };
        if map.contains_key("expression") && map.keys().all(|key| key == "expression" || key == "data") {
            return Ok(());
        }
        Err(fault::key_error(format!(
            "\"{name}\" syntax should be {name}:
              expression: $.data.var1.sum()
              data:
                var1: [3, 2, 1]"
        )))
    }

    fn validate(&self, call: &Call, context: &Context) -> Result<(), Diagnostic> {
        validate_args(call, context)?;
        match call.args.as_map().and_then(|map| map.get("expression")) {
            Some(Node::Call(_)) | None => Ok(()),
            Some(expression) => parse(call.name, &expression.source()).map(drop),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let arg = |key: &str| call.args.as_map().and_then(|map| map.get(key)).map(|node| node.resolve(context));
        let expression = arg("expression").transpose()?.unwrap_or_default();
        let expression = parse(call.name, &expression)?;
        let data = arg("data").unwrap_or_else(|| Ok(Value::Map(Map::new())))?;
        evaluate(&expression, data, context.bound().yaql()).map(Some)
    }
}

/// Parses the expression; an invalid one is a `ValueError` with Heat's message.
fn parse(name: &str, expression: &Value) -> Result<Expression, Diagnostic> {
    let Value::Str(expression) = expression else {
        return Err(fault::type_error(format!("The \"expression\" argument to {name} must contain a string.")));
    };
    kiln_yaql::parse(expression).map_err(|error| {
        if error.is_syntax() {
            fault::value_error(format!("Bad expression {error}."))
        } else {
            Diagnostic::new(Class::of(error.class), error.message)
        }
    })
}

/// The value of the expression with `$` = `{"data": data}`.
fn evaluate(expression: &Expression, data: Value, limits: &Limits) -> Result<Value, Diagnostic> {
    let input = Value::from_iter([("data", data)]);
    expression.evaluate(&input, limits).map_err(|error| Diagnostic::new(Class::of(error.class), error.message))
}
