//! `OS::Heat::Stack`: a stack that is created by the orchestration service of the catalog, in this or another region,
//! or by that of another cloud.
//!
//! It includes the files and the environment of the parent's template: see [`TypeRules::takes_sources`].

mod snapshot;

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    CloudRequest, CloudResponse, Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation,
    PropertyChange, RemoteCloud, Step, TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use crate::call::{ORCHESTRATION, items, made_id};
use crate::path::segment;
use crate::queue;

/// Where the name of the stack is kept.
const NAME: &str = "stack_name";

/// The type's driver.
pub(super) struct RemoteStack;

fn region(facts: &Facts) -> Option<&str> {
    facts.property("context").str_at("region_name").filter(|region| !region.is_empty())
}

/// The cloud of the context; `None` if the stack's own cloud is called as always.
fn remote(facts: &Facts) -> Option<RemoteCloud> {
    let context = facts.property("context");
    let text = |key: &str| context.str_at(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let insecure = context.get("insecure").is_some_and(Value::is_truthy);
    let remote = RemoteCloud {
        service: ORCHESTRATION.0,
        credential_secret: text("credential_secret_id"),
        authorities: text("ca_cert"),
        insecure,
    };
    (remote.credential_secret.is_some() || remote.authorities.is_some() || insecure).then_some(remote)
}

/// Sends a request to the orchestration service of the context.
async fn send(cx: &Context<'_>, request: CloudRequest) -> Result<CloudResponse, Failure> {
    let request = request.region(region(cx.facts));
    match remote(cx.facts) {
        Some(remote) => cx.cloud.remote(&remote).await?.call(request).await,
        None => cx.cloud.call(request).await,
    }
}

async fn call(cx: &Context<'_>, method: Method, path: &str, body: Option<Value>) -> Result<CloudResponse, Failure> {
    let mut request = CloudRequest::new(ORCHESTRATION.0, method, path);
    request.body = body;
    send(cx, request).await
}

/// The path of the stack, by name and id: the service redirects all others.
fn path(facts: &Facts) -> Result<String, Failure> {
    let name = facts.data.get(NAME).and_then(Value::as_str).unwrap_or(&facts.physical_name);
    Ok(format!("/stacks/{}/{}", segment(name), segment(facts.require_id()?)))
}

async fn show(cx: &Context<'_>, outputs: bool) -> Result<Value, Failure> {
    let request = CloudRequest::new(ORCHESTRATION.0, Method::Get, path(cx.facts)?);
    let request = if outputs { request } else { request.query("resolve_outputs", "False") };
    let mut response = send(cx, request).await?;
    Ok(response.body.as_map_mut().and_then(|body| body.shift_remove("stack")).unwrap_or_default())
}

/// What a create and an update send.
fn request_body(facts: &Facts) -> Result<Map, Failure> {
    let template = template(facts).map_err(|problem| Failure::other(Class::ValueError, problem))?;
    let mut body = Map::from([
        ("template".to_owned(), template),
        ("parameters".to_owned(), facts.property("parameters").clone()),
        ("files".to_owned(), facts.data.get("files").cloned().unwrap_or_else(|| Map::new().into())),
        ("environment".to_owned(), facts.data.get("environment").cloned().unwrap_or_else(|| Map::new().into())),
        ("disable_rollback".to_owned(), true.into()),
    ]);
    let timeout = facts.property("timeout");
    if !timeout.is_null() {
        body.insert("timeout_mins".to_owned(), timeout.clone());
    }
    Ok(body)
}

fn template(facts: &Facts) -> Result<Value, String> {
    let text = facts.property("template").as_str().unwrap_or_default();
    kiln_yaml::parse(text).map(|document| document.value).map_err(|error| error.message)
}

/// Where the stack is, in messages.
fn location(facts: &Facts) -> String {
    match remote(facts).and_then(|remote| remote.credential_secret) {
        Some(_) => "remote cloud".to_owned(),
        None => format!("region \"{}\"", region(facts).unwrap_or("None")),
    }
}

/// The template was refused.
fn invalid(facts: &Facts, problem: &str) -> Diagnostic {
    let at = location(facts);
    let text = format!("Failed validating stack template using Heat endpoint at {at} due to \"{problem}\"");
    Diagnostic::invalid(text)
}

/// The service cannot be called.
fn unreachable(facts: &Facts, problem: &str) -> Diagnostic {
    let at = location(facts);
    let text = format!("Cannot establish connection to Heat endpoint at {at} due to \"{problem}\"");
    Diagnostic::invalid(text)
}

fn wait() -> Step {
    Step::wait(Value::Null, queue::pace(0))
}

/// Requests one of the stack's actions.
async fn act(cx: &Context<'_>, name: &str) -> Result<Step, Failure> {
    let body = value!({name: null});
    call(cx, Method::Post, &format!("{}/actions", path(cx.facts)?), Some(body)).await?;
    Ok(wait())
}

impl TypeRules for RemoteStack {
    fn restored(&self, data: &Map) -> Option<Map> {
        snapshot::restored(data)
    }

    /// A stack does not move to another region.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let region = |properties: &Map| properties.get("context").and_then(|c| c.get("region_name")).cloned();
        region(&change.before).unwrap_or_default() != region(&change.after).unwrap_or_default()
    }

    fn takes_sources(&self) -> bool {
        true
    }

    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        facts.property("template").as_str().is_some_and(|text| !text.is_empty())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if facts.property("template").is_null() {
            return Ok(());
        }
        template(facts).map(|_| ()).map_err(|problem| invalid(facts, &problem))
    }
}

#[async_trait]
impl Driver for RemoteStack {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let mut body = request_body(cx.facts)?;
                body.insert(NAME.to_owned(), cx.facts.physical_name.as_str().into());
                let response = call(cx, Method::Post, "/stacks", Some(body.into())).await?;
                let id = response.body.get("stack").and_then(|stack| stack.str_at("id"));
                Ok(wait().id(made_id(id, "a stack")?).data(NAME, cx.facts.physical_name.as_str()))
            }
            Operation::Update { .. } => {
                call(cx, Method::Put, &path(cx.facts)?, Some(request_body(cx.facts)?.into())).await?;
                Ok(wait())
            }
            Operation::Delete if cx.facts.physical_id.is_none() => Ok(Step::done()),
            Operation::Delete => match call(cx, Method::Delete, &path(cx.facts)?, None).await {
                Ok(_) => Ok(wait()),
                Err(failure) if failure.is_not_found() => Ok(Step::done()),
                Err(failure) => Err(failure),
            },
            Operation::Check => act(cx, "check").await,
            Operation::Suspend => act(cx, "suspend").await,
            Operation::Resume => act(cx, "resume").await,
            Operation::Snapshot => snapshot::start(cx).await,
            Operation::Adopt => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation == Operation::Snapshot {
            return snapshot::poll(cx, state).await;
        }
        let stack = match show(cx, false).await {
            Err(failure) if failure.is_not_found() && *operation == Operation::Delete => return Ok(Step::done()),
            other => other?,
        };
        let status = stack.str_at("stack_status").unwrap_or_default();
        let reason = stack.str_at("stack_status_reason").unwrap_or_default();
        match status.split_once('_') {
            Some((at, now)) if at != operation.action().as_str() || now == "IN_PROGRESS" => {
                Ok(queue::again(cx, state, format!("the end of the {} of the stack, now {status}", operation.action())))
            }
            Some((_, "COMPLETE")) => Ok(Step::done()),
            Some((_, "FAILED")) => Err(Failure::in_error(status, reason)),
            _ => Err(Failure::unknown_status("Resource failed", status, reason)),
        }
    }

    /// Its name is the physical one, which nothing else has but what a former attempt left to be deleted.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let name = cx.facts.physical_name.as_str();
        let request = CloudRequest::new(ORCHESTRATION.0, Method::Get, "/stacks").query("name", name);
        let response = send(cx, request).await?;
        let stacks = items(response.body, "stacks")?;
        let is_going = |stack: &Value| stack.str_at("stack_status").is_some_and(|status| status.starts_with("DELETE_"));
        let found = stacks.iter().find(|stack| stack.str_at(NAME) == Some(name) && !is_going(stack));
        let id = found.and_then(|stack| stack.str_at("id"));
        Ok(id.map_or(Found::NotMade, |id| Found::Made(wait().id(id).data(NAME, name))))
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        if cx.facts.physical_id.is_none() {
            return Ok(Map::new());
        }
        let stack = match show(cx, true).await {
            Err(failure) if failure.kind == FailureKind::NotFound => return Ok(Map::new()),
            other => other?,
        };
        let outputs = || -> Map {
            let outputs = stack.get("outputs").and_then(Value::as_list).unwrap_or_default();
            let entry = |output: &Value| {
                Some((output.str_at("output_key")?.to_owned(), output.get("output_value").cloned().unwrap_or_default()))
            };
            outputs.iter().filter_map(entry).collect()
        };
        Ok(names
            .iter()
            .filter_map(|name| match *name {
                "stack_name" => Some((NAME.to_owned(), stack.get(NAME).cloned().unwrap_or_default())),
                "outputs" => Some(("outputs".to_owned(), outputs().into())),
                "show" => Some(("show".to_owned(), stack.clone())),
                _ => None,
            })
            .collect())
    }

    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        snapshot::delete(cx).await
    }

    /// The service that will have the stack validates its template.
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        let Ok(mut body) = request_body(cx.facts) else { return Ok(()) };
        body.retain(|key, _| ["template", "files", "environment"].contains(&key.as_str()));
        if let Some(remote) = remote(cx.facts)
            && let Err(failure) = cx.cloud.remote(&remote).await
        {
            return Err(unreachable(cx.facts, &failure.message));
        }
        let Err(failure) = call(cx, Method::Post, "/validate", Some(body.into())).await else { return Ok(()) };
        if failure.class == Class::EndpointNotFound {
            let within = region(cx.facts).map_or_else(String::new, |region| format!(" in {region} region"));
            let text = format!("publicURL endpoint for orchestration service{within} not found");
            return Err(unreachable(cx.facts, &text));
        }
        Err(invalid(cx.facts, &failure.message))
    }
}
