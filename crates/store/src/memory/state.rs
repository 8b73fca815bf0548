//! Tables and indexes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kiln_resource::{SoftwareConfig, SoftwareDeployment};
use kiln_value::Secret;
use uuid::Uuid;

use super::drift::Watched;
use super::guards::StoredGuard;
use super::plans::StoredPlan;
use super::webhooks::{StoredDelivery, StoredWebhook};
use crate::duration::Durations;
use crate::outbox::NewEntry;
use crate::quota::Quotas;
use crate::{
    CredentialsId, Digest, DriftSchedule, EngineId, EngineInfo, Event, EventId, LeaseRow, Message, MessageId,
    ObjectClaim, Operation, Orphan, Resource, ResourceId, Snapshot, SnapshotId, Stack, StackId,
};

/// All stored data. Times of the database are microseconds since 1970, as in a database.
#[derive(Default)]
pub(super) struct State {
    pub(super) stacks: BTreeMap<StackId, StackRow>,
    /// Live root stacks by project and name.
    pub(super) names: BTreeMap<(String, String), StackId>,
    /// Stacks with an unfinished request, by the time of the oldest one.
    pub(super) pending: BTreeSet<(i64, StackId)>,
    /// Nested stacks by the stack of their parent resource.
    pub(super) nested: BTreeMap<StackId, BTreeSet<StackId>>,
    /// Resources by stack, in order of creation.
    pub(super) resources: BTreeMap<(StackId, u64), Resource>,
    pub(super) resource_places: BTreeMap<ResourceId, (StackId, u64)>,
    /// Events by stack, in order of writing.
    pub(super) events: BTreeMap<(StackId, u64), Event>,
    pub(super) event_places: BTreeMap<EventId, (StackId, u64)>,
    pub(super) contents: BTreeMap<Digest, Content>,
    /// Unhandled messages, in the order in which they are handled.
    pub(super) messages: BTreeMap<MessagePlace, Message>,
    /// The same messages by due time.
    pub(super) due: BTreeSet<(i64, StackId, MessageId)>,
    /// All remembered messages: their place, or the time when they were handled.
    pub(super) sent: BTreeMap<MessageId, Sent>,
    /// In order of writing.
    pub(super) operations: BTreeMap<u64, Operation>,
    pub(super) orphans: BTreeMap<ResourceId, Orphan>,
    /// In order of writing.
    pub(super) plans: BTreeMap<u64, StoredPlan>,
    /// Oldest first.
    pub(super) guards: Vec<StoredGuard>,
    /// Oldest first.
    pub(super) webhooks: Vec<StoredWebhook>,
    /// Oldest first.
    pub(super) deliveries: Vec<StoredDelivery>,
    /// By root stack.
    pub(super) drift: BTreeMap<StackId, Watched>,
    pub(super) drift_schedules: Vec<DriftSchedule>,
    /// By project.
    pub(super) quotas: BTreeMap<String, Quotas>,
    pub(super) durations: Durations,
    /// Objects that stacks take over.
    pub(super) claims: Vec<Claimed>,
    pub(super) snapshots: BTreeMap<SnapshotId, Snapshot>,
    pub(super) software_configs: BTreeMap<String, SoftwareConfig>,
    pub(super) software_deployments: BTreeMap<String, SoftwareDeployment>,
    pub(super) credentials: BTreeMap<CredentialsId, Credentials>,
    pub(super) engines: BTreeMap<EngineId, EngineInfo>,
    /// The outbox by lane, in order of writing.
    pub(super) outbox: BTreeMap<(String, i64), OutboxRow>,
    /// Whether there is a message bus.
    pub(super) notifications: bool,
    /// What was read so far.
    pub(super) rows_read: Cell<RowsRead>,
    /// How often leases were released.
    pub(super) releases: usize,
    pub(super) calls: usize,
    /// The last serial number of a resource, an event or credentials.
    serial: u64,
}

/// Numbers of rows that were read from a store in memory: work that grows faster than a stack shows here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsRead {
    /// Resources.
    pub resources: usize,
    /// Messages with their content.
    pub messages: usize,
    /// Nested stacks, for their parent.
    pub children: usize,
}

/// Objects that the request of a stack with this number takes over.
pub(super) struct Claimed {
    pub(super) stack: StackId,
    pub(super) generation: i64,
    pub(super) objects: BTreeSet<ObjectClaim>,
}

/// A stack and its lease.
pub(super) struct StackRow {
    pub(super) stack: Stack,
    /// Time of the oldest unfinished request.
    pub(super) due: Option<i64>,
    pub(super) lease: LeaseRow,
}

/// An entry of the outbox.
pub(super) struct OutboxRow {
    pub(super) entry: NewEntry,
    pub(super) created: i64,
    pub(super) due: i64,
    pub(super) attempts: u32,
    pub(super) mark: Option<Uuid>,
}

/// A text.
pub(super) struct Content {
    pub(super) body: String,
    /// Time of the last reference by a stack, within a tolerance.
    pub(super) used: i64,
}

/// Stack, due, sent, id.
pub(super) type MessagePlace = (StackId, i64, i64, MessageId);

/// A remembered message.
pub(super) enum Sent {
    Waiting(MessagePlace),
    Handled { stack: StackId, at: i64 },
}

/// Planned or stored credentials.
pub(super) struct Credentials {
    pub(super) plan: Secret<String>,
    pub(super) known: Option<Secret<String>>,
    pub(super) created: i64,
    /// Last time that they were planned, stored, attached or detached.
    pub(super) touched: i64,
}

impl State {
    pub(super) fn count_read(&self, count: impl FnOnce(&mut RowsRead)) {
        let mut read = self.rows_read.get();
        count(&mut read);
        self.rows_read.set(read);
    }

    /// The next serial number.
    pub(super) fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// A stack that is not deleted.
    pub(super) fn live(&self, id: StackId) -> Option<&Stack> {
        self.stacks.get(&id).map(|row| &row.stack).filter(|stack| stack.deleted.is_none())
    }

    /// The resources of a stack with their keys.
    pub(super) fn rows_of(&self, stack: StackId) -> impl Iterator<Item = (&(StackId, u64), &Resource)> {
        self.resources.range((stack, 0)..=(stack, u64::MAX))
    }

    /// The events of a stack with their keys.
    pub(super) fn events_of(&self, stack: StackId) -> impl Iterator<Item = (&(StackId, u64), &Event)> {
        self.events.range((stack, 0)..=(stack, u64::MAX))
    }

    pub(super) fn remove_resource(&mut self, id: ResourceId) {
        if let Some(place) = self.resource_places.remove(&id) {
            self.resources.remove(&place);
        }
    }

    pub(super) fn remove_event(&mut self, place: (StackId, u64)) {
        if let Some(event) = self.events.remove(&place) {
            self.event_places.remove(&event.id);
        }
    }

    /// Appends an event.
    pub(super) fn append(&mut self, mut event: Event) {
        let place = (event.stack, self.next());
        event.time = micro(event.time);
        self.event_places.insert(event.id, place);
        self.events.insert(place, event);
    }

    /// Sets the time of the oldest unfinished request of a stack.
    pub(super) fn set_due(&mut self, id: StackId, due: Option<i64>) {
        let Some(row) = self.stacks.get_mut(&id) else { return };
        if let Some(before) = row.due.take() {
            self.pending.remove(&(before, id));
        }
        row.due = due;
        self.pending.extend(due.map(|due| (due, id)));
    }
}

/// A time with the precision of a database.
pub(super) fn micro(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// A time of the clock of the store.
pub(super) fn time_of(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

/// A duration in microseconds.
pub(super) fn micros_of(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}
