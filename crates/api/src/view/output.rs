//! An output with its value.

use kiln_stack::OutputValue;
use kiln_value::{Map, Value};

/// The format of show calls; `output_error` is present only without a value.
pub(crate) fn output(output: &OutputValue) -> Value {
    let mut entry = Map::new();
    entry.insert("output_key".to_owned(), (&output.key).into());
    entry.insert("description".to_owned(), (&output.description).into());
    if let Some(error) = &output.error {
        entry.insert("output_error".to_owned(), error.into());
    }
    entry.insert("output_value".to_owned(), output.value.clone());
    entry.into()
}
