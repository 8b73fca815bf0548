//! `if` and the functions of conditions: `equals`, `not`, `and`, `or`.

use kiln_value::{Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// `if` and `Fn::If`. The parser has decided it: the arguments are the branch taken.
#[derive(Debug)]
pub(crate) struct If;

impl Function for If {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        call.args.resolve_nullable(context)
    }

    fn is_macro(&self) -> bool {
        true
    }
}

/// An `if` with a condition that depends on an unknown value, which is its first argument; the others are the branches.
#[derive(Debug)]
pub(crate) struct UndecidedIf;

impl Function for UndecidedIf {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        call.args.as_list().and_then(<[Node]>::first).map(|unknown| unknown.resolve(context)).transpose()
    }
}

/// Whether a condition is true: a boolean, or the name of a condition of the template.
pub(crate) fn holds(condition: &Value, context: &Context) -> Result<bool, Diagnostic> {
    match condition {
        Value::Bool(truth) => Ok(*truth),
        Value::Unknown(unknown) => Err(unknown.undecided("A condition")),
        name => context.bound().conditions()?.decide(name, context),
    }
}

/// As [`holds`]: a boolean, or the unknown value that the condition depends on.
pub(crate) fn judge(condition: &Value, context: &Context) -> Result<Value, Diagnostic> {
    match condition {
        Value::Bool(_) | Value::Unknown(_) => Ok(condition.clone()),
        name => context.bound().conditions()?.judge(name, context),
    }
}

/// `equals` and `Fn::Equals`: Python's equality.
#[derive(Debug)]
pub(crate) struct Equals;

impl Function for Equals {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        match args.as_list() {
            Some([_, _]) => Ok(()),
            _ => Err(fault::value_error(format!("Arguments to \"{name}\" must be of the form: [value_1, value_2]"))),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let [left, right] = call.args.unpack()?;
        Ok(Some(Value::Bool(left.resolve(context)? == right.resolve(context)?)))
    }
}

/// `not` expects a condition, `Fn::Not` a list with one.
#[derive(Debug)]
pub(crate) struct Not {
    pub(crate) listed: bool,
}

impl Function for Not {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        if self.listed {
            match args.as_list() {
                Some([_]) => Ok(()),
                _ => Err(fault::value_error(format!("Arguments to \"{name}\" must be of the form: [condition]"))),
            }
        } else if args.is_null() {
            Err(fault::value_error(format!("Argument to \"{name}\" must be a condition")))
        } else {
            Ok(())
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let condition = match call.args.as_list() {
            Some([condition]) if self.listed => condition,
            _ => &call.args,
        };
        Ok(Some(match judge(&condition.resolve(context)?, context)? {
            unknown @ Value::Unknown(_) => unknown,
            truth => Value::Bool(!truth.is_truthy()),
        }))
    }
}

/// `and` and `Fn::And`: stops at the first false condition.
#[derive(Debug)]
pub(crate) struct All;

impl Function for All {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        at_least_two(name, args)
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        combine(call, context, false)
    }
}

/// `or` and `Fn::Or`: stops at the first true condition.
#[derive(Debug)]
pub(crate) struct Any;

impl Function for Any {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        at_least_two(name, args)
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        combine(call, context, true)
    }
}

fn at_least_two(name: &str, args: &Node) -> Result<(), Diagnostic> {
    match args.as_list() {
        None => Err(fault::value_error(format!("Arguments to \"{name}\" must be a list of conditions"))),
        Some(conditions) if conditions.len() < 2 => {
            Err(fault::value_error(format!("The minimum number of condition arguments to \"{name}\" is 2.")))
        }
        Some(_) => Ok(()),
    }
}

/// Whether a condition of the list is true (`or`), or all are (`and`): `decisive` is the value of one that decides. As in
/// Heat, all are resolved before the first is evaluated.
fn combine(call: &Call, context: &Context, decisive: bool) -> Result<Option<Value>, Diagnostic> {
    let mut result = Value::Bool(!decisive);
    if let Value::List(conditions) = call.resolved_args(context)? {
        for condition in &conditions {
            match judge(condition, context)? {
                unknown @ Value::Unknown(_) => result = unknown,
                truth if truth.is_truthy() == decisive => return Ok(Some(truth)),
                _ => {}
            }
        }
    }
    Ok(Some(result))
}
