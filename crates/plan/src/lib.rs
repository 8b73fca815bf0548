//! Desired and actual in, what happens next out.
//!
//! Everything here is pure: no clock, no chance, no I/O. A [`Blueprint`] is what a stack should be, its rows are what
//! is; the engine feeds [`Event`]s to [`Model::decide`] and carries out the [`Command`]s.

pub mod blame;
pub mod blueprint;
pub mod catalog;
pub mod event;
mod graph;
pub mod kind;
mod model;
mod nested;
pub mod running;
pub mod scene;
mod traversal;
pub mod validate;
mod verdict;

pub use blame::Blame;
pub use blueprint::{Blueprint, Place, Sources};
pub use catalog::Catalog;
pub use event::{Command, Event, Goal, Note, Outcome, Target};
pub use kind::{Kind, Provider};
pub use model::Model;
pub use running::{Phase, Running};
pub use scene::{Draft, Inside, Scene, facts, given, metadata};
pub use validate::Rules;
pub use verdict::Verdict;
