//! Endpoint and token of the service.

use async_trait::async_trait;
use kiln_value::Secret;
use url::Url;

use crate::Error;

/// Provides the endpoint and a token for each call.
#[async_trait]
pub trait Access: Send + Sync {
    /// The orchestration endpoint with version and project: `http://host:8004/v1/<project>`.
    async fn endpoint(&self) -> Result<Url, Error>;

    /// A token; `None` if no token is required. `renew` is set after a token was rejected.
    async fn token(&self, renew: bool) -> Result<Option<Secret<String>>, Error>;

    /// User and password, sent beside the token in `X-Auth-User` and `X-Auth-Key` to a service with
    /// `deferred_auth_method = password`; `None`: they are not sent.
    fn login(&self) -> Option<(&str, &Secret<String>)> {
        None
    }
}

/// A fixed endpoint and token.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The endpoint.
    pub endpoint: Url,
    /// The token.
    pub token: Option<Secret<String>>,
}

#[async_trait]
impl Access for Fixed {
    async fn endpoint(&self) -> Result<Url, Error> {
        Ok(self.endpoint.clone())
    }

    async fn token(&self, _renew: bool) -> Result<Option<Secret<String>>, Error> {
        Ok(self.token.clone())
    }
}
