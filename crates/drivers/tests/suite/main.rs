//! Drivers on the simulated cloud, and on request on a real one.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod heat;
mod names;
mod openstack;
mod resource;
mod resource_group;
mod sweep;
