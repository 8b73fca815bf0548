//! OS::Mistral::Workflow

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation, TypeRules};
use kiln_resource::{Received, Step};
use kiln_value::{Class, Diagnostic, Map, Value, text, value};

use super::execution::{self, Start};
use crate::call::{MISTRAL, absent_is_fine};
use crate::heat::signal_url::{SignedFor, signed};
use crate::heat::stack_user;
use crate::path::segment;
use crate::queue;
use crate::validation::{conflict, dependency, failed, unspecified};

/// A workflow. Its ID is its name. A signal starts an execution.
pub(super) struct Workflow;

/// The entry of the data with the IDs of the executions, the newest first, separated by commas.
const EXECUTIONS: &str = "executions";

/// Steps of the create after those of the user.
const CLAIM: &str = "claim";
const POST: &str = "post";

/// Properties of the workflow itself.
const OWN: [&str; 4] = ["type", "description", "tags", "output"];

/// Properties of a task that are not sent under their own name.
const SPECIAL: [&str; 2] = ["name", "policies"];

fn name(facts: &Facts) -> &str {
    facts.property("name").as_str().filter(|name| !name.is_empty()).unwrap_or(&facts.physical_name)
}

fn path_of(name: &str) -> String {
    format!("/v2/workflows/{}", segment(name))
}

/// The entries of a map that have values, with dashes in their names.
fn dashed<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>) -> Map {
    let given = entries.filter(|(_, value)| !value.is_null());
    given.map(|(key, value)| (key.replace('_', "-"), value.clone())).collect()
}

/// The definition in Mistral's language. It is JSON, which is YAML too.
fn definition(facts: &Facts) -> Result<String, Failure> {
    let mut workflow: Map = Map::new();
    for key in OWN {
        let value = facts.property(key);
        if !value.is_null() {
            workflow.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(input) = facts.property("input").as_map() {
        workflow.insert("input".to_owned(), input.keys().map(|key| Value::from(key.as_str())).collect());
    }
    let tasks = facts.property("tasks").as_list().unwrap_or_default().iter().filter_map(Value::as_map);
    let tasks = tasks.map(|task| {
        let own = task.iter().filter(|(key, _)| !SPECIAL.contains(&key.as_str()));
        (task.get("name").map(text::str).unwrap_or_default(), dashed(own).into())
    });
    workflow.insert("tasks".to_owned(), tasks.collect::<Map>().into());
    if let Some(defaults) = facts.property("task_defaults").as_map() {
        let given = defaults.iter().filter(|(_, value)| value.is_truthy());
        workflow.insert("task-defaults".to_owned(), dashed(given).into());
    }
    let whole =
        Value::Map(Map::from([("version".to_owned(), "2.0".into()), (name(facts).to_owned(), workflow.into())]));
    serde_json::to_string(&whole).map_err(|error| Failure::other(Class::ValueError, error.to_string()))
}

/// The entries of a map with the names of properties, the reverse of [`dashed`].
fn undashed(entries: Option<&Value>) -> Map {
    let entries = entries.and_then(Value::as_map).into_iter().flatten();
    entries.map(|(key, value)| (key.replace('-', "_"), value.clone())).collect()
}

/// The properties in a definition, the reverse of [`definition`]. It has only the names of the input.
fn properties(name: &str, definition: &str, facts: &Facts) -> Map {
    let given = facts.property("input");
    let parsed = kiln_yaml::parse(definition).map(|document| document.value).unwrap_or_default();
    let workflow = parsed.get(name).unwrap_or(&Value::Null);
    let mut own: Map =
        OWN.into_iter().map(|key| (key.to_owned(), workflow.get(key).cloned().unwrap_or_default())).collect();
    if own.get("type").is_some_and(Value::is_null) {
        own.insert("type".to_owned(), "direct".into());
    }
    let input =
        workflow.get("input").and_then(Value::as_list).unwrap_or_default().iter().flat_map(|input| match input {
            Value::Map(with_default) => with_default.keys().cloned().collect(),
            name => vec![text::str(name)],
        });
    let input = input.map(|key| {
        let value = given.get(&key).cloned().unwrap_or_default();
        (key, value)
    });
    own.insert("input".to_owned(), input.collect::<Map>().into());
    let tasks = workflow.get("tasks").and_then(Value::as_map).into_iter().flatten().map(|(name, task)| {
        let mut task = undashed(Some(task));
        task.insert("name".to_owned(), name.as_str().into());
        Value::Map(task)
    });
    own.insert("tasks".to_owned(), tasks.collect());
    let mut defaults = undashed(workflow.get("task-defaults"));
    // A default that is no value is not sent.
    let given = facts.property("task_defaults").as_map().into_iter().flatten();
    for (key, value) in given.filter(|(_, value)| !value.is_null() && !value.is_truthy()) {
        defaults.entry(key.clone()).or_insert_with(|| value.clone());
    }
    own.insert("task_defaults".to_owned(), defaults.into());
    own
}

/// Sends the definition.
async fn send(cx: &Context<'_>, method: Method) -> Result<(), Failure> {
    let mut request = CloudRequest::new(MISTRAL.0, method, "/v2/workflows").query("scope", "private");
    request.headers.push(("content-type".to_owned(), "text/plain".to_owned()));
    // The response is a text, too: Mistral refuses requests that accept only JSON.
    request.headers.push(("accept".to_owned(), "*/*".to_owned()));
    cx.cloud.call(request.body(definition(cx.facts)?.into())).await.map(drop)
}

async fn exists(cx: &Context<'_>, name: &str) -> Result<bool, Failure> {
    Ok(MISTRAL.seek(cx, path_of(name), "").await?.is_some())
}

/// A step of the user of the workflow, whose ID is not that of the resource.
fn of_user(step: Step) -> Step {
    Step { physical_id: None, ..step }
}

/// The input and the parameters in a signal.
fn signal(facts: &Facts, message: &Value) -> Result<(Map, Map), Failure> {
    let invalid = |text: String| Failure::other(Class::StackValidationFailed, format!("Signal data error: {text}"));
    let (input, params) = if facts.property("use_request_body_as_input").is_truthy() {
        (message.clone(), Value::Null)
    } else {
        let entry = |key: &str| message.get(key).cloned().unwrap_or_default();
        (entry("input"), entry("params"))
    };
    let map = |value: Value, what: &str| match value {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(map),
        other => Err(invalid(format!("{what} must be a map, find a {}", class(&other)))),
    };
    let input = map(input, "Input in signal data")?;
    let known = facts.property("input").as_map();
    if let Some(key) = input.keys().find(|key| known.is_none_or(|known| !known.contains_key(*key))) {
        return Err(invalid(format!("Unknown input {key}")));
    }
    Ok((input, map(params, "Params")?))
}

/// The type of a value in Python, for Heat's text.
fn class(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "<class 'bool'>",
        Value::Int(_) => "<class 'int'>",
        Value::Float(_) => "<class 'float'>",
        Value::List(_) => "<class 'list'>",
        _ => "<class 'str'>",
    }
}

fn executions(facts: &Facts) -> Vec<&str> {
    let stored = facts.data.get(EXECUTIONS).and_then(Value::as_str).unwrap_or_default();
    stored.split(',').filter(|id| !id.is_empty()).collect()
}

impl TypeRules for Workflow {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let kind = facts.property("type").as_str();
        let is_known = |value: &Value| !value.is_null();
        if kind == Some("reverse") && !facts.property("params").get("task_name").is_some_and(Value::is_truthy) {
            return Err(failed("'task_name' is not assigned in 'params' in case of reverse type workflow."));
        }
        for task in facts.property("tasks").as_list().unwrap_or_default() {
            let has = |key: &str| task.get(key).is_some_and(is_known);
            match (has("workflow"), has("action")) {
                (true, true) => return Err(conflict(&["workflow", "action"])),
                // A reference to another workflow is not known yet.
                (false, false) if !task.as_map().is_some_and(|task| task.contains_key("workflow")) => {
                    return Err(unspecified(&["workflow", "action"]));
                }
                _ => {}
            }
            if kind == Some("direct") && has("requires") {
                return Err(failed(format!(
                    "task {} contains property 'requires' in case of direct workflow. Only reverse workflows can \
                     contain property 'requires'.",
                    facts.name
                )));
            }
            if has("concurrency") && !has("with_items") {
                return Err(dependency("concurrency", "with_items"));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Driver for Workflow {
    /// Without a domain of stack users, a workflow has no user and no signed URL.
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let has_user = stack_user::text(cx.facts, stack_user::PASSWORD).is_some();
        match operation {
            Operation::Create if cx.cloud.user_domain().await?.is_some() => Ok(of_user(stack_user::start(cx).await?)),
            Operation::Create => Ok(queue::now(CLAIM)),
            Operation::Update { changed, .. } if !changed.is_empty() => {
                send(cx, Method::Put).await?;
                Ok(Step::done())
            }
            Operation::Delete => {
                for id in executions(cx.facts) {
                    MISTRAL.delete(cx, execution::path(id)).await?;
                }
                if let Some(name) = &cx.facts.physical_id {
                    absent_is_fine(MISTRAL.delete(cx, path_of(name)).await)?;
                }
                if has_user {
                    stack_user::delete(cx).await?;
                }
                Ok(Step::done().data(EXECUTIONS, Value::Null))
            }
            Operation::Check => MISTRAL.get(cx, path_of(cx.facts.require_id()?)).await.map(|_| Step::done()),
            Operation::Suspend if has_user => stack_user::enable(cx, false).await.map(|()| Step::done()),
            Operation::Resume if has_user => stack_user::enable(cx, true).await.map(|()| Step::done()),
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation != Operation::Create {
            return Ok(Step::done());
        }
        if let Some(failure) = queue::given_up(state) {
            return Err(failure);
        }
        match state.str_at("stage") {
            // A workflow with this name that exists before the claim is another one: Mistral says so.
            Some(CLAIM) if exists(cx, name(cx.facts)).await? => send(cx, Method::Post).await.map(|()| Step::done()),
            Some(CLAIM) => Ok(queue::now(POST).id(name(cx.facts))),
            Some(POST) => match send(cx, Method::Post).await {
                Err(failure) if failure.kind == FailureKind::Conflict && exists(cx, name(cx.facts)).await? => {
                    Ok(Step::done())
                }
                Err(failure) if failure.is_passing() => Err(failure),
                Err(failure) => Ok(queue::give_up(&failure)),
                Ok(()) => Ok(Step::done()),
            },
            _ => match stack_user::poll(cx, state, true).await? {
                Some(step) => Ok(of_user(step)),
                None => Ok(queue::now(CLAIM)),
            },
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        if cx.cloud.user_domain().await?.is_none() {
            return Ok(Found::NotMade);
        }
        Ok(match stack_user::find(cx).await? {
            Found::Made(step) => Found::Made(of_user(step)),
            other => other,
        })
    }

    /// The ID of the execution follows from the message and those before it, so that a repeated delivery starts no
    /// other one.
    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let facts = cx.facts;
        let (given, more) = signal(facts, message)?;
        let mut input = facts.property("input").as_map().cloned().unwrap_or_default();
        input.extend(given);
        let mut params = facts.property("params").as_map().cloned().unwrap_or_default();
        params.extend(more);
        let before = executions(facts);
        let seed = format!("{} {} {}", facts.id, before.join(","), text::json(message));
        let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, seed.as_bytes()).to_string();
        let input = Value::from(input);
        let start = Start { id: &id, workflow: name(facts), input: &input, params: &params, description: None };
        execution::start(cx, &start).await?;
        let all: Vec<&str> = std::iter::once(id.as_str()).chain(before).collect();
        Ok(Received { data: Map::from([(EXECUTIONS.to_owned(), all.join(",").into())]), ..Received::default() })
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let workflow = MISTRAL.get(cx, path_of(cx.facts.require_id()?)).await?;
        self.live_in(cx, &workflow).await
    }

    async fn live_in(&self, cx: &Context<'_>, workflow: &Value) -> Result<Map, Failure> {
        let name = workflow.str_at("name").unwrap_or_default();
        let definition = workflow.str_at("definition").unwrap_or_default();
        let mut live = properties(name, definition, cx.facts);
        live.insert("name".to_owned(), name.into());
        Ok(live)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let id = cx.facts.physical_id.as_deref();
        let mut values = Map::new();
        for name in names {
            let value = match (*name, id) {
                ("executions", _) => {
                    let mut all = Vec::new();
                    for id in executions(cx.facts) {
                        let execution = MISTRAL.get(cx, execution::path(id)).await?;
                        let field = |key: &str| execution.get(key).cloned().unwrap_or_default();
                        all.push(value!({
                            "id": (field("id")),
                            "workflow_name": (field("workflow_name")),
                            "created_at": (field("created_at")),
                            "updated_at": (field("updated_at")),
                            "state": (field("state")),
                            "input": (execution::parsed(&execution, "input")),
                            "output": (execution::parsed(&execution, "output")),
                        }));
                    }
                    all.into()
                }
                ("data", _) => value!({"name": id, "input": (cx.facts.property("input").clone())}),
                ("alarm_url", Some(_)) => {
                    stack_user::domain_id(cx).await?;
                    signed(cx.facts, &cx.cloud.signal_endpoints().await?, SignedFor::Signal, None)?.into()
                }
                ("show", Some(id)) => MISTRAL.seek(cx, path_of(id), "").await?.unwrap_or_default(),
                _ => Value::Null,
            };
            values.insert((*name).to_owned(), value);
        }
        Ok(values)
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        match &cx.facts.physical_id {
            Some(id) if !cx.facts.property("name").is_null() => Ok(!exists(cx, id).await?),
            _ => Ok(true),
        }
    }
}
