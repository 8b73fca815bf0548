//! What to list, and in which order.

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
    /// Keys, the first weighs most; the id breaks ties. Empty: newest first.
    pub keys: Vec<SortKey>,
    /// Whether descending.
    pub descending: bool,
}

/// Which stacks to list. All conditions must hold; within one, any of the values.
#[derive(Clone, Debug, Default)]
pub struct StackQuery {
    /// Of this project; `None`: of all.
    pub project: Option<String>,
    /// Only these ids.
    pub ids: Vec<StackId>,
    /// Only these names.
    pub names: Vec<String>,
    /// Only these: `CREATE_COMPLETE` or just `COMPLETE`.
    pub statuses: Vec<String>,
    /// Only these actions.
    pub actions: Vec<String>,
    /// Only of these users.
    pub usernames: Vec<String>,
    /// All of these tags.
    pub tags: Vec<String>,
    /// Any of these tags.
    pub tags_any: Vec<String>,
    /// Not all of these tags.
    pub not_tags: Vec<String>,
    /// None of these tags.
    pub not_tags_any: Vec<String>,
    /// Nested stacks too.
    pub nested: bool,
    /// Deleted stacks too.
    pub deleted: bool,
    /// Only nested stacks of this one.
    pub parent: Option<StackId>,
    /// Order.
    pub sort: Option<Sort>,
    /// Behind this stack.
    pub marker: Option<StackId>,
    /// At most so many.
    pub limit: Option<u64>,
}

/// Which events to list.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Of these stacks.
    pub stacks: Vec<StackId>,
    /// Only of this resource.
    pub resource: Option<String>,
    /// Only these actions.
    pub actions: Vec<String>,
    /// Only these statuses.
    pub statuses: Vec<String>,
    /// Only these resource types.
    pub types: Vec<String>,
    /// Only these ids.
    pub ids: Vec<String>,
    /// Newest first.
    pub descending: bool,
    /// Behind this event.
    pub marker: Option<crate::EventId>,
    /// At most so many.
    pub limit: Option<u64>,
}
