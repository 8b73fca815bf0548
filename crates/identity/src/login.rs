//! The password that a user gives with a request, for `deferred_auth_method = password`.

use http::HeaderMap;
use kiln_cloud::{Connector, Credentials, Named, Scope};
use kiln_value::Secret;

use crate::trust::failed;
use crate::{Caller, DelegateError};

/// The headers `X-Auth-User` and `X-Auth-Key`, which `heat --include-password` sends beside the token.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// Name or ID of the user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret<String>>,
}

impl Login {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self { user: text("x-auth-user"), password: text("x-auth-key").map(Secret::new) }
    }
}

/// The credentials of a caller who gives a password.
///
/// # Errors
/// [`DelegateError::Missing`] with Heat's text without a user or password, [`DelegateError::Refused`] for the
/// name of another user.
pub(crate) fn credentials(caller: &Caller) -> Result<Credentials, DelegateError> {
    let missing = |header: &str| DelegateError::Missing(header.to_owned());
    let login = caller.login.as_ref().ok_or_else(|| missing("X-Auth-User"))?;
    let user = login.user.as_ref().ok_or_else(|| missing("X-Auth-User"))?;
    let password = login.password.clone().ok_or_else(|| missing("X-Auth-Key"))?;
    if *user != caller.username && *user != caller.user_id {
        return Err(DelegateError::Refused("X-Auth-User is not the user of the token.".to_owned()));
    }
    let scope = Scope::Project(Named::id(&*caller.project_id));
    Ok(Credentials::Password { user: Named::id(&*caller.user_id), password, scope })
}

/// The credentials of a caller, after Keystone has accepted them.
///
/// # Errors
/// As [`credentials`]; [`DelegateError::Refused`] for a wrong password.
pub(crate) async fn checked(connector: &Connector, caller: &Caller) -> Result<Credentials, DelegateError> {
    let credentials = credentials(caller)?;
    connector.session(credentials.clone()).token().await.map_err(failed)?;
    Ok(credentials)
}
