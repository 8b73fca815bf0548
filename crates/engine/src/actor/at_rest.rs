//! Whether the lease of an actor may be released.

use kiln_resource::{OperationState, Resource};
use kiln_store::Lease;

use super::Work;
use super::slots::Place;

/// An actor whose lease may be released: no call is in progress, and none has an unknown outcome. Only such an actor can
/// make it.
pub(crate) struct AtRest(Lease);

/// Why an actor ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing is left to do.
    Settled,
    /// The engine stops; the operations wait for the next one.
    Drained,
}

/// What is known about the calls of an operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// None is in progress.
    Ended,
    /// One is in progress.
    Running,
    /// One has an unknown outcome.
    Lost,
    /// Nothing: the operation is of another version, or nobody works on it.
    Unknown,
}

impl End {
    /// Whether the actor may release its lease, with these operations in progress.
    pub(crate) fn is_at_rest(self, operations: impl IntoIterator<Item = Calls>) -> bool {
        operations.into_iter().all(|calls| self == Self::Drained && calls == Calls::Ended)
    }
}

impl AtRest {
    /// The actor ends.
    pub(super) async fn at(end: End, work: &mut Work) -> Option<Self> {
        // Reads that nobody waits for any more.
        work.tasks.shutdown().await;
        let slots = work.slots.all().map(|slot| match slot.place {
            Place::Calling => Calls::Running,
            _ if slot.memory.lost.is_some() => Calls::Lost,
            _ => Calls::Ended,
        });
        let rows = work.model.rows().filter(|row| !is_idle(row));
        let unknown = rows.filter(|row| row.running().is_none() || !work.slots.is_busy(row.id));
        let operations = slots.chain(unknown.map(|_| Calls::Unknown));
        end.is_at_rest(operations).then_some(Self(work.actor.lease))
    }

    /// The lease to release.
    pub(crate) fn lease(self) -> Lease {
        self.0
    }
}

/// Whether no operation is in progress, not even one of another version.
fn is_idle(row: &Resource) -> bool {
    !matches!(row.operation, OperationState::Running(_) | OperationState::Unknown(_))
}
