//! `get_file`.

use kiln_value::{Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context};

/// The content of a file that came with the template.
#[derive(Debug)]
pub(crate) struct GetFile;

impl Function for GetFile {
    fn summary(&self) -> &'static str {
        "The content of a file that came with the template."
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let Value::Str(path) = call.resolved_args(context)? else {
            return Err(fault::type_error(format!("Argument to \"{name}\" must be a string")));
        };
        match context.bound().files().get(&path) {
            Some(text) => Ok(Some(Value::from(text))),
            None => {
                Err(fault::value_error(format!("No content found in the \"files\" section for {name} path: {path}")))
            }
        }
    }
}
