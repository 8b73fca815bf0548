//! Parameters: schemata and values.
//!
//! Behavior and texts of Heat's `engine/parameters.py` and `engine/hot/parameters.py`; docs/heat-behaviour.md §5.

mod collection;
mod one;
mod schema;
#[cfg(test)]
mod tests;

pub use collection::{Dialect, Parameters};
pub use one::Parameter;
pub use schema::{HotEdition, ParameterSchema};

/// What stands for the value of a hidden parameter wherever it would be shown.
pub const HIDDEN: &str = "******";
