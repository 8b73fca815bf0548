//! The session of a browser: a token with its scope. The server keeps nothing: the browser keeps it, sealed, in a cookie.

use http::HeaderMap;
use kiln_cloud::{Principal, Token};
use kiln_value::Secret;
use serde::{Deserialize, Serialize};

use crate::error::PageError;
use crate::page_request::Place;
use crate::seal::Seal;

/// A user or a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameAndId {
    pub(crate) id: String,
    pub(crate) name: String,
}

impl From<&Principal> for NameAndId {
    fn from(of: &Principal) -> Self {
        Self { id: of.id.clone(), name: of.name.clone() }
    }
}

/// A session. It is serialized for the page, without the token.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Session {
    #[serde(skip)]
    pub(crate) token: Secret<String>,
    pub(crate) user: NameAndId,
    pub(crate) project: NameAndId,
    pub(crate) roles: Vec<String>,
    /// The end of the token, as RFC 3339.
    pub(crate) expires_at: String,
    /// The region of the service; `None`: there is one service.
    pub(crate) region: Option<String>,
}

/// What is in the cookie.
#[derive(Serialize, Deserialize)]
struct Kept {
    token: String,
    user: NameAndId,
    project: NameAndId,
    roles: Vec<String>,
    expires_at: String,
    region: Option<String>,
}

impl Session {
    /// The session of a token; `None` if it has no project.
    pub(crate) fn of_token(token: &Token) -> Option<Self> {
        Some(Self {
            token: token.secret.clone(),
            user: (&token.info.user).into(),
            project: token.info.project.as_ref()?.into(),
            roles: token.info.roles.iter().map(|role| role.name.clone()).collect(),
            expires_at: token.info.expires_at.to_string(),
            region: None,
        })
    }

    /// The session of a request, from its cookie.
    pub(crate) fn of(headers: &HeaderMap, place: &Place, seal: &Seal) -> Option<Self> {
        let kept: Kept = serde_json::from_slice(&seal.open(place.cookie_in(headers)?)?).ok()?;
        let Kept { token, user, project, roles, expires_at, region } = kept;
        Some(Self { token: Secret::new(token), user, project, roles, expires_at, region })
    }

    /// The same in words.
    pub(crate) fn place(&self) -> String {
        let region = self.region.as_ref().map(|region| format!(" and the region {region}")).unwrap_or_default();
        format!("the project {}{region}", self.project.name)
    }

    /// What a page shows: the project, and its region.
    pub(crate) fn scope(&self) -> String {
        let region = self.region.as_ref().map(|region| format!("@{region}")).unwrap_or_default();
        format!("{}{region}", self.project.id)
    }

    /// The value of the cookie.
    pub(crate) fn sealed(&self, seal: &Seal) -> Result<String, PageError> {
        let Self { token, user, project, roles, expires_at, region } = self.clone();
        let kept = Kept { token: token.expose().clone(), user, project, roles, expires_at, region };
        let text = serde_json::to_vec(&kept).map_err(|error| PageError::Form(error.to_string()))?;
        seal.seal(&text).ok_or(PageError::TooLarge(text.len()))
    }
}
