//! The cloud as clients meet it: every refusal that Kiln relies on, over HTTP.

mod cinder;
mod client;
mod faults;
mod glance;
mod in_process;
mod keystone;
mod neutron;
mod nova;
