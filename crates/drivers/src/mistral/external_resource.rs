//! OS::Mistral::ExternalResource

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, PropertyChange, Step, TypeRules};
use kiln_value::{Class, Map, Value, text, value};

use super::execution::{self, Start};
use crate::call::MISTRAL;
use crate::queue;

/// A resource whose actions are executions of workflows.
pub(super) struct ExternalResource;

/// The entry of the data with the outputs of all executions, as JSON.
const OUTPUTS: &str = "outputs";

fn outputs(cx: &Context<'_>) -> Map {
    let stored = cx.facts.data.get(OUTPUTS).and_then(Value::as_str);
    stored.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The workflow of an action with its parameters; `None` if the template gives none.
fn action(cx: &Context<'_>, operation: &Operation) -> Option<Map> {
    let name = operation.action().to_string();
    cx.facts.property("actions").get(&name)?.as_map().cloned()
}

/// Starts the execution of an operation with this ID. Idempotent.
async fn execute(cx: &Context<'_>, operation: &Operation, id: &str) -> Result<(), Failure> {
    let action = action(cx, operation).unwrap_or_default();
    let mut params = action.get("params").and_then(Value::as_map).cloned().unwrap_or_default();
    if cx.facts.physical_id.is_some() {
        let mut environment = params.get("env").and_then(Value::as_map).cloned().unwrap_or_default();
        environment.insert("heat_extresource_data".to_owned(), outputs(cx).into());
        params.insert("env".to_owned(), environment.into());
    }
    let workflow = action.get("workflow").map(text::str).unwrap_or_default();
    let input = cx.facts.property("input").clone();
    let description = cx.facts.property("description").as_str();
    let input = if input.is_null() { Map::new().into() } else { input };
    let start = Start { id, workflow: &workflow, input: &input, params: &params, description };
    execution::start(cx, &start).await
}

/// Waits for an execution. Its ID is stored.
fn awaiting(id: &str) -> Step {
    Step::wait(value!({"stage": "executing", "execution": id}), queue::pace(0))
}

/// The step after an execution has ended, or the next wait.
async fn look(cx: &Context<'_>, state: &Value, id: &str) -> Result<Step, Failure> {
    let execution = MISTRAL.get(cx, execution::path(id)).await?;
    match execution.str_at("state").unwrap_or_default() {
        "IDLE" | "RUNNING" | "PAUSED" => Ok(queue::again(cx, state, format!("the end of the execution {id}"))),
        "SUCCESS" => {
            let output = execution::parsed(&execution, "output").as_map().cloned().unwrap_or_default();
            let own = output.get("resource_id").filter(|id| id.is_truthy()).map(text::str);
            let mut outputs = outputs(cx);
            outputs.extend(output);
            let physical: String = own.unwrap_or_else(|| id.to_owned()).chars().take(255).collect();
            Ok(Step::done().id(physical).data(OUTPUTS, text::json(&outputs.into())))
        }
        "ERROR" | "CANCELLED" => {
            let reason = text::str(execution.get("state_info").unwrap_or(&Value::Null));
            Err(Failure::other(Class::ResourceFailure, reason))
        }
        other => Err(Failure::unknown_status("Mistral execution is in unknown state.", other, "Unknown")),
    }
}

impl TypeRules for ExternalResource {
    fn always_updates(&self, properties: &Map) -> bool {
        properties.get("always_update").is_some_and(Value::is_truthy)
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let names = change.after.get("replace_on_change_inputs").and_then(Value::as_list).unwrap_or_default();
        let input = |properties: &Map, name: &str| properties.get("input").and_then(|input| input.get(name)).cloned();
        names.iter().filter_map(Value::as_str).any(|name| input(&change.before, name) != input(&change.after, name))
    }
}

#[async_trait]
impl Driver for ExternalResource {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Check | Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
            _ if action(cx, operation).is_none() => Ok(Step::done()),
            Operation::Create => {
                execute(cx, operation, &cx.facts.attempt.token).await?;
                Ok(awaiting(&cx.facts.attempt.token))
            }
            // Nothing has been created, so there is nothing to change.
            _ if cx.facts.physical_id.is_none() => Ok(Step::done()),
            // The ID of the execution is stored before the call.
            _ => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(cx.seed.first_chunk::<16>().unwrap_or(&[0; 16]));
                let id = uuid::Builder::from_random_bytes(bytes).into_uuid().to_string();
                Ok(Step::wait(value!({"stage": "start", "execution": id}), Duration::ZERO))
            }
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let id = state.str_at("execution").unwrap_or_default();
        if state.str_at("stage") == Some("start") {
            execute(cx, operation, id).await?;
            return Ok(awaiting(id));
        }
        look(cx, state, id).await
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let execution = MISTRAL.get(cx, execution::path(&cx.facts.attempt.token)).await;
        match execution {
            Ok(_) => Ok(Found::Made(awaiting(&cx.facts.attempt.token))),
            Err(failure) if failure.is_not_found() => Ok(Found::NotMade),
            Err(failure) => Err(failure),
        }
    }

    /// The outputs of the last executions, as JSON.
    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let id = cx.facts.physical_id.as_deref();
        let mut values = Map::new();
        for name in names {
            let value = match (*name, id) {
                ("output", Some(_)) => cx.facts.data.get(OUTPUTS).cloned().unwrap_or_default(),
                ("show", Some(id)) => MISTRAL.seek(cx, execution::path(id), "").await?.unwrap_or_default(),
                _ => Value::Null,
            };
            values.insert((*name).to_owned(), value);
        }
        Ok(values)
    }

    /// Only its workflows know the object.
    async fn live(&self, _: &Context<'_>) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
