//! String functions: `str_split`, `Fn::Split`, `Fn::Base64`.

use kiln_value::{Class, Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};
use crate::function::fault::type_name;
use crate::scope::position;

fn pieces(text: &str, delimiter: &str) -> Result<Vec<Value>, Diagnostic> {
    if delimiter.is_empty() {
        return Err(fault::value_error("empty separator"));
    }
    Ok(text.split(delimiter).map(Value::from).collect())
}

/// `Fn::Split`: a delimiter, which must not be a call, and a string.
#[derive(Debug)]
pub(crate) struct Split;

impl Function for Split {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let usage = || format!("Incorrect arguments to \"{name}\" should be: \"{name}\" : [ \",\", \"str1,str2\"]]");
        if args.as_str().is_some() || args.as_map().is_some() {
            return Err(fault::type_error(usage()));
        }
        args.unpack::<2>().map(drop).map_err(|error| match error.class {
            Class::ValueError => fault::value_error(usage()),
            _ => error,
        })
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let [delimiter, text] = call.args.unpack()?;
        let text = text.resolve(context)?;
        let Some(delimiter) = delimiter.as_str() else {
            return Err(fault::type_error(format!("Delimiter for {} must be string", call.name)));
        };
        match &text {
            Value::Str(text) => Ok(Some(Value::List(pieces(text, delimiter)?))),
            other => {
                Err(fault::type_error(format!("String to split must be string; got <class '{}'>", type_name(other))))
            }
        }
    }
}

/// `str_split`: a delimiter, a string, and optionally the index of a part. A null string results in null.
#[derive(Debug)]
pub(crate) struct StrSplit;

impl StrSplit {
    fn usage(name: &str) -> String {
        format!("should be: \"{name}\" : [ \",\", \"apples,pears\", <index>]")
    }
}

impl Function for StrSplit {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        if args.as_str().is_some() || args.as_map().is_some() {
            return Err(fault::type_error(format!("Incorrect arguments to \"{name}\" {}", Self::usage(name))));
        }
        Ok(())
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let args = call.resolved_args(context)?;
        if args.as_map().is_some() {
            // Python looks up the key 0 in the map.
            return Err(Diagnostic::new(Class::KeyError, "0"));
        }
        let Some([delimiter, text, rest @ ..]) = args.as_list() else {
            return Err(fault::value_error(format!("Incorrect arguments to \"{name}\" {}", Self::usage(name))));
        };
        let mut pieces = match (text, delimiter) {
            (Value::Null, _) => return Ok(Some(Value::Null)),
            (Value::Str(text), Value::Str(delimiter)) => pieces(text, delimiter)?,
            (Value::Str(text), Value::Null) => text
                .split(|c: char| kiln_value::number::strip(c.encode_utf8(&mut [0; 4])).is_empty())
                .filter(|word| !word.is_empty())
                .map(Value::from)
                .collect(),
            (Value::Str(_), other) => {
                return Err(fault::type_error(format!("must be str or None, not {}", type_name(other))));
            }
            (other, _) => return Err(fault::no_attribute(other, "split")),
        };
        let Some(index) = rest.first() else { return Ok(Some(Value::List(pieces))) };
        let index = fault::int(index).map_err(|error| match error.class {
            Class::ValueError => fault::value_error(format!("Incorrect index to \"{name}\" {}", Self::usage(name))),
            _ => error,
        })?;
        match position(&index, pieces.len()) {
            Some(index) => Ok(Some(pieces.swap_remove(index))),
            None => Err(fault::value_error(format!(
                "Incorrect index to \"{name}\" should be between 0 and {}",
                pieces.len() - 1
            ))),
        }
    }
}

/// `Fn::Base64`: returns the string unchanged, since Heat accepts plain user data.
#[derive(Debug)]
pub(crate) struct Base64;

impl Function for Base64 {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        match call.resolved_args(context)? {
            text @ Value::Str(_) => Ok(Some(text)),
            _ => Err(fault::type_error(format!("\"{}\" argument must be a string", call.name))),
        }
    }
}
