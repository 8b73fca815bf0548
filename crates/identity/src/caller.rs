//! The user behind a request.

use jiff::Timestamp;
use kiln_cloud::Catalog;
use kiln_value::Secret;

/// Who calls, for which project, with which roles.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Id of the user.
    pub user_id: String,
    /// Name of the user: a stack's `stack_owner`.
    pub username: String,
    /// Id of the user's domain.
    pub user_domain_id: String,
    /// Id of the project that the token is for; empty if it is for no project.
    pub project_id: String,
    /// Name of that project.
    pub project_name: String,
    /// Id of the project's domain.
    pub project_domain_id: String,
    /// Names of the roles.
    pub roles: Vec<String>,
    /// Whether the policy's `context_is_admin` holds: such a caller may name another project in the URL.
    pub is_admin: bool,
    /// Whether the project is the one that administrators work in; Keystone leaves it out where it has no such project,
    /// and then it is so.
    pub is_admin_project: bool,
    /// Whether the token is for the whole system.
    pub is_system: bool,
    /// The services that the token reaches; `None`: not known.
    pub catalog: Option<Catalog>,
    /// When the trust ends that the token came from: what is delegated further cannot last longer. `None`: no limit.
    pub trust_end: Option<Timestamp>,
    /// The token; `None` where there is no Keystone.
    pub token: Option<Secret<String>>,
}

impl Caller {
    /// What a policy rule's left side may name (`oslo_context`'s `to_policy_values`).
    ///
    /// `None`: there is no such thing, which matches nothing.
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

    /// Whether the catalog has one of these services; yes for none, and where the catalog is not known.
    pub fn reaches(&self, services: &[String]) -> bool {
        let Some(catalog) = &self.catalog else { return true };
        services.is_empty() || services.iter().any(|service| catalog.has(service))
    }

    /// Whether the caller has a role; case does not matter, as in oslo.policy.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|have| have.eq_ignore_ascii_case(role))
    }
}

/// A truth value as Python prints it.
fn truth(is: bool) -> &'static str {
    if is { "True" } else { "False" }
}
