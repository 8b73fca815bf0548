//! From stored texts to what the planner works with.

use std::sync::Arc;

use kiln_plan::{Blueprint, Nesting, Sources};
use kiln_store::{Desired, DesiredText, Error, Stack, StackId, Store};
use kiln_template::environment::Environment;
use kiln_template::parameter::Parameters;
use kiln_template::{Facade, Files, Template};
use kiln_value::{Diagnostic, StackIdentity, Value};

use crate::backends::Backends;

/// A stack's row; an error if it is gone.
pub(crate) async fn stack(store: &dyn Store, id: StackId) -> Result<Stack, Error> {
    store.stack(id).await?.ok_or_else(|| Error::NotFound(format!("stack {id}")))
}

/// The identity that template functions see.
pub fn identity(stack: &Stack) -> Option<StackIdentity> {
    StackIdentity::new(stack.project.as_str(), stack.name.as_str(), stack.id.to_string()).ok()
}

/// What a stack should be by its stored texts. The inner error is one of the template.
pub async fn blueprint(
    backends: &Backends,
    stack: &Stack,
    desired: &Desired,
) -> Result<Result<Blueprint, Diagnostic>, Error> {
    let texts = backends.store.desired(desired).await?;
    let sources = sources(&texts)?;
    let facade = facade(backends, stack, &texts).await?;
    let place = Nesting { facade, depth: stack.depth };
    Ok(Blueprint::build(sources, &backends.resource_types, identity(stack), place))
}

/// What a stack shows of its template without looking at its resources.
#[derive(Debug)]
pub struct Outline {
    /// The template.
    pub template: Template,
    /// The parameters.
    pub parameters: Parameters,
}

impl Outline {
    /// Whether there is any output.
    pub fn has_outputs(&self) -> bool {
        self.template.as_value().get(self.template.words().outputs).is_some_and(Value::is_truthy)
    }
}

/// Reads a stack's template and parameters.
///
/// # Errors
/// The store's; [`Error::Damaged`] if the stored texts cannot be read any more.
pub async fn outline(backends: &Backends, stack: &Stack) -> Result<Outline, Error> {
    let damaged = |error: Diagnostic| Error::Damaged(error.message.clone());
    let sources = sources(&backends.store.desired(&stack.desired).await?)?;
    let template = Template::from_value(sources.template).map_err(damaged)?;
    let defaults = backends.resource_types.defaults(&sources.environment);
    let parameters =
        template.parameters(identity(stack).as_ref(), &sources.environment.parameters, &defaults).map_err(damaged)?;
    Ok(Outline { template, parameters })
}

/// Stored texts as sources.
pub fn sources(texts: &DesiredText) -> Result<Sources, Error> {
    let damaged = |error: serde_json::Error| Error::Damaged(error.to_string());
    let template: Value = serde_json::from_str(&texts.template).map_err(damaged)?;
    let environment: Value = serde_json::from_str(&texts.environment).map_err(damaged)?;
    let files: Files = Files(serde_json::from_str(&texts.files).map_err(damaged)?);
    let environment = Environment::from_value(&environment).map_err(|error| Error::Damaged(error.message.clone()))?;
    Ok(Sources { template: Arc::new(template), environment: Arc::new(environment), files: Arc::new(files) })
}

/// Sources as texts to store.
pub fn texts(sources: &Sources) -> DesiredText {
    DesiredText {
        template: json(&*sources.template),
        environment: json(&sources.environment.to_stored()),
        files: json(&sources.files.0),
    }
}

/// Maps with text keys always have a JSON text.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The parent's resource, for templates that ask for it.
async fn facade(backends: &Backends, stack: &Stack, texts: &DesiredText) -> Result<Option<Facade>, Error> {
    let Some(parent) = &stack.parent else { return Ok(None) };
    if !texts.template.contains("resource_facade") && !texts.template.contains("Fn::ResourceFacade") {
        return Ok(None);
    }
    let rows = backends.store.resources(parent.stack).await?;
    let row = rows.into_iter().find(|row| row.id == parent.resource);
    Ok(row.and_then(|row| row.definition).map(|definition| Facade {
        metadata: Value::Map(definition.metadata.clone()),
        deletion_policy: definition.deletion_policy.clone(),
        update_policy: definition.update_policy.clone(),
    }))
}
