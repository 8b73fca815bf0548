//! What is hidden in a stack: by its own template, and by those of the stacks that it is nested in.

use std::sync::Arc;

use kiln_plan::Sources;
use kiln_stack::load;
use kiln_store::{Desired, Stack};
use kiln_template::Template;
use kiln_value::Map;

use crate::{Door, Error, Hidden, HiddenValues, Service};

impl Service {
    /// The hidden parameters of a stack with these sources. Nested stacks inherit environment and files.
    pub async fn hidden(&self, stack: &Stack, sources: &Sources) -> Result<Hidden, Error> {
        let mut hidden = Hidden::of(&Template::from_value(Arc::clone(&sources.template))?, &sources.files);
        for above in self.above(stack).await? {
            let sources = load::stored(&self.backends, &above.desired).await?;
            hidden.extend(Hidden::of(&Template::from_value(Arc::clone(&sources.template))?, &sources.files));
        }
        Ok(hidden)
    }

    /// The values of hidden parameters of a stack, in its current and its previous definition.
    pub async fn hidden_values(&self, stack: &Stack) -> Result<HiddenValues, Error> {
        let mut sources = Vec::new();
        for stack in std::iter::once(stack).chain(&self.above(stack).await?) {
            let definitions: [Option<&Desired>; 2] = [Some(&stack.desired), stack.previous.as_ref()];
            for desired in definitions.into_iter().flatten() {
                sources.push(load::stored(&self.backends, desired).await?);
            }
        }
        Ok(HiddenValues::of(&sources.iter().collect::<Vec<_>>()))
    }

    /// Masks the parameters of a nested stack that have values which the stacks above it hide: the template of the nested
    /// stack does not know that they are hidden.
    pub async fn mask_inherited(&self, door: Door, stack: &Stack, parameters: &mut Map) -> Result<(), Error> {
        if stack.parent.is_some() {
            let mut sources = Vec::new();
            for above in self.above(stack).await? {
                for desired in std::iter::once(&above.desired).chain(&above.previous) {
                    sources.push(load::stored(&self.backends, desired).await?);
                }
            }
            let hidden = HiddenValues::of_own(&sources);
            // The pseudo parameters are about the stack itself.
            parameters
                .iter_mut()
                .filter(|(name, _)| !name.contains("::"))
                .for_each(|(_, value)| hidden.mask(door, value));
        }
        Ok(())
    }

    /// The stacks that a stack is nested in, the nearest first.
    async fn above(&self, stack: &Stack) -> Result<Vec<Stack>, Error> {
        let (mut above, mut parent) = (Vec::new(), stack.parent.clone());
        while let Some(stack) = match &parent {
            Some(parent) => self.backends.store.stack(parent.stack).await?,
            None => None,
        } {
            parent.clone_from(&stack.parent);
            above.push(stack);
        }
        Ok(above)
    }
}
