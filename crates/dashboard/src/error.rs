//! Why a request of the page is refused.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use kiln_cloud::CloudError;
use serde_json::json;

/// Why a request of the page is refused. The page shows the text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The request is not from the page.
    #[error("The request is not from a page of this dashboard: {0}.")]
    Foreign(&'static str),
    /// The request is to another host name than that of a dashboard that runs alone.
    #[error("This dashboard is at http://{0} only.")]
    Host(String),
    /// The key of the address is another one, or was used.
    #[error("This address can be used once. Run 'kiln dashboard' again.")]
    Key,
    /// The key comes from another user of the machine.
    #[error("This dashboard is of another user of this machine.")]
    OtherUser,
    /// Nobody signs in to a dashboard without a Keystone.
    #[error("This dashboard has no Keystone. Run 'kiln dashboard' again.")]
    NoKeystone,
    /// There is no session, or its cookie is not valid any more.
    #[error("You are not signed in.")]
    SignedOut,
    /// Another tab of the browser has changed the project.
    #[error("The session is now in the project {0}: another tab has changed it.")]
    OtherProject(String),
    /// The form cannot be read.
    #[error("{0}")]
    Form(String),
    /// Keystone refuses the user.
    #[error("Keystone refused to sign you in: the user, the password or the project is wrong.")]
    Refused,
    /// The user has no project.
    #[error("You have no role in any project.")]
    NoProject,
    /// Keystone does not answer.
    #[error("Keystone cannot sign you in now: {0}")]
    Keystone(String),
    /// A list of the cloud cannot be read.
    #[error("The cloud does not list this: {0}")]
    Cloud(String),
    /// No list is known for a constraint.
    #[error("There is no list of {0}.")]
    NoList(String),
    /// The session is too large for a cookie.
    #[error("The token is too large for a session: {0} bytes.")]
    TooLarge(usize),
    /// The user has opened too many sockets, or all users have.
    #[error("Too many editors are open.")]
    Sockets,
    /// There is no such request.
    #[error("The method is not allowed.")]
    Method,
}

impl PageError {
    /// The error of a request to Keystone.
    pub(crate) fn of_keystone(error: &CloudError) -> Self {
        let cause = match error {
            CloudError::NoToken { cause, .. } => cause,
            error => error,
        };
        match cause.status() {
            Some(400 | 401 | 403 | 404) => Self::Refused,
            _ => Self::Keystone(cause.to_string()),
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut | Self::Refused => StatusCode::UNAUTHORIZED,
            Self::OtherProject(_) => StatusCode::CONFLICT,
            Self::Form(_) | Self::TooLarge(_) => StatusCode::BAD_REQUEST,
            Self::Foreign(_) | Self::NoProject | Self::Key | Self::OtherUser | Self::NoKeystone => {
                StatusCode::FORBIDDEN
            }
            Self::Host(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Keystone(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Cloud(_) => StatusCode::BAD_GATEWAY,
            Self::NoList(_) => StatusCode::NOT_FOUND,
            Self::Sockets => StatusCode::TOO_MANY_REQUESTS,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// What the page distinguishes.
    fn kind(&self) -> &'static str {
        match self {
            Self::Foreign(_) => "Foreign",
            Self::Host(_) => "Host",
            Self::Key => "Key",
            Self::OtherUser => "OtherUser",
            Self::NoKeystone => "NoKeystone",
            Self::SignedOut => "SignedOut",
            Self::OtherProject(_) => "OtherProject",
            Self::Form(_) => "Form",
            Self::Refused => "Refused",
            Self::NoProject => "NoProject",
            Self::Keystone(_) => "Keystone",
            Self::Cloud(_) => "Cloud",
            Self::NoList(_) => "NoList",
            Self::TooLarge(_) => "TooLarge",
            Self::Sockets => "Sockets",
            Self::Method => "Method",
        }
    }
}

impl From<PageError> for Response {
    fn from(error: PageError) -> Self {
        // The shape of the API's errors, so that the page reads one.
        let body = json!({ "error": { "type": error.kind(), "message": error.to_string() } });
        (error.status(), axum::Json(body)).into_response()
    }
}
