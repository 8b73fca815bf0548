//! The client.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bundle;
mod calls;
