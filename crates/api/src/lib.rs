//! The REST API v1, for `openstack stack …` and other clients of Heat.
//!
//! [`Api`] reads requests, checks the policy by route, and writes responses; [`kiln_service::Service`] executes the use
//! cases. Live data of the cloud is read by the same drivers that the engine uses. `endpoint/` contains one file per
//! endpoint, `view/` the shared formats.

#[cfg(test)]
extern crate self as kiln_api; // for tests/api/support.rs

mod api;
pub mod argument;
mod call;
mod endpoint;
mod error;
mod http;
mod instantiation;
mod keyed;
mod link;
mod openapi;
mod options;
mod passing;
#[cfg(test)]
#[path = "../tests/api/support.rs"]
#[expect(dead_code, reason = "the tests of endpoints use less of it than those in tests/api")]
mod support;
mod view;

pub use api::{Api, Parts};
pub use endpoint::{PolicyRule, policy, policy_rules};
pub use error::ApiError;
pub use options::{Options, Reporter};
