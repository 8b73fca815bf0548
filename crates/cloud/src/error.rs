//! Errors of calls to a cloud.

use std::time::Duration;

use kiln_resource::Failure;

use crate::failure;
use crate::transport::{HttpResponse, TransportError};

/// A failed call to a cloud.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CloudError {
    /// The service did not respond.
    #[error("{service}: {error}")]
    Transport {
        /// Service type.
        service: String,
        /// The URL without its query.
        url: String,
        /// The error.
        #[source]
        error: TransportError,
    },
    /// The service responded with a status of 400 or more.
    #[error("{service} responded with status {}", response.status)]
    Status {
        /// Service type.
        service: String,
        /// The response.
        response: Box<HttpResponse>,
    },
    /// The catalog has no endpoint of the service for this interface and region.
    #[error("{interface} endpoint for {service} service{} not found", region.as_ref().map_or_else(String::new, |r| format!(" in {r} region")))]
    NoEndpoint {
        /// Service type.
        service: String,
        /// Interface: `public` …
        interface: &'static str,
        /// Region, if one was requested.
        region: Option<String>,
    },
    /// The response cannot be read: the operation may have been executed.
    #[error("{service}: {message}")]
    Malformed {
        /// Service type.
        service: String,
        /// The problem.
        message: String,
    },
    /// The request cannot be built.
    #[error("{service}: {message}")]
    Invalid {
        /// Service type.
        service: String,
        /// The problem.
        message: String,
    },
    /// The request was not sent: the breaker of the service is open, or too many requests are in progress.
    #[error("the {service} service was not called: {reason}")]
    NotSent {
        /// Service type.
        service: String,
        /// The reason.
        reason: String,
        /// Time until the service may be called again.
        retry_after: Option<Duration>,
    },
    /// There is no token for the request, so it was not sent. The cause is Keystone's response to the token request: it
    /// is about the credential, not about the object of the request.
    #[error("no token for {credential}: {cause}")]
    NoToken {
        /// The credential, without secrets.
        credential: String,
        /// The cause.
        #[source]
        cause: Box<CloudError>,
    },
}

impl CloudError {
    /// The HTTP status of the service; `None` if only Keystone responded to the token request.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { response, .. } => Some(response.status.as_u16()),
            _ => None,
        }
    }
}

impl From<CloudError> for Failure {
    /// Uses the error class and text of Heat's client libraries.
    fn from(error: CloudError) -> Self {
        failure::from_error(&error)
    }
}
