//! Executions of workflows. Kiln chooses their IDs: Mistral returns an existing execution instead of a second one, so
//! that a request may be repeated.

use kiln_resource::{Context, Failure};
use kiln_value::{Map, Value, text};

use crate::call::{MISTRAL, is_uuid_like};
use crate::path::segment;

/// What is to be executed.
pub(super) struct Start<'a> {
    pub(super) id: &'a str,
    /// Name or ID of the workflow.
    pub(super) workflow: &'a str,
    pub(super) input: &'a Value,
    pub(super) params: &'a Map,
    pub(super) description: Option<&'a str>,
}

pub(super) fn path(id: &str) -> String {
    format!("/v2/executions/{}", segment(id))
}

/// Starts an execution. Idempotent.
pub(super) async fn start(cx: &Context<'_>, start: &Start<'_>) -> Result<(), Failure> {
    let key = if is_uuid_like(start.workflow) { "workflow_id" } else { "workflow_name" };
    let mut body = Map::from([
        ("id".to_owned(), start.id.into()),
        (key.to_owned(), start.workflow.into()),
        ("input".to_owned(), text::json(start.input).into()),
    ]);
    if !start.params.is_empty() {
        body.insert("params".to_owned(), text::json(&start.params.clone().into()).into());
    }
    if let Some(description) = start.description.filter(|description| !description.is_empty()) {
        body.insert("description".to_owned(), description.into());
    }
    MISTRAL.post(cx, "/v2/executions", body.into()).await.map(drop)
}

/// A map that Mistral shows as JSON text.
pub(super) fn parsed(object: &Value, key: &str) -> Value {
    match object.get(key) {
        Some(Value::Str(json)) => serde_json::from_str(json).unwrap_or_default(),
        other => other.cloned().unwrap_or_default(),
    }
}
