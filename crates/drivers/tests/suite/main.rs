//! Drivers on the simulated cloud, and on request on a real one.

mod heat;
mod names;
mod openstack;
mod resource_group;
mod rest_nouns;
mod sweep;
