//! Previews an update or a delete, with the plan that the request itself would follow.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::Blueprint;
use kiln_resource::Action;
use kiln_stack::{LoadedStack, load};
use kiln_store::{DesiredText, Stack};
use kiln_template::{Move, Template, renamed};
use kiln_value::Map;
use kiln_view::preview::{Preview, Terms, preview, preview_delete};

use crate::{Error, Guarded, Service, UpdateStack};

/// The effect of an update.
pub struct PreviewedUpdate {
    /// The current stack.
    pub stack: Stack,
    /// The planned changes.
    pub preview: Preview,
    /// The parameters after the update, as a stack shows them.
    pub parameters: Map,
    /// The desired state.
    pub desired: DesiredText,
    /// What the plan was computed from ([`Service::version_of`]).
    pub version: String,
    /// Whether template, environment and files stay the same.
    pub same_sources: bool,
}

impl Service {
    /// The effect of an update, including nested stacks; nothing is changed.
    pub async fn preview_update(
        &self,
        caller: &Caller,
        stack: Stack,
        update: UpdateStack,
    ) -> Result<Guarded<PreviewedUpdate>, Error> {
        self.preview_replacements(caller, stack, update, BTreeSet::new()).await
    }

    /// The effect of an update that also replaces the resources with these paths, as if they were marked as unhealthy.
    pub async fn preview_replacements(
        &self,
        caller: &Caller,
        stack: Stack,
        update: UpdateStack,
        replaced: BTreeSet<String>,
    ) -> Result<Guarded<PreviewedUpdate>, Error> {
        let terms = Terms { converge: self.converges(&update.settings), replaced, ..Terms::default() };
        // Read first: if the stack changes from now on, the plan is out of date.
        let version = self.version_of(&stack).await?;
        // Of a large stack, to read the old one takes as long as to check the new one.
        let view = self.recent.begin(&self.backends, stack.clone()).await;
        let blueprint = self.updated_blueprint(caller, &stack, update).await?;
        self.preview_blueprint(view.await?, version, Arc::new(blueprint), terms).await
    }

    /// The effect of an update to a checked blueprint.
    pub(crate) async fn preview_blueprint(
        &self,
        mut view: LoadedStack,
        version: String,
        blueprint: Arc<Blueprint>,
        terms: Terms,
    ) -> Result<Guarded<PreviewedUpdate>, Error> {
        let mut hidden = self.hidden_values_of_change(&view.stack, Some(blueprint.sources())).await?;
        let (new, old) = (blueprint.sources(), view.blueprint.sources());
        // As they are stored: what was read from the store has sections that a request may leave out.
        let same_environment = new.environment.to_stored() == old.environment.to_stored();
        let same_sources = new.template == old.template && same_environment && new.files == old.files;
        let (parameters, desired) = (blueprint.parameters().texts(), load::texts(new));
        let guards = self.placed_guards(&view.stack, Action::Update).await?;
        let terms = Terms { guards: guards.map(Arc::new), ..terms };
        let chosen: Vec<String> =
            terms.replaced.iter().cloned().chain(terms.converge.paths().map(str::to_owned)).collect();
        let renamed = renamed_resources(&view.blueprint, &blueprint);
        let mut preview = Box::pin(preview(&self.backends, &mut view, blueprint, terms, &mut hidden)).await?;
        preview.renamed = renamed;
        self.note_guards(&view.stack, Action::Update, &mut preview).await?;
        if let Some(unknown) = chosen.into_iter().find(|path| !has(&preview, path)) {
            return Err(Error::NoResource { resource: unknown, stack: view.stack.name });
        }
        let previewed = PreviewedUpdate { stack: view.stack, preview, parameters, desired, version, same_sources };
        Ok(Guarded::new(previewed, hidden))
    }

    /// The effect of a delete, including nested stacks, and what it was computed from; nothing is changed.
    pub async fn preview_delete(&self, stack: Stack) -> Result<Guarded<(Preview, String)>, Error> {
        let version = self.version_of(&stack).await?;
        let view = self.view(stack).await?;
        let hidden = self.hidden_values_of_tree(&view.stack).await?;
        let mut preview = preview_delete(&self.backends, &view).await?;
        self.note_guards(&view.stack, Action::Delete, &mut preview).await?;
        Ok(Guarded::new((preview, version), hidden))
    }
}

/// The resources that the template of an update seems to have under another name.
fn renamed_resources(before: &Blueprint, after: &Blueprint) -> Vec<Move> {
    let template = |blueprint: &Blueprint| Template::from_value(Arc::clone(&blueprint.sources().template));
    match (template(before), template(after)) {
        (Ok(before), Ok(after)) => renamed(&before, &after),
        _ => Vec::new(),
    }
}

/// Whether there is a resource with this path.
fn has(preview: &Preview, path: &str) -> bool {
    preview.entries.iter().filter(|entry| entry.row.is_some()).any(|entry| match path.strip_prefix(&entry.name) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('/').is_some_and(|rest| entry.nested.iter().any(|nested| has(nested, rest))),
        None => false,
    })
}
