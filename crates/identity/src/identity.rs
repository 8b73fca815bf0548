//! The contract between the API and whoever knows its callers.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;
use kiln_resource::Cloud;
use kiln_value::Secret;

use crate::Caller;

/// Why a request is refused before it is looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is no token or no valid one: 401.
    #[error("The request you have made requires authentication.")]
    Unauthorized {
        /// Value of the `WWW-Authenticate` header.
        challenge: String,
    },
    /// Keystone cannot be asked now: 503.
    #[error("The identity service is unavailable: {0}")]
    Unavailable(String),
}

/// Why no credentials could be made for a stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelegateError {
    /// The caller lacks roles that a stack needs (Heat's `MissingCredentialError`).
    #[error("Missing required credential: {0}")]
    Missing(String),
    /// Keystone refused (Heat's `AuthorizationFailure`).
    #[error("Authorization failed. {0}")]
    Refused(String),
    /// Keystone cannot be asked now.
    #[error("The identity service is unavailable: {0}")]
    Unavailable(String),
}

/// Knows who calls, and lets a stack act for them when they are gone.
#[async_trait]
pub trait Identity: Send + Sync {
    /// The caller behind a request's headers.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Denied>;

    /// Credentials with which a new stack acts for the caller from now on: JSON, to be stored encrypted, that only
    /// `kiln_cloud::Credentials::from_exposed` reads.
    async fn delegate(&self, caller: &Caller) -> Result<Secret<String>, DelegateError>;

    /// Takes back what [`Identity::delegate`] gave; done if it is gone already.
    async fn revoke(&self, credentials: &Secret<String>) -> Result<(), DelegateError>;

    /// The cloud as the caller sees it, to check what a template names; `None` if there is none.
    async fn cloud(&self, caller: &Caller) -> Option<Arc<dyn Cloud>>;
}
