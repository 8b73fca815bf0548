//! What is to be stored, until it is.

use std::collections::{HashMap, VecDeque};

use kiln_plan::Model;
use kiln_resource::ResourceId;
use kiln_store::{Batch, Event, Message, MessageId, NewStack, Settle, StackId, StackRequest, Turn};

/// Writes in the order in which they came. A row that changes more than once is written once, at its last place, so
/// that a commit may hold any beginning of them: an event may be stored before its row, and is then told again after a
/// crash, but none is lost.
#[derive(Default)]
pub(crate) struct WriteQueue {
    writes: VecDeque<Write>,
    /// How many writes were taken off so far: what the places count from.
    taken: usize,
    /// Where each row that is to be saved stands.
    places: HashMap<ResourceId, usize>,
    /// A change of the stack's state on the way; comes behind everything else.
    pub(crate) turn: Option<Turn>,
    /// The end of the request; comes behind everything else.
    pub(crate) settle: Option<Settle>,
    /// Messages that were taken in: removed in one commit with what came of them.
    handled: Vec<MessageId>,
    /// Messages to other stacks.
    messages: Vec<Message>,
}

enum Write {
    /// Taken back, or moved to a later place.
    Nothing,
    Save(ResourceId),
    Remove(ResourceId),
    Event(Box<Event>),
    /// Goes with the row behind it.
    Child(Box<NewStack>),
    /// Goes with the row behind it.
    StackRequest(StackId, Box<StackRequest>),
}

impl WriteQueue {
    pub(crate) fn save(&mut self, id: ResourceId) {
        self.forget(id);
        self.places.insert(id, self.taken + self.writes.len());
        self.writes.push_back(Write::Save(id));
    }

    pub(crate) fn remove(&mut self, id: ResourceId) {
        self.forget(id);
        self.writes.push_back(Write::Remove(id));
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.writes.push_back(Write::Event(Box::new(event)));
    }

    /// A nested stack to make; the save of its resource's row must follow.
    pub(crate) fn child(&mut self, stack: NewStack) {
        self.writes.push_back(Write::Child(Box::new(stack)));
    }

    /// A request to a nested stack; the save of its resource's row must follow.
    pub(crate) fn request(&mut self, stack: StackId, request: StackRequest) {
        self.writes.push_back(Write::StackRequest(stack, Box::new(request)));
    }

    /// A message was taken in; what came of it must follow before the next commit.
    pub(crate) fn handled(&mut self, id: MessageId) {
        self.handled.push(id);
    }

    /// A message to another stack.
    pub(crate) fn send(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// How many writes are waiting.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Takes off the desk what one commit of about `limit` writes may hold, with the rows as they are now; `None` if
    /// there is nothing left.
    pub(crate) fn take(&mut self, model: &Model, limit: usize) -> Option<Batch> {
        let count = if self.handled.is_empty() { self.cut(limit) } else { self.writes.len() };
        let mut batch = Batch {
            handled: std::mem::take(&mut self.handled),
            send: std::mem::take(&mut self.messages),
            ..Batch::default()
        };
        self.taken += count;
        for write in self.writes.drain(..count) {
            match write {
                Write::Nothing => {}
                Write::Save(id) => {
                    self.places.remove(&id);
                    batch.save.extend(model.row(id).cloned());
                }
                Write::Remove(id) => batch.remove.push(id),
                Write::Event(event) => batch.events.push(*event),
                Write::Child(stack) => batch.children.push(*stack),
                Write::StackRequest(stack, request) => batch.requests.push((stack, *request)),
            }
        }
        if self.writes.is_empty() {
            batch.turn = self.turn.take();
            batch.settle = self.settle.take();
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// The first place at or behind `limit` where the writes may be cut: not between what goes with a row and the row.
    fn cut(&self, limit: usize) -> usize {
        let free = |at: &usize| {
            !matches!(
                at.checked_sub(1).and_then(|at| self.writes.get(at)),
                Some(Write::Child(_) | Write::StackRequest(..))
            )
        };
        (limit..self.writes.len()).find(free).unwrap_or(self.writes.len())
    }

    fn forget(&mut self, id: ResourceId) {
        let place = self.places.remove(&id).and_then(|place| place.checked_sub(self.taken));
        if let Some(write) = place.and_then(|place| self.writes.get_mut(place)) {
            *write = Write::Nothing;
        }
    }
}
