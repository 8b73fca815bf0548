//! The cloud of each stack, by the credentials that are stored for its tree.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_cloud::{Connector, Credentials};
use kiln_engine::Clouds;
use kiln_identity::{DelegateError, DelegationPlan, Identity};
use kiln_resource::{Cloud, CredentialsId, Failure, FailureKind};
use kiln_store::{Stack, Store, UnusedCredentials};
use kiln_value::{Secret, Value};

#[cfg(test)]
mod tests;

/// Clouds by stored credentials. Sessions are shared by all stacks with the same ones, as long as they are in use.
pub(crate) struct StoredClouds {
    store: Arc<dyn Store>,
    connector: Connector,
    identity: Arc<dyn Identity>,
}

impl StoredClouds {
    /// Clouds behind `connector`; `identity` made the credentials and takes them back.
    pub(crate) fn new(store: Arc<dyn Store>, connector: Connector, identity: Arc<dyn Identity>) -> Self {
        Self { store, connector, identity }
    }

    async fn stored(&self, id: CredentialsId) -> Result<Secret<String>, Failure> {
        let unreadable =
            |error: kiln_store::Error| Failure::new(FailureKind::Unavailable, "InternalError", error.to_string());
        self.store.credentials(id).await.map_err(unreadable)
    }
}

#[async_trait]
impl Clouds for StoredClouds {
    async fn cloud(&self, stack: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        let Some(id) = stack.credentials else {
            return Err(Failure::other("AuthorizationFailure", "The stack has no stored credentials."));
        };
        let stored = self.stored(id).await?;
        let exposed: Option<Value> = serde_json::from_str(stored.expose()).ok();
        let credentials = exposed.as_ref().and_then(Credentials::from_exposed);
        let credentials = credentials
            .ok_or_else(|| Failure::other("AuthorizationFailure", "The stack's stored credentials are damaged."))?;
        Ok(self.connector.cloud(&credentials).await)
    }

    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        let plan = DelegationPlan::from_stored(unused.plan.expose());
        let plan = plan.map_err(|error| Failure::other("AuthorizationFailure", error.to_string()))?;
        let revoked = self.identity.revoke(plan.as_ref(), unused.credentials.as_ref()).await;
        revoked.map_err(|error| {
            let kind = match error {
                DelegateError::Unavailable(_) => FailureKind::Unavailable,
                _ => FailureKind::Refused,
            };
            Failure::new(kind, "AuthorizationFailure", error.to_string())
        })
    }
}
