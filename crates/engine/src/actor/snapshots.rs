//! Snapshots of the stack: their data, and their deletion.
//!
//! A snapshot is a request; its record is stored with it and completed with its end. Its deletion is a message, or a
//! part of the delete of the stack, which ends only after it. Both may be repeated by another engine.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kiln_plan::{Blame, saved_by};
use kiln_resource::{
    Action, Facts, Failure, FailureKind, MessageId, Registry, Resource, ResourceId, SnapshotId, State, Status,
};
use kiln_stack::Backends;
use kiln_stack::call_retry::{self, Attempts};
use kiln_stack::export::{self, IMPLEMENTATION};
use kiln_stack::gather::bug;
use kiln_store::{Error, Snapshot, Stack, StackId};
use kiln_value::{Class, Map, Value};
use tokio::sync::watch;

use super::Work;
use super::calls::Reply;
use super::task::Task;

/// The snapshots that are being deleted.
#[derive(Default)]
pub(super) struct Removing {
    ids: BTreeSet<SnapshotId>,
    /// Why a snapshot of a stack that is being deleted could not be deleted.
    failed: Option<Blame>,
    /// The end of the delete of the stack, which waits for them.
    pub(super) end: Option<(State, String)>,
}

impl Removing {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// A snapshot that another request has ended while its operations were in progress.
pub(super) struct Unfinished {
    snapshot: Snapshot,
    /// What belongs to other snapshots.
    copies: BTreeSet<String>,
    /// The requests to delete it: messages, or the delete of the stack.
    removals: Vec<Option<MessageId>>,
}

/// The resources in the data of a snapshot, at every depth.
fn each_resource(data: &mut Value, visit: &mut dyn FnMut(&mut Map)) {
    let resources = data.as_map_mut().and_then(|data| data.get_mut("resources")).and_then(Value::as_map_mut);
    for (_, resource) in resources.into_iter().flatten() {
        if resource.get("resources").is_some() {
            each_resource(resource, visit);
        } else if let Some(resource) = resource.as_map_mut() {
            visit(resource);
        }
    }
}

/// What the snapshot of a resource is restored from.
fn copy_in(types: &Registry, resource: &Map) -> Option<String> {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let driver = &types.get(text(IMPLEMENTATION).or_else(|| text("type"))?)?.driver;
    let source = driver.restored(resource.get("resource_data")?.as_map()?)?;
    Some(kiln_value::text::json(&source.into()))
}

/// The result of a removal.
pub(super) struct Removed {
    id: SnapshotId,
    /// The message that requested it.
    message: Option<MessageId>,
    ending: Ending,
}

/// How a removal has ended.
enum Ending {
    Done,
    /// The engine stops: the next one repeats the removal.
    Postponed,
    /// The snapshot, if it could be read, and why it could not be deleted.
    Failed(Option<Box<Snapshot>>, Blame),
}

impl Work {
    /// The end of a snapshot is stored together with its data: no operation is running any more.
    pub(super) async fn fill_snapshot(&mut self) -> Result<(), Error> {
        let Some(settle) = self.writes.settle.as_ref().filter(|settle| settle.state.action == Action::Snapshot) else {
            return Ok(());
        };
        let (state, reason) = (settle.state, settle.reason.clone());
        let Some(id) = self.stack.details.snapshot else { return Ok(()) };
        let Some(snapshot) = self.actor.backends.store.snapshot(self.stack.id, id).await? else { return Ok(()) };
        let stack = Stack { state, ..self.stack.clone() };
        let data = export::of_model(&self.actor.backends, &stack, &self.model).await?;
        self.writes.snapshots.put(Snapshot { state, reason, data, ..snapshot });
        Ok(())
    }

    /// Another request has ended a snapshot: its record gets what was saved until then, and later what its operations that
    /// are still in progress will save, so that everything is deleted with it.
    pub(super) async fn keep_unfinished_snapshot(&mut self) -> Result<(), Error> {
        self.unfinished = None;
        let rows: Vec<ResourceId> =
            self.model.rows().filter(|row| self.is_of_earlier_snapshot(row)).map(|row| row.id).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let own = self.stack.details.snapshot.filter(|_| self.stack.state.action == Action::Snapshot);
        let mut others = self.actor.backends.store.snapshots(self.stack.id).await?;
        others.retain(|snapshot| Some(snapshot.id) != own && snapshot.is_listed());
        let failed = State::new(Action::Snapshot, Status::Failed);
        let Some(mut snapshot) = others.pop().filter(|snapshot| snapshot.state == failed) else { return Ok(()) };
        if snapshot.data.is_null() {
            snapshot.data = export::of_model(&self.actor.backends, &self.stack, &self.model).await?;
        }
        let types = &self.actor.backends.resource_types.types;
        let mut copies = BTreeSet::new();
        for other in &mut others {
            each_resource(&mut other.data, &mut |resource| copies.extend(copy_in(types, resource)));
        }
        self.unfinished = Some(Unfinished { snapshot, copies, removals: Vec::new() });
        for row in rows {
            self.keep_late_copy(row).await?;
        }
        Ok(())
    }

    /// Whether a row is that of a snapshot which another request has ended.
    pub(super) fn is_of_earlier_snapshot(&self, row: &Resource) -> bool {
        row.state.action == Action::Snapshot && saved_by(row) != Some(self.request.generation)
    }

    /// The record of an unfinished snapshot gets what was saved of a row.
    pub(super) async fn keep_late_copy(&mut self, row: ResourceId) -> Result<(), Error> {
        let (Some(unfinished), Some(row)) = (&mut self.unfinished, self.model.row(row)) else { return Ok(()) };
        let (name, saved) = (row.name.clone(), export::of_resource(&self.actor.backends, row).await?);
        let Unfinished { snapshot, copies, .. } = unfinished;
        let resources = snapshot.data.as_map_mut().and_then(|data| data.get_mut("resources")?.as_map_mut());
        if let Some(resources) = resources {
            resources.insert(name, saved);
        }
        // A resource that was not saved any more has the copy of an earlier snapshot.
        let types = &self.actor.backends.resource_types.types;
        each_resource(&mut snapshot.data, &mut |resource| {
            if copy_in(types, resource).is_some_and(|copy| copies.contains(&copy)) {
                resource.insert("resource_data".to_owned(), Map::new().into());
            }
        });
        self.writes.snapshots.put(snapshot.clone());
        Ok(())
    }

    /// The last operation of an unfinished snapshot has ended: it can be deleted.
    pub(super) fn complete_unfinished_snapshot(&mut self) {
        if self.model.rows().any(|row| row.running().is_some() && self.is_of_earlier_snapshot(row)) {
            return;
        }
        if let Some(Unfinished { snapshot, removals, .. }) = self.unfinished.take() {
            for message in removals {
                self.remove_known_snapshot(snapshot.id, message, Some(snapshot.clone()));
            }
        }
    }

    /// The stack is being deleted: its snapshots, too.
    pub(super) async fn remove_all_snapshots(&mut self) -> Result<(), Error> {
        self.removing.failed = None;
        for snapshot in self.actor.backends.store.snapshots(self.stack.id).await? {
            self.remove_snapshot(snapshot.id, None);
        }
        Ok(())
    }

    /// The end of the request; `None`: it comes when the snapshots are deleted.
    pub(super) fn after_snapshots(&mut self, state: State, reason: String) -> Option<(State, String)> {
        if state.action != Action::Delete {
            return Some((state, reason));
        }
        if !self.removing.is_empty() {
            self.removing.end = Some((state, reason));
            return None;
        }
        match self.removing.failed.take() {
            Some(blame) if state.status == Status::Complete => {
                Some((State::new(Action::Delete, Status::Failed), blame.stack_reason(Action::Delete)))
            }
            _ => Some((state, reason)),
        }
    }

    /// Deletes a snapshot. `message`: the one that asks for it.
    pub(super) fn remove_snapshot(&mut self, id: SnapshotId, message: Option<MessageId>) {
        match &mut self.unfinished {
            Some(unfinished) if unfinished.snapshot.id == id => unfinished.removals.push(message),
            _ => self.remove_known_snapshot(id, message, None),
        }
    }

    /// Deletes a snapshot. `known`: what will be stored of it.
    fn remove_known_snapshot(&mut self, id: SnapshotId, message: Option<MessageId>, known: Option<Snapshot>) {
        if !self.removing.ids.insert(id) {
            // It is being deleted already.
            if let Some(message) = message {
                self.writes.handled(message);
            }
            return;
        }
        let backends = self.actor.backends.clone();
        let remover = Remover {
            end: backends.clock.monotonic() + self.actor.options.action_timeout,
            backends,
            root: Arc::clone(&self.root),
            call_retries: self.actor.options.call_retries,
            drain: self.actor.drain.clone(),
        };
        let stack = self.stack.id;
        let removal = async move { Ok(remover.end_of(stack, id, known).await) };
        self.spawn(Task::new(removal, move |ending| {
            let broken = |failure| Ending::Failed(None, Blame::of(&id.to_string(), &failure));
            Reply::Removed(Box::new(Removed { id, message, ending: ending.unwrap_or_else(broken) }))
        }));
    }

    /// The removal of a snapshot has ended: its result is stored together with the removal of the message.
    pub(super) fn removed(&mut self, removed: Removed) {
        self.removing.ids.remove(&removed.id);
        match removed.ending {
            Ending::Done => self.writes.removed_snapshots.push(removed.id),
            Ending::Postponed => return,
            Ending::Failed(snapshot, blame) => {
                let (state, reason) = (State::new(Action::Delete, Status::Failed), blame.to_string());
                let failed = snapshot.map(|snapshot| Snapshot { state, reason, ..*snapshot });
                self.writes.snapshots.extend(failed);
                self.removing.failed = Some(blame);
            }
        }
        if let Some(message) = removed.message {
            self.writes.handled(message);
        }
        if self.removing.is_empty()
            && let Some((state, reason)) = self.removing.end.take()
        {
            self.end(state, reason);
        }
    }
}

/// Deletes the objects of a snapshot.
struct Remover {
    backends: Backends,
    root: Arc<Stack>,
    call_retries: u32,
    /// When to give up, by the monotonic clock.
    end: Duration,
    /// True when the engine stops.
    drain: watch::Receiver<bool>,
}

impl Remover {
    /// Deletes the objects of a snapshot. One that does not exist is already deleted.
    async fn end_of(&self, stack: StackId, id: SnapshotId, known: Option<Snapshot>) -> Ending {
        let read = match known {
            Some(known) => Ok(Some(known)),
            None => self.read(stack, id).await,
        };
        let snapshot = match read {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ending::Done,
            Err(failure) if self.is_stopped_by(&failure) => return Ending::Postponed,
            Err(failure) => return Ending::Failed(None, Blame::of(&id.to_string(), &failure)),
        };
        match AssertUnwindSafe(self.run(&snapshot)).catch_unwind().await {
            Ok(Ok(true)) => Ending::Done,
            Ok(Ok(false)) => Ending::Postponed,
            Ok(Err(blame)) => Ending::Failed(Some(Box::new(snapshot)), blame),
            Err(_) => Ending::Failed(Some(Box::new(snapshot)), Blame::of(&id.to_string(), &bug())),
        }
    }

    async fn read(&self, stack: StackId, id: SnapshotId) -> Result<Option<Snapshot>, Failure> {
        let mut attempts = self.attempts();
        loop {
            let read = self.backends.store.snapshot(stack, id).await.map_err(|error| match error {
                Error::Damaged(_) => Failure::other(Class::InternalError, error.to_string()),
                _ => Failure::new(FailureKind::Unavailable, Class::InternalError, error.to_string()),
            });
            if let Some(read) = attempts.result(read).await {
                return read;
            }
        }
    }

    fn attempts(&self) -> Attempts {
        Attempts::new(&self.backends, self.call_retries, Some(self.drain.clone()))
    }

    /// Whether there was no further attempt because the engine stops.
    fn is_stopped_by(&self, failure: &Failure) -> bool {
        failure.is_passing() && *self.drain.borrow()
    }

    /// Returns whether everything is deleted; false if the engine stops.
    async fn run(&self, snapshot: &Snapshot) -> Result<bool, Blame> {
        let mut stacks: Vec<(Vec<&str>, &Value)> = vec![(Vec::new(), &snapshot.data)];
        while let Some((path, stack)) = stacks.pop() {
            for (name, resource) in stack.get("resources").and_then(Value::as_map).into_iter().flatten() {
                if resource.get("resources").is_some() {
                    let inner = path.iter().copied().chain([name.as_str()]).collect();
                    stacks.push((inner, resource));
                    continue;
                }
                match self.remove(name, resource).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(failure) => {
                        let blame = Blame::of(name, &failure);
                        return Err(path.iter().rev().fold(blame, |blame, outer| blame.below(outer)));
                    }
                }
            }
        }
        Ok(true)
    }

    async fn remove(&self, name: &str, resource: &Value) -> Result<bool, Failure> {
        let text = |key: &str| resource.str_at(key).map(str::to_owned);
        let kind = text(IMPLEMENTATION).or_else(|| text("type")).unwrap_or_default();
        let Some(entry) = self.backends.resource_types.types.get(&kind) else { return Ok(true) };
        let driver = &entry.driver;
        let data: Map = resource.get("resource_data").and_then(Value::as_map).cloned().unwrap_or_default();
        if !driver.snapshots() || data.is_empty() {
            return Ok(true);
        }
        let facts = Facts {
            name: name.to_owned(),
            resource_type: kind,
            physical_id: text("resource_id"),
            data,
            ..Facts::default()
        };
        let mut attempts = self.attempts();
        loop {
            let removal = async {
                let cloud = self.backends.cloud(&self.root, driver.needs_cloud()).await?;
                let software = &self.backends.software(&self.root.project);
                driver.delete_snapshot(&self.backends.context(&*cloud, software, &facts)).await
            };
            let after = match attempts.result(removal.await).await {
                None => continue,
                Some(Ok(None)) => return Ok(true),
                Some(Ok(Some(after))) => after,
                Some(Err(failure)) if self.is_stopped_by(&failure) => return Ok(false),
                Some(Err(failure)) => return Err(failure),
            };
            let clock = &self.backends.clock;
            if clock.monotonic() >= self.end {
                return Err(Failure::other(Class::Error, "Timed out: the service is still deleting what was saved"));
            }
            if !call_retry::pause(&**clock, after, &mut self.drain.clone()).await {
                return Ok(false);
            }
        }
    }
}
