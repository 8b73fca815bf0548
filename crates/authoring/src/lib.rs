//! Tools for template authors: lint, graphs, a formatter, upgrades, and the functions of a language server.
//!
//! Everything is a function of a text (a [`Page`]), its files and the resource types, without I/O.

pub mod duplicates;
mod emit;
pub mod format;
pub mod generated;
pub mod graph;
pub mod language;
pub mod lines;
pub mod lint;
mod mention;
pub mod offline;
mod order;
mod page;
pub mod patch;
pub mod type_files;
mod types;
pub mod upgrade;
mod walk;

pub use mention::{Manner, Mention, Role, mentions};
pub use page::Page;
pub use types::type_named;
