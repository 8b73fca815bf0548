//! Resources that move between stacks.

use super::state::State;
use crate::refactor::Refactor;
use crate::{Error, Event, Stack};

impl State {
    pub(super) fn refactor(&mut self, refactor: &Refactor, now: i64) -> Result<Vec<Stack>, Error> {
        let parts = refactor.in_order();
        for (id, writes) in refactor.locked() {
            let row = self.stacks.get(&id).filter(|row| row.stack.deleted.is_none());
            let row = row.ok_or(Error::Changed(id))?;
            let messages = self.backlog(id, false).messages;
            if row.lease.expires > now || row.stack.writes != writes || messages > 0 {
                return Err(Error::Changed(id));
            }
        }
        for part in &parts {
            let generation = self.stacks.get(&part.id).map_or(0, |row| row.stack.generation);
            self.check_request(part.id, generation, &part.request, now)?;
        }
        for moved in &refactor.nested {
            let is_as_read = |stack: &Stack| (stack.generation, stack.settled) == (moved.generation, moved.generation);
            if !self.stacks.get(&moved.id).is_some_and(|row| is_as_read(&row.stack)) {
                return Err(Error::Changed(moved.id));
            }
        }
        for (id, _) in refactor.locked() {
            // An engine that was killed at the end of its work has left its lease.
            if let Some(row) = self.stacks.get_mut(&id) {
                row.lease.epoch += 1;
                row.lease.released = row.lease.epoch;
                row.lease.expires = 0;
            }
        }
        for row in &refactor.rows {
            self.save(row.clone());
        }
        for moved in &refactor.nested {
            let Some(row) = self.stacks.get_mut(&moved.id) else { continue };
            row.stack.writes += 1;
            row.stack.root = moved.root;
            let before = row.stack.parent.replace(moved.parent.clone());
            if let Some(siblings) = before.and_then(|before| self.nested.get_mut(&before.stack)) {
                siblings.remove(&moved.id);
            }
            self.nested.entry(moved.parent.stack).or_default().insert(moved.id);
        }
        let mut stacks = Vec::with_capacity(parts.len());
        for part in parts {
            let (begun, started) = self.request(part.id, &part.request, now).ok_or(Error::Changed(part.id))?;
            let settle = part.settle(begun.generation);
            if let Some(settle) = &settle {
                self.apply_settle(part.id, settle);
            }
            let row = self.stacks.get_mut(&part.id).ok_or(Error::Changed(part.id))?;
            row.stack.previous = Some(row.stack.desired.clone());
            row.stack.writes += 1;
            let stack = row.stack.clone();
            if let Some(settle) = &settle {
                self.end_operation(&stack, settle);
            }
            let ended = settle.map(|_| Event::of_end(&stack));
            let events: Vec<_> = std::iter::once(started).chain(part.events.iter().cloned()).chain(ended).collect();
            self.post(stack.id, &events, now);
            for event in events {
                self.append(event);
            }
            stacks.push(stack);
        }
        Ok(stacks)
    }
}
