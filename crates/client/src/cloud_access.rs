//! Endpoint and token from the Keystone of a cloud.

use async_trait::async_trait;
use kiln_cloud::{CloudError, Connector, Credentials, Session};
use kiln_value::Secret;
use tokio::sync::Mutex;
use url::Url;

use crate::{Access, Error};

/// [`Access`] through the Keystone and catalog of a cloud.
pub struct CloudAccess {
    connector: Connector,
    credentials: Credentials,
    session: Mutex<Session>,
    sends_password: bool,
}

impl CloudAccess {
    /// Access with these credentials.
    pub fn new(connector: Connector, credentials: Credentials) -> Self {
        let session = Mutex::new(connector.session(credentials.clone()));
        Self { connector, credentials, session, sends_password: false }
    }

    /// Sends the user name and the password with each request, if the credentials have a password.
    #[must_use]
    pub fn with_password(self, sends_password: bool) -> Self {
        Self { sends_password, ..self }
    }
}

/// The error of a token request, with the URL and the user.
pub fn no_token(error: CloudError, options: &kiln_cloud::Options) -> Error {
    let (who, cause) = match error {
        CloudError::NoToken { credential, cause } => (credential, *cause),
        other => ("the credentials".to_owned(), other),
    };
    let url = options.auth_url.to_string();
    match cause {
        CloudError::Transport { error, .. } => Error::NoKeystone { url, source: error },
        cause if cause.status() == Some(401) => Error::Access(format!("Keystone at {url} rejects {who} (HTTP 401)")),
        cause => Error::Access(format!("Keystone at {url} did not issue a token for {who}: {cause}")),
    }
}

impl CloudAccess {
    fn no_token(&self, error: CloudError) -> Error {
        no_token(error, self.connector.options())
    }

    /// Replaces `%(project_id)s` in the URL with the project, as keystoneauth does.
    async fn with_project(&self, url: &Url) -> Result<Url, Error> {
        let forms = ["%(project_id)s", "%(tenant_id)s", "$(project_id)s", "$(tenant_id)s"];
        if !forms.iter().any(|form| url.as_str().contains(form)) {
            return Ok(url.clone());
        }
        let token = self.session.lock().await.token().await.map_err(|error| self.no_token(error))?;
        let project = token.info.project.as_ref().map(|project| project.id.as_str()).unwrap_or_default();
        let full = forms.iter().fold(url.to_string(), |url, form| url.replace(form, project));
        Url::parse(&full).map_err(|_| Error::Access(format!("the orchestration endpoint is not a URL: {full}")))
    }
}

#[async_trait]
impl Access for CloudAccess {
    async fn endpoint(&self) -> Result<Url, Error> {
        let options = self.connector.options();
        let wrong = |url: &str| Error::Access(format!("the orchestration endpoint is not a URL: {url}"));
        if let Some(url) = options.endpoint_overrides.get("orchestration") {
            return self.with_project(url).await;
        }
        if let Credentials::None { endpoint } = &self.credentials {
            return Url::parse(endpoint).map_err(|_| wrong(endpoint));
        }
        let token = self.session.lock().await.token().await.map_err(|error| self.no_token(error))?;
        let found = token.info.catalog.endpoint("orchestration", options.interface, options.region.as_deref());
        let url = found.ok_or_else(|| {
            let region = options.region.as_deref().map(|region| format!(" in region {region}")).unwrap_or_default();
            Error::Access(format!(
                "the catalog of {} has no orchestration service{region}: use --local to run without a service",
                options.auth_url
            ))
        })?;
        Url::parse(url).map_err(|_| wrong(url))
    }

    async fn token(&self, renew: bool) -> Result<Option<Secret<String>>, Error> {
        if matches!(self.credentials, Credentials::None { .. }) {
            return Ok(None);
        }
        let mut session = self.session.lock().await;
        if renew {
            *session = self.connector.session(self.credentials.clone());
        }
        let token = session.token().await.map_err(|error| self.no_token(error))?;
        Ok(Some(token.secret.clone()))
    }

    fn login(&self) -> Option<(&str, &Secret<String>)> {
        match &self.credentials {
            Credentials::Password { user, password, .. } if self.sends_password => Some((user.word(), password)),
            _ => None,
        }
    }
}
