//! Limits the total size of the definitions of a stack, and of its outputs.

use std::collections::HashMap;

use kiln_plan::{Decision, Model, failure_of};
use kiln_resource::size_limit;
use kiln_value::{Diagnostic, Value};

use crate::gather::Question;

/// The size of the definition of each resource, by its name.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    of: HashMap<String, usize>,
    total: usize,
    /// The number of resources of the template.
    wanted: usize,
}

impl Sizes {
    /// Those of the rows of a stack with this number of resources in its template.
    pub(crate) fn of(model: &Model, wanted: usize) -> Self {
        let mut sizes = Self { wanted, ..Self::default() };
        for row in model.rows() {
            if let Some(definition) = &row.definition {
                sizes.set(&row.name, definition.size());
            }
        }
        sizes
    }

    fn set(&mut self, name: &str, size: usize) {
        let before = self.of.insert(name.to_owned(), size).unwrap_or(0);
        self.total = self.total - before + size;
    }

    /// Refuses a resource whose definition makes those of the stack too large. This is before the decision about it, because
    /// decisions about many resources may be in progress at once.
    pub(crate) fn check(&mut self, question: Question) -> Result<Question, Decision> {
        let (name, size) = (question.name.as_str(), question.subject.definition.size());
        let before = self.of.get(name).copied().unwrap_or(0);
        // A stack that is too large already may shrink.
        if size > before {
            let resources = self.wanted.max(self.of.len());
            size_limit::check_stack(resources, self.total - before + size)
                .map_err(|error| Decision::Refuse { failure: failure_of(&error) })?;
        }
        self.set(name, size);
        Ok(question)
    }
}

/// The total size of the outputs of a stack so far.
#[derive(Debug, Default)]
pub(crate) struct OutputSizes(usize);

impl OutputSizes {
    /// The value of the next output.
    ///
    /// # Errors `RequestLimitExceeded` if it makes the outputs too large.
    pub(crate) fn check(&mut self, value: Option<Value>) -> Result<Value, Diagnostic> {
        let value = value.unwrap_or_default();
        let total = self.0 + value.size();
        size_limit::check_outputs(total)?;
        self.0 = total;
        Ok(value)
    }
}
