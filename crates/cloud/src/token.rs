//! What Keystone says of a token.

use jiff::Timestamp;
use kiln_value::Secret;
use serde::Deserialize;

use crate::Catalog;

/// A domain, by id and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DomainInfo {
    /// Id.
    pub id: String,
    /// Name.
    #[serde(default)]
    pub name: String,
}

/// A user or project with its domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Principal {
    /// Id.
    pub id: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Domain.
    #[serde(default)]
    pub domain: DomainInfo,
}

/// A role, by id and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RoleInfo {
    /// Id; empty for implied roles that Keystone gives by name only.
    #[serde(default)]
    pub id: String,
    /// Name.
    pub name: String,
}

/// An object of which only the id is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Reference {
    /// Id.
    pub id: String,
}

/// The trust behind a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TrustInfo {
    /// Id.
    pub id: String,
    /// Who trusts.
    pub trustor_user: Reference,
    /// Who is trusted.
    pub trustee_user: Reference,
    /// Whether the trusted acts under the name of who trusts.
    #[serde(default)]
    pub impersonation: bool,
}

/// A valid token: who, for what, how long.
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
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it began.
    pub issued_at: Timestamp,
    /// How it was got: `password`, `token` …
    #[serde(default)]
    pub methods: Vec<String>,
    /// The trust it came from.
    #[serde(default, rename = "OS-TRUST:trust")]
    pub trust: Option<TrustInfo>,
    /// Whether the project is a domain's own.
    #[serde(default)]
    pub is_domain: bool,
    /// Whether the project is the one that administrators work in. A Keystone without such a project leaves it out, and
    /// then it is so.
    #[serde(default = "of_any_project")]
    pub is_admin_project: bool,
    /// The services.
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

/// A token in a session: what Keystone says of it, and the token itself.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token.
    pub secret: Secret<String>,
    /// What Keystone says of it.
    pub info: TokenInfo,
}

/// The envelope of Keystone's answers.
#[derive(Deserialize)]
pub(crate) struct TokenEnvelope {
    pub(crate) token: TokenInfo,
}
