//! Mistral: cron triggers. Workflows are created from texts.

use serde_json::json;

use super::{Id, NOUN, Noun};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        service: Service::Workflow,
        path: &["cron_triggers"],
        many: "cron_triggers",
        id: Id::Given("name"),
        required: &["name"],
        optional: &[
            "workflow_name",
            "workflow_id",
            "workflow_input",
            "pattern",
            "first_execution_time",
            "remaining_executions",
        ],
        defaults: r#"{"next_execution_time": "2026-01-01T00:00:00", "remaining_executions": null}"#,
        ..NOUN
    },
    Noun { service: Service::Workflow, path: &["workflows"], many: "workflows", id: Id::Given("name"), ..NOUN },
];

/// `POST /workflows` with a text whose first line that ends in a colon, after the version, is the name.
pub(super) fn route(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Option<Outcome> {
    if segments != ["workflows"] || !matches!(request.method.as_str(), "POST" | "PUT") {
        return None;
    }
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let named = text.lines().filter_map(|line| line.strip_suffix(':')).find(|line| !line.starts_with([' ', '-', '#']));
    let Some(name) = named.map(|name| name.trim_matches(['\'', '"']).to_owned()) else {
        return Some(Err(Refusal::bad("Invalid DSL: a workflow is required")));
    };
    let key = format!("workflow/workflows/{name}");
    let exists = world.nouns.rows.get(&key).is_some();
    match request.method.as_str() {
        "POST" if exists => {
            return Some(Err(Refusal::conflict(format!("Duplicate entry for WorkflowDefinition: {name}"))));
        }
        "PUT" if !exists => return Some(Err(Refusal::missing(format!("Workflow not found: {name}")))),
        _ => {}
    }
    let mut row = Row::new();
    row.put("id", key);
    row.put("_id", name.clone());
    row.put("name", name);
    row.put("_noun", "workflow/workflows");
    row.put("_public", true);
    row.put("definition", text);
    world.nouns.rows.insert(row.clone());
    let reply = Reply::json(if exists { 200 } else { 201 }, json!({"workflows": [crate::table::public(&row)]}));
    Some(Ok(reply))
}
