//! `Fn::Select`.

use kiln_value::{Class, Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};
use crate::scope::position;

/// An item of a list, or the value of a key of a map; a string is parsed as JSON. A missing item results in an empty
/// string.
#[derive(Debug)]
pub(crate) struct Select;

impl Function for Select {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        args.unpack::<2>().map(drop).map_err(|error| match error.class {
            Class::ValueError => {
                fault::value_error(format!("Arguments to \"{name}\" must be of the form [index, collection]"))
            }
            _ => error,
        })
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let [index, collection] = call.args.unpack()?;
        let index = index.resolve(context)?;
        let nothing = || Value::from("");
        let collection = match collection.resolve(context)? {
            Value::Str(text) if text.is_empty() => return Ok(Some(nothing())),
            Value::Str(text) => {
                kiln_yaml::json::parse(&text).map_err(|error| fault::value_error(format!("\"{name}\": {error}")))?
            }
            other => other,
        };
        match collection {
            Value::Null => Ok(Some(nothing())),
            Value::Map(mut map) => match index.as_str() {
                Some(key) => Ok(Some(map.swap_remove(key).unwrap_or_else(nothing))),
                None => Err(fault::type_error(format!("Index to \"{name}\" must be a string"))),
            },
            Value::List(mut list) => {
                let Ok(index) = fault::int(&index) else {
                    return Err(fault::type_error(format!("Index to \"{name}\" must be an integer")));
                };
                Ok(Some(position(&index, list.len()).map_or_else(nothing, |at| list.swap_remove(at))))
            }
            _ => Err(fault::type_error(format!("Arguments to {name} not fully resolved"))),
        }
    }
}
