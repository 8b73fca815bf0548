//! What a resource type is: schema, definition file, the Driver trait, the registry.
//!
//! Pure: drivers reach the cloud only through the traits given here.

pub mod cloud;
pub mod driver;
pub mod failure;
pub mod ids;
pub mod row;
pub mod state;

pub use cloud::{Cloud, Method, Request, Response};
pub use driver::{Change, Context, Driver, Facts, Operation, Progress, Sibling, StackFacts, Step};
pub use failure::{Failure, FailureKind};
pub use ids::{CredentialsId, EngineId, EventId, ResourceId, StackId};
pub use row::Resource;
pub use state::{Action, State, Status};
