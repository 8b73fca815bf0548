//! `resource_facade`: data of the parent resource in its provider template.

use kiln_value::{Class, Diagnostic, Value};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};
use crate::{Bound, Unbuilt};

/// `resource_facade` and `Fn::ResourceFacade`: one function with two sets of keywords.
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
    /// The keyword may be a call, if it can be resolved now.
    fn check_values(&self, name: &str, args: &Node, bound: &Bound) -> Result<(), Diagnostic> {
        if !matches!(args, Node::Call(_)) {
            return self.word(name, args.as_str()).map(drop);
        }
        let scope = Unbuilt::new(bound, bound.template().resource_names());
        let word = match args.resolve(&Context::new(&scope)) {
            Err(error) if !matches!(error.class, Class::TypeError | Class::ValueError | Class::AttributeError) => {
                return Err(error);
            }
            word => word.unwrap_or_default(),
        };
        self.word(name, word.as_str()).map(drop)
    }

    fn reads_stack(&self) -> bool {
        true
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let args = call.resolved_args(context)?;
        let word = self.word(call.name, args.as_str())?;
        let Some(facade) = context.scope.facade() else {
            let attribute = if word == Word::Metadata { "metadata_get" } else { "t" };
            return Err(fault::no_attribute(&Value::Null, attribute));
        };
        Ok(Some(match word {
            Word::Metadata => facade.metadata,
            Word::DeletionPolicy => Value::Str(facade.deletion_policy),
            Word::UpdatePolicy => facade.update_policy,
        }))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Metadata,
    DeletionPolicy,
    UpdatePolicy,
}

impl ResourceFacade {
    fn word(&self, name: &str, word: Option<&str>) -> Result<Word, Diagnostic> {
        let words = self.words.into_iter().zip([Word::Metadata, Word::DeletionPolicy, Word::UpdatePolicy]);
        let mut known = words.filter_map(|(known, meaning)| (Some(known) == word).then_some(meaning));
        known.next().ok_or_else(|| {
            let words = self.words.join(", ");
            fault::value_error(format!("Incorrect arguments to \"{name}\" should be one of: {words}"))
        })
    }
}
