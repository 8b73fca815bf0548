//! Planning: from the desired and the actual state to the next actions.
//!
//! Everything here is pure: no clock, no randomness, no I/O. A [`Blueprint`] is the desired state of a stack, its rows
//! are the actual state; the engine sends [`Event`]s to [`Model::decide`] and executes the [`Command`]s.

mod allowed;
pub mod blame;
pub mod blueprint;
pub mod decision;
pub mod event;
mod facade;
mod graph;
mod guards;
pub mod hidden;
pub mod hook;
pub mod kind;
mod known_value;
mod model;
mod nested;
mod observed;
mod places;
pub mod resource_types;
pub mod stack_scope;
pub mod summary;
mod traversal;
mod tree_size;
pub mod validate;

pub use allowed::{Allowed, StackInPlan};
pub use blame::Blame;
pub use blueprint::{Blueprint, Nesting, Sources};
pub use decision::{CHECK_FAILED, Decision, Gathered, Live, Lookups, MISSING, Subject, decide, failure_of};
pub use event::{Command, Event, Note, Outcome, Request, Target};
pub use guards::{Guards, HeldGuard};
pub use hook::{Hook, Hooks};
pub use kind::{Kind, Provider};
pub use model::{Model, saved_by};
pub use nested::{NestedSources, define};
pub use observed::observe;
pub use resource_types::ResourceTypes;
pub use stack_scope::{Draft, Inside, Prospect, StackScope, facts};
pub use summary::{NestedTemplate, TemplateSummary};
pub use validate::Rules;
