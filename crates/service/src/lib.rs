//! Use cases below HTTP.
//!
//! A [`Service`] takes a [`kiln_identity::Caller`] and plain inputs, and returns domain values or an [`Error`]. It does
//! not depend on HTTP: the REST API, the CFN API, a dashboard and an import can share it. There is one file per use
//! case. A service writes requests and never waits for an engine.

mod accept_drift;
mod action;
mod answer;
mod availability;
mod blueprint;
mod change_set;
mod container_files;
mod continue_stack;
mod create;
mod credentials;
mod delete;
mod deployment_agent;
mod detect_drift;
mod drift_watch;
mod error;
mod existing_component;
mod existing_names;
mod export;
mod forget;
mod guard;
mod heat_projects;
mod hidden_of_stack;
mod import;
mod import_stack;
mod input;
mod mark_unhealthy;
mod nested_templates;
mod object_lock;
mod operation;
mod options;
mod preflight;
mod preview_create;
mod preview_update;
mod quota;
mod refactor;
mod repair_drift;
mod repeatable;
mod request;
mod resource_type;
mod saved_plan;
mod service;
mod shared_credentials;
mod signal;
mod snapshot;
mod software_config;
mod software_deployment;
mod stack;
mod template_reader;
mod type_policy;
mod update;
mod validate;
mod validate_template;
mod version;
mod watch;
mod webhook;

pub use accept_drift::{AcceptedDrift, AcceptedValue};
pub use action::StackAction;
pub use availability::Availability;
pub use change_set::{
    ChangeEffect, ChangedProperty, Execution, Failure, NewChangeSet, PreparedChange, ResourceChange, StackChange,
};
pub use create::CreateStack;
pub use drift_watch::{DriftLimits, DriftWatch};
pub use error::{Error, Invalid};
pub use forget::Forget;
pub use guard::{ADD_GUARD, AddedGuard, InFlight, LIFT_GUARD};
pub use heat_projects::{HeatProjects, OF_HEAT};
pub use import::{ObjectToImport, ObjectsToImport, importable};
pub use import_stack::{ImportPlan, ImportStack, Inventory, Owner, Selection};
pub use input::{Settings, StackContent, TemplateText};
pub use kiln_plan::hidden::{Door, Guarded, Hidden, HiddenValues, Masked};
pub use mark_unhealthy::MarkUnhealthy;
pub use operation::{ListedOperation, Progress, Revision, RootCause};
pub use options::{Limits, Options};
pub use preview_create::{PreviewedEntry, PreviewedResource, PreviewedStack};
pub use preview_update::PreviewedUpdate;
pub use quota::{QuotaChanges, QuotaState, QuotasInUse};
pub use refactor::{MovedResource, PlaceOfResource, RefactorPlan, RefactorStacks, ResourceMove};
pub use repeatable::{Ending, Repeatable, Repetition};
pub use request::BYPASS;
pub use resource_type::ResourceTypeFilter;
pub use saved_plan::{PlanStatus, PlannedRequest, SavedPlan};
pub use service::Service;
pub use shared_credentials::SharedCredentials;
pub use signal::{Signal, Signalled};
pub use software_config::NewConfig;
pub use software_deployment::{DeploymentChange, NewDeployment};
pub use template_reader::{ReadError, TemplateReader};
pub use update::UpdateStack;
pub use validate_template::ValidatedTemplate;
pub use watch::{NewEvent, Watch, Watched};
pub use webhook::{OnlyStack, WebhookChange, Webhooks, newest_key, old_key_until};
