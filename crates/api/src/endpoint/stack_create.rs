//! `POST /stacks`.

use axum::response::Response;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use kiln_resource::{Action, StackId};
use kiln_store::{NewStack, StackQuery};
use kiln_value::StackIdentity;
use serde::Serialize;

use crate::call::Call;
use crate::desired::{self, checked_name};
use crate::error::ApiError;
use crate::http::reply;
use crate::instantiation::Instantiation;
use crate::link::Link;

#[derive(Serialize)]
struct Created {
    stack: Entry,
}

#[derive(Serialize)]
struct Entry {
    id: String,
    links: [Link; 1],
}

/// The name of the stack that the body asks for: sound and not taken, in a project that has room for it.
pub(super) async fn free_name(call: &Call) -> Result<String, ApiError> {
    let body = Instantiation::new(call.body()?, &call.api.options.limits);
    body.arguments()?;
    let name = body.stack_name()?;
    body.required_template()?;
    let name = checked_name(name)?;
    refuse_taken(call, &name).await?;
    refuse_full(call).await?;
    Ok(name)
}

/// Nothing is stored before everything is checked; the credentials go again if the name was taken meanwhile.
pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:create")?;
    let backends = &call.api.backends;
    let name = free_name(call).await?;
    let id = StackId(backends.chance.uuid());
    let project = call.caller.project_id.clone();
    let identity = StackIdentity::new(project.clone(), name.clone(), id.to_string())?;
    let approved = desired::of_new(call, identity).await?;
    let arguments = &approved.arguments;
    let secret = call.api.identity.delegate(&call.caller).await?;
    let credentials = backends.store.save_credentials(&secret).await?;
    let stack = NewStack {
        id,
        name,
        project,
        parent: None,
        root: id,
        depth: 0,
        action: Action::Create,
        desired: approved.texts(),
        disable_rollback: arguments.disable_rollback.unwrap_or(true),
        timeout_mins: arguments.timeout_mins,
        tags: arguments.tags.clone().unwrap_or_default(),
        username: call.caller.username.clone(),
        user_id: call.caller.user_id.clone(),
        credentials: Some(credentials),
        user_project: None,
        now: backends.clock.now(),
    };
    let stack = match backends.store.create_stack(stack).await {
        Ok(stack) => stack,
        Err(error) => {
            if let Err(error) = backends.store.delete_credentials(credentials).await {
                tracing::warn!(%error, "credentials of a stack that was not made are left in the store");
            }
            if let Err(error) = call.api.identity.revoke(&secret).await {
                tracing::warn!(%error, "credentials of a stack that was not made are left in Keystone");
            }
            return Err(error.into());
        }
    };
    let link = call.links.to_stack(&stack, "self");
    let location = HeaderValue::from_str(&link.href);
    let created = Created { stack: Entry { id: stack.id.to_string(), links: [link] } };
    let mut response = reply::json_with(StatusCode::CREATED, &created);
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Refuses early what the store would refuse in the end.
async fn refuse_taken(call: &Call, name: &str) -> Result<(), ApiError> {
    match call.api.backends.store.stack_by_name(&call.caller.project_id, name).await? {
        Some(_) => Err(ApiError::stack_exists(name)),
        None => Ok(()),
    }
}

/// Administrators may make any number of stacks.
async fn refuse_full(call: &Call) -> Result<(), ApiError> {
    let Some(limit) = call.api.options.limits.stacks_per_project.filter(|_| !call.caller.is_admin) else {
        return Ok(());
    };
    let query = StackQuery { project: Some(call.caller.project_id.clone()), ..StackQuery::default() };
    if call.api.backends.store.count_stacks(&query).await? < limit {
        return Ok(());
    }
    let text = format!("You have reached the maximum stacks per tenant, {limit}. Please delete some stacks.");
    Err(ApiError::limit(&text))
}
