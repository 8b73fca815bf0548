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

/// Deeper nesting than this is refused, so that nobody who walks a value can run out of stack. Heat itself fails on
/// templates of some hundred levels.
pub const MAX_DEPTH: usize = 256;

/// What a text holds, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The value; null for an empty text.
    pub value: Value,
    /// Where its parts stand: a tree of the same shape.
    pub spans: Spans,
}

/// Reads a YAML text of one document as Heat's loader does: the types of YAML 1.1, timestamps left as texts, merge
/// keys, of equal keys the last.
///
/// Keys that are no texts become their JSON text, sets and `!!omap` become lists, `!!binary` its text.
///
/// Errors: those of PyYAML, in its words where they are its own; and aliases or nesting beyond bounds.
pub fn parse(text: &str) -> Result<Document, Error> {
    let document = compose::compose(text).and_then(|tree| construct::construct(&tree, text));
    document.map_err(|error| error.in_pyyamls_words(text))
}
