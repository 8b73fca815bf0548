//! What an update would do: the real plan, carried out by nobody.

mod rehearsal;
mod weigh;

use std::sync::Arc;

use kiln_plan::Blueprint;
use kiln_resource::{Resource, StoredDefinition};
use kiln_store::{Error, Stack};
use kiln_value::Map;

use crate::backends::Backends;
use crate::view::View;
use rehearsal::Rehearsal;

/// What would become of one resource.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedChange {
    /// Nothing.
    Unchanged,
    /// Changed in place: the properties with their new values; null for one that is gone. What is known only once
    /// other resources are done is [`kiln_value::Value::Unknown`].
    Updated(Map),
    /// Another one in its place, for these reasons.
    Replaced(Vec<String>),
    /// Created.
    Added,
    /// Deleted.
    Deleted,
    /// Refused: the update would fail here, with this reason.
    Refused(String),
    /// It depends on what is known only once other resources are done.
    Undecided {
        /// What happens at least: if the values turn out to be as they are now.
        at_least: Box<PlannedChange>,
        /// What happens at most.
        at_most: Box<PlannedChange>,
        /// What is not known.
        awaited: Vec<Awaited>,
    },
}

/// A property whose value is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The property.
    pub property: String,
    /// What tells the value: `resource` or `resource.attribute`.
    pub place: String,
}

impl PlannedChange {
    /// Whether nothing will happen.
    pub fn is_unchanged(&self) -> bool {
        *self == Self::Unchanged
    }

    /// What happens at most.
    #[must_use]
    pub fn at_most(&self) -> &Self {
        match self {
            Self::Undecided { at_most, .. } => at_most,
            certain => certain,
        }
    }
}

/// One resource of a preview.
#[derive(Clone, Debug)]
pub struct PlannedResource {
    /// Logical name.
    pub name: String,
    /// Its type as the new template names it, or as the old did if it goes.
    pub resource_type: String,
    /// What would become of it.
    pub change: PlannedChange,
    /// The resolved definition that it would have; `None` if it is refused and there is none yet.
    pub definition: Option<Arc<StoredDefinition>>,
    /// Its row as it is; `None` if it is new.
    pub row: Option<Resource>,
    /// What would become of the nested stack that it stands for.
    pub nested: Option<Preview>,
    /// The resources that need it directly.
    pub required_by: Vec<String>,
    /// The attributes of its type, as far as they are known.
    pub attributes: Map,
}

impl PlannedResource {
    /// The list of Heat's preview that it goes into, by what may happen to it at most: `unchanged`, `updated`,
    /// `replaced`, `added` or `deleted`.
    pub fn list(&self) -> &'static str {
        match self.change.at_most() {
            // Heat updates every nested stack, and leaves it to what is inside whether anything is done.
            PlannedChange::Unchanged if self.nested.is_some() => "updated",
            PlannedChange::Unchanged => "unchanged",
            // A refused change is one that was asked for.
            PlannedChange::Updated(_) | PlannedChange::Refused(_) | PlannedChange::Undecided { .. } => "updated",
            PlannedChange::Replaced(_) => "replaced",
            PlannedChange::Added => "added",
            PlannedChange::Deleted => "deleted",
        }
    }
}

/// What would become of every resource of a stack, in the order in which it would be looked at.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The stack; one that would be created has an id of its own that nobody will see again.
    pub stack: Stack,
    /// The resources.
    pub entries: Vec<PlannedResource>,
}

impl Preview {
    /// Whether nothing will happen to any resource.
    pub fn is_unchanged(&self) -> bool {
        self.entries.iter().all(|entry| entry.change.is_unchanged())
    }
}

/// What an update of a stack to a new blueprint would do, in nested stacks too; nothing is changed by asking.
///
/// # Errors
/// The store's.
pub async fn preview(backends: &Backends, view: &View, new: Arc<Blueprint>) -> Result<Preview, Error> {
    let root = Arc::new(view.root().clone());
    let mut rehearsal = Rehearsal::new(backends, &view.stack, Some(view), root, new);
    rehearsal.play().await?;
    rehearsal.finish().await
}
