//! The tools for template authors.

mod any_input;
mod bench;
mod corpus;
mod environment;
mod language;
mod lint;
mod offline;
mod upgrade;
