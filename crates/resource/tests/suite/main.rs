//! Resource types and their definition files.

mod any_input;
mod definition;
mod shipped;
