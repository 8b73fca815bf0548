//! Common data types of Kiln.
//!
//! A [`Value`] is the data of templates, properties, attributes and request bodies: the types of JSON with Python's
//! numbers (unlimited integers, separate from floats) and ordered maps. Its text representations are those of Python,
//! because Heat's clients see them: [`text::str`], [`text::repr`], [`text::json`].

pub mod chain;
mod class;
mod convert;
pub mod diagnostic;
pub mod glob;
mod json;
mod macros;
mod map;
pub mod number;
pub mod path;
pub mod regex;
pub mod secret;
mod size;
pub mod span;
pub mod steps;
pub mod text;
mod unknown;
pub mod url;
mod value;

pub use chain::Chain;
pub use class::Class;
pub use diagnostic::{Diagnostic, NestedPlace, Subject};
pub use map::{Entries, Map};
pub use path::{Path, Segment};
pub use regex::Pattern;
pub use secret::Secret;
pub use span::{Position, Span, Spans};
pub use unknown::Unknown;
pub use value::{Kind, Value};
