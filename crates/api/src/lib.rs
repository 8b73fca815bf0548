//! The REST API v1: the one that `openstack stack …` and Heat's other clients speak.
//!
//! [`Api`] reads rows and writes requests; it never waits for an engine. What lives in the cloud is read there and then
//! by the same drivers. One file per endpoint is in `endpoint/`, the shapes they share are in `view/`.

mod api;
mod availability;
mod call;
mod desired;
mod endpoint;
mod error;
mod http;
mod instantiation;
mod judge;
mod link;
mod options;
mod server;
mod view;

pub use api::{Api, Parts};
pub use error::ApiError;
pub use options::{Limits, Options};
pub use server::ServeError;
