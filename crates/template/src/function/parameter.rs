//! `get_param`, and CFN's `Ref` to a parameter.

use std::borrow::Cow;

use kiln_value::{Class, Diagnostic, Subject, Value, number, text};

use super::{Function, fault};
use crate::expr::{Call, Context};
use crate::hint::hinted;
use crate::parameter::Parameter;
use crate::scope::{character, position};

/// `get_param`: the value of a parameter, or of a path in it; an invalid path results in an empty string.
#[derive(Debug)]
pub(crate) struct GetParam;

impl Function for GetParam {
    fn reads_stack(&self) -> bool {
        true
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        Ok(self.view(call, context)?.map(Cow::into_owned))
    }

    fn view<'a>(&self, call: &'a Call, context: &Context<'a>) -> Result<Option<Cow<'a, Value>>, Diagnostic> {
        let args = call.args.view(context)?.unwrap_or_default();
        let name = call.name;
        if !args.is_truthy() {
            return Err(fault::value_error(format!("Function \"{name}\" must have arguments")));
        }
        let (parameter, path) = match &*args {
            name @ Value::Str(_) => (name, [].as_slice()),
            Value::List(list) => match list.split_first() {
                Some(split) => split,
                None => return Ok(Some(Cow::default())),
            },
            _ => return Err(fault::type_error(format!("Argument to \"{name}\" must be string or list"))),
        };
        let Value::Str(parameter) = parameter else {
            return Err(fault::type_error(format!("Parameter name in \"{name}\" must be string")));
        };
        let Some(value) = context.bound().parameter(parameter)? else {
            let message = format!("The Parameter ({parameter}) was not provided.");
            let error = Diagnostic::new(Class::UserParameterMissing, message).about(Subject::Name(parameter.clone()));
            return Err(hinted(error, parameter, context.bound().parameters().iter().map(Parameter::name)));
        };
        let found = path.iter().try_fold(Cow::Borrowed(value), step);
        Ok(Some(found.unwrap_or_else(|| Cow::Owned(Value::from("")))))
    }
}

/// One step into the value of a parameter. Unlike in `get_attr`, strings of digits index lists.
fn step<'a>(collection: Cow<'a, Value>, key: &Value) -> Option<Cow<'a, Value>> {
    let index = || match key {
        Value::Str(text) => number::parse_int(text),
        Value::Int(_) | Value::Bool(_) => Some(key.clone()),
        _ => None,
    };
    match collection {
        Cow::Borrowed(Value::Map(map)) => map.get(key.as_str()?).map(Cow::Borrowed),
        Cow::Borrowed(Value::List(list)) => list.get(position(&index()?, list.len())?).map(Cow::Borrowed),
        // A character of a string is a string.
        text => character(text.as_str()?, &index()?).map(Cow::Owned),
    }
}

/// `Ref` to a parameter.
#[derive(Debug)]
pub(crate) struct ParamRef;

impl Function for ParamRef {
    fn reads_stack(&self) -> bool {
        true
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.resolved_args(context)?;
        fault::check_hashable(&name)?;
        let value = match &name {
            Value::Str(name) => context.bound().parameter(name)?,
            _ => None,
        };
        value.cloned().map(Some).ok_or_else(|| {
            let bound = context.bound();
            let known = bound.parameters().iter().map(Parameter::name).chain(bound.template().resource_names());
            let name = text::str(&name);
            hinted(fault::bad_reference(&name, "unknown"), &name, known)
        })
    }
}
