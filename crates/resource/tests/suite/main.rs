//! Resource types and their definition files.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod any_input;
mod definition;
mod finders;
mod manual;
mod names;
mod shipped;
