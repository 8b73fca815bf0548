//! Previews an update, with the plan that the update itself would follow.

use std::sync::Arc;

use kiln_identity::Caller;
use kiln_store::Stack;
use kiln_value::Map;
use kiln_view::preview::{Preview, preview};

use crate::{Error, Guarded, HiddenValues, Service, UpdateStack};

/// The effect of an update.
pub struct PreviewedUpdate {
    /// The current stack.
    pub stack: Stack,
    /// The planned changes.
    pub preview: Preview,
    /// The parameters after the update, as a stack shows them.
    pub parameters: Map,
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
        let converge = self.converges(&update.settings);
        // Read first: if the stack changes from now on, the plan is out of date.
        let version = self.version_of(&stack).await?;
        // Of a large stack, to read the old one takes as long as to check the new one.
        let view = self.recent.begin(&self.backends, stack.clone()).await;
        let blueprint = self.updated_blueprint(caller, &stack, update).await?;
        let view = view.await?;
        let mut hidden = self.hidden_values_of_tree(&view.stack).await?;
        hidden.extend(HiddenValues::of(&[blueprint.sources()]));
        let (new, old) = (blueprint.sources(), view.blueprint.sources());
        let same_sources = new.template == old.template && new.environment == old.environment && new.files == old.files;
        let parameters = blueprint.parameters().texts();
        let preview = preview(&self.backends, &view, Arc::new(blueprint), converge, &mut hidden).await?;
        let previewed = PreviewedUpdate { stack: view.stack, preview, parameters, version, same_sources };
        Ok(Guarded::new(previewed, hidden))
    }
}
