//! Names of tables and columns. The tables themselves are made by the migrations.
//!
//! All carry a prefix: Kiln may live in the database of the Python Heat, which has a `stack` and an `event` too.

/// Numbers of the migrations that were done.
pub(super) const VERSION: &str = "kiln_schema_version";
/// Stacks.
pub(super) const STACK: &str = "kiln_stack";
/// Tags of stacks, for filters; a stack's row has them as well.
pub(super) const TAG: &str = "kiln_tag";
/// Texts by their digest.
pub(super) const CONTENT: &str = "kiln_content";
/// Resources.
pub(super) const RESOURCE: &str = "kiln_resource";
/// Events.
pub(super) const EVENT: &str = "kiln_event";
/// Leases: a row for each stack, from its first day.
pub(super) const LEASE: &str = "kiln_lease";
/// Messages to stacks.
pub(super) const MESSAGE: &str = "kiln_message";
/// Encrypted credentials.
pub(super) const CREDENTIALS: &str = "kiln_credentials";
/// Engines that reported.
pub(super) const ENGINE: &str = "kiln_engine";
/// Rings of the doorbell, for other processes.
pub(super) const RING: &str = "kiln_ring";

/// The index that keeps names unique; databases name it (or its column) when they refuse a row.
pub(super) const LIVE_NAME: &str = "live_name";

/// What is read of a stack, in the order in which it is read.
pub(super) const STACK_COLUMNS: [&str; 26] = [
    "id",
    "name",
    "project",
    "parent_stack",
    "parent_resource",
    "parent_name",
    "root",
    "depth",
    "action",
    "status",
    "reason",
    "desired",
    "previous",
    "generation",
    "settled",
    "disable_rollback",
    "timeout_mins",
    "tags",
    "username",
    "user_id",
    "credentials",
    "user_project",
    "messages",
    "created",
    "updated",
    "deleted",
];

/// What is read and written of a resource, in that order.
pub(super) const RESOURCE_COLUMNS: [&str; 21] = [
    "id",
    "stack",
    "name",
    "type",
    "implementation",
    "physical_id",
    "action",
    "status",
    "reason",
    "step",
    "definition",
    "metadata",
    "data",
    "attributes",
    "requires",
    "replaces",
    "replaced_by",
    "child",
    "generation",
    "created",
    "updated",
];

/// What is read and written of an event, in that order.
pub(super) const EVENT_COLUMNS: [&str; 11] = [
    "id",
    "stack",
    "root",
    "resource_name",
    "resource_type",
    "physical_id",
    "action",
    "status",
    "reason",
    "properties",
    "time",
];

/// What is read and written of a message, in that order.
pub(super) const MESSAGE_COLUMNS: [&str; 7] = ["id", "stack", "resource", "kind", "body", "due", "sent"];
