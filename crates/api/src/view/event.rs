//! Events in lists and in detail.

use kiln_store::{Event, Stack};
use kiln_value::Value;
use serde::Serialize;

use super::instant::instant;
use crate::link::{Link, Links};

/// An event (`event_summary_keys` of reference/rest_api.json; the detail view adds type and properties).
#[derive(Serialize)]
pub(crate) struct EventView<'a> {
    id: String,
    links: Vec<Link>,
    event_time: String,
    logical_resource_id: &'a str,
    resource_name: &'a str,
    physical_resource_id: Option<&'a str>,
    resource_status: String,
    resource_status_reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_properties: Option<&'a Value>,
    /// Only in Kiln's own calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
}

impl<'a> EventView<'a> {
    /// The summary of an event; with the root stack in lists of a tree.
    pub(crate) fn summary(event: &'a Event, stack: &Stack, root: Option<&Stack>, links: &Links) -> Self {
        let resource = format!("/resources/{}", event.resource_name);
        let mut around = vec![
            links.to(stack, &format!("{resource}/events/{}", event.id), "self"),
            links.to(stack, &resource, "resource"),
            links.to_stack(stack, "stack"),
        ];
        around.extend(root.map(|root| links.to_stack(root, "root_stack")));
        Self {
            id: event.id.to_string(),
            links: around,
            event_time: instant(event.time),
            logical_resource_id: &event.resource_name,
            resource_name: &event.resource_name,
            physical_resource_id: event.physical_id.as_deref(),
            resource_status: format!("{}_{}", event.action, event.status),
            resource_status_reason: &event.reason,
            resource_type: None,
            resource_properties: None,
            operation_id: None,
        }
    }

    /// With the operation that the event belongs to.
    pub(crate) fn of_operation(self, event: &Event) -> Self {
        Self { operation_id: event.operation.map(|id| id.to_string()), ..self }
    }

    /// The detail view of an event.
    pub(crate) fn whole(event: &'a Event, stack: &Stack, links: &Links) -> Self {
        Self {
            resource_type: Some(&event.resource_type),
            resource_properties: Some(&event.properties),
            ..Self::summary(event, stack, None, links)
        }
    }
}
