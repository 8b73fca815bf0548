//! How the API behaves; names and defaults are those of Heat's options (docs/heat-behaviour.md §23).

use std::time::Duration;

/// What connections may use, so that nobody keeps others out. Options of Kiln's own, in section `[kiln]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at a time (`max_connections`). More wait in the queue of the operating system.
    pub total: usize,
    /// Connections at a time from one address (`max_connections_per_address`); `None`: any number, for a service
    /// behind a proxy. More are closed at once.
    pub per_address: Option<usize>,
    /// How long the head of a request may take, from the end of the request before it: idle connections end with it
    /// (`header_timeout`).
    pub header: Duration,
    /// How long a body may take (`body_timeout`).
    pub body: Duration,
    /// How long a client may leave an answer unread (`send_timeout`).
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

/// How the API behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a request's body (`max_json_body_size`).
    pub max_body: usize,
    /// URL of the API as clients reach it, up to and with `/v1` (`heat_api_root`); `None`: as each request names it.
    pub root: Option<String>,
    /// Believe `X-Forwarded-Proto` and `X-Forwarded-Host` (`enable_proxy_headers_parsing`).
    pub proxy_headers: bool,
    /// Stacks with one of these tags are not listed unless asked for (`hidden_stack_tags`).
    pub hidden_stack_tags: Vec<String>,
    /// What `build_info` shows (`heat_revision`).
    pub revision: String,
    /// What connections may use.
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
