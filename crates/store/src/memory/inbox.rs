//! Messages to stacks.

use std::collections::BTreeSet;

use super::state::{MessagePlace, Sent, State, micro};
use crate::{Backlog, Message, MessageId, StackId};

impl State {
    /// Stores a message of another stack; false if the stack is deleted.
    pub(super) fn send(&mut self, message: &Message, now: i64) -> bool {
        let Some(row) = self.stacks.get_mut(&message.stack).filter(|row| row.stack.deleted.is_none()) else {
            return false;
        };
        row.stack.messages += 1;
        // A message that is due immediately can be claimed immediately, whatever the sender's clock is.
        let now = jiff::Timestamp::from_microsecond(now).unwrap_or(message.due);
        let due = if message.is_due_at_once() { message.due.min(now) } else { message.due };
        self.store_message(&Message { due, ..message.clone() });
        true
    }

    /// Stores a message unless it was stored before.
    pub(super) fn store_message(&mut self, message: &Message) {
        if self.sent.contains_key(&message.id) {
            return;
        }
        let message = Message { due: micro(message.due), sent: micro(message.sent), ..message.clone() };
        let due = message.due.as_microsecond();
        let place = (message.stack, due, message.sent.as_microsecond(), message.id);
        self.due.insert((due, message.stack, message.id));
        self.sent.insert(message.id, Sent::Waiting(place));
        self.messages.insert(place, message);
    }

    /// The messages that are due.
    pub(super) fn due_messages(&self, stack: StackId, now: i64) -> Vec<MessageId> {
        self.messages_of(stack).take_while(|(place, _)| place.1 <= now).map(|(place, _)| place.3).collect()
    }

    /// These messages, in the order in which they are handled.
    pub(super) fn read_messages(&self, stack: StackId, ids: &[MessageId]) -> Vec<Message> {
        let waiting = ids.iter().filter_map(|id| match self.sent.get(id)? {
            Sent::Waiting(place) if place.0 == stack => Some(*place),
            _ => None,
        });
        let places: BTreeSet<MessagePlace> = waiting.collect();
        self.count_read(|read| read.messages += places.len());
        places.iter().filter_map(|place| self.messages.get(place).cloned()).collect()
    }

    /// The messages that are not handled yet.
    pub(super) fn backlog(&self, stack: StackId, sizes: bool) -> Backlog {
        let size = |message: &Message| message.body.to_json().map_or(0, |text| text.len() as u64);
        self.messages_of(stack).fold(Backlog::default(), |all, (_, message)| Backlog {
            messages: all.messages + 1,
            bytes: all.bytes + if sizes { size(message) } else { 0 },
        })
    }

    pub(super) fn mark_handled(&mut self, stack: StackId, ids: &[MessageId], now: i64) {
        for id in ids {
            match self.sent.get(id) {
                Some(Sent::Waiting(place)) if place.0 == stack => {
                    let place = *place;
                    self.take_message(place);
                    self.sent.insert(*id, Sent::Handled { stack, at: now });
                }
                _ => {}
            }
        }
    }

    /// Removes all messages of a stack that is deleted.
    pub(super) fn remove_messages(&mut self, stack: StackId) {
        let places: Vec<MessagePlace> = self.messages_of(stack).map(|(place, _)| *place).collect();
        for place in places {
            self.take_message(place);
        }
        self.sent.retain(|_, sent| match sent {
            Sent::Waiting(place) => place.0 != stack,
            Sent::Handled { stack: of, .. } => *of != stack,
        });
    }

    /// The time since when a stack has a due message.
    pub(super) fn oldest_due(&self, stack: StackId, now: i64) -> Option<i64> {
        self.messages_of(stack).next().map(|(place, _)| place.1).filter(|due| *due <= now)
    }

    fn messages_of(&self, stack: StackId) -> impl Iterator<Item = (&MessagePlace, &Message)> {
        let first = (stack, i64::MIN, i64::MIN, MessageId(uuid::Uuid::nil()));
        self.messages.range(first..).take_while(move |(place, _)| place.0 == stack)
    }

    fn take_message(&mut self, place: MessagePlace) {
        self.messages.remove(&place);
        self.due.remove(&(place.1, place.0, place.3));
    }
}
