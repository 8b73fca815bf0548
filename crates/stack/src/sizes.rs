//! Limits the size of the rows of a stack, the total size of its definitions, and of its outputs.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kiln_plan::{Decision, Model, Sources, Subject, failure_of};
use kiln_resource::{Failure, Operation, OperationState, Phase, Running, size_limit};
use kiln_store::{Error, Resource, ResourceId, StackId, Store};
use kiln_value::{Diagnostic, Value};
use uuid::Uuid;

use crate::gather::Question;
use crate::load;

/// The size of the definition of each resource, by its name.
#[derive(Debug, Default)]
pub struct Sizes {
    of: HashMap<String, usize>,
    total: usize,
    /// The number of resources of the template.
    wanted: usize,
}

impl Sizes {
    /// Those of the rows of a stack with this number of resources in its template.
    pub fn of(model: &Model, wanted: usize) -> Self {
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
    pub fn check(&mut self, question: Question) -> Result<Question, Decision> {
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

/// Rows with definitions up to this size are not measured: every database can store them.
const SMALL: usize = 16 << 10;

/// Refuses to create or change a resource whose row the database cannot store: a call must never be in flight whose result
/// cannot be recorded.
pub fn check_row(store: &dyn Store, subject: &Subject, decision: &Decision) -> Result<(), Failure> {
    let (Decision::Create { definition }
    | Decision::Replace { definition, .. }
    | Decision::Update { definition, .. }
    | Decision::Keep { definition: Some(definition) }) = decision
    else {
        return Ok(());
    };
    let before = subject.row.as_ref().and_then(|row| row.definition.as_ref()).map_or(0, |before| before.size());
    if definition.size() + before <= SMALL {
        return Ok(());
    }
    let row = match (decision, &subject.row) {
        (Decision::Update { before, changed, .. }, Some(row)) => {
            let operation = Operation::Update { before: before.clone(), changed: changed.clone() };
            let running = Running {
                operation,
                definition: Some(Arc::clone(definition)),
                phase: Phase::Intent,
                token: row.id.to_string(),
                attempt: 0,
                requires: row.requires.clone(),
                afterwards: OperationState::Idle,
            };
            Resource { operation: running.into(), ..row.clone() }
        }
        (Decision::Keep { .. }, Some(row)) => Resource { definition: Some(Arc::clone(definition)), ..row.clone() },
        // The attributes of a new object repeat its properties.
        _ => Resource {
            definition: Some(Arc::clone(definition)),
            metadata: definition.metadata.clone().into(),
            attributes: definition.properties.clone(),
            ..Resource::new(StackId(Uuid::nil()), ResourceId(Uuid::nil()), "", "", Timestamp::UNIX_EPOCH)
        },
    };
    store.check_size(&row).map_err(|error| too_large(&error))
}

/// Refuses a nested stack whose texts the database cannot store.
pub fn check_nested(store: &dyn Store, sources: &Sources) -> Result<(), Failure> {
    // Its files are those of the root, which are stored.
    if sources.template.size() + sources.environment.to_stored().size() <= SMALL {
        return Ok(());
    }
    store.check_texts(&load::texts(sources)).map_err(|error| too_large(&error))
}

/// Refuses the outputs of a nested stack if the row of its resource cannot hold them.
pub fn check_outputs(store: &dyn Store, row: &Resource) -> Result<(), Failure> {
    store.check_size(row).map_err(|error| too_large(&error))
}

fn too_large(error: &Error) -> Failure {
    failure_of(&size_limit::refusal_of(&error.to_string()))
}

/// The total size of the outputs of a stack so far.
#[derive(Debug, Default)]
pub struct OutputSizes(usize);

impl OutputSizes {
    /// The value of the next output.
    ///
    /// # Errors
    /// `RequestLimitExceeded` if it makes the outputs too large.
    pub fn check(&mut self, value: Option<Value>) -> Result<Value, Diagnostic> {
        let value = value.unwrap_or_default();
        let total = self.0 + value.size();
        size_limit::check_outputs(total)?;
        self.0 = total;
        Ok(value)
    }
}
