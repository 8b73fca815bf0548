//! A parser for YAML 1.1 and JSON, compatible with PyYAML and Heat.
//!
//! [`parse`] parses YAML (almost a superset of JSON), [`json::parse`] parses JSON like Python's `json`. Both return the
//! position of every key and value, and both limit time, memory and stack.
//!
//! ```
//! let document = kiln_yaml::parse("on: 0x1F\nwhen: 2013-05-23\n")?;
//! assert_eq!(kiln_value::text::repr(&document.value), "{'true': 31, 'when': '2013-05-23'}");
//! # Ok::<(), kiln_yaml::Error>(())
//! ```

mod compose;
mod construct;
mod error;
pub mod json;
mod mark;
mod node;
mod refusal;
mod scalar;
mod tagged;
#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind};

use kiln_value::{Spans, Value};

/// Limit of nesting, so that recursive functions on values cannot overflow the stack. Heat itself fails on templates
/// with some hundred levels.
pub const MAX_DEPTH: usize = 256;

/// The content of a text, with positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The value; null for an empty text.
    pub value: Value,
    /// The positions of its parts, as a tree of the same shape.
    pub spans: Spans,
}

/// Parses a YAML text with one document like Heat's loader: the types of YAML 1.1, timestamps as strings, merge keys;
/// of equal keys the last is used.
///
/// Keys that are not strings are converted to JSON, sets and `!!omap` to lists, `!!binary` to a string.
///
/// Errors: those of PyYAML, with its messages; aliases or nesting beyond the limits.
pub fn parse(text: &str) -> Result<Document, Error> {
    let document = compose::compose(text).and_then(|tree| construct::construct(&tree, text));
    document.map_err(|error| error.in_pyyamls_words(text))
}
