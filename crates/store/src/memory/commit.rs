//! Batches of the engine that holds a lease.

use std::collections::{BTreeMap, BTreeSet};

use super::orphans::stored;
use super::state::{State, micro};
use crate::{Batch, Error, Lease, Resource, Settle, Stack, StackId};

impl State {
    /// Refuses a batch that cannot be written completely.
    pub(super) fn check_batch(&self, lease: Lease, batch: &Batch, now: i64) -> Result<(), Error> {
        if !self.is_current(lease) {
            return Err(Error::Stale(lease.stack));
        }
        let mut events = BTreeSet::new();
        if let Some(event) =
            batch.events.iter().find(|event| self.event_places.contains_key(&event.id) || !events.insert(event.id))
        {
            return Err(Error::Database(format!("event {} exists", event.id).into()));
        }
        let mut generations: BTreeMap<StackId, i64> = BTreeMap::new();
        for child in &batch.children {
            self.check_new(child, now)?;
            if generations.insert(child.id, 1).is_some() {
                return Err(Error::Database(format!("stack {} exists", child.id).into()));
            }
        }
        for (id, request) in &batch.requests {
            let stored = self.live(*id).map(|stack| stack.generation);
            if let Some(generation) = generations.get(id).copied().or(stored) {
                self.check_request(*id, generation, request, now)?;
                generations.insert(*id, generation + 1);
            }
        }
        Ok(())
    }

    /// Writes a checked batch.
    pub(super) fn commit(&mut self, lease: Lease, batch: Batch, now: i64) -> Result<Stack, Error> {
        for row in batch.save {
            self.save(row);
        }
        for id in batch.remove {
            if self.resource_places.get(&id).is_some_and(|(stack, _)| *stack == lease.stack) {
                self.remove_resource(id);
            }
        }
        for orphan in &batch.orphans {
            self.orphans.entry(orphan.id).or_insert_with(|| stored(orphan));
        }
        for event in &batch.events {
            self.append(event.clone());
        }
        for child in &batch.children {
            self.create(child, now);
        }
        let started: Vec<_> =
            batch.requests.iter().filter_map(|(child, request)| Some(self.request(*child, request, now)?.1)).collect();
        for event in started {
            self.post(event.stack, std::slice::from_ref(&event), now);
            self.append(event);
        }
        self.mark_handled(lease.stack, &batch.handled, now);
        for snapshot in &batch.snapshots {
            self.save_snapshot(snapshot);
        }
        for id in &batch.remove_snapshots {
            if self.snapshots.get(id).is_some_and(|snapshot| snapshot.stack == lease.stack) {
                self.snapshots.remove(id);
            }
        }
        for change in &batch.software {
            self.change_software(change);
        }
        if let (Some(project), Some(row)) = (batch.user_project, self.stacks.get_mut(&lease.stack)) {
            row.stack.user_project = Some(project);
        }
        let admitted = self.stacks.get_mut(&lease.stack).filter(|row| batch.admit == Some(row.stack.generation));
        if let Some(row) = admitted {
            row.stack.details.admitted = true;
        }
        if let Some(settle) = &batch.settle {
            self.apply_settle(lease.stack, settle);
        }
        let row = self.stacks.get_mut(&lease.stack).ok_or(Error::Stale(lease.stack))?;
        row.stack.writes += 1;
        let mut stack = row.stack.clone();
        if let Some(settle) = &batch.settle {
            self.end_operation(&stack, settle);
        }
        let rollback = batch.rollback.filter(|request| request.if_generation == Some(stack.generation));
        let begun = rollback.and_then(|request| self.request(stack.id, &request, now));
        stack = begun.as_ref().map_or(stack, |(stack, _)| stack.clone());
        self.post(stack.id, &batch.events, now);
        if let Some((_, event)) = begun {
            self.post(stack.id, std::slice::from_ref(&event), now);
            self.append(event);
        }
        self.announce(&stack, &batch.announcements, &batch.plugin_runs, now);
        if stack.deleted.is_none() {
            for timer in &batch.timers {
                self.store_message(timer);
            }
        }
        for message in &batch.send {
            self.send(message, now);
        }
        Ok(stack)
    }

    pub(super) fn save(&mut self, mut row: Resource) {
        row.created = micro(row.created);
        row.updated = micro(row.updated);
        let child = row.child.filter(|_| row.has_moved()).and_then(|child| self.stacks.get_mut(&child));
        if let Some(parent) = child.and_then(|child| child.stack.parent.as_mut()) {
            parent.resource_name.clone_from(&row.name);
        }
        let seq = match self.resource_places.get(&row.id).copied() {
            Some(place) => {
                self.resources.remove(&place);
                place.1
            }
            None => self.next(),
        };
        let place = (row.stack, seq);
        self.resource_places.insert(row.id, place);
        self.resources.insert(place, row);
    }

    pub(super) fn apply_settle(&mut self, id: StackId, settle: &Settle) {
        let Some(row) = self.stacks.get_mut(&id).filter(|row| row.stack.generation == settle.generation) else {
            return;
        };
        let stack = &mut row.stack;
        stack.state = settle.state;
        stack.reason.clone_from(&settle.reason);
        stack.settled = settle.generation;
        if settle.reached {
            stack.previous = Some(stack.desired.clone());
        }
        if settle.deleted {
            stack.deleted = Some(micro(settle.now));
        }
        let name = (stack.project.clone(), stack.name.clone());
        self.set_due(id, None);
        if settle.deleted {
            if self.names.get(&name) == Some(&id) {
                self.names.remove(&name);
            }
            let rows: Vec<_> = self.rows_of(id).map(|(_, row)| row.id).collect();
            for row in rows {
                self.remove_resource(row);
            }
            self.remove_messages(id);
            self.snapshots.retain(|_, snapshot| snapshot.stack != id);
            self.remove_plans(|plan| plan.stack == id && plan.name.is_some());
        }
    }
}
