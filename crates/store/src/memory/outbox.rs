//! The outbox.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use uuid::Uuid;

use super::MemoryStore;
use super::state::{OutboxRow, State, micros_of};
use crate::outbox::{NewEntry, announced, entries_for, runs, sinks_of};
use crate::{
    Announcement, Delivery, Error, Event, Lane, OutboxEntry, OutboxStore, PluginRun, Stack, StackId, WebhookMessage,
};

impl State {
    /// Writes entries for new events of a stack, if anybody is to get them.
    pub(super) fn post(&mut self, stack: StackId, events: &[Event], now: i64) {
        let Some(stack) = self.stacks.get(&stack).map(|row| &row.stack) else { return };
        let environment = self.contents.get(&stack.desired.environment).filter(|_| stack.desired.sinks);
        let sinks = environment.map(|content| sinks_of(&content.body)).unwrap_or_default();
        let mut entries = entries_for(stack, events, &sinks, self.notifications);
        let messages = events.iter().map(|event| WebhookMessage::of_event(stack, event));
        entries.extend(self.entries_of_webhooks(&stack.project, messages));
        self.write_entries(entries, now);
    }

    /// Writes entries for announcements, if there is a message bus, and for runs of plug-ins.
    pub(super) fn announce(&mut self, stack: &Stack, announcements: &[Announcement], run: &[PluginRun], now: i64) {
        self.write_entries(runs(stack, run), now);
        if self.notifications {
            self.write_entries(announced(stack, announcements), now);
        }
    }

    pub(super) fn write_entries(&mut self, entries: Vec<NewEntry>, now: i64) {
        for entry in entries {
            let number = i64::try_from(self.next()).unwrap_or(i64::MAX);
            let row = OutboxRow { entry, created: now, due: 0, attempts: 0, mark: None };
            self.outbox.insert((row.entry.lane.clone(), number), row);
        }
    }

    fn lane(&self, lane: &str) -> impl Iterator<Item = (i64, &OutboxRow)> {
        let range = (lane.to_owned(), i64::MIN)..=(lane.to_owned(), i64::MAX);
        self.outbox.range(range).map(|((_, number), row)| (*number, row))
    }

    fn claim_lane(&mut self, lane: &str, mark: Uuid, ttl: i64, limit: usize, now: i64) -> Option<Delivery> {
        let rows: Vec<(i64, &OutboxRow)> = self.lane(lane).take(limit).take_while(|(_, row)| row.due <= now).collect();
        let (_, first) = rows.first()?;
        let entry = |(number, row): &(i64, &OutboxRow)| OutboxEntry {
            number: *number,
            id: row.entry.id,
            body: row.entry.body.clone(),
            age: Duration::from_micros(u64::try_from(now - row.created).unwrap_or_default()),
            attempts: row.attempts,
        };
        let delivery = Delivery {
            root: first.entry.root,
            destination: first.entry.destination.clone(),
            entries: rows.iter().map(entry).collect(),
        };
        for entry in &delivery.entries {
            if let Some(row) = self.outbox.get_mut(&(lane.to_owned(), entry.number)) {
                row.mark = Some(mark);
                row.due = now.saturating_add(ttl);
            }
        }
        Some(delivery)
    }
}

#[async_trait]
impl OutboxStore for MemoryStore {
    async fn next_lane(&self, after: &str) -> Result<Option<Lane>, Error> {
        let (state, now) = self.open();
        let next = state.outbox.range((after.to_owned(), i64::MAX)..).next();
        Ok(next.map(|((name, _), row)| {
            let wait = Duration::from_micros(u64::try_from(row.due - now).unwrap_or_default());
            Lane { name: name.clone(), wait, attempts: row.attempts }
        }))
    }

    async fn claim_lane(&self, lane: &str, mark: Uuid, ttl: Duration, limit: usize) -> Result<Option<Delivery>, Error> {
        let (mut state, now) = self.open();
        Ok(state.claim_lane(lane, mark, micros_of(ttl), limit, now))
    }

    async fn remove_entries(&self, mark: Uuid, numbers: &[i64]) -> Result<(), Error> {
        self.open().0.outbox.retain(|(_, number), row| !(row.mark == Some(mark) && numbers.contains(number)));
        Ok(())
    }

    async fn postpone_entries(&self, mark: Uuid, numbers: &[i64], delay: Duration) -> Result<(), Error> {
        let (mut state, now) = self.open();
        for ((_, number), row) in &mut state.outbox {
            if row.mark == Some(mark) && numbers.contains(number) {
                row.mark = None;
                row.due = now.saturating_add(micros_of(delay));
                row.attempts += u32::from(delay > Duration::ZERO);
            }
        }
        Ok(())
    }

    fn outbox_news(&self) -> watch::Receiver<()> {
        self.hub.outbox()
    }
}
