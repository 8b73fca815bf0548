//! Shows what an update would do, by the plan that the update itself would follow.

use std::sync::Arc;

use kiln_engine::View;
use kiln_engine::preview::{Preview, preview};
use kiln_identity::Caller;
use kiln_store::Stack;

use crate::{Error, HiddenValues, Service, UpdateStack};

/// What an update would do to a stack.
pub struct PreviewedUpdate {
    /// The stack as it is.
    pub stack: Stack,
    /// What would become of its resources.
    pub preview: Preview,
    /// What must not be shown of it.
    pub hidden: HiddenValues,
}

impl Service {
    /// What an update would do, in nested stacks too; nothing is changed.
    pub async fn preview_update(
        &self,
        caller: &Caller,
        stack: Stack,
        update: UpdateStack,
    ) -> Result<PreviewedUpdate, Error> {
        let blueprint = self.updated_blueprint(caller, &stack, update).await?;
        let view = View::of(&self.backends, stack).await?;
        let hidden = HiddenValues::of(&[blueprint.sources(), view.blueprint.sources()]);
        let preview = preview(&self.backends, &view, Arc::new(blueprint)).await?;
        Ok(PreviewedUpdate { stack: view.stack, preview, hidden })
    }
}
