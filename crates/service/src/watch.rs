//! Watches the events of a tree of stacks or of a project, without polling.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kiln_store::{Doorbell, Event, EventId, EventQuery, EventReader, Stack, StackId, StackQuery};

use crate::{Error, Service};

/// Stacks whose rows are kept.
const KEPT: usize = 1_000;

/// What is watched.
#[derive(Clone, Debug)]
pub enum Watched {
    /// A stack, with nested stacks down to this depth below it.
    Tree(Box<Stack>, u32),
    /// The stacks of a project.
    Project(String),
}

/// A new event.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The event.
    pub event: Event,
    /// Its stack.
    pub stack: Arc<Stack>,
}

/// A watcher. It reads when it is asked for events, so a slow client costs no more memory than others.
pub struct Watch {
    service: Service,
    what: Watched,
    reader: EventReader,
    /// Events that were read and not returned yet.
    read: Vec<Event>,
    bell: Arc<dyn Doorbell>,
    /// Whether there may be new events.
    may_have_news: bool,
    /// The roots of trees with new events, which may not be watched.
    rung: Vec<StackId>,
    /// The trees in which events may have become visible late; `None`: all that are watched.
    suspects: Vec<Option<StackId>>,
    stacks: HashMap<StackId, Arc<Stack>>,
}

impl Service {
    /// Watches events from `after` on. Without it, a tree is watched from its first event, and a project from now.
    ///
    /// # Errors
    ///
    /// Unknown events.
    pub async fn watch(&self, what: Watched, after: Option<EventId>, filter: EventQuery) -> Result<Watch, Error> {
        let store = &*self.backends.store;
        let bell = store.news();
        let (root, project) = match &what {
            Watched::Tree(stack, _) => (Some(stack.root), None),
            Watched::Project(project) => (None, Some(project.clone())),
        };
        let query = EventQuery { root, project, stacks: Vec::new(), ..filter };
        let reader = match (after, root) {
            (Some(after), _) => EventReader::after(store, query, after).await?,
            (None, Some(_)) => EventReader::from_first(query),
            (None, None) => EventReader::from_now(store, query).await?,
        };
        Ok(Watch {
            service: self.clone(),
            what,
            reader,
            read: Vec::new(),
            bell,
            may_have_news: true,
            rung: Vec::new(),
            suspects: Vec::new(),
            stacks: HashMap::new(),
        })
    }
}

impl Watch {
    /// Waits for events: at least one. It may be cancelled at any time; no event is lost.
    pub async fn next(&mut self) -> Result<Vec<NewEvent>, Error> {
        let store = Arc::clone(&self.service.backends.store);
        loop {
            if !self.read.is_empty() {
                let events = self.inside().await?;
                self.read.clear();
                if !events.is_empty() {
                    return Ok(events);
                }
            } else if self.may_have_news {
                self.read = self.reader.next(&*store).await?;
                self.may_have_news = self.reader.may_have_more();
                // The rings of these trees were for these events.
                let roots: BTreeSet<StackId> = self.read.iter().map(|event| event.root).collect();
                self.suspects.retain(|suspect| suspect.is_none_or(|root| !roots.contains(&root)));
            } else if let Some(root) = self.rung.last().copied() {
                let is_watched = self.is_of(root).await?;
                self.rung.pop();
                if is_watched {
                    self.may_have_news = true;
                    self.suspects.push(Some(root));
                }
            } else if let Some(root) = self.suspects.last().copied() {
                self.read = self.reader.late(&*store, root).await?;
                if self.read.is_empty() {
                    self.suspects.pop();
                }
            } else {
                self.rung = self.bell.wait().await;
                if self.rung.is_empty() {
                    // Rings may have been lost.
                    self.may_have_news = true;
                    self.suspects = vec![None];
                }
            }
        }
    }

    /// Whether the next events are there already, as far as is known.
    pub fn may_have_more(&self) -> bool {
        self.may_have_news
    }

    /// Whether the tree of a root is watched.
    async fn is_of(&mut self, root: StackId) -> Result<bool, Error> {
        match &self.what {
            Watched::Tree(stack, _) => Ok(root == stack.root),
            Watched::Project(project) => {
                let project = project.clone();
                Ok(self.stack(root).await?.is_some_and(|root| root.project == project))
            }
        }
    }

    /// The events that were read, of the stacks that are watched.
    async fn inside(&mut self) -> Result<Vec<NewEvent>, Error> {
        let mut new = Vec::new();
        for event in self.read.clone() {
            if let Some(stack) = self.stack(event.stack).await?
                && self.is_inside(&stack).await?
            {
                new.push(NewEvent { event, stack });
            }
        }
        Ok(new)
    }

    /// The row of a stack, which never changes in what is used of it.
    async fn stack(&mut self, id: StackId) -> Result<Option<Arc<Stack>>, Error> {
        if let Some(stack) = self.stacks.get(&id) {
            return Ok(Some(Arc::clone(stack)));
        }
        let Some(stack) = self.service.backends.store.stack(id).await? else { return Ok(None) };
        if self.stacks.len() >= KEPT {
            self.stacks.clear();
        }
        let stack = Arc::new(stack);
        self.stacks.insert(id, Arc::clone(&stack));
        Ok(Some(stack))
    }

    /// Whether a stack is watched.
    async fn is_inside(&mut self, stack: &Arc<Stack>) -> Result<bool, Error> {
        let Watched::Tree(top, depth) = &self.what else { return Ok(true) };
        let (top, top_depth, depth) = (top.id, top.depth, *depth);
        if stack.depth < top_depth || stack.depth - top_depth > depth {
            return Ok(false);
        }
        let mut above = Arc::clone(stack);
        while above.id != top {
            let Some(parent) = above.parent.as_ref().map(|parent| parent.stack) else { return Ok(false) };
            let Some(next) = self.stack(parent).await? else { return Ok(false) };
            above = next;
        }
        Ok(true)
    }
}

impl Service {
    /// A stack and its nested stacks down to a depth, including deleted ones.
    pub async fn tree(&self, root: Stack, depth: u32) -> Result<Vec<Stack>, Error> {
        let mut stacks = vec![root];
        let mut level = 0..1;
        for _ in 0..depth.min(self.options.limits.nested_depth) {
            let start = stacks.len();
            for at in level {
                let Some(parent) = stacks.get(at).map(|stack| stack.id) else { continue };
                let query = StackQuery { parent: Some(parent), nested: true, deleted: true, ..StackQuery::default() };
                stacks.extend(self.backends.store.stacks(&query).await?);
            }
            level = start..stacks.len();
        }
        Ok(stacks)
    }
}
