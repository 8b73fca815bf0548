//! What can go wrong between Kiln and a cloud.

use std::time::Duration;

use kiln_resource::Failure;

use crate::failure;
use crate::transport::{HttpResponse, TransportError};

/// An exchange with a cloud that did not come to a good end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CloudError {
    /// The service gave no answer.
    #[error("{service}: {error}")]
    Transport {
        /// Service type.
        service: String,
        /// The URL, without query.
        url: String,
        /// What happened.
        error: TransportError,
    },
    /// The service refused or failed: a status of 400 or more.
    #[error("{service} answered {}", response.status)]
    Status {
        /// Service type.
        service: String,
        /// The answer.
        response: Box<HttpResponse>,
    },
    /// The catalog has no such service, or not for this interface and region.
    #[error("{interface} endpoint for {service} service{} not found", region.as_ref().map_or_else(String::new, |r| format!(" in {r} region")))]
    NoEndpoint {
        /// Service type.
        service: String,
        /// Interface: `public` …
        interface: &'static str,
        /// Region, if one was asked for.
        region: Option<String>,
    },
    /// An answer that cannot be read: what was asked for may have happened.
    #[error("{service}: {message}")]
    Malformed {
        /// Service type.
        service: String,
        /// What is wrong with it.
        message: String,
    },
    /// A request that cannot be made of what is known.
    #[error("{service}: {message}")]
    Invalid {
        /// Service type.
        service: String,
        /// What is wrong.
        message: String,
    },
    /// The request was held back: the service is sick, or too much is under way to it.
    #[error("the {service} service was not called: {reason}")]
    NotSent {
        /// Service type.
        service: String,
        /// Why.
        reason: String,
        /// When it may be called again.
        retry_after: Option<Duration>,
    },
    /// There is no token for the request, which was not sent. The cause is Keystone's answer to the request for a token:
    /// what it says is of the credential, and nothing of the object that the request is about.
    #[error("no token for {credential}: {cause}")]
    NoToken {
        /// The credential, without secrets.
        credential: String,
        /// Why.
        cause: Box<CloudError>,
    },
}

impl CloudError {
    /// The HTTP status, if the service answered; none if only Keystone answered the request for a token.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { response, .. } => Some(response.status.as_u16()),
            _ => None,
        }
    }
}

impl From<CloudError> for Failure {
    /// With the class and the text that Heat's client libraries would show.
    fn from(error: CloudError) -> Self {
        failure::from_error(&error)
    }
}
