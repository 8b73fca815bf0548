//! The interface for authentication and credentials.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;
use kiln_resource::Cloud;
use kiln_value::Secret;

use crate::{Caller, DelegationPlan, SignatureError, SignedRequest};

/// Why a request is rejected before it is processed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is no valid token: 401.
    #[error("The request you have made requires authentication.")]
    Unauthorized {
        /// Value of the `WWW-Authenticate` header.
        challenge: String,
    },
    /// Keystone is not reachable: 503.
    #[error("The identity service is unavailable: {0}")]
    Unavailable(String),
}

/// Why the credentials of a stack could not be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelegateError {
    /// The caller lacks required roles (Heat's `MissingCredentialError`).
    #[error("Missing required credential: {0}")]
    Missing(String),
    /// Another trust has the mark of the plan, possibly a deleted one, whose row Keystone keeps. Nothing was created;
    /// use another plan.
    #[error("Authorization failed. The trust already exists.")]
    Taken,
    /// Keystone refused (Heat's `AuthorizationFailure`).
    #[error("Authorization failed. {0}")]
    Refused(String),
    /// Keystone is not reachable: the trust may have been created.
    #[error("The identity service is unavailable: {0}")]
    Unavailable(String),
}

/// Authenticates callers, and lets stacks act for them later.
#[async_trait]
pub trait Identity: Send + Sync {
    /// Authenticates the caller of a request by its headers.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Denied>;

    /// Authenticates the caller of a request that is signed with an EC2 key.
    async fn authenticate_signed(&self, request: &SignedRequest) -> Result<Arc<Caller>, SignatureError>;

    /// Plans what [`Identity::delegate`] will create for the caller; the plan must be stored first. Makes no calls.
    /// `seed` is random and different for each plan.
    fn plan(&self, caller: &Caller, seed: u64) -> Result<DelegationPlan, DelegateError>;

    /// Creates credentials with which a stack acts for the caller: JSON to be stored encrypted, which only
    /// `kiln_cloud::Credentials::from_exposed` reads. Call it once for each plan. If only the response was lost, the
    /// trust is found and used. After any other failure except [`DelegateError::Taken`], [`Identity::revoke`] finds the
    /// trust by the plan.
    async fn delegate(&self, caller: &Caller, plan: &DelegationPlan) -> Result<Secret<String>, DelegateError>;

    /// Revokes the credentials of a plan, which may be unknown. Succeeds if they no longer exist, and fails unless that
    /// is certain.
    async fn revoke(
        &self,
        plan: Option<&DelegationPlan>,
        credentials: Option<&Secret<String>>,
    ) -> Result<(), DelegateError>;

    /// The ID of the user for whom stored credentials act; `None`: they do not say.
    fn user_of(&self, credentials: &Secret<String>) -> Option<String> {
        let _ = credentials;
        None
    }

    /// Whether these credentials act for the caller; `None` if unknown.
    fn acts_for(&self, caller: &Caller, credentials: &Secret<String>) -> Option<bool>;

    /// Whether tokens are issued for these credentials; true if that cannot be asked now.
    async fn works(&self, credentials: &Secret<String>) -> bool;

    /// The cloud with the permissions of the caller, to check references in templates; `None` if there is none.
    async fn cloud(&self, caller: &Caller) -> Option<Arc<dyn Cloud>>;
}
