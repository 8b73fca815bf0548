//! A single user without Keystone: `kiln --local`.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;
use jiff::Timestamp;
use kiln_cloud::Catalog;
use kiln_resource::Cloud;
use kiln_value::Secret;

use crate::{Caller, DelegateError, DelegationPlan, Denied, Identity, SignatureError, SignedRequest};

/// Every request belongs to the same user, with or without a token; every stack gets the same credentials.
///
/// Only for services that no other user can access: nothing is checked.
#[derive(Clone)]
pub struct Local {
    caller: Arc<Caller>,
    credentials: Secret<String>,
    cloud: Option<Arc<dyn Cloud>>,
}

impl Local {
    /// The owner, an administrator. `credentials` are those of every stack: the JSON of
    /// `kiln_cloud::Credentials::expose`.
    pub fn new(username: &str, project_id: &str, project_name: &str, credentials: Secret<String>) -> Self {
        let caller = Caller {
            user_id: username.to_owned(),
            username: username.to_owned(),
            user_domain_id: "default".to_owned(),
            project_id: project_id.to_owned(),
            project_name: project_name.to_owned(),
            project_domain_id: "default".to_owned(),
            roles: ["admin", "member", "reader"].map(str::to_owned).to_vec(),
            is_admin: true,
            is_admin_project: true,
            by_trust: false,
            trust_end: None,
            login: None,
            is_system: false,
            catalog: None,
            token: None,
        };
        Self::of(caller, credentials)
    }

    /// Uses any caller as the owner, for tests.
    pub fn of(caller: Caller, credentials: Secret<String>) -> Self {
        Self { caller: Arc::new(caller), credentials, cloud: None }
    }

    /// Adds the owner's cloud and its service catalog.
    #[must_use]
    pub fn with_cloud(mut self, cloud: Arc<dyn Cloud>, catalog: Catalog) -> Self {
        self.cloud = Some(cloud);
        Arc::make_mut(&mut self.caller).catalog = Some(catalog);
        self
    }
}

#[async_trait]
impl Identity for Local {
    async fn authenticate(&self, _: &HeaderMap) -> Result<Arc<Caller>, Denied> {
        Ok(Arc::clone(&self.caller))
    }

    async fn authenticate_signed(&self, _: &SignedRequest) -> Result<Arc<Caller>, SignatureError> {
        Ok(Arc::clone(&self.caller))
    }

    fn plan(&self, caller: &Caller, seed: u64) -> Result<DelegationPlan, DelegateError> {
        Ok(DelegationPlan::new(caller, Vec::new(), Timestamp::UNIX_EPOCH, seed))
    }

    async fn delegate(&self, _: &Caller, _: &DelegationPlan) -> Result<Secret<String>, DelegateError> {
        Ok(self.credentials.clone())
    }

    async fn revoke(&self, _: Option<&DelegationPlan>, _: Option<&Secret<String>>) -> Result<(), DelegateError> {
        Ok(())
    }

    fn acts_for(&self, _: &Caller, _: &Secret<String>) -> Option<bool> {
        Some(true)
    }

    async fn works(&self, _: &Secret<String>) -> bool {
        true
    }

    async fn cloud(&self, _: &Caller) -> Option<Arc<dyn Cloud>> {
        self.cloud.clone()
    }
}
