//! Where work is from: the request of a user that caused it, for logs, and its place in a trace.
//!
//! The parts of Kiln that work for a request do so in a span of `tracing` with the target [`TARGET`]. The binary knows
//! from the present span what the origin is ([`set_source`]); without it there is none. The origin is stored with the
//! operation of a stack, so that an engine in another process continues the trace.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// The target of spans that logs and traces show. Their fields have fixed names:
///
/// | field | meaning |
/// | --- | --- |
/// | `title` | the name in a trace; default: the name of the span |
/// | `kind` | `server` or `client`; default: internal |
/// | `request`, `user`, `project`, `client` | the request of a user: its ID, who sent it, and from which address |
/// | `stack` | the ID of the stack that it is about |
/// | `operation`, `resource` | the ID of an operation of a stack; the name of the resource that is worked on |
/// | `traceparent` | the span around it, in another process (W3C Trace Context) |
/// | `span_id` | its ID in a trace, if other processes must know it: 16 hexadecimal digits |
/// | `since_ms` | when it began, if that was in another process: milliseconds since 1970 |
/// | `error` | why it failed |
/// | `left` | it is continued elsewhere, and not shown in a trace here |
///
/// All others are attributes in a trace.
pub const TARGET: &str = "kiln::trace";

/// Where work is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The ID of the request: `req-5f…`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The span around it, as the header `traceparent` of W3C Trace Context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

static SOURCE: OnceLock<fn() -> Option<Origin>> = OnceLock::new();

/// Sets how the origin is found, once.
pub fn set_source(source: fn() -> Option<Origin>) {
    // The first one stays.
    _ = SOURCE.set(source);
}

/// The origin of the present work.
pub fn current() -> Option<Origin> {
    SOURCE.get().and_then(|source| source())
}
