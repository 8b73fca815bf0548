//! Filters and order of lists.

use kiln_resource::OperationId;

use crate::StackId;

/// Sort keys of a stack list (docs/heat-behaviour.md §20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// `stack_name`.
    Name,
    /// `stack_status`.
    Status,
    /// `creation_time`.
    Created,
    /// `updated_time`.
    Updated,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Keys, the first is the primary one; the ID breaks ties. Empty: newest first.
    pub keys: Vec<SortKey>,
    /// Whether descending.
    pub descending: bool,
}

/// Filters of a stack list. All conditions must match; within a condition, any of the values.
#[derive(Clone, Debug, Default)]
pub struct StackQuery {
    /// Project; `None`: all projects.
    pub project: Option<String>,
    /// Only stacks with this project of stack users.
    pub user_project: Option<String>,
    /// Only these IDs.
    pub ids: Vec<StackId>,
    /// Only these names.
    pub names: Vec<String>,
    /// Only these: `CREATE_COMPLETE` or just `COMPLETE`.
    pub statuses: Vec<String>,
    /// Only these actions.
    pub actions: Vec<String>,
    /// Only stacks of these users.
    pub usernames: Vec<String>,
    /// Only stacks with all of these tags.
    pub tags: Vec<String>,
    /// Only stacks with any of these tags.
    pub tags_any: Vec<String>,
    /// Only stacks without at least one of these tags.
    pub not_tags: Vec<String>,
    /// Only stacks with none of these tags.
    pub not_tags_any: Vec<String>,
    /// Whether to include nested stacks.
    pub nested: bool,
    /// Whether to include deleted stacks.
    pub deleted: bool,
    /// Only stacks of the tree with this root.
    pub root: Option<StackId>,
    /// Only stacks of the trees with these roots, unless there are none here.
    pub roots: Vec<StackId>,
    /// Only nested stacks of this stack.
    pub parent: Option<StackId>,
    /// Order.
    pub sort: Option<Sort>,
    /// Only stacks after this one.
    pub marker: Option<StackId>,
    /// Maximum number.
    pub limit: Option<u64>,
}

/// Filters of an event list.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// The stacks, unless one of the next two is given.
    pub stacks: Vec<StackId>,
    /// The stacks of the tree with this root.
    pub root: Option<StackId>,
    /// The stacks of this project.
    pub project: Option<String>,
    /// Only events of this operation.
    pub operation: Option<OperationId>,
    /// Only events of this resource.
    pub resource: Option<String>,
    /// Only these actions.
    pub actions: Vec<String>,
    /// Only these statuses.
    pub statuses: Vec<String>,
    /// Only these resource types.
    pub types: Vec<String>,
    /// Only these IDs.
    pub ids: Vec<String>,
    /// Whether newest events come first.
    pub descending: bool,
    /// Only events after this one.
    pub marker: Option<crate::EventId>,
    /// Maximum number.
    pub limit: Option<u64>,
}
