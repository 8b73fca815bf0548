//! Keystone's data about a token.

use jiff::Timestamp;
use kiln_value::Secret;
use serde::Deserialize;

use crate::Catalog;

/// A domain, by ID and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DomainInfo {
    /// ID.
    pub id: String,
    /// Name.
    #[serde(default)]
    pub name: String,
}

/// A user or project with its domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Principal {
    /// ID.
    pub id: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Domain.
    #[serde(default)]
    pub domain: DomainInfo,
}

/// A role, by ID and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RoleInfo {
    /// ID; empty for implied roles that Keystone returns by name only.
    #[serde(default)]
    pub id: String,
    /// Name.
    pub name: String,
}

/// A reference to an object by ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Reference {
    /// ID.
    pub id: String,
}

/// The trust of a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TrustInfo {
    /// ID.
    pub id: String,
    /// The trustor.
    pub trustor_user: Reference,
    /// The trustee.
    pub trustee_user: Reference,
    /// Whether the trustee acts under the name of the trustor.
    #[serde(default)]
    pub impersonation: bool,
}

/// A valid token: user, scope, expiry.
#[derive(Clone, Debug, Deserialize)]
pub struct TokenInfo {
    /// The user.
    pub user: Principal,
    /// The project it is scoped to.
    #[serde(default)]
    pub project: Option<Principal>,
    /// The domain it is scoped to.
    #[serde(default)]
    pub domain: Option<DomainInfo>,
    /// Present if it is scoped to the system.
    #[serde(default)]
    pub system: Option<serde_json::Value>,
    /// The roles in that scope.
    #[serde(default)]
    pub roles: Vec<RoleInfo>,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Time of issue.
    pub issued_at: Timestamp,
    /// Authentication methods: `password`, `token` …
    #[serde(default)]
    pub methods: Vec<String>,
    /// The trust it was issued for.
    #[serde(default, rename = "OS-TRUST:trust")]
    pub trust: Option<TrustInfo>,
    /// Whether the project is a domain.
    #[serde(default)]
    pub is_domain: bool,
    /// Whether the project is the admin project. Keystone omits this field, which then means true, if no admin project
    /// is configured.
    #[serde(default = "of_any_project")]
    pub is_admin_project: bool,
    /// The service catalog.
    #[serde(default)]
    pub catalog: Catalog,
}

fn of_any_project() -> bool {
    true
}

impl TokenInfo {
    /// Whether the token is scoped to the whole system.
    pub fn is_system(&self) -> bool {
        self.system.is_some()
    }
}

/// A token with Keystone's data about it.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token.
    pub secret: Secret<String>,
    /// Keystone's data.
    pub info: TokenInfo,
}

impl Token {
    /// A token that has not been used yet.
    pub fn new(secret: Secret<String>, info: TokenInfo) -> Self {
        Self { secret, info }
    }
}

/// The envelope of Keystone's responses.
#[derive(Deserialize)]
pub(crate) struct TokenEnvelope {
    pub(crate) token: TokenInfo,
}
