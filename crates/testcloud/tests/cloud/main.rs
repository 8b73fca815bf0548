//! The cloud over HTTP: all errors that Kiln relies on.

mod cinder;
mod client;
mod faults;
mod glance;
mod in_process;
mod keystone;
mod neutron;
mod nova;
