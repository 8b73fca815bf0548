//! Limits of connections.

use std::time::Duration;

use crate::server::connection_slots;

/// Limits of connections, so that no client blocks others. Options of Kiln in section `[kiln]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections (`max_connections`). More wait in the queue of the operating system.
    pub total: usize,
    /// Maximum number of connections per client address (`max_connections_per_address`); `None`: no limit, for a
    /// service behind a proxy. More are closed immediately.
    pub per_address: Option<usize>,
    /// Maximum number of requests that wait for events (`max_event_streams`), at most half of the connections; `None`:
    /// half of them.
    pub streams: Option<usize>,
    /// Maximum number of those of a project (`max_event_streams_per_project`); `None`: a quarter of all.
    pub streams_per_project: Option<usize>,
    /// Timeout of request headers, from the end of the previous request: it also closes idle connections
    /// (`header_timeout`).
    pub header: Duration,
    /// Timeout of a request body (`body_timeout`).
    pub body: Duration,
    /// How long a client may take to read a response (`send_timeout`).
    pub send: Duration,
}

impl ConnectionLimits {
    /// The number of connections within the limit of file descriptors.
    pub fn seats(&self) -> usize {
        connection_slots::within(self.total, connection_slots::descriptors())
    }

    /// The maximum number of requests that wait for events.
    pub fn most_streams(&self) -> usize {
        let half = self.seats() / 2;
        self.streams.map_or(half, |streams| streams.min(half))
    }

    /// The maximum number of those of a project that has no quota.
    pub fn most_streams_of_project(&self) -> usize {
        self.streams_per_project.unwrap_or_else(|| self.most_streams().div_ceil(4))
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            total: 2048,
            per_address: Some(256),
            streams: None,
            streams_per_project: None,
            header: Duration::from_mins(1),
            body: Duration::from_mins(1),
            send: Duration::from_mins(1),
        }
    }
}
