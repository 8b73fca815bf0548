//! Limits of connections.

use std::time::Duration;

/// Limits of connections, so that no client blocks others. Options of Kiln in section `[kiln]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections (`max_connections`). More wait in the queue of the operating system.
    pub total: usize,
    /// Maximum number of connections per client address (`max_connections_per_address`); `None`: no limit, for a
    /// service behind a proxy. More are closed immediately.
    pub per_address: Option<usize>,
    /// Timeout of request headers, from the end of the previous request: it also closes idle connections
    /// (`header_timeout`).
    pub header: Duration,
    /// Timeout of a request body (`body_timeout`).
    pub body: Duration,
    /// How long a client may take to read a response (`send_timeout`).
    pub send: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            total: 2048,
            per_address: Some(256),
            header: Duration::from_mins(1),
            body: Duration::from_mins(1),
            send: Duration::from_mins(1),
        }
    }
}
