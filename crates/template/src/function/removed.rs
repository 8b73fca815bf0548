//! Functions that later versions of HOT removed.

use kiln_value::{Class, Diagnostic, Map, Value};

use super::Function;
use crate::expr::{Call, Context};

/// Can be parsed, but not validated. If it is resolved anyway, the result is the map as written, with its contents.
#[derive(Debug)]
pub(crate) struct Removed;

impl Function for Removed {
    fn validate(&self, call: &Call, _context: &Context) -> Result<(), Diagnostic> {
        let message = format!(
            "The template version is invalid: The function {} is not supported in this version of HOT.",
            call.name
        );
        Err(Diagnostic::new(Class::InvalidTemplateVersion, message))
    }

    fn resolve(&self, call: &Call, _context: &Context) -> Result<Option<Value>, Diagnostic> {
        Ok(Some(Value::Map(Map::from([(call.name.to_owned(), call.args.source())]))))
    }

    fn is_removed(&self) -> bool {
        true
    }
}
