//! The client.

mod bundle;
mod calls;
