//! Typed client of the REST API, and what python-heatclient does before it calls: [`Bundle`] reads a template with
//! its environments and gathers every file they name.
//!
//! It speaks to Heat as well as to Kiln. Answers are views over what came ([`Stack`], [`Resource`], [`Event`]).

pub mod access;
pub mod address;
pub mod bundle;
pub mod catalog;
mod client;
mod document;
pub mod error;
pub mod origin;
pub mod resources;
pub mod source;
pub mod stacks;
pub mod view;

pub use access::{Access, Fixed};
pub use bundle::{Bundle, file_parameters, parameters};
pub use catalog::Dialect;
pub use client::{Client, Query};
pub use error::{Error, ErrorLocation, InputError, Refusal};
pub use origin::Origin;
pub use resources::EventFilter;
pub use source::Source;
pub use stacks::{StackAction, StackFilter, StackRequest};
pub use view::{Event, Resource, Stack};
