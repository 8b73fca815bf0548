//! The identity of a stack: its names within a tenant, and its ARN.

use kiln_value::url::{quote, unquote};
use kiln_value::{Class, Diagnostic};

/// The identity of a stack, or with a `path` of a part of it. Behaves like `common/identifier.py`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackIdentity {
    /// The project's ID.
    pub tenant: String,
    /// The stack's name; has no `/`.
    pub stack_name: String,
    /// The stack's ID.
    pub stack_id: String,
    /// Empty, or a path such as `/resources/server/events/7`.
    pub path: String,
}

impl StackIdentity {
    /// The identity of a stack itself.
    ///
    /// Errors: `ValueError` for a name with a `/`.
    pub fn new(
        tenant: impl Into<String>,
        stack_name: impl Into<String>,
        stack_id: impl Into<String>,
    ) -> Result<Self, Diagnostic> {
        Self::with_path(tenant, stack_name, stack_id, "")
    }

    /// The identity of a part of a stack. A missing leading `/` of the path is added.
    ///
    /// Errors: `ValueError` for a name with a `/`.
    pub fn with_path(
        tenant: impl Into<String>,
        stack_name: impl Into<String>,
        stack_id: impl Into<String>,
        path: &str,
    ) -> Result<Self, Diagnostic> {
        let stack_name = stack_name.into();
        if stack_name.contains('/') {
            return Err(Diagnostic::new(Class::ValueError, "Stack name may not contain \"/\""));
        }
        let path = if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { tenant: tenant.into(), stack_name, stack_id: stack_id.into(), path })
    }

    /// Parses an ARN: `arn:openstack:heat:<any>:<tenant>:stacks/<name>/<id><path>`.
    ///
    /// Errors: `ValueError` for an invalid ARN, or one that is not of a stack.
    pub fn from_arn(arn: &str) -> Result<Self, Diagnostic> {
        let invalid = |kind: &str| Diagnostic::new(Class::ValueError, format!("\"{arn}\" is not a valid {kind}"));
        let fields: Vec<&str> = arn.splitn(6, ':').collect();
        let [scheme, partition, service, _, tenant, place] = fields.as_slice() else { return Err(invalid("ARN")) };
        if !scheme.eq_ignore_ascii_case("arn") {
            return Err(invalid("ARN"));
        }
        let (name, id_and_path) = place
            .strip_prefix("stacks/")
            .filter(|_| *partition == "openstack" && *service == "heat")
            .and_then(|place| place.split_once('/'))
            .ok_or_else(|| invalid("Heat ARN"))?;
        let (id, path) = id_and_path.split_at(id_and_path.find('/').unwrap_or(id_and_path.len()));
        if name.is_empty() || id.is_empty() {
            return Err(invalid("Heat ARN"));
        }
        Self::with_path(unquote(tenant), unquote(name), unquote(id), &unquote(path))
    }

    /// Parses an ARN in the path of a URL.
    ///
    /// Errors: `ValueError` for an invalid HTTP URL or one without an encoded ARN, and those of
    /// [`StackIdentity::from_arn`].
    pub fn from_arn_url(url: &str) -> Result<Self, Diagnostic> {
        const PREFIX: &str = "/arn%3aopenstack%3aheat%3a%3a";
        let invalid = |kind: &str| Diagnostic::new(Class::ValueError, format!("\"{url}\" is not a valid {kind}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("URL"))?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find('/').ok_or_else(|| invalid("URL"))?);
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") || host.is_empty() {
            return Err(invalid("URL"));
        }
        let start = path.to_ascii_lowercase().find(PREFIX).ok_or_else(|| invalid("ARN URL"))?;
        Self::from_arn(&unquote(path.get(start + 1..).unwrap_or_default()))
    }

    /// The identity of a resource of this stack.
    ///
    /// Errors: `ValueError` for a name with a `/`.
    pub fn resource(&self, resource_name: &str) -> Result<Self, Diagnostic> {
        if resource_name.contains('/') {
            return Err(Diagnostic::new(Class::ValueError, "Resource name may not contain \"/\""));
        }
        Ok(self.below("resources", resource_name))
    }

    /// The identity of an event of this stack or resource.
    #[must_use]
    pub fn event(&self, event_id: &str) -> Self {
        self.below("events", event_id)
    }

    fn below(&self, kind: &str, name: &str) -> Self {
        Self { path: format!("{}/{kind}/{name}", self.path.trim_end_matches('/')), ..self.clone() }
    }

    /// The name of the resource, if the path is that of a resource or of an event of a resource.
    pub fn resource_name(&self) -> Option<&str> {
        let parts: Vec<&str> = self.path.trim_start_matches('/').split('/').collect();
        match parts.as_slice() {
            [.., "resources", name] | [.., "resources", name, "events", _] => Some(name),
            _ => None,
        }
    }

    /// `arn:openstack:heat::<tenant>:stacks/<name>/<id><path>`, with percent-encoded parts.
    pub fn arn(&self) -> String {
        format!("arn:openstack:heat::{}:{}", quote(&self.tenant, ""), self.tenant_path())
    }

    /// The ARN as a URL path.
    pub fn arn_url_path(&self) -> String {
        format!("/{}", quote(&self.arn(), "/"))
    }

    /// `<tenant>/stacks/<name>/<id><path>`, percent-encoded.
    pub fn url_path(&self) -> String {
        format!("{}/{}", quote(&self.tenant, ""), self.tenant_path())
    }

    /// `stacks/<name>/<id><path>`, percent-encoded: the part of a URL after the tenant.
    pub fn tenant_path(&self) -> String {
        format!("stacks/{}{}", self.stack_path(), quote(&self.path, "/"))
    }

    /// `<name>/<id>`, percent-encoded.
    pub fn stack_path(&self) -> String {
        format!("{}/{}", quote(&self.stack_name, ""), quote(&self.stack_id, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_round_trips() {
        let stack = StackIdentity::new("ten:ant", "stäck", "id/1").unwrap();
        let event = stack.resource("a b").unwrap().event("7");
        assert_eq!(event.resource_name(), Some("a b"));
        assert_eq!(StackIdentity::from_arn(&event.arn()).as_ref(), Ok(&event));
        let url = format!("http://host:8000/v1/signal{}?Signature=x", event.arn_url_path());
        assert_eq!(StackIdentity::from_arn_url(&url), Ok(event));
        assert_eq!(stack.resource_name(), None);
    }
}
