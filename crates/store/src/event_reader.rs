//! Reads the events of a tree of stacks or of a project while they are being written, without losing any.
//!
//! Events get their numbers before their transactions end. So an event may become visible after events with higher numbers,
//! and nothing limits how long that takes: a commit can be slow. Only the events of one stack become visible in the order of
//! their numbers (`sql/events.rs`). Therefore a reader remembers how far it has read each stack, and not only the highest number
//! that it has read.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, Event, EventId, EventQuery, StackId, Store};

/// Events that are read at once, and so the most that a reader returns twice over.
const BATCH: u64 = 100;
/// Stacks that one query looks at.
const STACKS: usize = 100;

/// Which events [`Store::numbered_events`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSpan {
    /// Those of the stacks of the query with higher numbers than this one.
    After(u64),
    /// Those of some stacks, each after a number of its own, up to a common number.
    Between(Vec<(StackId, u64)>, u64),
}

/// How far the events of some stacks were read. Its memory grows with the number of stacks.
#[derive(Debug)]
pub struct EventReader {
    /// The stacks and the filters.
    query: EventQuery,
    /// The highest number that was read. What is found below it later has become visible late.
    read_to: u64,
    /// The last event of each stack that was read or left out. A stack without an entry has none.
    places: BTreeMap<StackId, u64>,
    /// Whether there may be events above `read_to`.
    may_have_more: bool,
}

impl EventReader {
    /// Begins with the first event. The query names a root or a project.
    pub fn from_first(query: EventQuery) -> Self {
        let query = EventQuery { descending: false, marker: None, limit: Some(BATCH), ..query };
        Self { query, read_to: 0, places: BTreeMap::new(), may_have_more: true }
    }

    /// Begins with what becomes visible from now on.
    pub async fn from_now(store: &dyn Store, query: EventQuery) -> Result<Self, Error> {
        let mut reader = Self::from_first(query);
        reader.places = store.last_events(&reader.query, u64::MAX).await?.into_iter().collect();
        reader.read_to = reader.places.values().copied().max().unwrap_or(0);
        Ok(reader)
    }

    /// Begins after an event: with those that have a higher number, or become visible from now on.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]: the event does not exist.
    pub async fn after(store: &dyn Store, query: EventQuery, event: EventId) -> Result<Self, Error> {
        let mut reader = Self::from_first(query);
        reader.read_to = store.event_number(event).await?;
        reader.places = store.last_events(&reader.query, reader.read_to).await?.into_iter().collect();
        Ok(reader)
    }

    /// Whether [`Self::next`] may find more without another ring.
    pub fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// The next events, in the order of their numbers; before them, late ones of the same stacks.
    ///
    /// It may be cancelled: then nothing was read.
    pub async fn next(&mut self, store: &dyn Store) -> Result<Vec<Event>, Error> {
        let found = store.numbered_events(&EventSpan::After(self.read_to), &self.query).await?;
        let stacks: BTreeSet<StackId> = found.iter().map(|(_, event)| event.stack).collect();
        let late = self.between(store, stacks).await?;
        if is_full(&late) {
            self.may_have_more = true;
            return Ok(self.take(late));
        }
        self.may_have_more = is_full(&found);
        let mut events = self.take(late);
        self.read_to = found.last().map_or(self.read_to, |(number, _)| *number);
        events.extend(self.take(found));
        Ok(events)
    }

    /// Events that have become visible after events with higher numbers were read: of all stacks, or of one tree. It is called
    /// again until there are none.
    ///
    /// It may be cancelled: then nothing was read.
    pub async fn late(&mut self, store: &dyn Store, root: Option<StackId>) -> Result<Vec<Event>, Error> {
        let scope =
            EventQuery { root: root.or(self.query.root), project: self.query.project.clone(), ..Default::default() };
        let up_to = if root.is_none() { u64::MAX } else { self.read_to };
        let last: BTreeMap<StackId, u64> = store.last_events(&scope, up_to).await?.into_iter().collect();
        if root.is_none() {
            // Of the others, everything was purged.
            self.places.retain(|stack, _| last.contains_key(stack));
            // The filters may leave out so much that reading alone would never come here.
            self.read_to = last.values().copied().max().unwrap_or(0).max(self.read_to);
        }
        let changed: Vec<(StackId, u64)> =
            last.into_iter().filter(|(stack, last)| self.place(*stack) < *last).collect();
        for some in changed.chunks(STACKS) {
            let late = self.between(store, some.iter().map(|(stack, _)| *stack)).await?;
            if !is_full(&late) {
                // The filters leave out the others.
                self.places.extend(some.iter().copied());
            }
            if !late.is_empty() {
                return Ok(self.take(late));
            }
        }
        Ok(Vec::new())
    }

    /// The events of some stacks that were not read, up to the highest number that was read.
    async fn between(
        &self,
        store: &dyn Store,
        stacks: impl IntoIterator<Item = StackId>,
    ) -> Result<Vec<(u64, Event)>, Error> {
        let stacks = stacks.into_iter().map(|stack| (stack, self.place(stack)));
        let stacks: Vec<(StackId, u64)> = stacks.filter(|(_, place)| *place < self.read_to).collect();
        if stacks.is_empty() {
            return Ok(Vec::new());
        }
        store.numbered_events(&EventSpan::Between(stacks, self.read_to), &self.query).await
    }

    fn place(&self, stack: StackId) -> u64 {
        self.places.get(&stack).copied().unwrap_or(0)
    }

    fn take(&mut self, events: Vec<(u64, Event)>) -> Vec<Event> {
        let taken = events.into_iter().map(|(number, event)| {
            let place = self.places.entry(event.stack).or_default();
            *place = number.max(*place);
            event
        });
        taken.collect()
    }
}

fn is_full(events: &[(u64, Event)]) -> bool {
    events.len() as u64 >= BATCH
}
