//! Resource types: schema, definition files, the Driver trait, the registry.
//!
//! Pure: drivers access the cloud only through traits of this crate.

pub mod baseline;
pub mod change;
pub mod cloud;
pub mod constraint;
mod converge;
pub mod definition;
pub mod driver;
mod facts;
pub mod failure;
pub mod finder;
mod group;
pub mod guard;
pub mod ids;
mod member;
pub mod names;
mod nested_stack;
pub mod not_implemented;
pub mod object_drift;
mod parting;
pub mod physical_name;
pub mod properties;
pub mod property;
mod received;
pub mod registry;
pub mod resource_type;
pub mod rest;
pub mod row;
pub mod running;
pub mod scaling;
mod scheduler_hints;
pub mod service;
pub mod shared_software;
pub mod shipped;
pub mod siblings;
pub mod size_limit;
pub mod stack_policy;
pub mod state;
mod step;
pub mod stored_definition;
pub mod support;
pub mod translation;
mod type_rules;
pub mod view;
pub mod words;

pub use change::Comparison;
pub use cloud::{
    Access, AccountNames, Cloud, CloudRequest, CloudResponse, Gate, Listed, Method, NoCloud, RemoteCloud,
    SignalEndpoints, UserDomain,
};
pub use converge::{Converge, Converging};
pub use driver::{Context, Driver, Operation};
pub use facts::{Attempt, Facts, NestedFacts, Observed, StackFacts};
pub use failure::{Failure, FailureKind};
pub use finder::{Finder, FinderClient, Finders};
pub use group::Group;
pub use guard::{GuardRule, GuardedRequest, Verb};
pub use ids::{
    CredentialsId, EngineId, EventId, GuardId, MessageId, OperationId, PlanId, ResourceId, SnapshotId, StackId,
    WebhookId,
};
pub use member::Member;
pub use nested_stack::{Nested, NestedStack};
pub use not_implemented::NotImplemented;
pub use parting::Parting;
pub use property::{Inner, PropertySchema, Unread, Wire};
pub use received::{Received, ReceivedEvent, Rescale, ScaleRequest};
pub use registry::{RegisteredType, Registry};
pub use resource_type::{AttributeSchema, DriverKind, Loss, ResourceType};
pub use rest::Rest;
pub use row::{LOST_CREATE, Resource};
pub use running::{LostCall, OperationState, Phase, Running};
pub use scheduler_hints::SchedulerHints;
pub use shared_software::{
    ConfigBody, DeploymentBody, InvalidSchema, NoSoftware, Software, SoftwareChange, SoftwareConfig, SoftwareDeployment,
};
pub use siblings::{Sibling, Siblings};
pub use stack_policy::{InvalidPolicy, StackPolicy};
pub use state::{Action, State, Status};
pub use step::{Alike, Found, Progress, Step};
pub use stored_definition::StoredDefinition;
pub use support::{Support, SupportStatus};
pub use translation::Translation;
pub use type_rules::{PropertyChange, TypeRules, Unmarked};
