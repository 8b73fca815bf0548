//! `get_file`.

use kiln_value::{Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context};
use crate::hint::hinted;

/// The content of a file of the request. Heat's test suites compare the text of the summary.
#[derive(Debug)]
pub(crate) struct GetFile;

impl Function for GetFile {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let Value::Str(path) = call.resolved_args(context)? else {
            return Err(fault::type_error(format!("Argument to \"{name}\" must be a string")));
        };
        let files = context.bound().files();
        if let Some(text) = files.get(&path) {
            return Ok(Some(Value::from(text)));
        }
        let message = format!("No content found in the \"files\" section for {name} path: {path}");
        Err(hinted(fault::value_error(message), &path, files.0.keys().map(String::as_str)))
    }
}
