//! What is to be stored, until it is.

use std::collections::BTreeSet;

use kiln_plan::Model;
use kiln_resource::ResourceId;
use kiln_store::{Batch, Event, NewStack, Request, Settle, StackId, Turn};

/// Writes that are waiting for the next commit; a row that changes twice is written once.
#[derive(Default)]
pub(crate) struct Desk {
    save: BTreeSet<ResourceId>,
    remove: BTreeSet<ResourceId>,
    pub(crate) events: Vec<Event>,
    pub(crate) children: Vec<NewStack>,
    pub(crate) requests: Vec<(StackId, Request)>,
    pub(crate) turn: Option<Turn>,
    pub(crate) settle: Option<Settle>,
}

impl Desk {
    pub(crate) fn save(&mut self, id: ResourceId) {
        self.save.insert(id);
    }

    pub(crate) fn remove(&mut self, id: ResourceId) {
        self.save.remove(&id);
        self.remove.insert(id);
    }

    /// How many rows are waiting.
    pub(crate) fn len(&self) -> usize {
        self.save.len() + self.remove.len()
    }

    /// Takes everything off the desk, with the rows as they are now; `None` if there is nothing.
    pub(crate) fn clear(&mut self, model: &Model) -> Option<Batch> {
        let desk = std::mem::take(self);
        let batch = Batch {
            save: desk.save.iter().filter_map(|id| model.row(*id)).cloned().collect(),
            remove: desk.remove.into_iter().collect(),
            events: desk.events,
            children: desk.children,
            requests: desk.requests,
            turn: desk.turn,
            settle: desk.settle,
        };
        (!batch.is_empty()).then_some(batch)
    }
}
