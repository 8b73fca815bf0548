//! The user of a request.

use jiff::Timestamp;
use kiln_cloud::Catalog;
use kiln_value::Secret;

use crate::Login;

/// The user, project and roles of a request.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "as Keystone says them")]
pub struct Caller {
    /// ID of the user.
    pub user_id: String,
    /// Name of the user: a stack's `stack_owner`.
    pub username: String,
    /// ID of the user's domain.
    pub user_domain_id: String,
    /// ID of the project of the token; empty if it has none.
    pub project_id: String,
    /// Name of that project.
    pub project_name: String,
    /// ID of the project's domain.
    pub project_domain_id: String,
    /// Names of the roles.
    pub roles: Vec<String>,
    /// Whether the policy rule `context_is_admin` is true: such a caller may use another project in the URL.
    pub is_admin: bool,
    /// Whether the project is the admin project. Keystone omits this, which then means true, if no admin project is
    /// configured.
    pub is_admin_project: bool,
    /// Whether the token is scoped to the system.
    pub is_system: bool,
    /// The service catalog of the token; `None`: unknown.
    pub catalog: Option<Catalog>,
    /// Whether the token is that of a trust: somebody else acts in the name of the user.
    pub by_trust: bool,
    /// The expiry of the trust of the token, which limits further trusts. `None`: no limit.
    pub trust_end: Option<Timestamp>,
    /// The token; `None` without a Keystone.
    pub token: Option<Secret<String>>,
    /// The user's own password, if stacks act with it; `None` if they act with trusts.
    pub login: Option<Login>,
}

impl Caller {
    /// A user of a project without a token and without roles: for what an engine does because somebody has asked for it before.
    pub fn without_token(user_id: String, username: String, project_id: String) -> Self {
        Self {
            user_id,
            username,
            user_domain_id: String::new(),
            project_id,
            project_name: String::new(),
            project_domain_id: String::new(),
            roles: Vec::new(),
            is_admin: false,
            is_admin_project: false,
            is_system: false,
            catalog: None,
            by_trust: false,
            trust_end: None,
            token: None,
            login: None,
        }
    }

    /// The caller attributes that the left side of a policy rule may use (`oslo_context`'s `to_policy_values`).
    ///
    /// `None`: unknown attribute, which matches nothing.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        Some(match name {
            "user_id" | "user" => &self.user_id,
            "user_domain_id" | "user_domain" => &self.user_domain_id,
            "project_id" | "tenant" => &self.project_id,
            "project_domain_id" | "project_domain" => &self.project_domain_id,
            "username" => &self.username,
            "is_admin" => truth(self.is_admin),
            "is_admin_project" => truth(self.is_admin_project),
            "system_scope" if self.is_system => "all",
            _ => return None,
        })
    }

    /// Whether the catalog has one of these services; true for an empty list, and if the catalog is unknown.
    pub fn reaches(&self, services: &[String]) -> bool {
        let Some(catalog) = &self.catalog else { return true };
        services.is_empty() || services.iter().any(|service| catalog.has(service))
    }

    /// Whether the caller has a role; case-insensitive, as in oslo.policy.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|have| have.eq_ignore_ascii_case(role))
    }
}

/// A boolean as Python prints it.
fn truth(is: bool) -> &'static str {
    if is { "True" } else { "False" }
}
