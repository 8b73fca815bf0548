//! [`Cloud`] for drivers: a session with a cache.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    Access, AccountNames, Cloud, CloudRequest, CloudResponse, Failure, FailureKind, FinderClient, Finders, Method,
    RemoteCloud, StackId, shipped,
};
use kiln_value::{Class, Secret, Value};
use moka::future::Cache;

use crate::catalog::Interface;
use crate::error::CloudError;
use crate::find;
use crate::remote::RemoteClouds;
use crate::session::Session;
use crate::shared_reads::SharedReads;
use crate::transport::{SharedClient, TlsOptions, TransportError};

/// The cloud with one set of credentials.
pub struct StackCloud {
    session: Session,
    memory: Memory,
    /// Separates its names from those of other credentials in the shared cache.
    number: u64,
    /// Separates its names from those of other requests.
    request: Option<Request>,
    remotes: Arc<RemoteClouds>,
    reads: Arc<SharedReads>,
}

/// A request to a stack: the root of its tree, and the number of the request.
type Request = (StackId, i64);

/// The cache that all clouds of one connector share, because there may be one cloud for every stack.
#[derive(Clone)]
pub(crate) struct Memory {
    found: Cache<(u64, Option<Request>, String, String), String>,
    extensions: Cache<String, Arc<BTreeSet<String>>>,
    finders: Option<Finders>,
}

impl Memory {
    /// An empty cache that keeps results of finders for `ttl`, and lists of extensions ten times as long.
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            found: Cache::builder().max_capacity(100_000).time_to_live(ttl).build(),
            extensions: Cache::builder().max_capacity(100).time_to_live(ttl * 10).build(),
            finders: None,
        }
    }
}

impl Memory {
    /// The same with these finders in place of those of Kiln's own types.
    pub(crate) fn with_finders(self, finders: Finders) -> Self {
        Self { finders: Some(finders), ..self }
    }

    fn finders(&self) -> &Finders {
        self.finders.as_ref().unwrap_or_else(|| shipped::finders())
    }
}

impl StackCloud {
    /// A cloud with a session; the number is unique.
    pub(crate) fn new(session: Session, memory: Memory, number: u64, remotes: Arc<RemoteClouds>) -> Self {
        Self { session, memory, number, request: None, remotes, reads: Arc::default() }
    }

    /// Its number, which is unique among the clouds of its connector.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn with_session(&self, session: Session) -> Self {
        let (remotes, reads) = (Arc::clone(&self.remotes), Arc::clone(&self.reads));
        Self { session, memory: self.memory.clone(), number: self.number, request: self.request, remotes, reads }
    }

    /// The same cloud for a request to a stack: names are looked up again, because they may mean other objects than at an
    /// earlier request, or than another process found for a plan.
    #[must_use]
    pub fn for_request(&self, root: StackId, generation: i64) -> Self {
        Self { request: Some((root, generation)), ..self.with_session(self.session.clone()) }
    }

    /// The same cloud with other TLS options for the requests to one service. Credentials go to Keystone with those of
    /// the operator.
    pub(crate) fn with_tls(&self, service: &str, tls: &TlsOptions) -> Result<Self, TransportError> {
        let client = Arc::new(SharedClient::new(tls)?);
        Ok(self.with_session(self.session.with_transport(service, client)))
    }

    /// The same cloud with the retries of the connector's options, for requests that are not retried elsewhere, such as
    /// those of the API.
    #[must_use]
    pub fn patient(&self) -> Self {
        self.with_session(self.session.with_retries(self.session.options().retry))
    }

    /// Remembers the ID of an object that was created: the resources that refer to it need not look for it.
    async fn remember(&self, request: &CloudRequest, body: &Value) {
        let Some(id) = body.as_map().and_then(|map| map.values().next()?.str_at("id")) else { return };
        for finder in self.memory.finders().of_collection(&request.service, &request.path) {
            if finder.client == FinderClient::Neutron {
                let key = (self.number, self.request, finder.name.clone(), id.to_owned());
                self.memory.found.insert(key, id.to_owned()).await;
            }
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

#[async_trait]
impl Cloud for StackCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        if let Some(listed) = &request.listed {
            return Ok(self.reads.read(&self.session, &request, listed).await?);
        }
        let response = self.session.call(&request).await?;
        if request.method == Method::Post {
            self.remember(&request, &response.body).await;
        }
        Ok(response)
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        let key = (self.number, self.request, finder.to_owned(), name_or_id.to_owned());
        let look_up = find::find(self, self.memory.finders(), finder, name_or_id);
        self.memory.found.try_get_with(key, look_up).await.map_err(|failure| (*failure).clone())
    }

    async fn has_service(&self, service: &str) -> Result<bool, Failure> {
        if self.session.options().endpoint_overrides.contains_key(service) {
            return Ok(true);
        }
        Ok(self.session.token().await?.info.catalog.has(service))
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        let list = async {
            let response = self.call(CloudRequest::new(service, Method::Get, "/extensions")).await?;
            let listed = response.body.get("extensions").and_then(|e| e.as_list()).unwrap_or_default();
            Ok::<_, Failure>(Arc::new(listed.iter().filter_map(|e| e.str_at("alias").map(str::to_owned)).collect()))
        };
        let known: Arc<BTreeSet<String>> = self
            .memory
            .extensions
            .try_get_with(service.to_owned(), list)
            .await
            .map_err(|failure| (*failure).clone())?;
        Ok(known.contains(alias))
    }

    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        let token = self.session.token().await?;
        let region = self.session.options().region.as_deref();
        Ok(token.info.catalog.endpoint(service, Interface::Public, region).map(str::to_owned))
    }

    async fn account_names(&self) -> Result<AccountNames, Failure> {
        let token = self.session.token().await.map_err(|e: CloudError| Failure::from(e))?;
        let project = token.info.project.as_ref().map(|project| project.name.clone()).unwrap_or_default();
        Ok(AccountNames { project, user: token.info.user.name.clone() })
    }

    async fn access(&self, refused: Option<&Secret<String>>) -> Result<Access, Failure> {
        let token = self.session.token_other_than(refused).await.map_err(|e: CloudError| Failure::from(e))?;
        let options = self.session.options();
        let info = &token.info;
        Ok(Access {
            auth_url: options.auth_url.to_string(),
            token: token.secret.clone(),
            project_id: info.project.as_ref().map(|project| project.id.clone()),
            user_id: info.user.id.clone(),
            region: options.region.clone(),
            catalog: info.catalog.to_value(),
        })
    }

    async fn remote(&self, remote: &RemoteCloud) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(self.remotes.cloud(self, remote).await?)
    }

    async fn time(&self, service: &str) -> Option<i64> {
        if self.session.time(service).is_none() {
            // Whatever it responds has a date.
            let asked = self.session.call(&CloudRequest::new(service, Method::Get, "/")).await;
            tracing::debug!(service, failed = asked.is_err(), "asked for the time");
        }
        self.session.time(service)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        let token = self.session.token().await.map_err(|e: CloudError| Failure::from(e))?;
        token.info.project.as_ref().map(|p| p.id.clone()).ok_or_else(|| {
            Failure::new(FailureKind::Refused, Class::Forbidden, "The credentials are not scoped to a project.")
        })
    }
}
