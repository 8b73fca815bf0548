//! Operations and revisions of a stack.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_plan::{Blame, Sources};
use kiln_resource::{OperationId, Status};
use kiln_stack::load;
use kiln_store::operation::End;
use kiln_store::{Event, EventQuery, Operation, OperationQuery, Stack};
use kiln_template::parameter::HIDDEN;
use kiln_template::{Files, Template};
use kiln_value::{Class, Value};

use crate::{Door, Error, Hidden, Service};

/// An operation and its state.
#[derive(Clone, Debug)]
pub struct ListedOperation {
    /// The operation.
    pub operation: Operation,
    /// How far it is.
    pub progress: Progress,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is in progress.
    InProgress,
    /// It has succeeded.
    Complete,
    /// It has failed.
    Failed,
    /// A newer request came before its end.
    Replaced,
}

/// The cause of a failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootCause {
    /// The names of the resources from the root stack to the one that failed.
    pub path: Vec<String>,
    /// The type of that resource; `None`: its events were purged.
    pub resource_type: Option<String>,
    /// The class of the error.
    pub class: Class,
    /// The text.
    pub message: String,
}

/// The template, environment and files of a stack at one of its operations, without hidden values.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The operation that set them.
    pub listed: ListedOperation,
    /// The template.
    pub template: Arc<Value>,
    /// The environment with the parameters.
    pub environment: Value,
    /// The files.
    pub files: Files,
}

/// Events of an operation that are searched for the resource that failed: resources of nested stacks have the same names.
const SEARCHED: u64 = 1_000;

impl Service {
    /// The operations of a stack and its nested stacks, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no operation with the ID of the marker.
    pub async fn operations(&self, query: &OperationQuery) -> Result<Vec<ListedOperation>, Error> {
        let (mut listed, mut newer) = (Vec::new(), BTreeSet::new());
        for operation in self.backends.store.operations(query).await? {
            let is_last = newer.insert(operation.stack);
            listed.push(match operation.end {
                None if !is_last => ListedOperation { operation, progress: Progress::Replaced },
                _ => self.listed(operation).await?,
            });
        }
        Ok(listed)
    }

    /// An operation of a stack.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub async fn operation(&self, stack: &Stack, id: &str) -> Result<ListedOperation, Error> {
        let found = match id.parse::<OperationId>() {
            Ok(id) => self.backends.store.operation(stack.root, id).await?,
            Err(_) => None,
        };
        let found = found.ok_or_else(|| Error::NotFound(format!("operation {id} of stack {}", stack.name)))?;
        self.listed(found).await
    }

    /// Why an operation failed; `None` if it did not, or not because of a resource.
    pub async fn root_cause(&self, operation: &Operation) -> Result<Option<RootCause>, Error> {
        let failed = operation.end.as_ref().filter(|end| end.status == Status::Failed);
        let Some(blame) = failed.and_then(|end| Blame::from_stack_reason(&end.reason)) else { return Ok(None) };
        let name = blame.path.last().cloned();
        let query = EventQuery {
            root: Some(operation.root),
            operation: Some(operation.id),
            resource: name.clone(),
            statuses: vec![Status::Failed.as_str().to_owned()],
            descending: true,
            limit: Some(SEARCHED),
            ..EventQuery::default()
        };
        let events = if name.is_some() { self.backends.store.events(&query).await? } else { Vec::new() };
        let is_it = |event: &&Event| event.reason.ends_with(&blame.message);
        Ok(Some(RootCause {
            resource_type: events.iter().find(is_it).map(|event| event.resource_type.clone()),
            path: blame.path,
            class: blame.class,
            message: blame.message,
        }))
    }

    /// A revision of a stack. Its number is the number of the request that set it.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub async fn revision(&self, stack: &Stack, number: &str) -> Result<Revision, Error> {
        let (operation, sources) = self.sources_of_revision(stack, number).await?;
        let listed = self.listed(operation).await?;
        let mut hidden = self.hidden(stack, &sources).await?;
        // What is hidden today is hidden in older revisions too.
        let current = load::stored(&self.backends, &stack.desired).await?;
        hidden.extend(Hidden::of(&Template::from_value(Arc::clone(&current.template))?, &current.files));
        let mut environment = sources.environment.to_stored();
        hidden.mask_environment(Door::Revision, &mut environment);
        if stack.parent.is_some() {
            // A stack that it is nested in may hide them, and what that had at that time is not known.
            for section in ["parameters", "parameter_defaults"] {
                let values = environment.as_map_mut().and_then(|sections| sections.get_mut(section)?.as_map_mut());
                values.into_iter().flatten().for_each(|(_, value)| *value = HIDDEN.into());
            }
        }
        let mut files = Files::clone(&sources.files);
        hidden.mask_files(Door::Revision, &mut files);
        Ok(Revision { listed, template: sources.template, environment, files })
    }

    /// The template, environment and files of a revision, with hidden values.
    pub(crate) async fn sources_of_revision(&self, stack: &Stack, number: &str) -> Result<(Operation, Sources), Error> {
        let found = match number.parse() {
            Ok(generation) => self.backends.store.revision(stack.id, generation).await?,
            Err(_) => None,
        };
        let unknown = || Error::NotFound(format!("revision {number} of stack {}", stack.name));
        let operation = found.ok_or_else(unknown)?;
        let desired = operation.desired.as_ref().ok_or_else(unknown)?;
        let sources = load::stored(&self.backends, desired).await?;
        Ok((operation, sources))
    }

    async fn listed(&self, mut operation: Operation) -> Result<ListedOperation, Error> {
        if operation.end.is_none() {
            let stack = self.backends.store.stack(operation.stack).await?;
            let Some(stack) = stack.filter(|stack| stack.generation == operation.generation) else {
                return Ok(ListedOperation { operation, progress: Progress::Replaced });
            };
            if stack.is_pending() {
                return Ok(ListedOperation { operation, progress: Progress::InProgress });
            }
            // An engine of a release without operations has ended it.
            let time = stack.deleted.or(stack.updated).unwrap_or(stack.created);
            operation.end = Some(End { time, status: stack.state.status, reason: stack.reason });
        }
        let is_complete = operation.end.as_ref().is_some_and(|end| end.status == Status::Complete);
        let progress = if is_complete { Progress::Complete } else { Progress::Failed };
        Ok(ListedOperation { operation, progress })
    }
}
