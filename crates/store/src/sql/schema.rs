//! Names of tables and columns. The migrations create the tables.
//!
//! All names have a prefix, because Kiln may share a database with the Python Heat, which also has tables named `stack`
//! and `event`.

use sea_orm::sea_query::{Expr, ExprTrait as _};

/// Whether a column of IDs or words (`{id}` and `{word}` of [`super::dialect::Dialect::define`]) has one of the texts that a
/// user gave. No row has a text with other characters than ASCII, and MariaDB refuses to compare such a column with one.
pub(super) fn is_one_of(column: &'static str, texts: impl IntoIterator<Item = String>) -> Expr {
    Expr::col(column).is_in(texts.into_iter().filter(|text| text.is_ascii()))
}

/// Numbers of the completed migrations.
pub(super) const VERSION: &str = "kiln_schema_version";
pub(super) const FLOOR: &str = "kiln_schema_floor";
/// Stacks.
pub(super) const STACK: &str = "kiln_stack";
/// Tags of stacks, for filters; also stored in the row of the stack.
pub(super) const TAG: &str = "kiln_tag";
/// Texts by their digest.
pub(super) const CONTENT: &str = "kiln_content";
/// Resources.
pub(super) const RESOURCE: &str = "kiln_resource";
/// Events.
pub(super) const EVENT: &str = "kiln_event";
/// One row for each stack with events, which each transaction with events of the stack changes.
pub(super) const EVENT_ORDER: &str = "kiln_event_order";
/// Leases: one row for each stack, from its creation.
pub(super) const LEASE: &str = "kiln_lease";
/// Messages to stacks.
pub(super) const MESSAGE: &str = "kiln_message";
/// Snapshots of stacks.
pub(super) const SNAPSHOT: &str = "kiln_snapshot";
/// Saved plans.
pub(super) const PLAN: &str = "kiln_plan";
/// The approvals of plans.
pub(super) const PLAN_APPROVAL: &str = "kiln_plan_approval";
/// The planned resources.
pub(super) const PLAN_PART: &str = "kiln_plan_part";
/// What clients of the CloudFormation API prepare.
pub(super) const WORKSHEET: &str = "kiln_worksheet";
/// Guards.
pub(super) const GUARD: &str = "kiln_guard";
/// Quotas of projects.
pub(super) const QUOTA: &str = "kiln_quota";
/// The objects that stacks take over.
pub(super) const CLAIM: &str = "kiln_claim";
/// How long operations of resources took.
pub(super) const DURATION: &str = "kiln_duration";
/// How often stacks are compared with their objects.
pub(super) const DRIFT_SCHEDULE: &str = "kiln_drift_schedule";
/// Stacks that are compared regularly, and what was found.
pub(super) const DRIFT: &str = "kiln_drift";
/// Objects whose resources were forgotten.
pub(super) const ORPHAN: &str = "kiln_orphan";
/// Operations of stacks.
pub(super) const OPERATION: &str = "kiln_operation";
/// Software configs.
pub(super) const SOFTWARE_CONFIG: &str = "kiln_software_config";
/// Software deployments.
pub(super) const SOFTWARE_DEPLOYMENT: &str = "kiln_software_deployment";
/// Encrypted credentials.
pub(super) const CREDENTIALS: &str = "kiln_credentials";
/// Events to send to event sinks and to the message bus.
pub(super) const OUTBOX: &str = "kiln_outbox";
/// Webhooks.
pub(super) const WEBHOOK: &str = "kiln_webhook";
/// Deliveries of events to webhooks.
pub(super) const WEBHOOK_DELIVERY: &str = "kiln_webhook_delivery";
/// Engines that reported.
pub(super) const ENGINE: &str = "kiln_engine";
/// Rings of the doorbell, for other processes.
pub(super) const RING: &str = "kiln_ring";

/// Settings of all processes.
pub(super) const SETTING: &str = "kiln_setting";
/// Answers to requests with an idempotency key.
pub(super) const ANSWER: &str = "kiln_answer";

/// Stacks that are taken over from Heat.
pub(super) const TAKE_OVER: &str = "kiln_take_over";
/// The projects that do not belong to Heat.
pub(super) const PROJECT_OWNER: &str = "kiln_project_owner";

/// The index that keeps names unique. Databases report its name (or its column) when they reject a row.
pub(super) const LIVE_NAME: &str = "live_name";

/// The columns of a resource without its data, in reading order, with its place.
pub(super) const BRIEF_COLUMNS: [&str; 15] = [
    "id",
    "name",
    "type",
    "implementation",
    "physical_id",
    "action",
    "status",
    "reason",
    "replaces",
    "replaced_by",
    "child",
    "generation",
    "created",
    "updated",
    "seq",
];
