//! Typed client of the REST API. [`Bundle`] prepares requests as python-heatclient does: it reads a template with its
//! environments and collects all referenced files.
//!
//! The client works with Heat and with Kiln. Results are views of the response ([`Stack`], [`Resource`], [`Event`]).

pub mod access;
pub mod address;
pub mod bundle;
pub mod catalog;
mod client;
mod cloud_access;
mod document;
mod drift;
pub mod error;
mod event_paths;
mod guards;
mod imports;
mod operations;
pub mod origin;
mod orphans;
mod plan;
mod plans;
mod quotas;
pub mod reason;
mod refactors;
mod report;
pub mod resources;
pub mod software;
pub mod source;
pub mod stacks;
pub mod view;
mod webhooks;

pub use access::{Access, Fixed};
pub use bundle::{Bundle, file_parameters, parameters};
pub use catalog::Dialect;
pub use client::{Client, Query, segment, stack_path};
pub use cloud_access::{CloudAccess, no_token};
pub use drift::DriftFilter;
pub use error::{Error, ErrorLocation, InputError, NestedLocation, Place, Refusal};
pub use event_paths::EventPaths;
pub use guards::NewGuard;
pub use imports::ObjectToWrite;
pub use operations::OperationPage;
pub use origin::Origin;
pub use orphans::OrphanFilter;
pub use plans::{Executed, PlanFilter, RequestToPlan};
pub use reason::HookNews;
pub use resources::EventFilter;
pub use source::Source;
pub use stacks::{Changes, PlannedCreate, StackAction, StackFilter, StackRequest};
pub use view::{Event, Resource, SavedPlan, Stack};
pub use webhooks::DeliveryFilter;
