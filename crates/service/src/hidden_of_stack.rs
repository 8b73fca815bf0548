//! What is hidden in a stack: by its own template, and by those of the stacks that it is nested in.

use std::sync::Arc;

use kiln_plan::Sources;
use kiln_stack::{hidden_values, load};
use kiln_store::Stack;
use kiln_template::Template;
use kiln_value::Map;

use crate::{Door, Error, Hidden, HiddenValues, Service};

impl Service {
    /// The hidden parameters of a stack with these sources. Nested stacks inherit environment and files.
    pub async fn hidden(&self, stack: &Stack, sources: &Sources) -> Result<Hidden, Error> {
        let mut hidden = Hidden::of(&Template::from_value(Arc::clone(&sources.template))?, &sources.files);
        for above in hidden_values::above(&self.backends, stack).await? {
            let sources = load::stored(&self.backends, &above.desired).await?;
            hidden.extend(Hidden::of(&Template::from_value(Arc::clone(&sources.template))?, &sources.files));
        }
        Ok(hidden)
    }

    /// The hidden values of a stack and of the stacks that it is nested in, in their current and previous definitions.
    pub async fn hidden_values(&self, stack: &Stack) -> Result<HiddenValues, Error> {
        Ok(hidden_values::hidden_values(&self.backends, stack).await?)
    }

    /// The hidden values of a stack, the stacks that it is nested in and its nested stacks.
    pub async fn hidden_values_of_tree(&self, stack: &Stack) -> Result<HiddenValues, Error> {
        let mut hidden = self.hidden_values(stack).await?;
        hidden_values::derive_below(&self.backends, stack, &mut hidden).await?;
        Ok(hidden)
    }

    /// As [`Service::hidden_values_of_tree`], with those of the sources that the stack is to have.
    pub(crate) async fn hidden_values_of_change(
        &self,
        stack: &Stack,
        new: Option<&Sources>,
    ) -> Result<HiddenValues, Error> {
        let mut hidden = self.hidden_values_of_tree(stack).await?;
        hidden.extend(HiddenValues::of(new.as_slice()));
        Ok(hidden)
    }

    /// Masks the parameters of a nested stack that have values which the stacks above it hide: the template of the nested
    /// stack does not know that they are hidden.
    pub async fn mask_inherited(&self, door: Door, stack: &Stack, parameters: &mut Map) -> Result<(), Error> {
        if stack.parent.is_some() {
            let mut sources = Vec::new();
            let above = hidden_values::above(&self.backends, stack).await?;
            for above in &above {
                sources.extend(hidden_values::sources_of(&self.backends, above).await?);
            }
            let mut hidden = HiddenValues::of_own(&sources);
            for above in above.iter().rev() {
                hidden_values::derive(&self.backends, above, &mut hidden).await?;
            }
            // The pseudo parameters are about the stack itself.
            parameters
                .iter_mut()
                .filter(|(name, _)| !name.contains("::"))
                .for_each(|(_, value)| hidden.mask(door, value));
        }
        Ok(())
    }
}
