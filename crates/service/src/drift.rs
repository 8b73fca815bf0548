//! Compares a stack with its objects, which others may have changed.

use kiln_engine::View;
use kiln_engine::drift::{Drift, StackDrift};
use kiln_store::Stack;
use kiln_value::Value;

use crate::{Error, HiddenValues, Service};

impl Service {
    /// Compares the resources of a stack and of its nested stacks with their objects now; nothing is changed or stored.
    /// An empty list of names means all resources. Hidden values are masked.
    pub async fn drift(&self, stack: Stack, names: &[String]) -> Result<StackDrift, Error> {
        let view = View::of(&self.backends, stack).await?;
        if let Some(missing) = names.iter().find(|name| view.resource(name).is_none()) {
            return Err(Error::NoResource { resource: missing.clone(), stack: view.stack.name.clone() });
        }
        let mut compared = view.drift(names).await?;
        // The parameters of nested stacks get their hidden values from those of this one, or of the stacks above it.
        let hidden = self.hidden_values(&view.stack).await?;
        mask(&mut compared, &hidden);
        Ok(compared)
    }
}

fn mask(compared: &mut StackDrift, hidden: &HiddenValues) {
    for one in &mut compared.resources {
        match &mut one.drift {
            Drift::Modified(properties) => properties.iter_mut().for_each(|property| {
                hidden.mask(&mut property.expected);
                hidden.mask(&mut property.actual);
            }),
            Drift::NotChecked(reason) => hidden.mask_text(reason),
            Drift::InSync | Drift::Deleted => {}
        }
        if let Some(definition) = &mut one.row.definition {
            let mut masked = Value::Map(definition.properties.clone());
            hidden.mask(&mut masked);
            if let Value::Map(properties) = masked {
                std::sync::Arc::make_mut(definition).properties = properties;
            }
        }
        if let Some(nested) = &mut one.nested {
            mask(nested, hidden);
        }
    }
}
