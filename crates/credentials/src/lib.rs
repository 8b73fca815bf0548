//! The cloud of each stack, opened with the stored credentials of its stack tree.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kiln_cloud::{Connector, Credentials, StackCloud};
use kiln_identity::{DelegateError, DelegationPlan, Identity};
use kiln_resource::{
    Access, AccountNames, Cloud, CloudRequest, CloudResponse, CredentialsId, Failure, FailureKind, Method, RemoteCloud,
    SignalEndpoints, StackId, UserDomain,
};
use kiln_stack::Clouds;
use kiln_store::{Stack, Store, UnusedCredentials};
use kiln_value::{Class, Secret, Value};

/// Error class of failures that are caused by the credentials: the request was not sent.
const UNAUTHORIZED: Class = Class::AuthorizationFailure;

/// Clouds by stored credentials. Stacks with the same credentials share a session while it is in use.
pub struct StoredClouds {
    stored: Arc<StoredCredentials>,
    identity: Arc<dyn Identity>,
}

/// What stacks of a service need to receive signals; nothing for stacks of a single user.
#[derive(Clone, Debug, Default)]
pub struct Signalling {
    /// The administrator of the domain of stack users, scoped to the domain.
    pub domain_admin: Option<Credentials>,
    /// The role of stack users.
    pub role: String,
    /// URL of the CFN API, if it is not that of the catalog.
    pub cfn: Option<String>,
    /// URL of the CFN API for servers that read their metadata, if it is not that of the catalog.
    pub metadata: Option<String>,
    /// URL of the REST API, if it is not that of the catalog.
    pub heat: Option<String>,
    /// Public URL of Keystone.
    pub keystone: Option<String>,
    /// The region of the services.
    pub region: Option<String>,
}

impl StoredClouds {
    /// Clouds behind `connector`; `identity` created the credentials and deletes them.
    pub fn new(store: Arc<dyn Store>, connector: Connector, identity: Arc<dyn Identity>) -> Self {
        let signalling = Signalling::default();
        Self { stored: Arc::new(StoredCredentials { store, connector, signalling }), identity }
    }

    /// The same with stack users and addresses for signals.
    #[must_use]
    pub fn with_signalling(self, signalling: Signalling) -> Self {
        let (store, connector) = (Arc::clone(&self.stored.store), self.stored.connector.clone());
        Self { stored: Arc::new(StoredCredentials { store, connector, signalling }), ..self }
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
        let (stored, request) = (Arc::clone(&self.stored), (stack.id, stack.generation));
        let cloud = Arc::new(cloud.for_request(stack.id, stack.generation));
        Ok(Arc::new(FollowingCloud { stored, request, current: Mutex::new((id, cloud)) }))
    }

    fn region(&self, _: &Stack) -> Option<String> {
        self.stored.connector.options().region.clone()
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

    async fn delete_user_project(&self, project: &str) -> Result<(), Failure> {
        self.stored.delete_user_project(project).await
    }
}

/// Stored credentials and the clouds that they give access to.
struct StoredCredentials {
    store: Arc<dyn Store>,
    connector: Connector,
    signalling: Signalling,
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

impl StoredCredentials {
    /// Where stack users are created, with the credentials of the domain's administrator.
    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        let Some(admin) = &self.signalling.domain_admin else { return Ok(None) };
        let cloud = self.connector.cloud(admin).await;
        let domain = cloud.session().token().await?.info.domain.as_ref().map(|domain| domain.id.clone());
        let id = domain.ok_or_else(|| {
            Failure::other(UNAUTHORIZED, "The credentials of stack_domain_admin are not scoped to a domain.")
        })?;
        Ok(Some(UserDomain { cloud, id, role: self.signalling.role.clone() }))
    }

    /// Deletes the project of the users of a deleted stack, if it is in their domain.
    async fn delete_user_project(&self, project: &str) -> Result<(), Failure> {
        let Some(domain) = self.user_domain().await? else {
            // Without a domain, users are not created, so that the domain must have been removed from the options.
            tracing::warn!(project, "the project of a deleted stack's users is left: no domain of stack users is set");
            return Ok(());
        };
        let path = format!("/v3/projects/{project}");
        let found = match domain.cloud.call(CloudRequest::new("identity", Method::Get, path.as_str())).await {
            Ok(found) => found.body,
            Err(failure) if failure.is_not_found() => return Ok(()),
            Err(failure) => return Err(failure),
        };
        if found.get("project").and_then(|project| project.str_at("domain_id")) != Some(&domain.id) {
            tracing::warn!(project, "the project of a deleted stack's users is left: it is in another domain");
            return Ok(());
        }
        match domain.cloud.call(CloudRequest::new("identity", Method::Delete, path)).await {
            Err(failure) if !failure.is_not_found() => Err(failure),
            _ => Ok(()),
        }
    }
}

fn unreadable(error: &kiln_store::Error) -> Failure {
    Failure::new(FailureKind::Unavailable, Class::InternalError, error.to_string())
}

/// The cloud of a stack. If an update replaces the credentials of the stack and the old ones are rejected, the new ones
/// are used.
struct FollowingCloud {
    stored: Arc<StoredCredentials>,
    /// The root stack, and the number of its request.
    request: (StackId, i64),
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
        let (root, generation) = self.request;
        let Ok(Some((id, cloud))) = self.stored.newer(root, old).await else { return Err(failure) };
        let cloud = Arc::new(cloud.for_request(root, generation));
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

    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        self.stored.user_domain().await
    }

    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        let signalling = &self.stored.signalling;
        let cfn = match &signalling.cfn {
            Some(url) => Some(url.clone()),
            None => self.endpoint("cloudformation").await?,
        };
        let heat = match &signalling.heat {
            Some(url) => Some(url.clone()),
            None => self.endpoint("orchestration").await?,
        };
        let (keystone, region) = (signalling.keystone.clone(), signalling.region.clone());
        let metadata = signalling.metadata.clone();
        Ok(SignalEndpoints { cfn, metadata, heat, keystone, region })
    }

    async fn account_names(&self) -> Result<AccountNames, Failure> {
        ask!(self, cloud => cloud.account_names())
    }

    async fn access(&self, refused: Option<&Secret<String>>) -> Result<Access, Failure> {
        ask!(self, cloud => cloud.access(refused))
    }

    async fn remote(&self, remote: &RemoteCloud) -> Result<Arc<dyn Cloud>, Failure> {
        ask!(self, cloud => cloud.remote(remote))
    }

    async fn time(&self, service: &str) -> Option<i64> {
        self.current().1.time(service).await
    }

    async fn project_id(&self) -> Result<String, Failure> {
        ask!(self, cloud => cloud.project_id())
    }
}
