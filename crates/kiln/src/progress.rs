//! Watching a stack while something is done to it.
//!
//! [`follow()`] asks the service for news and keeps a [`tree::Tree`]; a [`Screen`] shows it: a live tree on a terminal, lines
//! elsewhere, JSON lines for machines. All of it goes to standard error; standard output is for results.

mod draw;
mod follow;
mod screen;
mod tree;

pub(crate) use self::follow::{End, Target, follow};
pub(crate) use self::screen::{Mode, Screen};
