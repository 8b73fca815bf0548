//! Desired and actual in, what happens next out.
//!
//! Everything here is pure: no clock, no chance, no I/O. The engine feeds [`Event`]s to [`Model::decide`] and
//! carries out the [`Command`]s; the API asks the same code what an update *would* do.

pub mod blame;
pub mod event;
mod graph;
mod model;
pub mod running;
mod traversal;
mod verdict;

pub use blame::Blame;
pub use event::{Command, Event, Goal, Note, Outcome, Target};
pub use model::Model;
pub use running::{Phase, Running};
pub use verdict::Verdict;
