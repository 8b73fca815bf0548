//! Why a request of the page is refused.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use kiln_cloud::CloudError;
use serde::Deserialize;
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
    #[error("The session is now in {0}: another tab has changed it.")]
    OtherProject(String),
    /// The catalog has no such region.
    #[error("There is no orchestration service in the region {0}.")]
    NoRegion(String),
    /// The form cannot be read.
    #[error("{0}")]
    Form(String),
    /// Keystone refuses the user.
    #[error("Keystone refused to sign you in: the user, the password, the passcode or the project is wrong.")]
    Refused,
    /// Keystone asks for a one-time password beside the password.
    #[error("Keystone asks for a passcode too.")]
    Passcode,
    /// Keystone asks for methods that the form does not have.
    #[error("Keystone asks you to sign in with {0}. This page cannot do that: use a token.")]
    Methods(String),
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
        if let Some(rules) = required_methods(cause) {
            return Self::of_rules(&rules);
        }
        match cause.status() {
            Some(400 | 401 | 403 | 404) => Self::Refused,
            _ => Self::Keystone(cause.to_string()),
        }
    }

    /// The error of a user who must combine methods, by one of these rules.
    fn of_rules(rules: &[Vec<String>]) -> Self {
        let known = |rule: &&Vec<String>| rule.iter().all(|method| ["password", "totp"].contains(&method.as_str()));
        match rules.iter().find(known) {
            Some(_) => Self::Passcode,
            None => Self::Methods(rules.iter().map(|rule| rule.join(" and ")).collect::<Vec<_>>().join(", or ")),
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut | Self::Refused | Self::Passcode | Self::Methods(_) => StatusCode::UNAUTHORIZED,
            Self::OtherProject(_) => StatusCode::CONFLICT,
            Self::Form(_) | Self::TooLarge(_) => StatusCode::BAD_REQUEST,
            Self::Foreign(_) | Self::NoProject | Self::Key | Self::OtherUser | Self::NoKeystone => {
                StatusCode::FORBIDDEN
            }
            Self::Host(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Keystone(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Cloud(_) => StatusCode::BAD_GATEWAY,
            Self::NoList(_) | Self::NoRegion(_) => StatusCode::NOT_FOUND,
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
            Self::NoRegion(_) => "NoRegion",
            Self::Form(_) => "Form",
            Self::Refused => "Refused",
            Self::Passcode => "Passcode",
            Self::Methods(_) => "Methods",
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

/// The rules of a user whose methods were not enough; `None`: the response is another one.
fn required_methods(error: &CloudError) -> Option<Vec<Vec<String>>> {
    #[derive(Deserialize)]
    struct Receipt {
        required_auth_methods: Vec<Vec<String>>,
    }
    let CloudError::Status { response, .. } = error else { return None };
    response.headers.get("openstack-auth-receipt")?;
    serde_json::from_slice(&response.body).ok().map(|Receipt { required_auth_methods }| required_auth_methods)
}

impl From<PageError> for Response {
    fn from(error: PageError) -> Self {
        // The shape of the API's errors, so that the page reads one.
        let body = json!({ "error": { "type": error.kind(), "message": error.to_string() } });
        (error.status(), axum::Json(body)).into_response()
    }
}
