//! `resource_facade`: the parent stack's resource, in its provider template.

use kiln_value::{Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// `resource_facade` and `Fn::ResourceFacade`: one function with two sets of words.
#[derive(Debug)]
pub(crate) struct ResourceFacade {
    /// Metadata, deletion policy, update policy.
    words: [&'static str; 3],
}

impl ResourceFacade {
    pub(crate) const HOT: Self = Self { words: ["metadata", "deletion_policy", "update_policy"] };
    pub(crate) const CFN: Self = Self { words: ["Metadata", "DeletionPolicy", "UpdatePolicy"] };
}

impl Function for ResourceFacade {
    fn summary(&self) -> &'static str {
        "Data of the parent stack's resource that this template provides."
    }

    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        match args.as_str() {
            Some(word) if self.words.contains(&word) => Ok(()),
            _ => Err(fault::value_error(format!(
                "Incorrect arguments to \"{name}\" should be one of: {}",
                self.words.join(", ")
            ))),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let [metadata, deletion_policy, _] = self.words;
        let word = call.args.as_str().unwrap_or_default();
        let Some(facade) = context.scope.facade() else {
            let attribute = if word == metadata { "metadata_get" } else { "t" };
            return Err(fault::no_attribute(&Value::Null, attribute));
        };
        Ok(Some(if word == metadata {
            facade.metadata
        } else if word == deletion_policy {
            Value::Str(facade.deletion_policy)
        } else {
            facade.update_policy
        }))
    }
}
