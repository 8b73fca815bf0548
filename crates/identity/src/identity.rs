//! The contract between the API and whoever knows its callers.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;
use kiln_resource::Cloud;
use kiln_value::Secret;

use crate::{Caller, DelegationPlan};

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
    /// The plan's mark is that of another trust, which may be deleted: Keystone keeps its row. Nothing was made; another
    /// plan will do.
    #[error("Authorization failed. There is such a trust already.")]
    Taken,
    /// Keystone refused (Heat's `AuthorizationFailure`).
    #[error("Authorization failed. {0}")]
    Refused(String),
    /// Keystone cannot be asked now: what was asked for may have happened.
    #[error("The identity service is unavailable: {0}")]
    Unavailable(String),
}

/// Knows who calls, and lets a stack act for them when they are gone.
#[async_trait]
pub trait Identity: Send + Sync {
    /// The caller behind a request's headers.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Denied>;

    /// What [`Identity::delegate`] is going to make for the caller: to be stored first. Nothing is asked for it. `seed`
    /// is chance, another for each plan.
    fn plan(&self, caller: &Caller, seed: u64) -> Result<DelegationPlan, DelegateError>;

    /// Credentials with which a stack acts for the caller from now on: JSON, to be stored encrypted, that only
    /// `kiln_cloud::Credentials::from_exposed` reads. To be asked once for each plan. What was made is adopted if only the
    /// reply was lost; after any other failure but [`DelegateError::Taken`], [`Identity::revoke`] finds it by the plan.
    async fn delegate(&self, caller: &Caller, plan: &DelegationPlan) -> Result<Secret<String>, DelegateError>;

    /// Takes back what was made by a plan, by the credentials if they came to be known; done if it is gone already. As
    /// long as that is not certain it is an error.
    async fn revoke(
        &self,
        plan: Option<&DelegationPlan>,
        credentials: Option<&Secret<String>>,
    ) -> Result<(), DelegateError>;

    /// Whether these credentials act for the caller; `None` if they do not tell.
    fn acts_for(&self, caller: &Caller, credentials: &Secret<String>) -> Option<bool>;

    /// The cloud as the caller sees it, to check what a template names; `None` if there is none.
    async fn cloud(&self, caller: &Caller) -> Option<Arc<dyn Cloud>>;
}
