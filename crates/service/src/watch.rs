//! Watches the events of a tree of stacks or of a project, without polling.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kiln_store::{Doorbell, Event, EventId, EventQuery, Stack, StackId, StackQuery};

use crate::{Error, Service};

/// Events that are read at once, and so the most that are in memory for a slow client.
const BATCH: u64 = 100;
/// How much older than the current time an event is when none with a lower number can become visible any more: numbers are
/// assigned before transactions end, and clocks differ.
const OVERLAP: SignedDuration = SignedDuration::from_secs(5);
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
    /// The requested filters.
    filter: EventQuery,
    bell: Arc<dyn Doorbell>,
    /// Whether there may be events to read.
    may_have_news: bool,
    /// Everything up to this event was returned.
    anchor: Option<EventId>,
    /// The events after it that were returned, with their times.
    recent: VecDeque<(Timestamp, EventId)>,
    /// The roots of trees with new events, which may not be watched.
    rung: Vec<StackId>,
    stacks: HashMap<StackId, Arc<Stack>>,
}

impl Service {
    /// Watches events from `after` on. Without it, a tree is watched from its first event, and a project from now.
    ///
    /// # Errors
    /// Unknown events.
    pub async fn watch(&self, what: Watched, after: Option<EventId>, filter: EventQuery) -> Result<Watch, Error> {
        let store = &self.backends.store;
        let bell = store.news();
        let anchor = match (&what, after) {
            (_, Some(after)) => {
                let probe = EventQuery { marker: Some(after), limit: Some(1), ..EventQuery::default() };
                store.events(&probe).await?;
                Some(after)
            }
            (Watched::Tree(..), None) => None,
            (Watched::Project(project), None) => {
                let (project, limit) = (Some(project.clone()), Some(1));
                let newest = EventQuery { project, limit, descending: true, ..EventQuery::default() };
                store.events(&newest).await?.first().map(|event| event.id)
            }
        };
        Ok(Watch {
            service: self.clone(),
            what,
            filter,
            bell,
            may_have_news: true,
            anchor,
            recent: VecDeque::new(),
            rung: Vec::new(),
            stacks: HashMap::new(),
        })
    }
}

impl Watch {
    /// Waits for events: at least one. It may be cancelled at any time; no event is lost.
    pub async fn next(&mut self) -> Result<Vec<NewEvent>, Error> {
        loop {
            while self.may_have_news {
                let events = self.read().await?;
                if !events.is_empty() {
                    return Ok(events);
                }
            }
            while let Some(root) = self.rung.last().copied() {
                let may_have_news = self.is_of(root).await?;
                self.rung.pop();
                self.may_have_news |= may_have_news;
            }
            if !self.may_have_news {
                self.rung = self.bell.wait().await;
                // Rings were lost.
                self.may_have_news = self.rung.is_empty();
            }
        }
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

    /// The next events, in the order of their storage. After the last ones there are none, and no reason to read again.
    async fn read(&mut self) -> Result<Vec<NewEvent>, Error> {
        let (root, project) = match &self.what {
            Watched::Tree(stack, _) => (Some(stack.root), None),
            Watched::Project(project) => (None, Some(project.clone())),
        };
        let limit = BATCH + u64::try_from(self.recent.len()).unwrap_or(BATCH);
        let query = EventQuery {
            root,
            project,
            marker: self.anchor,
            limit: Some(limit),
            descending: false,
            stacks: Vec::new(),
            ..self.filter.clone()
        };
        let mut found = self.service.backends.store.events(&query).await?;
        let is_all = u64::try_from(found.len()).is_ok_and(|count| count < limit);
        found.retain(|event| !self.recent.iter().any(|(_, seen)| *seen == event.id));
        let mut new = Vec::new();
        for event in &found {
            let stack = self.stack(event.stack).await?;
            if let Some(stack) = stack
                && self.is_inside(&stack).await?
            {
                new.push(NewEvent { event: event.clone(), stack });
            }
        }
        // From here on nothing waits, so this is not interrupted.
        let now = self.service.backends.clock.now();
        self.recent.extend(found.iter().map(|event| (event.time, event.id)));
        while let Some((time, id)) = self.recent.front()
            && now.duration_since(*time) > OVERLAP
        {
            self.anchor = Some(*id);
            self.recent.pop_front();
        }
        self.may_have_news = !is_all;
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
