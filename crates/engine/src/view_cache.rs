//! The contents of stacks that clients have just read. Clients that follow a stack ask for the same ones again and again,
//! and reading the rows of a stack takes longer than all the rest of such a request.
//!
//! Only the batches of a stack's engine write rows of its resources. So rows are current while the number of batches is
//! the same, which every request reads with the row of the stack.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_plan::{Blueprint, Model};
use kiln_resource::{Action, Resource, ResourceId};
use kiln_store::{Desired, Stack, StackId};

use crate::lru::Lru;

/// Bytes of memory that are kept, by estimate.
const CAPACITY: usize = 16 << 20;
/// How long unused contents are kept. An engine drops them at its next poll, an API without an engine when it reads
/// others.
const IDLE: Duration = Duration::from_secs(30);
/// About how much more memory a blueprint takes than its template.
const BLUEPRINT: usize = 4;

/// A stack as it was read.
#[derive(Clone)]
pub(crate) struct Content {
    /// The desired state.
    pub(crate) blueprint: Arc<Blueprint>,
    /// The rows.
    pub(crate) model: Arc<Model>,
    /// The row of each name that is shown to users.
    pub(crate) shown: Arc<BTreeMap<String, ResourceId>>,
}

/// What the content of a stack depends on. The names of a stack and of its project never change.
#[derive(Clone, PartialEq)]
struct Version {
    writes: i64,
    desired: Desired,
    /// In a rollback, other rows are shown.
    back: bool,
}

impl Version {
    /// The version of a stack whose content may be kept.
    fn of(stack: &Stack) -> Option<Self> {
        // The rows of a stack that is being changed are soon others.
        (!stack.is_pending()).then(|| Self {
            writes: stack.writes,
            desired: stack.desired.clone(),
            back: is_back(stack),
        })
    }
}

/// Whether the stack is in a rollback, or failed in one.
pub(crate) fn is_back(stack: &Stack) -> bool {
    stack.state.action == Action::Rollback
}

/// Keeps what was read last, up to a size.
pub struct ViewCache(Mutex<Lru<StackId, (Version, Content)>>);

impl Default for ViewCache {
    fn default() -> Self {
        Self(Mutex::new(Lru::new(CAPACITY, IDLE)))
    }
}

impl ViewCache {
    /// The current content of a stack. `now` is monotonic.
    pub(crate) fn get(&self, stack: &Stack, now: Duration) -> Option<Content> {
        let version = Version::of(stack)?;
        let (kept, content) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&stack.id, now)?;
        (kept == version).then_some(content)
    }

    /// Keeps the content of a stack; `writes` was read with its rows.
    pub(crate) fn put(&self, stack: &Stack, writes: Option<i64>, content: &Content, now: Duration) {
        let Some(version) = Version::of(stack).filter(|version| Some(version.writes) == writes) else { return };
        let rows: usize = content.model.rows().map(size).sum();
        let bytes = rows + BLUEPRINT * content.blueprint.sources().template.size();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(stack.id, (version, content.clone()), bytes, now);
        kept.expire(now);
    }

    /// The number of stacks whose content is kept, and its bytes by estimate.
    pub fn size(&self) -> (usize, usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size()
    }

    /// Drops what has not been used for a while.
    pub(crate) fn expire(&self, now: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).expire(now);
    }
}

/// About how many bytes a row takes.
fn size(row: &Resource) -> usize {
    let texts = row.name.len() + row.resource_type.len() + row.implementation.len() + row.reason.len();
    let definition = row
        .definition
        .as_ref()
        .map_or(0, |definition| size_of_val(&**definition) + definition.properties.size() + definition.metadata.size());
    size_of::<Resource>() + texts + definition + row.metadata.size() + row.data.size() + row.attributes.size()
}
