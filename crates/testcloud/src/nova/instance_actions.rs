//! `/servers/{id}/os-instance-actions`: only the actions that are executed later.

use serde_json::{Value, json};

use super::Call;
use super::servers::find;
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// The list of a server, oldest first.
const ACTIONS: &str = "_actions";

/// Records an action; returns its request ID.
pub(super) fn begin(world: &mut CloudState, server: &str, action: &str) -> String {
    let request = format!("req-{}", world.uuid());
    let entry =
        json!({"action": action, "instance_uuid": server, "request_id": request, "message": null, "done": false});
    world.nova.servers.edit(server, |row| row.push(ACTIONS, entry));
    request
}

/// The action is complete.
pub(super) fn end(world: &mut CloudState, server: &str, request: &str) {
    world.nova.servers.edit(server, |row| {
        for entry in row.get_mut(ACTIONS).and_then(Value::as_array_mut).into_iter().flatten() {
            if entry["request_id"] == request {
                entry["done"] = true.into();
            }
        }
    });
}

pub(super) fn route(world: &mut CloudState, call: Call<'_>, id: &str, rest: &[&str]) -> Outcome {
    let actions = find(world, call, id)?.list(ACTIONS).to_vec();
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let newest_first: Vec<Value> = actions.iter().rev().map(show).collect();
            Ok(Reply::ok(json!({"instanceActions": newest_first})))
        }
        ("GET", [request]) => {
            let missing = || Refusal::missing(format!("Action for request_id {request} on instance {id} not found"));
            let action = actions.iter().find(|action| action["request_id"] == **request).ok_or_else(missing)?;
            let mut shown = show(action);
            // Since 2.51, every user sees the events.
            if call.minor >= 51 {
                let result = if action["done"] == true { json!("Success") } else { Value::Null };
                let finished = if action["done"] == true { json!("2026-01-01T00:00:00.000000") } else { Value::Null };
                let event = format!("compute_{}", action["action"].as_str().unwrap_or_default());
                shown["events"] = json!([{"event": event, "result": result, "finish_time": finished}]);
            }
            Ok(Reply::ok(json!({"instanceAction": shown})))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn show(action: &Value) -> Value {
    let fields = action.as_object().into_iter().flatten().filter(|(name, _)| *name != "done");
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Row>())
}
