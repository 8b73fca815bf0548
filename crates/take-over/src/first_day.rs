//! The plan of a stack with its own template on the first day under Kiln: it should change nothing.

use std::sync::Arc;

use kiln_plan::ResourceTypes;
use kiln_plan::hidden::Door;
use kiln_resource::NoCloud;
use kiln_stack::clock::{Chance, SystemClock};
use kiln_stack::hidden_values::{derive_below, hidden_values};
use kiln_stack::{Backends, Caches, LoadedStack};
use kiln_store::{Error, Options, SqlStore, Store as _, TakeOverState, TakenTree};
use kiln_value::Secret;
use kiln_view::preview::{PlannedChange, Preview, Terms, preview};

use crate::finding::below;

/// The number of trees after which the store is made anew.
const TREES: usize = 50;

/// Plans stacks that are not stored anywhere else.
pub struct FirstDay {
    types: Arc<ResourceTypes>,
    /// A database in memory, and how many trees it has.
    store: Option<(SqlStore, usize)>,
}

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
        Self { types, store: None }
    }

    /// The changes that an update of the stack with its own template and parameters would make. No cloud is asked: what only
    /// the cloud knows is read when it is needed.
    ///
    /// # Errors
    /// Errors of the store in memory.
    pub async fn changes(&mut self, mut tree: TakenTree) -> Result<Vec<Change>, Error> {
        let store = self.store().await?;
        tree.record.state = TakeOverState::Switched;
        tree.events.clear();
        store.take_tree(&tree).await?;
        let backends = Backends {
            store: Arc::new(store),
            resource_types: Arc::clone(&self.types),
            clouds: Arc::new(NoCloud),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            caches: Arc::new(Caches::default()),
        };
        let root = tree.record.root;
        let view = LoadedStack::load(&backends, root).await?;
        let mut view = view.ok_or_else(|| Error::NotFound(format!("stack {root}")))?;
        let blueprint = Arc::clone(&view.blueprint);
        let mut hidden = hidden_values(&backends, &view.stack).await?;
        derive_below(&backends, &view.stack, &mut hidden).await?;
        let previewed = preview(&backends, &mut view, blueprint, Terms::default(), &mut hidden).await?;
        let mut changes = Vec::new();
        note(&previewed, "", &mut changes);
        for change in &mut changes {
            hidden.mask(Door::Plan, &mut change.what);
        }
        Ok(changes)
    }

    async fn store(&mut self) -> Result<SqlStore, Error> {
        if let Some((store, trees)) = self.store.as_mut().filter(|(_, trees)| *trees < TREES) {
            *trees += 1;
            return Ok(store.clone());
        }
        let key = Secret::new("0123456789abcdef".to_owned());
        let store = SqlStore::open(Options { max_connections: 1, ..Options::new("sqlite::memory:", key) }).await?;
        store.migrate().await?;
        self.store = Some((store.clone(), 1));
        Ok(store)
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
