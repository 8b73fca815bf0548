//! The template languages.

mod bound;
mod hostile;
mod manual;
mod no_panic;
