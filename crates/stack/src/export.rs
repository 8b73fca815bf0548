//! The data of a stack with its resources and nested stacks: for export, abandon and snapshots.

use futures::FutureExt;
use futures::future::BoxFuture;
use kiln_plan::Model;
use kiln_plan::hook::waits_at;
use kiln_resource::Resource;
use kiln_store::{Error, Stack};
use kiln_value::{Map, Value, value};

use crate::backends::Backends;
use crate::load;

/// The key of the implementation, where the type of the template is another name for it.
pub const IMPLEMENTATION: &str = "kiln_type";

/// Entries of a resource's data that only Kiln uses.
const OWN: &str = "kiln_";

/// The data of a stack, in Heat's format (docs/heat-behaviour.md §9). It contains values of hidden parameters and the
/// data of drivers, as it must to adopt or restore the stack.
///
/// # Errors
/// Errors of the store.
pub async fn export(backends: &Backends, stack: &Stack) -> Result<Value, Error> {
    let model = Model::new(backends.store.resources(stack.id).await?);
    of_model(backends, stack, &model).await
}

/// The data of a stack with these rows.
pub fn of_model<'a>(backends: &'a Backends, stack: &'a Stack, model: &'a Model) -> BoxFuture<'a, Result<Value, Error>> {
    async move {
        let sources = load::stored(backends, &stack.desired).await?;
        let mut resources = Map::new();
        for (name, row) in model.shown(stack.rollback()) {
            resources.insert(name.to_owned(), of_resource(backends, row).await?);
        }
        let mut environment = sources.environment.to_stored();
        if let Some(sections) = environment.as_map_mut() {
            // As in Heat: an export has its values in clear.
            sections.shift_remove("encrypted_param_names");
        }
        let files: Map = sources.files.0.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
        Ok(value!({
            "name": (stack.name.as_str()),
            "id": (stack.id.to_string()),
            "action": (stack.state.action.as_str()),
            "status": (stack.state.status.as_str()),
            "template": (Value::clone(&sources.template)),
            "environment": environment,
            "files": files,
            "resources": resources,
            "project_id": (stack.project.as_str()),
            "stack_user_project_id": (stack.user_project.clone()),
            "tags": (stack.tags.clone()),
        }))
    }
    .boxed()
}

/// The data of a resource, or of its nested stack.
pub async fn of_resource(backends: &Backends, row: &Resource) -> Result<Value, Error> {
    if let Some(child) = row.child
        && let Some(nested) = backends.store.stack(child).await?.filter(|nested| nested.deleted.is_none())
    {
        let model = Model::new(backends.store.resources(child).await?);
        return of_model(backends, &nested, &model).await;
    }
    let mut data: Map =
        row.data.iter().filter(|(key, _)| !key.starts_with(OWN)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if let Some(hook) = waits_at(row) {
        data.insert(hook.as_str().to_owned(), "True".into());
    }
    let metadata = if row.metadata.is_null() { Map::new().into() } else { row.metadata.clone() };
    let mut resource = value!({
        "name": (row.name.as_str()),
        "resource_id": (row.physical_id.clone()),
        "type": (row.resource_type.as_str()),
        "action": (row.state.action.as_str()),
        "status": (row.state.status.as_str()),
        "metadata": metadata,
        "resource_data": data,
    });
    if let (true, Some(entries)) = (row.implementation != row.resource_type, resource.as_map_mut()) {
        entries.insert(IMPLEMENTATION.to_owned(), row.implementation.as_str().into());
    }
    Ok(resource)
}
