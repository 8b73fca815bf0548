//! Limits the number of connections, in total and per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::ConnectionLimits;

/// File descriptors that are reserved for the database, the clouds and the engine.
const KEPT: usize = 256;

/// The current connections.
pub(super) struct ConnectionSlots {
    seats: Arc<Semaphore>,
    per_address: Option<usize>,
    addresses: Mutex<HashMap<IpAddr, Client>>,
    /// When the log was last told that all are in use.
    told: Mutex<Option<Instant>>,
}

/// How often the log is told that all connections are in use.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// The connections from an address.
#[derive(Default)]
struct Client {
    count: usize,
    /// That of the last request.
    project: Option<String>,
    /// Whether the log has that there are too many.
    is_told: bool,
}

tokio::task_local! {
    /// The connection that a task serves.
    pub(super) static CURRENT: Option<(Arc<ConnectionSlots>, IpAddr)>;
}

/// The address of the connection; `None` for a Unix socket, and for a request of the process itself.
pub(crate) fn peer() -> Option<IpAddr> {
    CURRENT.try_with(|current| current.as_ref().map(|(_, address)| *address)).ok().flatten()
}

/// Notes the project of a request, so that the log can say whose connections are too many.
pub(crate) fn note_project(project: &str) {
    // There is no connection in a request of the process itself.
    _ = CURRENT.try_with(|current| {
        let Some((slots, address)) = current else { return };
        if let Some(client) = slots.clients().get_mut(address)
            && client.project.as_deref() != Some(project)
        {
            client.project = Some(project.to_owned());
        }
    });
}

/// The slot of a connection, released on drop.
pub(super) struct Place {
    slots: Arc<ConnectionSlots>,
    address: Option<IpAddr>,
    _seat: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    pub(super) fn new(limits: &ConnectionLimits) -> Self {
        let total = limits.seats();
        if total < limits.total {
            tracing::info!(
                total,
                "limiting connections to fewer than max_connections: {KEPT} file descriptors are reserved for the \
                 engine, the database and the clouds (ulimit -n)"
            );
        }
        Self {
            seats: Arc::new(Semaphore::new(total)),
            per_address: limits.per_address,
            addresses: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Waits until another connection may be accepted.
    pub(super) async fn seat(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() {
            return Some(seat);
        }
        self.tell_full();
        Arc::clone(&self.seats).acquire_owned().await.ok()
    }

    /// Logs who has most of the connections.
    fn tell_full(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
            return;
        }
        *told = Some(Instant::now());
        let clients = self.clients();
        let Some((address, client)) = clients.iter().max_by_key(|(_, client)| client.count) else { return };
        let (connections, project) = (client.count, client.project.as_deref().unwrap_or_default());
        tracing::warn!(
            %address, %project, connections,
            "further connections wait: max_connections is reached; this address has most of them"
        );
    }

    /// A slot for a connection, if there is one at once.
    pub(super) fn place_now(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        let seat = Arc::clone(&self.seats).try_acquire_owned().ok()?;
        self.place(seat, address)
    }

    /// A slot for a connection from this address, if it has one; `None` if that has too many.
    pub(super) fn place(self: &Arc<Self>, seat: OwnedSemaphorePermit, address: Option<IpAddr>) -> Option<Place> {
        let place = || Some(Place { slots: Arc::clone(self), address, _seat: seat });
        let Some(address) = address else { return place() };
        let mut clients = self.clients();
        let client = clients.entry(address).or_default();
        if self.per_address.is_some_and(|limit| client.count >= limit) {
            if !std::mem::replace(&mut client.is_told, true) {
                let (connections, project) = (client.count, client.project.as_deref().unwrap_or_default());
                tracing::warn!(
                    %address, %project, connections,
                    "closing further connections from this address: max_connections_per_address is reached"
                );
            }
            if client.count == 0 {
                clients.remove(&address);
            }
            return None;
        }
        client.count += 1;
        place()
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<IpAddr, Client>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The connection of this slot, for [`CURRENT`].
    pub(super) fn connection(&self) -> Option<(Arc<ConnectionSlots>, IpAddr)> {
        Some((Arc::clone(&self.slots), self.address?))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut clients = self.slots.clients();
        if let Some(client) = clients.get_mut(&address) {
            client.count -= 1;
            if client.count == 0 {
                clients.remove(&address);
            }
        }
    }
}

/// The requested number of connections within the limit of file descriptors; a quarter of the descriptors if there are
/// few.
pub(crate) fn within(wanted: usize, descriptors: Option<usize>) -> usize {
    let wanted = wanted.clamp(1, Semaphore::MAX_PERMITS);
    descriptors.map_or(wanted, |all| wanted.min(all.saturating_sub(KEPT).max(all / 4).max(1)))
}

/// The limit of file descriptors, if the operating system reports one.
pub(crate) fn descriptors() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_kept_for_the_engine() {
        assert_eq!(within(2048, Some(1024)), 768);
        assert_eq!(within(2048, Some(65_536)), 2048);
        assert_eq!(within(2048, Some(200)), 50);
        assert_eq!(within(0, None), 1);
        assert_eq!(within(10, None), 10);
    }
}
