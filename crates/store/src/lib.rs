//! Storage of stacks, resources, events and leases.
//!
//! [`Store`] is a list of use cases, not of tables. The API writes the desired state (a stack's [`Desired`] and a
//! higher `generation`); the engine that holds the stack's [`Lease`] writes the actual state. Every write of an engine
//! is fenced: it is refused if the epoch of the lease is not the current one.

pub mod answer;
pub mod claim;
pub mod content;
pub mod distinct;
mod doorbell;
pub mod drift;
pub mod duration;
pub mod event;
mod event_reader;
pub mod guard;
pub mod lease;
mod limits;
pub mod memory;
pub mod message;
mod message_body;
pub mod operation;
pub mod orphan;
pub mod outbox;
pub mod plan;
pub mod query;
pub mod quota;
pub mod refactor;
pub mod snapshot;
pub mod software_store;
mod sql;
pub mod stack;
mod store;
pub mod take_over;
mod version;
pub mod webhook;
pub mod worksheet;

pub use answer::{AnswerStore, EarlierRequest, KeyedRequest};
pub use claim::ObjectClaim;
pub use content::{Desired, DesiredText, Digest};
pub use distinct::Distinct;
pub use drift::{DriftRepair, DriftReport, DriftSchedule, DriftStatus, DriftStore, DriftedResource, WatchedStack};
pub use duration::{Durations, Histogram};
pub use event::Event;
pub use event_reader::{EventReader, EventSpan};
pub use guard::{Guard, GuardStore, GuardTerms};
pub use kiln_resource::{
    CredentialsId, EngineId, EventId, GuardId, MessageId, OperationId, PlanId, Resource, ResourceId, SnapshotId,
    StackId, WebhookId,
};
pub use lease::{Claimable, Lease, LeaseRow, Silent};
pub use memory::{MemoryStore, RowsRead};
pub use message::{Backlog, Message};
pub use message_body::{
    Cancel, GroupMembers, GroupResize, HealthMark, HookClearing, MessageBody, MessageKind, RefusedSignal,
    SnapshotRemoval, Timer,
};
pub use operation::{Author, Operation, OperationQuery, OperationStore, Operations};
pub use orphan::{Orphan, OrphanQuery, OrphanStore};
pub use outbox::{Announcement, Delivery, Destination, Lane, Notice, OutboxEntry, OutboxStore, PluginRun};
pub use plan::{Approval, NewPlan, Plan, PlanPart, PlanQuery, PlanState, PlanStore, Planned};
pub use query::{EventQuery, Sort, SortKey, StackQuery};
pub use refactor::{MovedStack, Refactor, RefactoredStack};
pub use snapshot::Snapshot;
pub use software_store::{ConfigQuery, DeploymentQuery, SoftwareStore};
pub use sql::{
    Durability, EngineLock, ForeignDatabase, ForeignKeys, ForeignRow, ForeignSnapshot, HEAT_TABLES, HeatColumns,
    HeatFence, HeatValue, HeatWriter, Options, SCHEMA, SchemaState, SchemaVersions, Simulation, SqlStore, UrlParameter,
    url_parameters,
};
pub use stack::{Details, NewStack, Parent, Stack, StackRequest, StackSummary};
pub use store::{
    Batch, BriefResources, Cause, Census, Doorbell, EngineInfo, Error, EventPurge, Retention, Room, Settle, Store,
    Summary, UnusedCredentials, UnusedUserProject,
};
pub use take_over::{Owner, OwnerStore, TakeOver, TakeOverState, TakenSoftware, TakenStack, TakenTree};
pub use version::version_of;
pub use webhook::{Outcome, Webhook, WebhookDelivery, WebhookMessage, WebhookStore, WebhookTerms};
pub use worksheet::{Worksheet, WorksheetKind, WorksheetStore};
