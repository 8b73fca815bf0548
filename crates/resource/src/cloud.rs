//! The interface between drivers and the cloud: requests to services of the catalog with the credentials of the stack.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kiln_value::{Class, Map, Secret, Value};

use crate::Failure;

/// HTTP method of a [`CloudRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Read.
    Get,
    /// Create, or execute an action.
    Post,
    /// Replace.
    Put,
    /// Update.
    Patch,
    /// Delete.
    Delete,
    /// Read the headers.
    Head,
}

/// A request to a service of the catalog.
#[derive(Clone, Debug)]
pub struct CloudRequest {
    /// Service type in the catalog: `network`, `compute`, `block-storage`, `image`, `identity` …
    pub service: String,
    /// Method.
    pub method: Method,
    /// Path below the service's endpoint, version prefix included where it is not in the catalog (`/v2.0/networks`);
    /// `cloud` reconciles both.
    pub path: String,
    /// Query parameters, in order, not yet encoded.
    pub query: Vec<(String, String)>,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
    /// Microversion, as `2.90`, for services that have them.
    pub microversion: Option<String>,
    /// Region of the catalog; `None`: that of the credentials.
    pub region: Option<String>,
    /// JSON body. A string is sent as it is if the headers have a content type that is not JSON.
    pub body: Option<Value>,
    /// The gate that must be open when the request is sent.
    pub gate: Option<Arc<dyn Gate>>,
    /// For a read of an object: the list that also contains it, so that many reads at the same time can be one.
    pub listed: Option<Listed>,
}

/// A list whose entries are what a read of one object returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Path of the list, which has the newest objects first and accepts `limit`.
    pub path: &'static str,
    /// Key of the list.
    pub list: &'static str,
    /// Key of the object in the response to a read.
    pub member: &'static str,
    /// ID of the object: the entry with this `id`.
    pub id: String,
}

/// Decides immediately before a request is sent whether it may be sent: the lease of the engine may have ended while
/// the request waited for a token or for the concurrency limit.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Whether the request may be sent. If not, it fails with [`crate::FailureKind::NotSent`].
    fn is_open(&self) -> bool;
}

impl CloudRequest {
    /// A request without query and body.
    pub fn new(service: impl Into<String>, method: Method, path: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            microversion: None,
            region: None,
            body: None,
            gate: None,
            listed: None,
        }
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The same with one more query parameter.
    #[must_use]
    pub fn query(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((key.into(), value.into()));
        self
    }

    /// The same in a region.
    #[must_use]
    pub fn region(mut self, region: Option<impl Into<String>>) -> Self {
        self.region = region.map(Into::into);
        self
    }

    /// The same for an object that a list also contains.
    #[must_use]
    pub fn listed(mut self, listed: Listed) -> Self {
        self.listed = Some(listed);
        self
    }

    /// The same with a microversion.
    #[must_use]
    pub fn microversion(mut self, version: impl Into<String>) -> Self {
        self.microversion = Some(version.into());
        self
    }
}

/// The response to a [`CloudRequest`]: always 2xx; all others are a [`Failure`].
#[derive(Clone, Debug, Default)]
pub struct CloudResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Map,
    /// JSON body, or null.
    pub body: Value,
}

/// The domain of stack users, who send signals from servers.
#[derive(Clone)]
pub struct UserDomain {
    /// The cloud, with the credentials of the administrator of the domain.
    pub cloud: Arc<dyn Cloud>,
    /// ID of the domain.
    pub id: String,
    /// Name of the role of stack users.
    pub role: String,
}

/// The public addresses for signals, and where stack users authenticate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalEndpoints {
    /// URL of the CFN API, with its version: `http://heat:8000/v1`.
    pub cfn: Option<String>,
    /// URL of the CFN API for servers that read their metadata, if it is not that of the catalog; with or without version.
    pub metadata: Option<String>,
    /// URL of the REST API with version and project: `http://heat:8004/v1/<project>`.
    pub heat: Option<String>,
    /// URL of Keystone.
    pub keystone: Option<String>,
    /// Region of the services.
    pub region: Option<String>,
}

/// Names, as in access control lists of Swift.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountNames {
    /// Name of the project.
    pub project: String,
    /// Name of the user; for a trust, of its trustor.
    pub user: String,
}

/// What a program needs to call the cloud itself: a token and where its services are.
#[derive(Clone, Debug)]
pub struct Access {
    /// URL of Keystone.
    pub auth_url: String,
    /// A valid token.
    pub token: Secret<String>,
    /// ID of its project; `None` for a token without one.
    pub project_id: Option<String>,
    /// ID of its user; for a trust, of its trustor.
    pub user_id: String,
    /// The region of the endpoints; `None`: any.
    pub region: Option<String>,
    /// The service catalog as Keystone lists it: `[{"type": …, "endpoints": [{"interface", "region", "url"}]}]`.
    pub catalog: Value,
}

/// How a service is reached with more than the credentials of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCloud {
    /// The service that is called.
    pub service: &'static str,
    /// ID of a secret in the key manager with credentials for another cloud: `{"auth_type": …, "auth": {…}}`, the
    /// options of a plug-in of keystoneauth. `None`: this cloud, with the credentials of the stack.
    pub credential_secret: Option<String>,
    /// Additional certificate authorities, in PEM format.
    pub authorities: Option<String>,
    /// Do not verify certificates.
    pub insecure: bool,
}

/// A cloud, with the credentials of one stack.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Sends a request; responses other than 2xx are failures with the class that Heat's client library would raise.
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure>;

    /// The ID of the object with this name or ID, by a finder such as `neutron.network`, `glance.image`, `nova.flavor`
    /// (the names of Heat's custom constraints), cached for a short time.
    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure>;

    /// Whether the catalog has a service of this type.
    async fn has_service(&self, service: &str) -> Result<bool, Failure>;

    /// Whether a service has an API extension (Neutron's alias).
    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure>;

    /// The public URL of a service in the catalog, for guests; `None` if there is no such service.
    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        let _ = service;
        Ok(None)
    }

    /// The domain of stack users; `None` if none is configured.
    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        Ok(None)
    }

    /// The addresses for signals of guests.
    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        Ok(SignalEndpoints::default())
    }

    /// The names of the credentials' project and user.
    async fn account_names(&self) -> Result<AccountNames, Failure> {
        Err(Failure::other(Class::NotSupported, "the names of project and user are not known"))
    }

    /// A token and the catalog, for programs that call the cloud themselves. Not the `refused` token, which a service
    /// rejected, if another one can be requested.
    async fn access(&self, refused: Option<&Secret<String>>) -> Result<Access, Failure> {
        let _ = refused;
        Err(Failure::other(Class::NotSupported, "there is no token for this cloud"))
    }

    /// Another cloud, or this one with other TLS options. Credentials that are refused are a failure.
    async fn remote(&self, remote: &RemoteCloud) -> Result<Arc<dyn Cloud>, Failure> {
        Err(Failure::other(
            Class::NotSupported,
            format!("the {} service of another cloud cannot be called", remote.service),
        ))
    }

    /// The time by the clock of a service, in whole seconds since 1970. It is not later than the time of anything that the
    /// service does after this call. `None` if it is unknown.
    async fn time(&self, service: &str) -> Option<i64> {
        let _ = service;
        None
    }

    /// The project of the credentials.
    async fn project_id(&self) -> Result<String, Failure>;
}

/// No cloud: for types that need none, and for what must send no requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCloud;

impl NoCloud {
    fn refuse<T>() -> Result<T, Failure> {
        Err(Failure::other(Class::NotSupported, "this resource type has no cloud"))
    }
}

#[async_trait]
impl Cloud for NoCloud {
    async fn call(&self, _: CloudRequest) -> Result<CloudResponse, Failure> {
        Self::refuse()
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Self::refuse()
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Self::refuse()
    }
}
