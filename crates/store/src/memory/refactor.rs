//! Resources that move between stacks.

use super::state::State;
use crate::refactor::Refactor;
use crate::{Error, Stack};

impl State {
    pub(super) fn refactor(&mut self, refactor: &Refactor, now: i64) -> Result<Vec<Stack>, Error> {
        let parts = refactor.in_order();
        for part in &parts {
            let row = self.stacks.get(&part.id).filter(|row| row.stack.deleted.is_none());
            let row = row.ok_or(Error::Changed(part.id))?;
            let has_messages =
                self.messages.range((part.id, i64::MIN, i64::MIN, crate::MessageId(uuid::Uuid::nil()))..);
            let has_messages = has_messages.take(1).any(|((stack, ..), _)| *stack == part.id);
            if row.lease.expires != 0 || row.stack.writes != part.writes || has_messages {
                return Err(Error::Changed(part.id));
            }
            self.check_request(part.id, row.stack.generation, &part.request, now)?;
        }
        for row in &refactor.rows {
            self.save(row.clone());
        }
        let mut stacks = Vec::with_capacity(parts.len());
        for part in parts {
            let (_, started) = self.request(part.id, &part.request, now).ok_or(Error::Changed(part.id))?;
            self.apply_settle(part.id, &part.settle);
            let row = self.stacks.get_mut(&part.id).ok_or(Error::Changed(part.id))?;
            row.stack.writes += 1;
            let stack = row.stack.clone();
            self.end_operation(&stack, &part.settle);
            let events: Vec<_> = std::iter::once(started).chain(part.events.iter().cloned()).collect();
            self.post(stack.id, &events, now);
            for event in events {
                self.append(event);
            }
            stacks.push(stack);
        }
        Ok(stacks)
    }
}
