//! Engine reports and purging, in bounded steps as in a database.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::state::{Sent, State, micro, micros_of};
use crate::limits::{CONTENT_KEPT, CONTENTS, DELIVERY_KEPT, EVENTS, HANDLED_KEPT, LOOKED_AT, STACKS};
use crate::outbox::WEBHOOK;
use crate::{Census, Digest, EngineInfo, EventPurge, MessageId, Retention, Silent, StackId};

impl State {
    pub(super) fn census(&self, now: i64) -> Census {
        let mut stacks: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in self.stacks.values().filter(|row| row.stack.deleted.is_none()) {
            let state = row.stack.state;
            *stacks.entry((state.action.to_string(), state.status.to_string())).or_default() += 1;
        }
        let of_operator = || self.outbox.iter().filter(|((lane, _), _)| !lane.starts_with(WEBHOOK)).map(|(_, row)| row);
        Census {
            stacks: stacks.into_iter().map(|((action, status), count)| (action, status, count)).collect(),
            leases: u64::try_from(self.stacks.values().filter(|row| row.lease.expires > now).count())
                .unwrap_or(u64::MAX),
            oldest: self
                .stacks
                .values()
                .filter_map(|row| row.due)
                .min()
                .map(|due| u64::try_from(now - due).unwrap_or(0)),
            pending: u64::try_from(self.stacks.values().filter(|row| row.due.is_some()).count()).unwrap_or(u64::MAX),
            outbox: of_operator().count() as u64,
            webhook_entries: (self.outbox.len() - of_operator().count()) as u64,
            drifted: self.count_drifted(),
            outbox_oldest: of_operator().map(|row| u64::try_from(now - row.created).unwrap_or(0)).max(),
        }
    }

    pub(super) fn report(&mut self, engine: &EngineInfo, now: i64) {
        let seen = Timestamp::from_microsecond(now).unwrap_or(engine.seen);
        let known = self
            .engines
            .entry(engine.id)
            .or_insert_with(|| EngineInfo { started: micro(engine.started), ..engine.clone() });
        known.seen = seen;
        known.interval = engine.interval;
        self.engines.retain(|_, known| known.interval > 0);
    }

    pub(super) fn forget_engine(&mut self, silent: &Silent) {
        if self.is_still(silent) {
            self.engines.remove(&silent.engine);
        }
    }

    /// Whether an engine has not reported since.
    pub(super) fn is_still(&self, silent: &Silent) -> bool {
        silent.is_still(self.engines.get(&silent.engine).map(|engine| engine.seen))
    }

    pub(super) fn engines(&self) -> Vec<EngineInfo> {
        let mut engines: Vec<EngineInfo> = self.engines.values().cloned().collect();
        engines.sort_by_key(|engine| (engine.started, engine.id));
        engines
    }

    pub(super) fn forget(&mut self, retention: &Retention, now: i64) -> u64 {
        let mut gone = self.forget_stacks(micro(retention.deleted_before));
        gone += self.forget_handled(now.saturating_sub(micros_of(HANDLED_KEPT)));
        gone += self.forget_plans(now);
        if gone == 0 {
            gone = self.forget_deliveries(now.saturating_sub(micros_of(DELIVERY_KEPT)));
        }
        if gone == 0 && retention.operations > 0 {
            gone = self.forget_operations(retention.operations);
        }
        if gone == 0 {
            gone = self.forget_contents(now.saturating_sub(micros_of(CONTENT_KEPT)));
        }
        gone as u64
    }

    fn forget_stacks(&mut self, before: Timestamp) -> usize {
        let stacks = self.stacks.values().map(|row| &row.stack);
        let unsent: BTreeSet<StackId> = self.outbox.values().map(|row| row.entry.root).collect();
        let stacks = stacks.filter(|stack| !unsent.contains(&stack.id));
        let deleted: BTreeSet<(Timestamp, StackId)> =
            stacks.filter_map(|stack| Some((stack.deleted.filter(|deleted| *deleted < before)?, stack.id))).collect();
        let mut gone = 0;
        for (_, id) in deleted.into_iter().take(STACKS) {
            let events: Vec<_> = self.events_of(id).map(|(place, _)| *place).collect();
            gone += events.len();
            for place in events {
                self.remove_event(place);
            }
            let rows: Vec<_> = self.rows_of(id).map(|(_, row)| row.id).collect();
            gone += rows.len();
            for row in rows {
                self.remove_resource(row);
            }
            let Some(row) = self.stacks.remove(&id) else { continue };
            let tags: BTreeSet<&String> = row.stack.tags.iter().collect();
            // The stack row, the lease, the row of its events, and one row for each tag.
            gone += 3 + tags.len();
            let before = self.operations.len();
            self.operations.retain(|_, operation| operation.stack != id);
            gone += before - self.operations.len();
            gone += self.remove_plans(|plan| plan.stack == id) + self.remove_guards_of(id);
            gone += self.remove_drift_of(id);
            if let Some(siblings) = row.stack.parent.and_then(|parent| self.nested.get_mut(&parent.stack)) {
                siblings.remove(&id);
            }
        }
        gone
    }

    pub(super) fn forget_events(&mut self, keep: u64, after: u64) -> EventPurge {
        let mut events: Vec<(u64, StackId)> =
            self.events.keys().map(|(stack, seq)| (*seq, *stack)).filter(|(seq, _)| *seq > after).collect();
        events.sort_unstable();
        let has_more = events.len() >= LOOKED_AT;
        events.truncate(LOOKED_AT);
        let last = events.last().map_or(after, |(seq, _)| *seq);
        let mut purge = EventPurge { looked_at: events.len() as u64, deleted: 0, after: last, has_more };
        for stack in events.into_iter().map(|(_, stack)| stack).collect::<BTreeSet<_>>() {
            let places: Vec<_> = self.events_of(stack).map(|(place, _)| *place).collect();
            let old = places.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
            for place in places.into_iter().take(old.min(EVENTS)) {
                self.remove_event(place);
                purge.deleted += 1;
            }
            if old > EVENTS || purge.deleted >= EVENTS as u64 {
                (purge.after, purge.has_more) = (after, true);
                break;
            }
        }
        purge
    }

    fn forget_handled(&mut self, before: i64) -> usize {
        let old = self.sent.iter().filter(|(_, sent)| matches!(sent, Sent::Handled { at, .. } if *at < before));
        let old: Vec<MessageId> = old.map(|(id, _)| *id).take(EVENTS).collect();
        for id in &old {
            self.sent.remove(id);
        }
        old.len()
    }

    fn forget_contents(&mut self, before: i64) -> usize {
        let named: BTreeSet<&Digest> = self
            .stacks
            .values()
            .flat_map(|row| [Some(&row.stack.desired), row.stack.previous.as_ref()])
            .flatten()
            .chain(self.operations.values().filter_map(|operation| operation.desired.as_ref()))
            .chain(self.plans.values().filter_map(|stored| stored.plan.desired.as_ref()))
            .flat_map(|desired| [&desired.template, &desired.environment, &desired.files])
            .collect();
        let old = self.contents.iter().filter(|(digest, content)| content.used < before && !named.contains(digest));
        let old: Vec<Digest> = old.map(|(digest, _)| digest.clone()).take(CONTENTS).collect();
        for digest in &old {
            self.contents.remove(digest);
        }
        old.len()
    }
}
