//! Loads stored texts for the planner.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_plan::{Blueprint, Nesting, Sources};
use kiln_resource::{StackFacts, StoredDefinition};
use kiln_store::{Desired, DesiredText, Error, Stack, StackId, Store};
use kiln_template::StackIdentity;
use kiln_template::environment::Environment;
use kiln_template::{Facade, Files};
use kiln_value::{Diagnostic, Value};

use crate::backends::Backends;

/// The row of a stack; an error if it does not exist.
pub async fn stack(store: &dyn Store, id: StackId) -> Result<Stack, Error> {
    store.stack(id).await?.ok_or_else(|| Error::NotFound(format!("stack {id}")))
}

/// The way from the root stack to a stack, as Heat writes it in hints for schedulers: the name of the root, then
/// `resource,stack` for each nested stack.
pub async fn path(store: &dyn Store, of: &Stack) -> Result<Vec<String>, Error> {
    let mut path = Vec::new();
    let mut next = Some(of.clone());
    while let Some(at) = next.take() {
        match at.parent {
            Some(parent) => {
                path.push(format!("{},{}", parent.resource_name, at.name));
                next = Some(stack(store, parent.stack).await?);
            }
            None => path.push(at.name),
        }
    }
    path.reverse();
    Ok(path)
}

/// The names of the resources from the root stack to a nested stack.
pub async fn place(store: &dyn Store, of: &Stack) -> Result<Vec<String>, Error> {
    let (mut names, mut next) = (Vec::new(), of.parent.clone());
    while let Some(parent) = next {
        names.push(parent.resource_name);
        next = stack(store, parent.stack).await?.parent;
    }
    names.reverse();
    Ok(names)
}

/// The paths of the stacks of a whole tree: the names of the resources from the root stack to each, joined with slashes.
pub fn places<'s>(tree: impl IntoIterator<Item = &'s Stack>) -> HashMap<StackId, String> {
    let by_id: HashMap<StackId, &Stack> = tree.into_iter().map(|stack| (stack.id, stack)).collect();
    let path = |stack: &Stack| {
        let (mut names, mut next) = (Vec::new(), stack.parent.as_ref());
        while let Some(parent) = next {
            names.push(parent.resource_name.as_str());
            next = by_id.get(&parent.stack).and_then(|stack| stack.parent.as_ref());
        }
        names.reverse();
        names.join("/")
    };
    by_id.values().map(|stack| (stack.id, path(stack))).collect()
}

/// The identity that template functions see.
pub fn identity(stack: &Stack) -> Option<StackIdentity> {
    StackIdentity::new(stack.project.as_str(), stack.name.as_str(), stack.id.to_string()).ok()
}

/// The stack data that is passed to drivers.
pub fn stack_facts(stack: &Stack) -> StackFacts {
    StackFacts {
        id: stack.id.to_string(),
        name: stack.name.clone(),
        project_id: stack.project.clone(),
        user_project_id: stack.user_project.clone(),
        root_id: stack.root.to_string(),
        path: Vec::new(),
    }
}

/// The desired state of a stack from its stored texts. The inner error is one of the template.
pub async fn blueprint(
    backends: &Backends,
    stack: &Stack,
    desired: &Desired,
) -> Result<Result<Blueprint, Diagnostic>, Error> {
    let parsed = backends.caches.sources.sources(&*backends.store, desired, backends.clock.monotonic()).await?;
    let facade = if parsed.reads_facade { facade(backends, stack).await? } else { None };
    let place = Nesting { facade, depth: stack.depth };
    Ok(Blueprint::build(parsed.sources, &backends.resource_types, identity(stack), place))
}

/// The texts of an accepted blueprint, to store them. What they contain is kept for the engine, and for clients.
pub fn accepted(backends: &Backends, blueprint: &Blueprint) -> DesiredText {
    let texts = texts(blueprint.sources());
    backends.caches.sources.keep(&texts.digests(), &texts, blueprint.sources(), backends.clock.monotonic());
    texts
}

/// Whether the template may read the resource that it belongs to.
pub async fn reads_facade(backends: &Backends, desired: &Desired) -> Result<bool, Error> {
    let parsed = backends.caches.sources.sources(&*backends.store, desired, backends.clock.monotonic()).await?;
    Ok(parsed.reads_facade)
}

/// Converts a stored text to an environment.
pub fn environment(text: &str) -> Result<Environment, Error> {
    let environment: Value = serde_json::from_str(text).map_err(damaged)?;
    Environment::from_value(&environment).map_err(|error| Error::Damaged(error.into()))
}

fn damaged(error: serde_json::Error) -> Error {
    Error::Damaged(error.into())
}

/// The sources of a desired or previous state.
///
/// # Errors
/// Errors of the store; [`Error::Damaged`] if the stored texts are invalid.
pub async fn stored(backends: &Backends, desired: &Desired) -> Result<Sources, Error> {
    Ok(backends.caches.sources.sources(&*backends.store, desired, backends.clock.monotonic()).await?.sources)
}

/// Converts stored texts to sources.
pub fn sources(texts: &DesiredText) -> Result<Sources, Error> {
    let template: Value = serde_json::from_str(&texts.template).map_err(damaged)?;
    let files: Files = Files(serde_json::from_str(&texts.files).map_err(damaged)?);
    let environment = environment(&texts.environment)?;
    Ok(Sources { template: Arc::new(template), environment: Arc::new(environment), files: Arc::new(files) })
}

/// Converts sources to texts for the store.
pub fn texts(sources: &Sources) -> DesiredText {
    DesiredText {
        template: json(&*sources.template),
        environment: json(&sources.environment.to_stored()),
        files: json(&sources.files.0),
    }
}

/// Maps with string keys can always be serialized to JSON.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The facade of the parent resource, for templates that use it.
async fn facade(backends: &Backends, stack: &Stack) -> Result<Option<Facade>, Error> {
    let Some(parent) = &stack.parent else { return Ok(None) };
    let rows = backends.store.resources(parent.stack).await?;
    let row = rows.into_iter().find(|row| row.id == parent.resource);
    Ok(row.and_then(|row| row.definition).map(|definition| facade_of(&definition)))
}

/// What the templates of a nested stack see of the resource that it belongs to.
pub fn facade_of(definition: &StoredDefinition) -> Facade {
    Facade {
        metadata: Value::Map(definition.metadata.clone()),
        deletion_policy: definition.deletion_policy.clone(),
        update_policy: definition.update_policy.clone(),
    }
}
