//! The plan of a stack with its own template on the first day under Kiln: it should change nothing.

use std::sync::Arc;

use kiln_plan::ResourceTypes;
use kiln_plan::hidden::Door;
use kiln_resource::NoCloud;
use kiln_store::{Error, TakenTree};
use kiln_view::preview::{PlannedChange, Preview, Terms, preview};

use crate::finding::below;
use crate::tree_in_memory::{Loaded, TreeInMemory};

/// Plans stacks that are not stored anywhere else.
pub struct FirstDay(TreeInMemory);

/// What the plan of a resource would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The names of the nested stacks and of the resource, joined with slashes.
    pub place: String,
    /// What would happen.
    pub what: String,
}

impl FirstDay {
    /// With the types of a Kiln.
    pub fn new(types: Arc<ResourceTypes>) -> Self {
        Self(TreeInMemory::new(types))
    }

    /// The changes that an update of the stack with its own template and parameters would make. No cloud is asked: what only
    /// the cloud knows is read when it is needed.
    ///
    /// # Errors
    /// Errors of the store in memory.
    pub async fn changes(&mut self, mut tree: TakenTree) -> Result<Vec<Change>, Error> {
        tree.events.clear();
        let Loaded { backends, mut view, mut hidden } = self.0.load(tree, |_| Arc::new(NoCloud)).await?;
        let blueprint = Arc::clone(&view.blueprint);
        let previewed = preview(&backends, &mut view, blueprint, Terms::default(), &mut hidden).await?;
        let mut changes = Vec::new();
        note(&previewed, "", &mut changes);
        for change in &mut changes {
            hidden.mask(Door::Plan, &mut change.what);
        }
        Ok(changes)
    }
}

fn note(preview: &Preview, place: &str, found: &mut Vec<Change>) {
    for entry in &preview.entries {
        let place = below(place, &entry.name);
        if let Some(nested) = &entry.nested {
            note(nested, &place, found);
        }
        let names = |map: &kiln_value::Map| map.keys().cloned().collect::<Vec<_>>().join(", ");
        let what = match &entry.change {
            PlannedChange::Unchanged => continue,
            // What changes in a nested stack is told of its resources.
            PlannedChange::Updated(changed) if changed.is_empty() && entry.nested.is_some() => continue,
            PlannedChange::Updated(changed) => format!("update of {}", names(changed)),
            PlannedChange::Replaced(why) => format!("replacement: {}", why.join(", ")),
            PlannedChange::Added => "create".to_owned(),
            PlannedChange::Deleted => "delete".to_owned(),
            PlannedChange::Refused(why) => format!("refused: {why}"),
            PlannedChange::Undecided { awaited, .. } => {
                let of: Vec<&str> = awaited.iter().map(|one| one.place.as_str()).collect();
                format!("depends on {}", of.join(", "))
            }
        };
        found.push(Change { place, what });
    }
}
