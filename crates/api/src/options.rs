//! Options of the API, with the names and defaults of Heat (docs/heat-behaviour.md §23).

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

/// Options of the API.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum size of a request body in bytes (`max_json_body_size`).
    pub max_body: usize,
    /// URL of the API for clients, including `/v1` (`heat_api_root`); `None`: the address of each request.
    pub root: Option<String>,
    /// Use `X-Forwarded-Proto` and `X-Forwarded-Host` (`enable_proxy_headers_parsing`).
    pub proxy_headers: bool,
    /// Stacks with one of these tags are listed only on request (`hidden_stack_tags`).
    pub hidden_stack_tags: Vec<String>,
    /// The revision in `build_info` (`heat_revision`).
    pub revision: String,
    /// Limits of connections.
    pub connections: ConnectionLimits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body: 1_048_576,
            root: None,
            proxy_headers: false,
            hidden_stack_tags: vec!["data-processing-cluster".to_owned()],
            revision: "unknown".to_owned(),
            connections: ConnectionLimits::default(),
        }
    }
}
