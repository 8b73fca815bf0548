//! HTTP below the APIs.
//!
//! The REST API and the CloudFormation API have different requests and responses, but the same connections within
//! limits, versions, queries, addresses behind proxies, rules for browsers, health check and access log. These are here.

mod address;
mod admission;
mod audit;
mod body;
mod budget;
mod client;
mod cors;
mod gateway;
mod health;
mod heat;
mod limits;
mod maintenance;
mod query;
mod server;
mod track;
mod version;

pub use address::address;
pub use admission::{Admission, TooMany};
pub use audit::{Audit, stack_of};
pub use body::{BodyError, announced_length, read_body};
pub use budget::Rate;
pub use client::Proxies;
pub use cors::Cors;
pub use gateway::{end_to_end, url_at};
pub use health::{alive, probe};
pub use heat::{Heat, NotPassed, Passed};
pub use limits::ConnectionLimits;
pub use maintenance::Maintenance;
pub use query::Query;
pub use server::{Listener, Listeners, ServeError, Tls, serve};
pub use track::{Reason, Track, Waited, known};
pub use version::{Negotiated, negotiate, versions};
