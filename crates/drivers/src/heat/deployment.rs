//! Software deployments: `OS::Heat::SoftwareDeployment` and `OS::Heat::StructuredDeployment`.
//!
//! A deployment is a row of Kiln's store with the ID of the resource. Every action that triggers it gives it a new
//! config with the values of the inputs; then the resource waits until the agent in the server has sent a signal.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::shared_software::OUTPUTS;
use kiln_resource::{
    CloudRequest, Context, DeploymentBody, Driver, Facts, Failure, Found, Method, Operation, Progress, Received,
    Sibling, Siblings, SoftwareChange, SoftwareConfig, SoftwareDeployment, Step, TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, text};

use super::derived_config::{self, transport};
use super::signal_place::{self, Keeps, PLACE};
use super::software_config::{COMPONENT, time};
use super::{push, stack_user};
use crate::path;
use crate::queue::pace;
use crate::validation::failed;

/// A deployment; structured ones have further properties.
pub(super) struct Deployment;

/// The state when a change of the deployment is stored and its server has to learn of it.
const CHANGED: &str = "changed";
/// The state while the result is awaited.
const DEPLOYED: &str = "deployed";
/// The number of polls, a few seconds, after which the metadata are written again.
const LATER: u32 = 4;
/// The state when the result is stored.
const RECEIVED: &str = "received";
/// The state while there is more to delete.
const DELETING: &str = "deleting";
/// The state when the deployment is deleted and its server has to learn of it.
const DELETED: &str = "deleted";
/// The state of a resource whose user is not complete yet: the step of the user.
const USER: &str = "user";

/// The name of the action for the config; `None`: the operation deploys nothing.
fn action(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::Create => Some("CREATE"),
        Operation::Update { .. } => Some("UPDATE"),
        Operation::Delete => Some("DELETE"),
        Operation::Suspend => Some("SUSPEND"),
        Operation::Resume => Some("RESUME"),
        Operation::Adopt | Operation::Check | Operation::Snapshot => None,
    }
}

/// The actions of a transport that needs a user.
fn needs_user(facts: &Facts) -> bool {
    matches!(transport(facts), "CFN_SIGNAL" | "HEAT_SIGNAL" | "ZAQAR_SIGNAL")
}

/// The config of the template; `None`: there is none.
async fn source(cx: &Context<'_>) -> Result<Option<SoftwareConfig>, Failure> {
    let Some(id) = cx.facts.property("config").as_str().filter(|id| !id.is_empty()) else { return Ok(None) };
    let missing = || {
        let text = format!("Software config with id {id} not found");
        Failure::new(kiln_resource::FailureKind::NotFound, Class::NotFound, text)
    };
    cx.software.config(id).await?.ok_or_else(missing).map(Some)
}

/// Whether an action triggers the deployment.
fn is_triggered(facts: &Facts, source: Option<&SoftwareConfig>, action: &str) -> bool {
    let contains = |actions: Option<&Value>| {
        let actions = actions.and_then(Value::as_list).unwrap_or_default();
        actions.iter().any(|one| one.as_str() == Some(action))
    };
    match source.filter(|source| source.group.as_deref() == Some(COMPONENT)) {
        Some(component) => {
            let configs = component.body.config.get("configs").and_then(Value::as_list).unwrap_or_default();
            configs.iter().any(|config| contains(config.get("actions")))
        }
        None => contains(Some(facts.property("actions"))),
    }
}

/// The stored deployment.
async fn stored(cx: &Context<'_>) -> Result<Option<SoftwareDeployment>, Failure> {
    match cx.facts.physical_id.as_deref() {
        Some(id) => cx.software.deployment(id).await,
        None => Ok(None),
    }
}

/// Starts an action: done if it does not trigger the deployment.
async fn begin(cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
    let Some(action) = action(operation) else { return Ok(Step::done()) };
    let source = source(cx).await?;
    if !is_triggered(cx.facts, source.as_ref(), action) {
        return Ok(Step::done());
    }
    if needs_user(cx.facts) && stack_user::text(cx.facts, stack_user::USER).is_none() {
        return Ok(with_user_state(stack_user::start(cx).await?));
    }
    prepare(cx, action, source).await
}

/// Deploys as soon as there is a place for the result.
async fn prepare(cx: &Context<'_>, action: &str, source: Option<SoftwareConfig>) -> Result<Step, Failure> {
    if let Some(step) = signal_place::prepare(cx, Keeps::Last).await? {
        return Ok(step);
    }
    signal_place::clear(cx).await?;
    deploy(cx, action, source).await
}

/// A step of the user, whose ID is not that of the deployment.
fn with_user_state(step: Step) -> Step {
    let progress = match step.progress {
        Progress::Wait { state, after } => {
            Progress::Wait { state: Value::Map(Map::from([(USER.into(), state)])), after }
        }
        other => other,
    };
    Step { physical_id: None, progress, ..step }
}

/// Stores the config for the action, and the deployment with it.
async fn deploy(cx: &Context<'_>, action: &str, source: Option<SoftwareConfig>) -> Result<Step, Failure> {
    let facts = cx.facts;
    let before = stored(cx).await?;
    let previous = before.as_ref().map(|deployment| deployment.config.clone());
    let config = derived_config::build(cx, action, source.as_ref(), previous.as_deref()).await?;
    let (status, reason) = match transport(facts) {
        "NO_SIGNAL" => ("COMPLETE", "Not waiting for outputs signal"),
        _ => ("IN_PROGRESS", "Deploy data available"),
    };
    let given = facts.property("input_values");
    let id = before.as_ref().map_or_else(|| facts.id.clone(), |deployment| deployment.id.clone());
    let deployment = SoftwareDeployment {
        id: id.clone(),
        project: facts.stack.project_id.clone(),
        user_project: facts.stack.user_project_id.clone(),
        config: config.id.clone(),
        server: text::str(facts.property("server")),
        body: DeploymentBody {
            inputs: if given.is_null() { Map::new().into() } else { given.clone() },
            outputs: before.as_ref().map(|deployment| deployment.body.outputs.clone()).unwrap_or_default(),
            action: Some(action.to_owned()),
            status: Some(status.to_owned()),
            reason: reason.to_owned(),
        },
        created: before.as_ref().map_or_else(|| time(cx.now), |deployment| deployment.created),
        updated: before.as_ref().map(|_| time(cx.now)),
    };
    let step = Step::wait(CHANGED, Duration::ZERO).id(id);
    let step = step.software(SoftwareChange::PutConfig(config)).software(SoftwareChange::PutDeployment(deployment));
    Ok(match previous {
        Some(previous) => step.software(SoftwareChange::DropConfig(previous)),
        None => step,
    })
}

/// Writes the result into the deployment; returns the text for the event.
async fn receive(cx: &Context<'_>, deployment: &mut SoftwareDeployment, details: &Map) -> Result<String, Failure> {
    let config = cx.software.config(&deployment.config).await?.unwrap_or_default();
    deployment.updated = Some(time(cx.now));
    Ok(deployment.receive(&config, details))
}

/// Looks for the result. An update by a user of the API has no signal, so it is looked for from time to time, too.
async fn look(cx: &Context<'_>) -> Result<Option<Step>, Failure> {
    let id = cx.facts.require_id()?;
    let mut deployment = cx.software.deployment(id).await?.ok_or_else(|| {
        let text = format!("Deployment with id {id} not found");
        Failure::new(kiln_resource::FailureKind::NotFound, Class::NotFound, text)
    })?;
    match deployment.body.status.as_deref() {
        Some("COMPLETE") => Ok(None),
        Some("FAILED") => {
            let text = format!("Deployment to server failed: {}", deployment.body.reason);
            Err(Failure::other(Class::Error, text))
        }
        _ => {
            if deployment.is_in_progress()
                && let Some(details) = signal_place::read(cx).await?
            {
                receive(cx, &mut deployment, &details).await?;
                let step = Step::wait(RECEIVED, Duration::ZERO);
                return Ok(Some(step.software(SoftwareChange::ChangeDeployment(deployment))));
            }
            Ok(Some(Step::wait(DEPLOYED, pace(cx.polls))))
        }
    }
}

/// Whether an input that replaces the deployment has another value.
async fn is_replaced(cx: &Context<'_>, source: Option<&SoftwareConfig>) -> Result<bool, Failure> {
    let Some(before) = stored(cx).await? else { return Ok(false) };
    let Some(old) = cx.software.config(&before.config).await? else { return Ok(false) };
    let new = derived_config::build(cx, "UPDATE", source, Some(&old.id)).await?;
    let (old, values) = (old.input_values(), new.input_values());
    let replaces = |input: &&Value| input.get("replace_on_change").is_some_and(Value::is_truthy);
    let mut names = new.body.inputs.iter().filter(replaces).filter_map(|input| input.str_at("name"));
    Ok(names.any(|name| old.get(name).is_some_and(|old| Some(old) != values.get(name))))
}

/// Deletes the deployment with its config, the place of its result and its user. The server learns of it next.
async fn remove(cx: &Context<'_>) -> Result<Step, Failure> {
    if !signal_place::delete(cx).await? {
        return Ok(Step::wait(DELETING, Duration::ZERO));
    }
    if stack_user::text(cx.facts, stack_user::PASSWORD).is_some() {
        stack_user::delete(cx).await?;
    }
    if cx.facts.physical_id.is_none() {
        return Ok(Step::done());
    }
    let step = Step::wait(DELETED, Duration::ZERO);
    let Some(deployment) = stored(cx).await? else { return Ok(step) };
    let step = step.software(SoftwareChange::DropDeployment(deployment.id));
    Ok(step.software(SoftwareChange::DropConfig(deployment.config)))
}

async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    // Without an ID, the delete may be the first action that deploys the config.
    if cx.facts.physical_id.is_some() && stored(cx).await?.is_none() {
        return remove(cx).await;
    }
    match begin(cx, &Operation::Delete).await {
        Ok(Step { progress: Progress::Done, .. }) => remove(cx).await,
        Err(failure) if failure.is_not_found() => remove(cx).await,
        result => result,
    }
}

/// The server stops to apply a deployment that is deleted. This does not hold up the delete.
async fn tell_of_delete(cx: &Context<'_>) -> Result<Step, Failure> {
    match push::to_server(cx, &text::str(cx.facts.property("server"))).await {
        Err(failure) if !failure.is_passing() => {
            tracing::warn!(resource = cx.facts.name, %failure, "a server does not learn that a deployment is deleted");
            Ok(Step::done())
        }
        outcome => outcome.map(|()| Step::done()),
    }
}

/// A server that is gone sends no signals.
async fn server_exists(cx: &Context<'_>) -> Result<bool, Failure> {
    let path = format!("/servers/{}", path::segment(&text::str(cx.facts.property("server"))));
    match cx.cloud.call(CloudRequest::new("compute", Method::Get, path)).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.is_not_found() => Ok(false),
        Err(failure) => Err(failure),
    }
}

impl TypeRules for Deployment {
    fn cancelled(&self, facts: &Facts) -> Option<SoftwareChange> {
        facts.physical_id.clone().map(SoftwareChange::CancelDeployment)
    }

    fn validate_among(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Result<(), Diagnostic> {
        let server = this.properties().get("server").and_then(|server| server.str_at("get_resource"));
        server.and_then(|name| siblings.get(name)).map_or(Ok(()), refuse_without_agent)
    }
}

#[async_trait]
impl Driver for Deployment {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Delete => delete(cx).await,
            Operation::Update { .. } if is_replaced(cx, source(cx).await?.as_ref()).await? => Ok(Step::replace()),
            _ => begin(cx, operation).await,
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let Some(action) = action(operation) else { return Ok(Step::done()) };
        if let Some(user) = state.get(USER) {
            return match stack_user::poll(cx, user, transport(cx.facts) == "CFN_SIGNAL").await? {
                Some(step) => Ok(with_user_state(step)),
                None => prepare(cx, action, source(cx).await?).await,
            };
        }
        if state.get(PLACE).is_some() {
            return prepare(cx, action, source(cx).await?).await;
        }
        match state.as_str() {
            Some(DELETING) => return remove(cx).await,
            Some(DELETED) => return tell_of_delete(cx).await,
            Some(CHANGED) => push::to_server(cx, &text::str(cx.facts.property("server"))).await?,
            Some(DEPLOYED) if cx.polls == LATER => push::again(cx, &text::str(cx.facts.property("server"))).await?,
            _ => {}
        }
        if *operation != Operation::Delete {
            return Ok(look(cx).await?.unwrap_or_else(Step::done));
        }
        if !server_exists(cx).await? {
            return remove(cx).await;
        }
        match look(cx).await {
            Ok(Some(step)) => Ok(step),
            Ok(None) => remove(cx).await,
            Err(failure) if failure.is_not_found() => remove(cx).await,
            Err(failure) => Err(failure),
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        if !needs_user(cx.facts) {
            return Ok(Found::NotMade);
        }
        Ok(match stack_user::find(cx).await? {
            Found::Made(step) => Found::Made(with_user_state(step)),
            other => other,
        })
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let Some(mut deployment) = stored(cx).await? else { return Ok(Received::nothing()) };
        if !deployment.is_in_progress() {
            return Ok(Received::default());
        }
        let none = Map::new();
        let event = receive(cx, &mut deployment, message.as_map().unwrap_or(&none)).await?;
        Ok(Received::default().result(event).software(SoftwareChange::ChangeDeployment(deployment)))
    }

    fn receives_during_operations(&self) -> bool {
        true
    }

    fn receives_with_cloud(&self) -> bool {
        false
    }

    /// It has no ID before the first action that deploys the config.
    fn has_object(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let deployment = stored(cx).await?;
        let outputs = deployment.as_ref().and_then(|deployment| deployment.body.outputs.as_map());
        let mut found = Map::new();
        let mut declared = None;
        for name in names {
            if *name == "show" {
                found.insert("show".to_owned(), deployment.as_ref().map(SoftwareDeployment::view).unwrap_or_default());
                continue;
            }
            if let Some(value) = outputs.and_then(|outputs| outputs.get(*name)) {
                found.insert((*name).to_owned(), value.clone());
                continue;
            }
            if declared.is_none() {
                declared = Some(source(cx).await.ok().flatten().map(|source| source.body.outputs).unwrap_or_default());
            }
            let is_output = declared.iter().flatten().any(|output| output.str_at("name") == Some(name));
            if is_output || OUTPUTS.contains(name) {
                found.insert((*name).to_owned(), Value::Null);
            }
        }
        Ok(found)
    }
}

/// The agent is only in servers whose user data have a place for it.
fn refuse_without_agent(server: &Sibling<'_>) -> Result<(), Diagnostic> {
    // The format of other types is not known, or they have none.
    let format = match server.properties().get("user_data_format") {
        None if server.resource_type == "OS::Nova::Server" => Some("HEAT_CFNTOOLS"),
        given => given.and_then(Value::as_str),
    };
    if format.is_some_and(|format| format != "SOFTWARE_CONFIG") {
        return Err(failed(format!(
            "Resource {}'s property user_data_format should be set to SOFTWARE_CONFIG since there are software \
             deployments on it.",
            server.name
        )));
    }
    Ok(())
}
