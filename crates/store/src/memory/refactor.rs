//! Resources that move between stacks.

use super::state::State;
use crate::refactor::Refactor;
use crate::{Error, Event, Stack};

impl State {
    pub(super) fn refactor(&mut self, refactor: &Refactor, now: i64) -> Result<Vec<Stack>, Error> {
        let parts = refactor.in_order();
        for part in &parts {
            let row = self.stacks.get(&part.id).filter(|row| row.stack.deleted.is_none());
            let row = row.ok_or(Error::Changed(part.id))?;
            let messages = self.backlog(part.id, false).messages;
            if row.lease.expires != 0 || row.stack.writes != part.writes || messages > 0 {
                return Err(Error::Changed(part.id));
            }
            self.check_request(part.id, row.stack.generation, &part.request, now)?;
        }
        for row in &refactor.rows {
            self.save(row.clone());
        }
        let mut stacks = Vec::with_capacity(parts.len());
        for part in parts {
            let (begun, started) = self.request(part.id, &part.request, now).ok_or(Error::Changed(part.id))?;
            let settle = part.settle(begun.generation);
            self.apply_settle(part.id, &settle);
            let row = self.stacks.get_mut(&part.id).ok_or(Error::Changed(part.id))?;
            row.stack.writes += 1;
            let stack = row.stack.clone();
            self.end_operation(&stack, &settle);
            let ended = Event::of_end(&stack);
            let events: Vec<_> = std::iter::once(started).chain(part.events.iter().cloned()).chain([ended]).collect();
            self.post(stack.id, &events, now);
            for event in events {
                self.append(event);
            }
            stacks.push(stack);
        }
        Ok(stacks)
    }
}
