//! Parameters: schemas and values.
//!
//! Behavior and messages of Heat's `engine/parameters.py` and `engine/hot/parameters.py`; see docs/heat-behaviour.md
//! §5.

mod collection;
mod one;
mod schema;
#[cfg(test)]
mod tests;

pub use collection::{Dialect, Parameters};
pub use one::Parameter;
pub use schema::{HotEdition, ParameterSchema};

/// Replaces the value of a hidden parameter wherever it would be visible.
pub const HIDDEN: &str = "******";
