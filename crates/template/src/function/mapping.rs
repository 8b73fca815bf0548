//! `Fn::FindInMap`.

use kiln_value::{Diagnostic, Value, text};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// A value of the template's `Mappings`.
#[derive(Debug)]
pub(crate) struct FindInMap;

impl Function for FindInMap {
    fn summary(&self) -> &'static str {
        "A value of the template's mappings."
    }

    fn check(&self, _name: &str, args: &Node) -> Result<(), Diagnostic> {
        args.unpack::<3>().map(drop).map_err(|error| match &*error.class {
            "ValueError" => fault::key_error(&error.message),
            _ => error,
        })
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let mut found = context.bound().mappings();
        for key in call.args.unpack::<3>()? {
            let key = key.resolve(context)?;
            found = match (&key, found) {
                (Value::Str(name), Value::Map(map)) => {
                    map.get(name).ok_or_else(|| Diagnostic::new("KeyError", text::repr(&key)))?
                }
                (Value::List(_) | Value::Map(_), _) => {
                    return Err(fault::type_error(format!("unhashable type: '{}'", fault::type_name(&key))));
                }
                (_, Value::Map(_)) => return Err(Diagnostic::new("KeyError", text::repr(&key))),
                (_, other) => {
                    let kind = fault::type_name(other);
                    return Err(fault::type_error(format!("'{kind}' object is not subscriptable")));
                }
            };
        }
        Ok(Some(found.clone()))
    }
}
