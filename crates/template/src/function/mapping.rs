//! `Fn::FindInMap`.

use kiln_value::{Class, Diagnostic, Value, text};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// A value of the template's `Mappings`.
#[derive(Debug)]
pub(crate) struct FindInMap;

impl Function for FindInMap {
    fn check(&self, _name: &str, args: &Node) -> Result<(), Diagnostic> {
        args.unpack::<3>().map(drop).map_err(|error| match error.class {
            Class::ValueError => fault::key_error(&error.text),
            _ => error,
        })
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let [map, key, value] = call.args.unpack()?;
        let found = entry(context.bound().mappings(), &map.resolve(context)?)?;
        let (key, value) = (key.resolve(context)?, value.resolve(context)?);
        Ok(Some(entry(entry(found, &key)?, &value)?.clone()))
    }
}

/// Python's `map[key]`.
fn entry<'a>(map: &'a Value, key: &Value) -> Result<&'a Value, Diagnostic> {
    match (map, key) {
        (Value::Map(map), key) => {
            fault::check_hashable(key)?;
            let found = key.as_str().and_then(|key| map.get(key));
            found.ok_or_else(|| Diagnostic::new(Class::KeyError, text::repr(key)))
        }
        (other, _) => Err(fault::type_error(format!("'{}' object is not subscriptable", fault::type_name(other)))),
    }
}
