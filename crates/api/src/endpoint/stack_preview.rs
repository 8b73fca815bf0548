//! `POST /stacks/preview`: the stack that a create would make.

use axum::response::Response;
use kiln_plan::{Blueprint, Draft, Nesting};
use kiln_resource::properties;
use kiln_value::{Map, StackIdentity, Value, value};

use super::stack_create::free_name;
use crate::call::Call;
use crate::desired;
use crate::error::ApiError;
use crate::http::reply;
use crate::instantiation::Arguments;
use crate::view::instant::instant;

/// How Python shows an id that there is not.
const NO_ID: &str = "None";

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:preview")?;
    let identity = StackIdentity::new(call.caller.project_id.clone(), free_name(call).await?, NO_ID)?;
    let approved = desired::of_new(call, identity.clone()).await?;
    let resources = resources(call, &approved.blueprint, &identity, None)?;
    let mut stack = summary(call, &approved.blueprint, &identity, &approved.arguments);
    stack.insert("resources".to_owned(), resources.into());
    Ok(reply::json(&value!({ "stack": stack })))
}

fn summary(call: &Call, blueprint: &Blueprint, identity: &StackIdentity, arguments: &Arguments) -> Map {
    let description = blueprint.bound().template().description();
    let outputs = blueprint.outputs().values();
    let outputs: Value = outputs
        .map(|one| value!({ "output_key": (&one.name), "description": (&one.description), "output_value": null }))
        .collect();
    let shown = value!({
        "stack_name": (&identity.stack_name),
        "id": NO_ID,
        "links": [{ "href": (call.links.identity(identity)), "rel": "self" }],
        "creation_time": (instant(call.api.backends.clock.now())),
        "updated_time": null,
        "deletion_time": null,
        "notification_topics": [],
        "parameters": (blueprint.parameters().texts()),
        "description": (&description),
        "template_description": (&description),
        "capabilities": [],
        "disable_rollback": (arguments.disable_rollback.unwrap_or(true)),
        "timeout_mins": (arguments.timeout_mins),
        "stack_owner": (&call.caller.username),
        "parent": null,
        "stack_user_project_id": null,
        "tags": (arguments.tags.clone().unwrap_or_default()),
        "outputs": outputs,
    });
    match shown {
        Value::Map(shown) => shown,
        _ => Map::new(),
    }
}

/// The resources; in the place of one that stands for a stack, the list of those in it.
fn resources(
    call: &Call,
    blueprint: &Blueprint,
    identity: &StackIdentity,
    parent: Option<&str>,
) -> Result<Vec<Value>, ApiError> {
    let draft = Draft::of(blueprint);
    let mut shown = Vec::new();
    for definition in blueprint.definitions().values() {
        let Some(kind) = blueprint.kind(&definition.name) else { continue };
        let (given, _) = blueprint.draft_properties(definition, &draft).map_err(ApiError::from)?;
        let schema = &kind.resource_type().properties;
        let properties = properties::resolve(schema, &given).unwrap_or(given);
        if let Some(sources) = blueprint.draft_sources(definition, &properties) {
            let inner = StackIdentity {
                stack_name: format!("{}-{}", identity.stack_name, definition.name),
                ..identity.clone()
            };
            let place = Nesting { facade: Some(blueprint.facade_of(definition)), depth: blueprint.place.depth + 1 };
            let nested = Blueprint::build(sources?, &call.api.backends.resource_types, Some(inner.clone()), place)?;
            shown.push(resources(call, &nested, &inner, Some(&definition.name))?.into());
            continue;
        }
        let attributes: Map = kind.resource_type().attributes.keys().map(|name| (name.clone(), Value::Null)).collect();
        let needs = |other: &&String| blueprint.requires(other).contains(&definition.name);
        let required_by: Value = blueprint.definitions().keys().filter(needs).collect();
        let mut entry = value!({
            "updated_time": null,
            "creation_time": null,
            "resource_name": (&definition.name),
            "physical_resource_id": "",
            "resource_action": "INIT",
            "resource_status": "COMPLETE",
            "resource_status_reason": "",
            "resource_type": (&definition.resource_type),
            "resource_identity": (address(identity, &format!("/resources/{}", definition.name))),
            "stack_identity": (address(identity, "")),
            "stack_name": (&identity.stack_name),
            "required_by": required_by,
            "description": (&definition.description),
            "metadata": (definition.metadata.value(&draft).unwrap_or_default()),
            "attributes": attributes,
            "properties": properties,
        });
        if let (Some(parent), Some(entry)) = (parent, entry.as_map_mut()) {
            entry.insert("parent_resource".to_owned(), parent.into());
        }
        shown.push(entry);
    }
    Ok(shown)
}

fn address(identity: &StackIdentity, path: &str) -> Value {
    value!({
        "tenant": (&identity.tenant),
        "stack_name": (&identity.stack_name),
        "stack_id": (&identity.stack_id),
        "path": path,
    })
}
