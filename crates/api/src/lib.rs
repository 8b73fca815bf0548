//! The REST API v1: the one that `openstack stack …` and Heat's other clients speak.
//!
//! [`Api`] reads requests, asks the policy by route, and writes answers; what is asked for is done by
//! [`kiln_service::Service`]. What lives in the cloud is read there and then by the same drivers as the engine's. One
//! file per endpoint is in `endpoint/`, the shapes they share are in `view/`.

mod api;
mod call;
mod endpoint;
mod error;
mod health;
mod http;
mod instantiation;
mod link;
mod options;
mod server;
mod view;

pub use api::{Api, Parts};
pub use error::ApiError;
pub use health::is_up;
pub use options::{ConnectionLimits, Options};
pub use server::ServeError;
