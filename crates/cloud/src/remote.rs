//! Other clouds, with credentials that a user keeps in the key manager of this one, and this cloud with other TLS
//! options: the context of `OS::Heat::Stack`.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{Cloud, CloudRequest, Failure, FailureKind, Method, RemoteCloud};
use kiln_value::{Class, Map, Secret, Value, text, value};
use moka::future::Cache;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::address::Addresses;
use crate::config::CloudConfig;
use crate::connector::Connector;
use crate::request_retry::RetryPolicy;
use crate::session::Session;
use crate::stack_cloud::StackCloud;
use crate::transport::{SharedClient, TlsOptions, TransportError};

/// Remote clouds that are kept while in use: each has a client with certificates of its own.
const CLOUDS: u64 = 200;

/// Longest response that is read from them, in bytes.
const LARGEST_RESPONSE: usize = 32 << 20;

/// The remote clouds of one connector.
pub(crate) struct RemoteClouds {
    allowed: Addresses,
    /// Credentials by the number of the cloud that may read them, and their ID in its key manager.
    credentials: Cache<(u64, String), Secret<String>>,
    clouds: Cache<[u8; 32], Arc<StackCloud>>,
}

impl RemoteClouds {
    /// Remote clouds at these addresses. Credentials are read again after `ttl`.
    pub(crate) fn new(allowed: Addresses, ttl: Duration) -> Self {
        Self {
            allowed,
            credentials: Cache::builder().max_capacity(1_000).time_to_live(ttl).build(),
            clouds: Cache::builder().max_capacity(CLOUDS).time_to_idle(Duration::from_mins(15)).build(),
        }
    }

    /// The remote cloud as seen from a cloud. Its first token is requested here, so that wrong credentials are reported
    /// as such.
    pub(crate) async fn cloud(&self, from: &StackCloud, remote: &RemoteCloud) -> Result<Arc<StackCloud>, Failure> {
        let tls = TlsOptions {
            authorities: remote.authorities.as_ref().map(|pem| pem.clone().into_bytes()),
            identity: None,
            insecure: remote.insecure,
        };
        let Some(id) = &remote.credential_secret else {
            let key = key_of(remote, &from.number().to_string());
            let made = async { from.with_tls(remote.service, &tls).map(Arc::new).map_err(|e| unusable(&e)) };
            return self.clouds.try_get_with(key, made).await.map_err(|failure| (*failure).clone());
        };
        let secret = self.credential(from, id).await?;
        let key = key_of(remote, secret.expose());
        let made = self.made(&secret, &tls, from.session());
        self.clouds.try_get_with(key, made).await.map_err(|failure| (*failure).clone())
    }

    async fn made(
        &self,
        secret: &Secret<String>,
        tls: &TlsOptions,
        from: &Session,
    ) -> Result<Arc<StackCloud>, Failure> {
        let config = config(secret)?;
        let mut options = config.options().map_err(|error| refused(&error))?;
        options.timeout = from.options().timeout;
        options.retry = from.options().retry;
        let client = SharedClient::of_users(tls, &self.allowed).map_err(|error| unusable(&error))?;
        let client = client.reading_at_most(LARGEST_RESPONSE);
        let cloud = Connector::new(Arc::new(client), options).cloud(&config.credentials).await;
        if config.auth_url.is_some() {
            let token = cloud.session().with_retries(RetryPolicy::none()).token().await;
            token.map_err(|error| {
                let failure = Failure::from(error);
                Failure { class: Class::AuthorizationFailure, message: unauthorized(&failure.message), ..failure }
            })?;
        }
        Ok(cloud)
    }

    /// The payload of a secret in the key manager.
    async fn credential(&self, from: &StackCloud, id: &str) -> Result<Secret<String>, Failure> {
        let read = async {
            let last = id.rsplit('/').next().unwrap_or_default();
            let path = format!("/v1/secrets/{}", utf8_percent_encode(last, NON_ALPHANUMERIC));
            let secret =
                from.call(CloudRequest::new("key-manager", Method::Get, path.as_str())).await.map_err(|failure| {
                    if !failure.is_not_found() {
                        return failure;
                    }
                    let text = format!("The Secret (secrets/{id}) could not be found.");
                    Failure::new(FailureKind::NotFound, Class::EntityNotFound, text)
                })?;
            let kind = secret.body.get("content_types").and_then(|types| types.str_at("default"));
            let mut request = CloudRequest::new("key-manager", Method::Get, format!("{path}/payload"));
            request.headers.push(("accept".to_owned(), kind.unwrap_or("text/plain").to_owned()));
            let text = match from.call(request).await?.body {
                Value::Str(text) => text,
                other => text::json(&other),
            };
            Ok::<_, Failure>(Secret::new(text))
        };
        self.credentials.try_get_with((from.number(), id.to_owned()), read).await.map_err(|failure| (*failure).clone())
    }
}

/// The cloud and the credentials of a text `{"auth_type": …, "auth": {…}}`, as Heat reads it.
fn config(secret: &Secret<String>) -> Result<CloudConfig, Failure> {
    let parsed: Option<Value> = serde_json::from_str(secret.expose()).ok();
    let parsed = parsed.as_ref().and_then(Value::as_map).ok_or_else(|| {
        let text = "Failed to parse credential, please check your Stack Credential format.";
        Failure::other(Class::ValueError, text)
    })?;
    let (Some(kind), Some(auth)) = (parsed.get("auth_type"), parsed.get("auth")) else {
        let text = "Missing key in auth information, the correct format contains ['auth_type', 'auth'].";
        return Err(Failure::other(Class::ValueError, text));
    };
    let empty = Map::new();
    let auth = auth.as_map().unwrap_or(&empty);
    CloudConfig::of_credential(kind.as_str().unwrap_or_default(), auth).map_err(|error| refused(&error))
}

fn refused(problem: &dyn std::fmt::Display) -> Failure {
    Failure::other(Class::AuthorizationFailure, unauthorized(&problem.to_string()))
}

fn unauthorized(problem: &str) -> String {
    format!(
        "Authorization failed.Failed to validate auth_plugin with error {problem}. Please make sure the credential you \
         provide is correct. Also make sure the it is a valid Keystone auth plugin type and contain in your environment."
    )
}

fn unusable(error: &TransportError) -> Failure {
    Failure::other(Class::ConnectFailure, format!("the certificates of the context cannot be used: {error}"))
}

fn key_of(remote: &RemoteCloud, owner: &str) -> [u8; 32] {
    let authorities = remote.authorities.as_deref();
    let is_other = remote.credential_secret.is_some();
    let key = value!({
        "other": is_other, "owner": owner, "authorities": authorities, "insecure": remote.insecure, "service": remote.service,
    });
    Sha256::digest(text::json(&key)).into()
}
