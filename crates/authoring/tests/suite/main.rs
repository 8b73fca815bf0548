//! The tools for template authors.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod any_input;
mod bench;
mod corpus;
mod environment;
mod language;
mod lint;
mod offline;
mod upgrade;
