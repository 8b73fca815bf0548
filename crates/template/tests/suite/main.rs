//! The template languages.

mod bound;
mod hostile;
mod no_panic;
