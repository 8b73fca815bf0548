//! OpenStack over HTTP: sessions, catalog, trusts, limits, retries.
//!
//! A [`Connector`] creates [`Session`]s from [`Credentials`]; a [`StackCloud`] is the view of drivers
//! (`kiln_resource::Cloud`). All requests use one [`Transport`], so that tests can inject faults.

mod address;
mod breaker;
mod catalog;
mod choice;
mod config;
mod connector;
mod credentials;
mod error;
mod exchange;
mod failure;
mod find;
mod keystone;
mod remote;
mod request_retry;
mod service_clock;
mod session;
mod shared_reads;
mod stack_cloud;
mod token;
mod token_keeper;
mod transport;
mod web;
mod width;

pub use address::{NoNetwork, networks};
pub use catalog::{Catalog, CatalogService, Interface, official_type};
pub use choice::{Choice, choices};
pub use config::{CloudConfig, ConfigError, Environment};
pub use connector::Connector;
pub use credentials::{Credentials, Named, Scope};
pub use error::CloudError;
pub use keystone::{
    TrustDeletion, TrustMark, TrustParty, create_trust, delete_trust, ec2_token, find_trust, has_trust, own_projects,
    revoke_own_token, trust_end, validate_expired_token, validate_token,
};
pub use request_retry::RetryPolicy;
pub use session::{Options, Session};
pub use stack_cloud::StackCloud;
pub use token::{DomainInfo, Principal, Reference, RoleInfo, Token, TokenInfo, TrustInfo};
pub use transport::{HttpRequest, HttpResponse, SharedClient, StreamedResponse, TlsOptions, Transport, TransportError};
pub use web::{WebError, WebReader};
