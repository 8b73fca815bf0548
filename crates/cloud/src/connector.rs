//! Sessions of one cloud for different credentials.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kiln_resource::Finders;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use crate::address::{Addresses, NoNetwork};
use crate::credentials::{Credentials, Scope};
use crate::exchange::Exchange;
use crate::remote::RemoteClouds;
use crate::request_retry::RetryPolicy;
use crate::session::{Options, Session};
use crate::stack_cloud::{Memory, StackCloud};
use crate::token::Token;
use crate::transport::Transport;

fn clouds() -> Cache<[u8; 32], Arc<StackCloud>> {
    Cache::builder().max_capacity(2_000).time_to_idle(Duration::from_mins(15)).build()
}

/// Creates sessions for credentials and keeps those in use, so that all stacks of one owner share a token.
#[derive(Clone)]
pub struct Connector {
    exchange: Arc<Exchange>,
    memory: Memory,
    made: Arc<AtomicU64>,
    clouds: Cache<[u8; 32], Arc<StackCloud>>,
    remotes: Arc<RemoteClouds>,
}

impl Connector {
    /// A connector to the cloud of these options.
    pub fn new(transport: Arc<dyn Transport>, options: Options) -> Self {
        Self::with_transports(transport, HashMap::new(), options)
    }

    /// A connector to the cloud specified by the options, with separate transports for some services, by official
    /// service type.
    pub fn with_transports(
        transport: Arc<dyn Transport>,
        of_services: HashMap<String, Arc<dyn Transport>>,
        options: Options,
    ) -> Self {
        let memory = Memory::new(options.finder_ttl);
        let remotes = Arc::new(RemoteClouds::new(Addresses::default(), options.finder_ttl));
        let exchange = Arc::new(Exchange::new(transport, of_services, options));
        Self { exchange, memory, made: Arc::default(), clouds: clouds(), remotes }
    }

    /// The same with the finders of these types, in place of those of Kiln's own types.
    #[must_use]
    pub fn with_finders(self, finders: Finders) -> Self {
        Self { memory: self.memory.with_finders(finders), ..self }
    }

    /// The same with these networks for remote clouds, besides public addresses: `10.1.0.0/16` or an address.
    ///
    /// # Errors
    /// A text that is not a network.
    pub fn with_remote_networks(self, networks: &[String]) -> Result<Self, NoNetwork> {
        Ok(self.with_remotes_at(Addresses::new(networks)?))
    }

    /// The same cloud in another region, with limits and a memory of its own.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Self {
        let exchange = Arc::new(self.exchange.in_region(region));
        let memory = Memory::new(self.options().finder_ttl);
        Self { exchange, memory, made: Arc::default(), clouds: clouds(), remotes: Arc::clone(&self.remotes) }
    }

    pub(crate) fn with_remotes_at(self, allowed: Addresses) -> Self {
        let remotes = RemoteClouds::new(allowed, self.options().finder_ttl);
        Self { remotes: Arc::new(remotes), ..self }
    }

    /// Creates a new session.
    pub fn session(&self, credentials: Credentials) -> Session {
        Session::new(self.exchange.clone(), credentials)
    }

    /// A session with a valid token, used as it is.
    pub fn session_with_token(&self, token: Token) -> Session {
        Session::with_token(self.exchange.clone(), token)
    }

    /// The cloud with these credentials. Equal credentials share it while it is in use. It does not retry, because
    /// engines retry whole steps (see [`StackCloud::patient`] for retries).
    pub async fn cloud(&self, credentials: &Credentials) -> Arc<StackCloud> {
        self.cloud_of(credentials, || self.session(credentials.clone())).await
    }

    /// The cloud with a valid token, used as it is.
    pub async fn cloud_with_token(&self, token: Token) -> Arc<StackCloud> {
        let credentials = Credentials::Token { token: token.secret.clone(), scope: Scope::Unscoped };
        self.cloud_of(&credentials, || self.session_with_token(token)).await
    }

    /// The cloud with these credentials, if it is in use.
    pub async fn cloud_in_use(&self, credentials: &Credentials) -> Option<Arc<StackCloud>> {
        self.clouds.get(&key_of(credentials)).await
    }

    async fn cloud_of(&self, credentials: &Credentials, session: impl FnOnce() -> Session) -> Arc<StackCloud> {
        let key = key_of(credentials);
        let make = async {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let session = session().with_retries(RetryPolicy::none());
            Arc::new(StackCloud::new(session, self.memory.clone(), number, Arc::clone(&self.remotes)))
        };
        self.clouds.get_with(key, make).await
    }

    /// The session options.
    pub fn options(&self) -> &Options {
        &self.exchange.options
    }
}

fn key_of(credentials: &Credentials) -> [u8; 32] {
    Sha256::digest(kiln_value::text::json_sorted(&credentials.expose())).into()
}
