//! Authentication with Keystone tokens, and credentials of stacks with trusts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use kiln_cloud::{CloudError, Connector, Credentials, Session, Token, TokenInfo};
use kiln_resource::Cloud;
use kiln_value::Secret;
use moka::Expiry;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use crate::trust::{self, Trusts};
use crate::{
    Caller, DelegateError, DelegationPlan, Denied, Identity, Login, Policy, SignatureError, SignedRequest, login,
};

/// How stacks act for their users after a request (`deferred_auth_method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferred {
    /// With a trust from the user to the trustee.
    #[default]
    Trusts,
    /// With the password that the user gives with each request ([`crate::Login`]).
    Password,
}

/// Options for tokens and trusts.
#[derive(Clone, Debug)]
pub struct KeystoneOptions {
    /// Public URL of Keystone: `www_authenticate_uri`, returned to callers without a token.
    pub public_uri: String,
    /// How long a valid token is cached (`token_cache_time`): a revoked token is accepted for this time, as in
    /// keystonemiddleware. Zero disables the cache.
    pub remember: Duration,
    /// How long an invalid token is cached.
    pub remember_invalid: Duration,
    /// How stacks act for their users.
    pub deferred: Deferred,
    /// Names of the roles that a stack gets (`trusts_delegated_roles`); empty: all roles of the caller.
    pub delegated_roles: Vec<String>,
    /// A token in `X-Service-Token` with one of these roles lets a request use an expired token
    /// (`service_token_roles`), so that a long operation of another service can be completed.
    pub service_roles: Vec<String>,
    /// Whether a service token without these roles is rejected (`service_token_roles_required`); otherwise it has no
    /// effect.
    pub service_roles_required: bool,
    /// Maximum number of cached tokens.
    pub capacity: u64,
    /// The clock for the expiry of tokens.
    pub now: fn() -> Timestamp,
}

impl KeystoneOptions {
    /// Heat's defaults, with this clock.
    pub fn new(public_uri: impl Into<String>, now: fn() -> Timestamp) -> Self {
        Self {
            public_uri: public_uri.into(),
            remember: Duration::from_mins(5),
            remember_invalid: Duration::from_secs(10),
            deferred: Deferred::Trusts,
            delegated_roles: Vec::new(),
            service_roles: vec!["service".to_owned()],
            service_roles_required: false,
            capacity: 10_000,
            now,
        }
    }
}

/// Cached data of a token; `None`: it is invalid.
#[derive(Clone)]
struct Known {
    caller: Option<Arc<Caller>>,
    /// Keystone's data, for calls with the token.
    info: Option<Arc<TokenInfo>>,
    lasts: Duration,
}

impl Known {
    fn invalid(options: &KeystoneOptions) -> Self {
        Self { caller: None, info: None, lasts: options.remember_invalid }
    }
}

struct Lasts;

impl Expiry<[u8; 32], Known> for Lasts {
    fn expire_after_create(&self, _: &[u8; 32], known: &Known, _: Instant) -> Option<Duration> {
        Some(known.lasts)
    }
}

/// [`Identity`] with a Keystone: `X-Auth-Token` authenticates the caller, a trust lets the stack act for them.
pub struct Keystone {
    connector: Connector,
    service: Session,
    /// The sessions that resolve EC2 signatures, in order.
    signatures: Vec<Session>,
    trustee: Session,
    policy: Arc<Policy>,
    options: KeystoneOptions,
    tokens: Cache<[u8; 32], Known>,
}

impl Keystone {
    /// Tokens are validated as the service user (`[keystone_authtoken]`); trusts are created for the trustee
    /// (`[trustee]`, a user with a password).
    pub fn new(
        connector: Connector,
        service: Credentials,
        trustee: Credentials,
        policy: Arc<Policy>,
        options: KeystoneOptions,
    ) -> Self {
        let tokens = Cache::builder().max_capacity(options.capacity).expire_after(Lasts).build();
        let (service, trustee) = (connector.session(service), connector.session(trustee));
        Self { connector, signatures: vec![service.clone()], service, trustee, policy, options, tokens }
    }

    /// Checks EC2 signatures with these sessions instead of that of the service user (`[ec2authtoken]`). They are used
    /// in order until one knows the key.
    #[must_use]
    pub fn with_signatures(self, signatures: Vec<Session>) -> Self {
        Self { signatures, ..self }
    }

    /// The owner of a token, from the cache or from Keystone; `None`: it is invalid. With `expired`, an expired token is
    /// valid as long as Keystone knows it.
    async fn owner(&self, token: &str, expired: bool) -> Result<Option<Arc<Caller>>, Denied> {
        let key = key_of(token);
        if let Some(known) = self.tokens.get(&key).await
            && (known.caller.is_some() || !expired)
        {
            return Ok(known.caller);
        }
        // A token that only services may use is cached apart.
        let key = if expired { key_of(&format!("expired {token}")) } else { key };
        let token = Secret::new(token.to_owned());
        // One validation for all concurrent requests with the token; failures are not cached.
        let known = self.tokens.try_get_with(key, self.ask(&token, expired)).await.map_err(|error| {
            tracing::warn!(%error, "failed to validate a token");
            Denied::Unavailable(error.to_string())
        })?;
        Ok(known.caller)
    }

    /// Checks the token of a service that passes on a user's request. Returns whether that token may have expired.
    async fn service_token(&self, headers: &HeaderMap) -> Result<bool, Denied> {
        let Some(token) = header(headers, "x-service-token") else { return Ok(false) };
        let service = self.owner(token, false).await?.ok_or_else(|| self.unauthorized())?;
        let has_role = self.options.service_roles.iter().any(|role| service.roles.contains(role));
        if !has_role && self.options.service_roles_required {
            return Err(self.unauthorized());
        }
        Ok(has_role)
    }

    /// Validates a token with Keystone.
    async fn ask(&self, token: &Secret<String>, expired: bool) -> Result<Known, CloudError> {
        let answer = if expired {
            kiln_cloud::validate_expired_token(&self.service, token).await
        } else {
            kiln_cloud::validate_token(&self.service, token).await
        };
        match answer {
            Ok(info) => self.known(info, token, expired).await,
            Err(error) if error.status() == Some(404) => Ok(Known::invalid(&self.options)),
            Err(error) => Err(error),
        }
    }

    /// The owner of a token with Keystone's data about it.
    async fn known(&self, info: TokenInfo, token: &Secret<String>, expired: bool) -> Result<Known, CloudError> {
        let left = info.expires_at.duration_since((self.options.now)());
        let left = Duration::try_from(left).unwrap_or_default();
        if left.is_zero() && !expired {
            return Ok(Known::invalid(&self.options));
        }
        let trust_end = match &info.trust {
            Some(trust) => kiln_cloud::trust_end(&self.trustee, &trust.id).await?,
            None => None,
        };
        let lasts = if expired { self.options.remember } else { self.options.remember.min(left) };
        let caller = Arc::new(self.caller(info.clone(), trust_end, token));
        Ok(Known { caller: Some(caller), info: Some(Arc::new(info)), lasts })
    }

    /// Resolves the owner of a signature with one Keystone.
    async fn signer(&self, session: &Session, request: &SignedRequest) -> Result<Arc<Caller>, SignatureError> {
        let token = kiln_cloud::ec2_token(session, request.to_keystone()).await.map_err(|error| refused(&error))?;
        let known = self.known(token.info, &token.secret, false).await.map_err(|error| unavailable(&error))?;
        let caller = known.caller.clone().ok_or(SignatureError::Refused)?;
        // For calls with the token.
        self.tokens.insert(key_of(token.secret.expose()), known).await;
        Ok(caller)
    }

    /// The caller's token with Keystone's data, used as it is: Keystone refuses to show the token of a trust to itself,
    /// and requests of an OS::Heat::Stack have such a token.
    async fn token_of(&self, caller: &Caller) -> Result<Token, DelegateError> {
        let secret = own_token(caller)?;
        let cached = self.tokens.get(&key_of(secret.expose())).await;
        let info = match cached.and_then(|known| known.info) {
            Some(info) => info,
            None => Arc::new(kiln_cloud::validate_token(&self.service, &secret).await.map_err(trust::failed)?),
        };
        Ok(Token::new(secret, TokenInfo::clone(&info)))
    }

    fn caller(&self, info: TokenInfo, trust_end: Option<Timestamp>, token: &Secret<String>) -> Caller {
        let (is_system, by_trust) = (info.is_system(), info.trust.is_some());
        let project = info.project.unwrap_or_default();
        let mut caller = Caller {
            user_id: info.user.id,
            username: info.user.name,
            user_domain_id: info.user.domain.id,
            project_id: project.id,
            project_name: project.name,
            project_domain_id: project.domain.id,
            roles: info.roles.into_iter().map(|role| role.name).collect(),
            is_admin: false,
            is_admin_project: info.is_admin_project,
            is_system,
            catalog: Some(info.catalog),
            by_trust,
            trust_end,
            token: Some(token.clone()),
            login: None,
        };
        caller.is_admin = self.policy.is_admin(&caller);
        caller
    }

    fn trusts(&self) -> Trusts<'_> {
        Trusts { connector: &self.connector, service: &self.service, trustee: &self.trustee }
    }

    fn unauthorized(&self) -> Denied {
        Denied::Unauthorized { challenge: format!("Keystone uri=\"{}\"", self.options.public_uri) }
    }
}

/// A header with a value.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|value| !value.is_empty())
}

/// The cache key of a token: never the token itself.
fn key_of(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Keystone's refusal of a signature. Usually it gives no reason; with `insecure_debug` it does.
fn refused(error: &CloudError) -> SignatureError {
    let CloudError::Status { response, .. } = error else { return unavailable(error) };
    if !matches!(response.status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return unavailable(error);
    }
    let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
    match body.pointer("/error/message").and_then(serde_json::Value::as_str) {
        Some("EC2 access key not found.") => SignatureError::UnknownKey,
        Some("EC2 signature not supplied.") => SignatureError::Mismatch,
        _ => SignatureError::Refused,
    }
}

fn unavailable(error: &CloudError) -> SignatureError {
    tracing::warn!(%error, "failed to check a signature");
    SignatureError::Unavailable(error.to_string())
}

/// The caller's own token, which is required to create a trust.
fn own_token(caller: &Caller) -> Result<Secret<String>, DelegateError> {
    caller.token.clone().ok_or_else(|| DelegateError::Missing("X-Auth-Token".to_owned()))
}

#[async_trait]
impl Identity for Keystone {
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Denied> {
        let expired = self.service_token(headers).await?;
        let token = header(headers, "x-auth-token").ok_or_else(|| self.unauthorized())?;
        let caller = self.owner(token, expired).await?.ok_or_else(|| self.unauthorized())?;
        Ok(match self.options.deferred {
            Deferred::Trusts => caller,
            Deferred::Password => Arc::new(Caller { login: Some(Login::of(headers)), ..Caller::clone(&caller) }),
        })
    }

    async fn authenticate_signed(&self, request: &SignedRequest) -> Result<Arc<Caller>, SignatureError> {
        let mut last = SignatureError::Refused;
        for session in &self.signatures {
            match self.signer(session, request).await {
                Ok(caller) => return Ok(caller),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn plan(&self, caller: &Caller, seed: u64) -> Result<DelegationPlan, DelegateError> {
        own_token(caller)?;
        if self.options.deferred == Deferred::Password {
            login::credentials(caller)?;
        }
        let roles = &self.options.delegated_roles;
        let roles = if roles.is_empty() { &caller.roles } else { roles };
        Ok(DelegationPlan::new(caller, roles.clone(), (self.options.now)(), seed))
    }

    async fn delegate(&self, caller: &Caller, plan: &DelegationPlan) -> Result<Secret<String>, DelegateError> {
        if self.options.deferred == Deferred::Password {
            return Ok(trust::stored(&login::checked(&self.connector, caller).await?, plan));
        }
        let user = self.connector.session_with_token(self.token_of(caller).await?);
        let given = self.trusts().create(&user, plan).await;
        if let (Err(DelegateError::Refused(_)), Some(token)) = (&given, &caller.token) {
            // It may have been revoked: the next request validates it again.
            self.tokens.invalidate(&key_of(token.expose())).await;
        }
        let trust = given?;
        Ok(trust::stored(&self.trustee.credentials().with_trust(&trust), plan))
    }

    async fn revoke(
        &self,
        plan: Option<&DelegationPlan>,
        credentials: Option<&Secret<String>>,
    ) -> Result<(), DelegateError> {
        self.trusts().delete(plan, credentials).await
    }

    fn user_of(&self, credentials: &Secret<String>) -> Option<String> {
        trust::trustor(credentials)
    }

    fn acts_for(&self, caller: &Caller, credentials: &Secret<String>) -> Option<bool> {
        let is_own = trust::trustor(credentials)? == caller.user_id;
        // A user who gives another password has changed it.
        let is_current = || match login::credentials(caller) {
            Ok(given) => trust::read(credentials).is_ok_and(|stored| stored == given),
            Err(_) => true,
        };
        Some(is_own && (self.options.deferred == Deferred::Trusts || is_current()))
    }

    async fn works(&self, credentials: &Secret<String>) -> bool {
        let Ok(credentials) = trust::read(credentials) else { return false };
        // A session of its own: the token of another one may have been revoked with the credentials.
        match self.connector.session(credentials).token().await {
            Err(CloudError::NoToken { cause, .. }) => !matches!(cause.status(), Some(401 | 403 | 404)),
            _ => true,
        }
    }

    async fn cloud(&self, caller: &Caller) -> Option<Arc<dyn Cloud>> {
        let token = self.token_of(caller).await.ok()?;
        let cloud = self.connector.cloud_with_token(token).await;
        // Calls for API requests are not retried elsewhere.
        Some(Arc::new(cloud.patient()))
    }
}
