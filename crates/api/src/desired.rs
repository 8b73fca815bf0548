//! What a stack should be from now on: from a request's body to a checked blueprint.

use kiln_engine::load;
use kiln_plan::{Blueprint, Nesting, Sources};
use kiln_store::{DesiredText, Stack};
use kiln_value::{StackIdentity, Value};

use crate::call::Call;
use crate::error::ApiError;
use crate::instantiation::{Arguments, Instantiation, TemplateText};
use crate::judge;

/// A stack that may be made.
pub(crate) struct Approved {
    pub(crate) blueprint: Blueprint,
    pub(crate) arguments: Arguments,
}

impl Approved {
    /// What is stored of it.
    pub(crate) fn texts(&self) -> DesiredText {
        load::texts(self.blueprint.sources())
    }
}

/// A new stack by the body of a create or preview, with the identity it is going to have.
pub(crate) async fn of_new(call: &Call, identity: StackIdentity) -> Result<Approved, ApiError> {
    let body = Instantiation::new(call.body()?, &call.api.options.limits);
    let arguments = body.arguments()?;
    let template = body.required_template()?;
    let sources = body.extras()?.sources(template.value.clone())?;
    let blueprint = build(call, sources, identity, &template)?;
    judge::allow_types(call, &blueprint)?;
    let availability = judge::availability(call, &blueprint).await;
    judge::judge(call, &blueprint, &template, true, Some(&availability)).await?;
    Ok(Approved { blueprint, arguments })
}

/// What an update makes of a stack; with `patch` what is not given stays as it is (semantics.md §20.1).
pub(crate) async fn of_update(call: &Call, stack: &Stack, patch: bool) -> Result<Approved, ApiError> {
    let body = Instantiation::new(call.body()?, &call.api.options.limits);
    let mut arguments = body.arguments_of_update()?;
    arguments.existing |= patch;
    let given = if patch { body.template()? } else { Some(body.required_template()?) };
    let extras = body.extras()?;
    let parameters = extras.parameters();
    let current = load::blueprint(&call.api.backends, stack, &stack.desired).await?.map_err(ApiError::internal)?;
    let sources = if arguments.existing {
        let template = given.as_ref().map(|template| template.value.clone());
        extras.sources_over(current.sources().clone(), template, &arguments.clear_parameters)?
    } else {
        let template = given.as_ref().ok_or_else(|| ApiError::bad_request("No template specified"))?;
        extras.sources(template.value.clone())?
    };
    let template = given.unwrap_or_else(|| TemplateText { value: sources.template.clone(), spans: None });
    let identity = load::identity(stack).ok_or_else(|| ApiError::internal("a stack without an identity"))?;
    let blueprint = build(call, sources, identity, &template)?;
    let changed = current.parameters().immutable_modified(blueprint.parameters(), &parameters);
    if !changed.is_empty() {
        let names = changed.join(", ");
        let text = format!("The following parameters are immutable and may not be updated: {names}");
        return Err(ApiError::new("ImmutableParameterModified", text));
    }
    judge::allow_types(call, &blueprint)?;
    let availability = judge::availability(call, &blueprint).await;
    judge::judge(call, &blueprint, &template, true, Some(&availability)).await?;
    Ok(Approved { blueprint, arguments })
}

/// Reads and binds everything, within the limit of resources.
pub(crate) fn build(
    call: &Call,
    sources: Sources,
    identity: StackIdentity,
    template: &TemplateText,
) -> Result<Blueprint, ApiError> {
    let blueprint = Blueprint::build(sources, &call.api.backends.resource_types, Some(identity), Nesting::default());
    let blueprint = blueprint.map_err(|error| judge::place(error, template))?;
    let count = blueprint.bound().template().resource_names().count();
    if call.api.options.limits.resources_per_stack.is_some_and(|limit| count > limit) {
        return Err(ApiError::limit("Maximum resources per stack exceeded."));
    }
    Ok(blueprint)
}

/// The name of a new stack: letters, digits and `_-.`, first a letter, at most 255.
pub(crate) fn checked_name(name: &Value) -> Result<String, ApiError> {
    let Value::Str(name) = name else {
        let shown = kiln_value::text::str(name);
        return Err(ApiError::new("StackValidationFailed", format!("Invalid stack name {shown}, must be a string")));
    };
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if first && name.len() <= 255 && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
        return Ok(name.clone());
    }
    let rule = "must contain only alphanumeric or \"_-.\" characters, must start with alpha and must be 255 characters \
                or less.";
    Err(ApiError::new("StackValidationFailed", format!("Invalid stack name {name} {rule}")))
}

/// Refuses a caller who may not use a type of the stack's resources.
pub(crate) async fn allow_types_of(call: &Call, stack: &Stack) -> Result<(), ApiError> {
    for resource in call.api.backends.store.resources(stack.id).await? {
        judge::allow_type(call, &resource.resource_type)?;
    }
    Ok(())
}
