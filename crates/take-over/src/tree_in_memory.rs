//! A stack of Heat with its nested stacks in a database in memory, where Kiln reads it as one of its own.

use std::sync::Arc;

use kiln_plan::ResourceTypes;
use kiln_plan::hidden::HiddenValues;
use kiln_stack::clock::{Chance, SystemClock};
use kiln_stack::hidden_values::{derive_below, hidden_values};
use kiln_stack::{Backends, Caches, Clouds, LoadedStack};
use kiln_store::{Error, Options, SqlStore, Store, TakeOverState, TakenSoftware, TakenTree};
use kiln_value::Secret;

/// The number of trees after which the database is made anew.
const TREES: usize = 50;

/// A database in memory for one tree after the other.
pub(crate) struct TreeInMemory {
    types: Arc<ResourceTypes>,
    /// The database, and how many trees it has.
    store: Option<(SqlStore, usize)>,
    /// The project whose software it has.
    project: String,
}

/// A tree that is loaded.
pub(crate) struct Loaded {
    pub(crate) backends: Backends,
    pub(crate) view: LoadedStack,
    /// The hidden values of the whole tree.
    pub(crate) hidden: HiddenValues,
}

impl TreeInMemory {
    /// With the types of a Kiln.
    pub(crate) fn new(types: Arc<ResourceTypes>) -> Self {
        Self { types, store: None, project: String::new() }
    }

    /// Loads a tree, with the events that it still has. `clouds`: the cloud of stacks in this store.
    pub(crate) async fn load(
        &mut self,
        mut tree: TakenTree,
        clouds: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Clouds>,
    ) -> Result<Loaded, Error> {
        let store = self.store().await?;
        tree.record.state = TakeOverState::Switched;
        store.take_tree(&tree).await?;
        let store: Arc<dyn Store> = Arc::new(store);
        let backends = Backends {
            clouds: clouds(Arc::clone(&store)),
            store,
            resource_types: Arc::clone(&self.types),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            caches: Arc::new(Caches::default()),
        };
        let root = tree.record.root;
        let view = LoadedStack::load(&backends, root).await?;
        let view = view.ok_or_else(|| Error::NotFound(format!("stack {root}")))?;
        let mut hidden = hidden_values(&backends, &view.stack).await?;
        derive_below(&backends, &view.stack, &mut hidden).await?;
        Ok(Loaded { backends, view, hidden })
    }

    /// Adds the software configs and deployments of a project beside the tree that was loaded last, unless they are there.
    pub(crate) async fn add_software(
        &mut self,
        project: &str,
        read: impl Future<Output = Result<TakenSoftware, Error>>,
    ) -> Result<(), Error> {
        let Some((store, _)) = self.store.as_ref().filter(|_| self.project != project) else { return Ok(()) };
        store.take_software(project, &read.await?).await?;
        store.switch_project(project).await?;
        project.clone_into(&mut self.project);
        Ok(())
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
        self.project.clear();
        Ok(store)
    }
}
