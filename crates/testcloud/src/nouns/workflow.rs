//! Mistral: cron triggers, and executions that end by themselves. Workflows are created from texts.

use serde_json::{Value, json};

use super::{Id, NOUN, Noun};
use crate::keystone::Caller;
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
    Noun {
        service: Service::Workflow,
        path: &["executions"],
        many: "executions",
        id: Id::Given("id"),
        required: &["id"],
        optional: &["workflow_name", "workflow_id", "input", "params", "description"],
        ..NOUN
    },
    Noun { service: Service::Workflow, path: &["workflows"], many: "workflows", id: Id::Given("name"), ..NOUN },
];

pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    segments: &[&str],
) -> Option<Outcome> {
    match (segments, request.method.as_str()) {
        (["executions"], "POST") => Some(execute(world, request, caller)),
        (["workflows"], "POST" | "PUT") => Some(define(world, request)),
        _ => None,
    }
}

/// Times have seconds, and the trigger has not run yet.
pub(super) fn as_mistral_shows(row: &mut Row) {
    let first = row.text("first_execution_time").to_owned();
    if !first.is_empty() {
        row.put("first_execution_time", format!("{first}:00"));
    }
    row.put("updated_at", Value::Null);
}

/// The name in a definition: the key beside the version in JSON, or the first line that ends in a colon.
fn name_in(text: &str) -> Option<String> {
    if let Ok(Value::Object(all)) = serde_json::from_str::<Value>(text) {
        return all.keys().find(|key| *key != "version").cloned();
    }
    let named = text.lines().filter_map(|line| line.strip_suffix(':')).find(|line| !line.starts_with([' ', '-', '#']));
    named.map(|name| name.trim_matches(['\'', '"']).to_owned())
}

/// Creates or replaces a workflow.
fn define(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    // The response is a text.
    let accepted = request.headers.get("accept").and_then(|kinds| kinds.to_str().ok()).unwrap_or("*/*");
    if !accepted.contains("*/*") && !accepted.contains("text/plain") {
        return Err(Refusal::new(406, "HTTPNotAcceptable", "Not Acceptable"));
    }
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let Some(name) = name_in(&text) else {
        return Err(Refusal::bad("Invalid DSL: a workflow is required"));
    };
    let key = format!("workflow/workflows/{name}");
    let exists = world.nouns.rows.get(&key).is_some();
    match request.method.as_str() {
        "POST" if exists => {
            return Err(Refusal::conflict(format!("Duplicate entry for WorkflowDefinition: {name}")));
        }
        "PUT" if !exists => return Err(Refusal::missing(format!("Workflow not found: {name}"))),
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
    Ok(Reply::json(if exists { 200 } else { 201 }, json!({"workflows": [crate::table::public(&row)]})))
}

/// Starts an execution, or returns the one with the ID of the request. Its output is its input; it fails if the input
/// has an `error`.
fn execute(world: &mut CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    let Value::Object(mut row) = request.json("The body is not valid JSON")? else {
        return Err(Refusal::bad("An execution is an object"));
    };
    let id = row.shift_remove("id").and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_else(|| world.uuid());
    if let Some(row) = world.nouns.rows.get(&id) {
        return Ok(Reply::created(Value::Object(crate::table::public(row))));
    }
    let name = row.text("workflow_name").to_owned();
    if world.nouns.rows.get(&format!("workflow/workflows/{name}")).is_none() {
        return Err(Refusal::missing(format!("Workflow not found [workflow_identifier={name}]")));
    }
    let input = row.get("input").cloned().unwrap_or_else(|| json!("{}"));
    let error = serde_json::from_str::<Value>(input.as_str().unwrap_or_default()).ok();
    let error = error.and_then(|input| input.get("error").cloned());
    row.put("id", id.clone());
    row.put("_id", id.clone());
    row.put("_noun", "workflow/executions");
    row.put("_unlisted", true);
    row.put("_project", caller.project.clone());
    row.put("output", "{}");
    row.put("state", "RUNNING");
    world.nouns.rows.insert(row.clone());
    world.after(world.options.build_time, move |world| {
        world.nouns.rows.edit(&id, |row| {
            if let Some(error) = error {
                row.put("state", "ERROR");
                row.put("state_info", error);
            } else {
                row.put("state", "SUCCESS");
                row.put("output", input);
            }
        });
    });
    Ok(Reply::created(Value::Object(crate::table::public(&row))))
}
