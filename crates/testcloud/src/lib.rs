//! A simulated OpenStack over HTTP, for demos and tests: Keystone v3, Nova 2.1 (microversions to 2.93), Neutron v2.0,
//! Cinder v3 and Glance v2 on one port, under `/identity`, `/compute`, `/network`, `/volume` and `/image`; and, from a
//! table of their collections, the services with simple objects (Octavia, Barbican, Designate …).
//!
//! Without a port it is a transport within the process ([`Testcloud::transport`]): with paused time, its behavior is
//! determined by the seed.
//!
//! It keeps its state in memory (and in a string on request, [`Testcloud::save`]), builds servers and volumes in the
//! background, has latency, quotas and injectable [`Fault`]s, and returns the errors of the real services with their
//! messages. The behavior is that of OpenStack Zed, which was observed. `GET` and `POST /faults`, `GET /requests` and
//! `GET /snapshot` provide the same functions to other processes.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use kiln_testcloud::{Action, Fault, Service, Testcloud, When};
//!
//! let cloud = Testcloud::builder().seed(1).start().await?;
//! cloud.faults().add(Fault::new(Service::Compute, "POST", "/servers", Action::LostReply).when(When::Nth(1)));
//! println!("export OS_AUTH_URL={}", cloud.auth_url());
//! # Ok(())
//! # }
//! ```

mod builder;
mod cinder;
mod cloud;
mod contents;
mod fault;
mod glance;
mod in_process;
mod journal;
mod keystone;
mod lag;
mod neutron;
mod nouns;
mod nova;
mod reply;
mod request;
mod saved;
mod server;
mod snapshot;
mod state;
mod table;
mod tables;
mod wire;

pub use builder::{Builder, InvalidState, Quota};
pub use cloud::{Account, Testcloud, Users};
pub use fault::{Action, Fault, Faults, When};
pub use journal::{Journal, RecordedCall};
pub use keystone::passcode;
pub use request::Service;
pub use snapshot::{Snapshot, THREE_TIER};
