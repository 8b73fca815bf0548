//! Who a stack is: its names inside a tenant, and the ARN made of them.

use std::fmt::Write as _;

use crate::Diagnostic;

/// The identity of a stack, or with a `path` of something in it. Behaviour of `common/identifier.py`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackIdentity {
    /// The project's id.
    pub tenant: String,
    /// The stack's name; has no `/`.
    pub stack_name: String,
    /// The stack's id.
    pub stack_id: String,
    /// Empty, or from `/`: `/resources/server/events/7`.
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

    /// The identity of something in a stack. A missing first `/` of the path is added.
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
            return Err(Diagnostic::new("ValueError", "Stack name may not contain \"/\""));
        }
        let path = if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { tenant: tenant.into(), stack_name, stack_id: stack_id.into(), path })
    }

    /// `arn:openstack:heat::<tenant>:stacks/<name>/<id><path>`, its parts percent-encoded.
    pub fn arn(&self) -> String {
        format!("arn:openstack:heat::{}:{}", quote(&self.tenant, ""), self.tenant_path())
    }

    /// `stacks/<name>/<id><path>`, percent-encoded: what follows the tenant in a URL.
    pub fn tenant_path(&self) -> String {
        format!("stacks/{}{}", self.stack_path(), quote(&self.path, "/"))
    }

    /// `<name>/<id>`, percent-encoded.
    pub fn stack_path(&self) -> String {
        format!("{}/{}", quote(&self.stack_name, ""), quote(&self.stack_id, ""))
    }
}

/// `urllib.parse.quote(text, safe)`.
pub fn quote(text: &str, safe: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "_.-~".contains(c) || (c.is_ascii() && safe.contains(c)) {
            out.push(c);
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
