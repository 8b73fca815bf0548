//! What a command prints.
//!
//! [`output`] prints results as a table, JSON, YAML, CSV or shell variables; [`progress`] shows an operation while it
//! runs; [`picture`] shows an excerpt of a file with the place of an error.

pub mod natural_order;
pub mod output;
pub mod picture;
pub mod plan;
pub mod progress;
