//! Credentials for Keystone.

use kiln_value::{Map, Secret, Value, value};

/// A user, project or domain by ID or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By ID.
    Id(String),
    /// By name; users and projects also need their domain.
    Name {
        /// The name.
        name: String,
        /// Its domain; `None` for a domain itself.
        domain: Option<Box<Named>>,
    },
}

impl Named {
    /// By ID.
    pub fn id(id: impl Into<String>) -> Self {
        Self::Id(id.into())
    }

    /// By name, in a domain that is also given by name.
    pub fn in_domain(name: impl Into<String>, domain: impl Into<String>) -> Self {
        let domain = Self::Name { name: domain.into(), domain: None };
        Self::Name { name: name.into(), domain: Some(Box::new(domain)) }
    }

    /// The value in Keystone's requests.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Id(id) => value!({"id": id}),
            Self::Name { name, domain: None } => value!({"name": name}),
            Self::Name { name, domain: Some(domain) } => value!({"name": name, "domain": domain.to_value()}),
        }
    }

    /// The name or the ID.
    pub fn word(&self) -> &str {
        match self {
            Self::Id(word) | Self::Name { name: word, .. } => word,
        }
    }

    fn from_value(value: &Value) -> Option<Self> {
        if let Some(id) = value.str_at("id") {
            return Some(Self::id(id));
        }
        let name = value.str_at("name")?.to_owned();
        let domain = match value.get("domain") {
            Some(domain) => Some(Box::new(Self::from_value(domain)?)),
            None => None,
        };
        Some(Self::Name { name, domain })
    }
}

/// The scope of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Unscoped; a token that is given from outside keeps its scope.
    Unscoped,
    /// A project.
    Project(Named),
    /// A domain.
    Domain(Named),
    /// The whole system.
    System,
    /// The project and roles of a trust, by the ID of the trust.
    Trust(String),
}

/// Credentials of a session.
///
/// They contain secrets and do not implement `Serialize`: [`Credentials::expose`] is the only way to store them,
/// encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// User and password.
    Password {
        /// The user.
        user: Named,
        /// The password.
        password: Secret<String>,
        /// The scope of the token.
        scope: Scope,
    },
    /// A token from outside. Unscoped means that it is used as it is.
    Token {
        /// The token.
        token: Secret<String>,
        /// The scope to exchange it for.
        scope: Scope,
    },
    /// An application credential, which determines the project.
    ApplicationCredential {
        /// By ID, or by name together with `user`.
        credential: Named,
        /// The owner, required if the credential is given by name.
        user: Option<Named>,
        /// The secret.
        secret: Secret<String>,
    },
    /// No Keystone: all services have one endpoint that requires no token.
    None {
        /// The endpoint.
        endpoint: String,
    },
}

impl Credentials {
    /// A user with a password in a project, all by name, in the same domain.
    pub fn password(user: &str, password: &str, project: &str, domain: &str) -> Self {
        Self::Password {
            user: Named::in_domain(user, domain),
            password: Secret::new(password.to_owned()),
            scope: Scope::Project(Named::in_domain(project, domain)),
        }
    }

    /// A token, used as it is.
    pub fn token(token: impl Into<String>) -> Self {
        Self::Token { token: Secret::new(token.into()), scope: Scope::Unscoped }
    }

    /// The same user with the scope of a trust. Only for password credentials (the service user), others do not change.
    #[must_use]
    pub fn with_trust(&self, trust_id: &str) -> Self {
        match self {
            Self::Password { user, password, .. } => Self::Password {
                user: user.clone(),
                password: password.clone(),
                scope: Scope::Trust(trust_id.to_owned()),
            },
            other => other.clone(),
        }
    }

    /// The trust that they use.
    pub fn trust(&self) -> Option<&str> {
        match self {
            Self::Password { scope: Scope::Trust(trust), .. } | Self::Token { scope: Scope::Trust(trust), .. } => {
                Some(trust)
            }
            _ => None,
        }
    }

    /// All data as a map with plain-text secrets, to be encrypted by the store. Never log or send it.
    pub fn expose(&self) -> Value {
        match self {
            Self::Password { user, password, scope } => value!({
                "method": "password", "user": user.to_value(), "password": password.expose(), "scope": expose_scope(scope),
            }),
            Self::Token { token, scope } => {
                value!({"method": "token", "token": token.expose(), "scope": expose_scope(scope)})
            }
            Self::ApplicationCredential { credential, user, secret } => value!({
                "method": "application_credential",
                "credential": credential.to_value(),
                "user": user.as_ref().map(Named::to_value),
                "secret": secret.expose(),
            }),
            Self::None { endpoint } => value!({"method": "none", "endpoint": endpoint}),
        }
    }

    /// The reverse of [`Credentials::expose`]; `None` if the value is invalid.
    pub fn from_exposed(value: &Value) -> Option<Self> {
        let secret = |key| value.str_at(key).map(|s| Secret::new(s.to_owned()));
        Some(match value.str_at("method")? {
            "password" => Self::Password {
                user: Named::from_value(value.get("user")?)?,
                password: secret("password")?,
                scope: scope_from_exposed(value.get("scope")?)?,
            },
            "token" => Self::Token { token: secret("token")?, scope: scope_from_exposed(value.get("scope")?)? },
            "application_credential" => Self::ApplicationCredential {
                credential: Named::from_value(value.get("credential")?)?,
                user: value.get("user").and_then(Named::from_value),
                secret: secret("secret")?,
            },
            "none" => Self::None { endpoint: value.str_at("endpoint")?.to_owned() },
            _ => return None,
        })
    }

    /// A description without secrets: `the credential of user heat by trust 5f…`.
    pub fn describe(&self) -> String {
        match self {
            Self::Password { user, scope, .. } => match scope {
                Scope::Trust(trust) => format!("the credential of user {} by trust {trust}", user.word()),
                _ => format!("the credential of user {}", user.word()),
            },
            Self::Token { .. } => "the given token".to_owned(),
            Self::ApplicationCredential { credential, .. } => {
                format!("the application credential {}", credential.word())
            }
            Self::None { .. } => "no credential".to_owned(),
        }
    }

    /// The body of Keystone's `POST /v3/auth/tokens`; `None` if no token is requested.
    pub(crate) fn auth_request(&self) -> Option<Value> {
        let (method, identity, scope) = match self {
            Self::Password { user, password, scope } => {
                let mut user = user.to_value();
                if let Some(user) = user.as_map_mut() {
                    user.insert("password".into(), password.expose().into());
                }
                ("password", value!({"user": user}), scope)
            }
            Self::Token { scope: Scope::Unscoped, .. } | Self::None { .. } => return None,
            Self::Token { token, scope } => ("token", value!({"id": token.expose()}), scope),
            Self::ApplicationCredential { credential, user, secret } => {
                let mut credential = credential.to_value();
                if let Some(entries) = credential.as_map_mut() {
                    entries.insert("secret".into(), secret.expose().into());
                    if let Some(user) = user {
                        entries.insert("user".into(), user.to_value());
                    }
                }
                ("application_credential", credential, &Scope::Unscoped)
            }
        };
        let mut methods = Map::new();
        methods.insert("methods".into(), value!([method]));
        methods.insert(method.into(), identity);
        let mut auth = value!({"identity": methods});
        let scope = match scope {
            Scope::Unscoped => None,
            Scope::Project(project) => Some(value!({"project": project.to_value()})),
            Scope::Domain(domain) => Some(value!({"domain": domain.to_value()})),
            Scope::System => Some(value!({"system": {"all": true}})),
            Scope::Trust(id) => Some(value!({"OS-TRUST:trust": {"id": id}})),
        };
        if let (Some(scope), Some(auth)) = (scope, auth.as_map_mut()) {
            auth.insert("scope".into(), scope);
        }
        Some(value!({"auth": auth}))
    }
}

/// The request for a token with a password, with a one-time password of the same user beside it.
pub(crate) fn with_passcode(mut request: Value, passcode: &Secret<String>) -> Option<Value> {
    let identity = request.as_map_mut()?.get_mut("auth")?.as_map_mut()?.get_mut("identity")?.as_map_mut()?;
    let mut user = identity.get("password")?.get("user")?.clone();
    let entries = user.as_map_mut()?;
    entries.shift_remove("password");
    entries.insert("passcode".into(), passcode.expose().into());
    identity.insert("methods".into(), value!(["password", "totp"]));
    identity.insert("totp".into(), value!({"user": user}));
    Some(request)
}

fn expose_scope(scope: &Scope) -> Value {
    match scope {
        Scope::Unscoped => Value::Null,
        Scope::Project(project) => value!({"project": project.to_value()}),
        Scope::Domain(domain) => value!({"domain": domain.to_value()}),
        Scope::System => "system".into(),
        Scope::Trust(id) => value!({"trust": id}),
    }
}

fn scope_from_exposed(value: &Value) -> Option<Scope> {
    if value.is_null() {
        return Some(Scope::Unscoped);
    }
    if value.as_str() == Some("system") {
        return Some(Scope::System);
    }
    if let Some(id) = value.str_at("trust") {
        return Some(Scope::Trust(id.to_owned()));
    }
    if let Some(project) = value.get("project") {
        return Named::from_value(project).map(Scope::Project);
    }
    Named::from_value(value.get("domain")?).map(Scope::Domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Credentials> {
        let named = Credentials::password("demo", "swordfish", "p", "Default");
        vec![
            named.with_trust("t1"),
            named,
            Credentials::token("swordfish"),
            Credentials::Token { token: Secret::new("swordfish".into()), scope: Scope::Project(Named::id("p")) },
            Credentials::ApplicationCredential {
                credential: Named::Name { name: "ac".into(), domain: None },
                user: Some(Named::id("u")),
                secret: Secret::new("swordfish".into()),
            },
            Credentials::None { endpoint: "http://h:1".into() },
        ]
    }

    #[test]
    fn exposed_credentials_are_read_back() {
        for credentials in all() {
            assert_eq!(Credentials::from_exposed(&credentials.expose()), Some(credentials));
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        for credentials in all() {
            assert!(!format!("{credentials:?}").contains("swordfish"));
        }
    }

    #[test]
    fn trusts_scope_the_request() {
        let body = Credentials::password("kiln", "pw", "service", "Default").with_trust("t1").auth_request().unwrap();
        let expected = value!({"auth": {
            "identity": {
                "methods": ["password"],
                "password": {"user": {"name": "kiln", "domain": {"name": "Default"}, "password": "pw"}},
            },
            "scope": {"OS-TRUST:trust": {"id": "t1"}},
        }});
        assert_eq!(body, expected);
    }
}
