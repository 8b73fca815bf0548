//! Resource types, custom constraints and scheduler hints that a child process implements (docs/plugins.md).
//!
//! Kiln starts the program and sends it requests of JSON-RPC 2.0 on its standard input, one message a line; it answers
//! on its standard output. What it writes to its standard error is logged. A program that hangs, ends or answers
//! nonsense fails the call in hand and nothing else; it is started again for the next call.

mod access;
mod answer;
mod call;
mod constraint;
mod describe;
mod driver;
mod lines;
mod plugin;
mod process;
mod program;
mod scheduler_hints;

pub use describe::{Offered, Plugins, schemas, start};
pub use plugin::Plugin;
pub use program::Program;
