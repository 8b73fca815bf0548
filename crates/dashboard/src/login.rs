//! Signs in at Keystone, changes the project, signs out.

use axum::body::{Body, to_bytes};
use kiln_cloud::{Choice, Connector, Credentials, Named, Scope, Token, own_projects, revoke_own_token};
use kiln_value::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::PageError;
use crate::session::{NameAndId, Session};

/// The largest body of a form.
const LONGEST: usize = 64 * 1024;

/// The form of the page. Fields that are empty are as if they were missing.
#[derive(Deserialize)]
#[serde(tag = "method", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Form {
    /// User and password.
    Password {
        /// Name of the user.
        user: String,
        /// The password.
        password: String,
        /// Name of the domain of the user.
        domain: String,
        /// Name of a project; without it, the first one of the user.
        #[serde(default)]
        project: String,
        /// Name of the domain of the project; without it, that of the user.
        #[serde(default)]
        project_domain: String,
        /// A one-time password (TOTP), if Keystone asks the user for one.
        #[serde(default)]
        passcode: String,
    },
    /// An application credential.
    ApplicationCredential {
        /// Its ID.
        id: String,
        /// Its secret.
        secret: String,
    },
    /// A token with the scope of a project.
    Token {
        /// The token.
        token: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    project_id: Option<String>,
    pub(crate) region: Option<String>,
}

impl Change {
    /// Reads the body of a request.
    pub(crate) async fn read(body: Body) -> Result<Self, PageError> {
        read(body).await
    }
}

impl Form {
    /// Reads the body of a request.
    pub(crate) async fn read(body: Body) -> Result<Self, PageError> {
        read(body).await
    }

    fn passcode(&self) -> Option<Secret<String>> {
        match self {
            Self::Password { passcode, .. } if !passcode.is_empty() => Some(Secret::new(passcode.clone())),
            _ => None,
        }
    }

    fn credentials(self) -> Credentials {
        match self {
            Self::Password { user, password, domain, project, project_domain, passcode: _ } => {
                let project_domain = if project_domain.is_empty() { &domain } else { &project_domain };
                let scope = if project.is_empty() {
                    Scope::Unscoped
                } else {
                    Scope::Project(Named::in_domain(project, project_domain))
                };
                Credentials::Password { user: Named::in_domain(user, domain), password: Secret::new(password), scope }
            }
            Self::ApplicationCredential { id, secret } => Credentials::ApplicationCredential {
                credential: Named::id(id),
                user: None,
                secret: Secret::new(secret),
            },
            Self::Token { token } => Credentials::token(token),
        }
    }
}

async fn read<T: DeserializeOwned>(body: Body) -> Result<T, PageError> {
    let bytes = to_bytes(body, LONGEST).await.map_err(|error| PageError::Form(error.to_string()))?;
    // serde's text of a wrong value contains the value, which may be a password.
    serde_json::from_slice(&bytes).map_err(|_| PageError::Form("The form is not complete.".to_owned()))
}

/// A session for the user of a form.
///
/// # Errors
///
/// [`PageError::Refused`] for a wrong user, password or project, [`PageError::NoProject`], [`PageError::Keystone`].
pub(crate) async fn sign_in(connector: &Connector, form: Form) -> Result<Session, PageError> {
    let token = token_of(connector, form).await.inspect_err(|error| {
        tracing::info!(%error, "a user could not sign in to the dashboard");
    })?;
    let session = match Session::of_token(&token) {
        Some(session) => session,
        None => first_project(connector, &token).await?,
    };
    tracing::info!(user = %session.user.id, project = %session.project.id, "a user signed in to the dashboard");
    Ok(session)
}

async fn token_of(connector: &Connector, form: Form) -> Result<Token, PageError> {
    let Some(passcode) = form.passcode() else { return token(connector, form.credentials()).await };
    let answered = connector.session(form.credentials()).token_by_passcode(&passcode).await;
    answered.ok_or(PageError::Refused)?.map_err(|error| PageError::of_keystone(&error))
}

/// A session in the first project of the user, by name.
async fn first_project(connector: &Connector, unscoped: &Token) -> Result<Session, PageError> {
    let projects = own_projects(&connector.session_with_token(unscoped.clone())).await;
    let projects = projects.map_err(|error| PageError::of_keystone(&error))?;
    let first = projects.iter().min_by(|a, b| a.name.cmp(&b.name)).ok_or(PageError::NoProject)?;
    in_project(connector, &unscoped.secret, &first.id).await
}

async fn in_project(connector: &Connector, token: &Secret<String>, project: &str) -> Result<Session, PageError> {
    let scope = Scope::Project(Named::id(project));
    let token = self::token(connector, Credentials::Token { token: token.clone(), scope }).await?;
    Session::of_token(&token).ok_or(PageError::NoProject)
}

async fn token(connector: &Connector, credentials: Credentials) -> Result<Token, PageError> {
    let token = connector.session(credentials).token().await.map_err(|error| PageError::of_keystone(&error))?;
    Ok(Token::clone(&token))
}

/// The session of the same user in another project or region.
pub(crate) async fn change(
    connector: &Connector,
    session: Session,
    Change { project_id, region }: Change,
) -> Result<Session, PageError> {
    let region = region.or_else(|| session.region.clone());
    let changed = match project_id {
        Some(project) => in_project(connector, &session.token, &project).await?,
        None => session,
    };
    Ok(Session { region, ..changed })
}

/// The projects of the user, by name.
pub(crate) async fn projects(connector: &Connector, session: &Session) -> Result<Vec<NameAndId>, PageError> {
    let projects = own_projects(&connector.session(given(session))).await;
    let mut projects: Vec<NameAndId> =
        projects.map_err(|error| PageError::of_keystone(&error))?.iter().map(Into::into).collect();
    projects.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(projects)
}

/// The cloud, with the token of a session.
pub(crate) fn cloud(connector: &Connector, session: &Session) -> kiln_cloud::Session {
    connector.session(given(session))
}

/// What the user may choose for a constraint of a parameter, by name; `None`: no list is known for it.
pub(crate) async fn choices(
    cloud: &kiln_cloud::Session,
    constraint: &str,
) -> Result<Option<Vec<NameAndId>>, PageError> {
    let found = kiln_cloud::choices(cloud, constraint).await;
    let found = found.map_err(|error| PageError::Cloud(error.to_string()))?;
    Ok(found.map(|all| all.into_iter().map(|Choice { id, name }| NameAndId { id, name }).collect()))
}

/// Revokes the token of the session.
pub(crate) async fn sign_out(connector: &Connector, session: &Session) {
    match revoke_own_token(&connector.session(given(session))).await {
        Ok(()) => tracing::info!(user = %session.user.id, "a user signed out of the dashboard"),
        // The token expires without it. A token that has expired cannot be revoked.
        Err(error) => tracing::warn!(user = %session.user.id, %error, "the token of a session was not revoked"),
    }
}

/// The token as it is.
fn given(session: &Session) -> Credentials {
    Credentials::Token { token: session.token.clone(), scope: Scope::Unscoped }
}
