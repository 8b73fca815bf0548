//! Stacks in lists.

use kiln_store::StackSummary;
use serde::Serialize;

use super::instant::instant;
use crate::link::{Link, Links};

/// An entry of a stack list (`stack_list_entry_keys` of reference/rest_api.json). It borrows from the row, because
/// lists are the most frequent request.
#[derive(Serialize)]
pub(crate) struct ListEntry<'a> {
    id: String,
    links: [Link; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    stack_name: &'a str,
    description: &'static str,
    stack_status: String,
    stack_status_reason: &'a str,
    creation_time: String,
    updated_time: Option<String>,
    deletion_time: Option<String>,
    stack_owner: &'a str,
    parent: Option<String>,
    stack_user_project_id: Option<&'a str>,
    tags: Option<&'a [String]>,
}

impl<'a> ListEntry<'a> {
    /// The entry of a stack; `with_project` for administrators.
    pub(crate) fn new(stack: &'a StackSummary, links: &Links, with_project: bool) -> Self {
        Self {
            id: stack.id.to_string(),
            links: [links.to_listed(stack)],
            project: with_project.then_some(&stack.project),
            stack_name: &stack.name,
            description: "",
            stack_status: stack.state.to_string(),
            stack_status_reason: &stack.reason,
            creation_time: instant(stack.created),
            updated_time: stack.updated.map(instant),
            deletion_time: stack.deleted.map(instant),
            stack_owner: &stack.username,
            parent: stack.parent.map(|parent| parent.to_string()),
            stack_user_project_id: stack.user_project.as_deref(),
            tags: (!stack.tags.is_empty()).then_some(&stack.tags),
        }
    }
}
