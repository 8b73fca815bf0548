//! The cloud of each stack, opened with the stored credentials of its stack tree.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kiln_cloud::{Connector, Credentials, StackCloud};
use kiln_engine::Clouds;
use kiln_identity::{DelegateError, DelegationPlan, Identity};
use kiln_resource::{Cloud, CloudRequest, CloudResponse, CredentialsId, Failure, FailureKind, StackId};
use kiln_store::{Stack, Store, UnusedCredentials};
use kiln_value::Value;

#[cfg(test)]
mod tests;

/// Error class of failures that are caused by the credentials: the request was not sent.
const UNAUTHORIZED: &str = "AuthorizationFailure";

/// Clouds by stored credentials. Stacks with the same credentials share a session while it is in use.
pub(crate) struct StoredClouds {
    stored: Arc<StoredCredentials>,
    identity: Arc<dyn Identity>,
}

impl StoredClouds {
    /// Clouds behind `connector`; `identity` created the credentials and deletes them.
    pub(crate) fn new(store: Arc<dyn Store>, connector: Connector, identity: Arc<dyn Identity>) -> Self {
        Self { stored: Arc::new(StoredCredentials { store, connector }), identity }
    }
}

#[async_trait]
impl Clouds for StoredClouds {
    async fn cloud(&self, stack: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        let missing = || Failure::other(UNAUTHORIZED, "The stack has no stored credentials.");
        let id = stack.credentials.ok_or_else(missing)?;
        let (id, cloud) = match self.stored.cloud(id).await? {
            Some(cloud) => (id, cloud),
            // The row is older than an update that replaced the credentials.
            None => self.stored.newer(stack.id, id).await?.ok_or_else(missing)?,
        };
        let (stored, root) = (Arc::clone(&self.stored), stack.id);
        Ok(Arc::new(FollowingCloud { stored, root, current: Mutex::new((id, cloud)) }))
    }

    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        let plan = DelegationPlan::from_stored(unused.plan.expose());
        let plan = plan.map_err(|error| Failure::other(UNAUTHORIZED, error.to_string()))?;
        let revoked = self.identity.revoke(plan.as_ref(), unused.credentials.as_ref()).await;
        revoked.map_err(|error| {
            let kind = match error {
                DelegateError::Unavailable(_) => FailureKind::Unavailable,
                _ => FailureKind::Refused,
            };
            Failure::new(kind, UNAUTHORIZED, error.to_string())
        })
    }
}

/// Stored credentials and the clouds that they give access to.
struct StoredCredentials {
    store: Arc<dyn Store>,
    connector: Connector,
}

impl StoredCredentials {
    /// The cloud for these credentials; `None` if they are deleted.
    async fn cloud(&self, id: CredentialsId) -> Result<Option<Arc<StackCloud>>, Failure> {
        let stored = match self.store.credentials(id).await {
            Ok(stored) => stored,
            Err(kiln_store::Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
        };
        let exposed: Option<Value> = serde_json::from_str(stored.expose()).ok();
        let credentials = exposed.as_ref().and_then(Credentials::from_exposed);
        let credentials = credentials
            .ok_or_else(|| Failure::other(UNAUTHORIZED, "The stored credentials of the stack cannot be decrypted."))?;
        Ok(Some(self.connector.cloud(&credentials).await))
    }

    /// The cloud with the current credentials of the root stack, if they differ from these.
    async fn newer(
        &self,
        root: StackId,
        old: CredentialsId,
    ) -> Result<Option<(CredentialsId, Arc<StackCloud>)>, Failure> {
        let stack = self.store.stack(root).await.map_err(|error| unreadable(&error))?;
        let Some(id) = stack.and_then(|stack| stack.credentials).filter(|id| *id != old) else { return Ok(None) };
        Ok(self.cloud(id).await?.map(|cloud| (id, cloud)))
    }
}

fn unreadable(error: &kiln_store::Error) -> Failure {
    Failure::new(FailureKind::Unavailable, "InternalError", error.to_string())
}

/// The cloud of a stack. If an update replaces the credentials of the stack and the old ones are rejected, the new ones
/// are used.
struct FollowingCloud {
    stored: Arc<StoredCredentials>,
    root: StackId,
    current: Mutex<(CredentialsId, Arc<StackCloud>)>,
}

impl FollowingCloud {
    fn current(&self) -> (CredentialsId, Arc<StackCloud>) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The cloud with newer credentials, if the failure was caused by the credentials and there are newer ones; else
    /// the failure.
    async fn newer(&self, old: CredentialsId, failure: Failure) -> Result<Arc<StackCloud>, Failure> {
        if failure.class != UNAUTHORIZED {
            return Err(failure);
        }
        let Ok(Some((id, cloud))) = self.stored.newer(self.root, old).await else { return Err(failure) };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = (id, Arc::clone(&cloud));
        Ok(cloud)
    }
}

/// Calls a [`FollowingCloud`] and repeats the call with newer credentials if the current ones are rejected.
macro_rules! ask {
    ($this:ident, $cloud:ident => $question:expr) => {{
        let (id, $cloud) = $this.current();
        match $question.await {
            Err(failure) => {
                let $cloud = $this.newer(id, failure).await?;
                $question.await
            }
            answer => answer,
        }
    }};
}

#[async_trait]
impl Cloud for FollowingCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        ask!(self, cloud => cloud.call(request.clone()))
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        ask!(self, cloud => cloud.find(finder, name_or_id))
    }

    async fn has_service(&self, service: &str) -> Result<bool, Failure> {
        ask!(self, cloud => cloud.has_service(service))
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        ask!(self, cloud => cloud.has_extension(service, alias))
    }

    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        ask!(self, cloud => cloud.endpoint(service))
    }

    async fn project_id(&self) -> Result<String, Failure> {
        ask!(self, cloud => cloud.project_id())
    }
}
