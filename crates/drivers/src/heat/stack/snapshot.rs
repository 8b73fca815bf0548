//! Snapshots of a remote stack, which its own service makes.

use std::time::Duration;

use kiln_resource::{Context, Failure, Method, Step};
use kiln_value::{Map, Value, text, value};

use super::{call, path};
use crate::call::{items, made_id, take};
use crate::path::segment;
use crate::queue;

/// Entry of the resource data with the ID of the snapshot, as in Heat.
const SNAPSHOT: &str = "snapshot_id";
/// Entries with the template (as JSON) and the parameters of the snapshot. Heat reads them when it restores.
const TEMPLATE: &str = "snapshot_template";
const PARAMETERS: &str = "snapshot_parameters";

fn snapshot_path(cx: &Context<'_>, id: &str) -> Result<String, Failure> {
    Ok(format!("{}/snapshots/{}", path(cx.facts)?, segment(id)))
}

/// Requests a snapshot unless an earlier call has: its name is the token of the operation.
pub(super) async fn start(cx: &Context<'_>) -> Result<Step, Failure> {
    let (all, name) = (format!("{}/snapshots", path(cx.facts)?), cx.facts.attempt.token.as_str());
    let known = items(call(cx, Method::Get, &all, None).await?.body, "snapshots")?;
    let ours = known.iter().find(|snapshot| snapshot.str_at("name") == Some(name));
    let id = if let Some(id) = ours.and_then(|snapshot| snapshot.str_at("id")) {
        id.to_owned()
    } else {
        let made = call(cx, Method::Post, &all, Some(value!({ "name": name }))).await?.body;
        made_id(made.str_at("id"), "a snapshot")?.to_owned()
    };
    Ok(Step::wait(value!({ "snapshot": id }), queue::pace(0)))
}

pub(super) async fn poll(cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let id = state.str_at("snapshot").unwrap_or_default();
    let shown = take(call(cx, Method::Get, &snapshot_path(cx, id)?, None).await?.body, "snapshot");
    match shown.str_at("status").unwrap_or_default() {
        "IN_PROGRESS" => Ok(queue::again(cx, state, format!("the snapshot {id}"))),
        "COMPLETE" => {
            let part = |key: &str| shown.get("data").and_then(|data| data.get(key)).cloned().unwrap_or_default();
            let parameters = part("environment").get("parameters").cloned().unwrap_or_else(|| Map::new().into());
            let step = Step::done().data(SNAPSHOT, id).data(TEMPLATE, text::json(&part("template")));
            Ok(step.data(PARAMETERS, parameters))
        }
        status => Err(Failure::in_error(status, shown.str_at("status_reason").unwrap_or("Unknown"))),
    }
}

/// Deletes a snapshot; it is gone when it cannot be found.
pub(super) async fn delete(cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
    let Some(id) = cx.facts.data.get(SNAPSHOT).and_then(Value::as_str) else { return Ok(None) };
    let at = snapshot_path(cx, id)?;
    let shown = match call(cx, Method::Get, &at, None).await {
        Err(failure) if failure.is_not_found() => return Ok(None),
        other => take(other?.body, "snapshot"),
    };
    if shown.str_at("status") != Some("IN_PROGRESS") {
        match call(cx, Method::Delete, &at, None).await {
            Err(failure) if failure.is_not_found() => return Ok(None),
            other => drop(other?),
        }
    }
    Ok(Some(queue::pace(0)))
}

/// The remote stack gets the template and the parameters of the snapshot.
pub(super) fn restored(data: &Map) -> Option<Map> {
    let (template, parameters) = (data.get(TEMPLATE)?.clone(), data.get(PARAMETERS)?.clone());
    Some(Map::from([("template".to_owned(), template), ("parameters".to_owned(), parameters)]))
}
