//! Shows the progress of an operation on a stack.
//!
//! [`follow()`] polls the service for events and updates a tree. A [`Screen`] shows it: as a live tree on a
//! terminal, else as lines, or as JSON lines. Progress is written to standard error; standard output is for results.

mod draw;
mod follow;
mod screen;
mod tree;

pub use self::follow::{End, Target, follow};
pub use self::screen::{Mode, Screen, beside};
