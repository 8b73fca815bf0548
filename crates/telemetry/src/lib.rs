//! What a service tells about itself: logs, metrics, spans and traces.
//!
//! Other crates report events and spans with `tracing` and depend on nothing here. [`logging`] starts the layers that
//! collect them.

pub mod logging;
pub mod metrics;
mod spans;
pub mod traces;

use jiff::Timestamp;
use kiln_stack::{Clock as _, SystemClock};

/// The system time.
fn now() -> Timestamp {
    SystemClock.now()
}
