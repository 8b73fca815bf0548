//! URLs of stacks and their parts.

use kiln_store::{Stack, StackSummary};
use kiln_template::StackIdentity;
use kiln_value::url::quote;
use percent_encoding::percent_decode_str;
use serde::Serialize;

/// A link.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Link {
    pub(crate) href: String,
    pub(crate) rel: &'static str,
}

/// Creates URLs with the address that the client used.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// `http://host:8004/v1`.
    base: String,
}

impl Links {
    pub(crate) fn new(base: String) -> Self {
        Self { base }
    }

    /// What all URLs begin with.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The URL of a stack.
    pub(crate) fn stack(&self, stack: &Stack) -> String {
        self.within(stack, "")
    }

    /// The URL of a part of a stack: `/resources/server`.
    pub(crate) fn within(&self, stack: &Stack, path: &str) -> String {
        self.identity(&identity(stack, path))
    }

    /// The URL of an identity.
    pub(crate) fn identity(&self, identity: &StackIdentity) -> String {
        format!("{}/{}/{}", self.base, quote(&identity.tenant, ""), identity.tenant_path())
    }

    /// A link to a stack.
    pub(crate) fn to_stack(&self, stack: &Stack, rel: &'static str) -> Link {
        Link { href: self.stack(stack), rel }
    }

    /// A link to a stack of a list.
    pub(crate) fn to_listed(&self, stack: &StackSummary) -> Link {
        let (tenant, name) = (quote(&stack.project, ""), quote(&stack.name, ""));
        Link { href: format!("{}/{tenant}/stacks/{name}/{}", self.base, stack.id), rel: "self" }
    }

    /// A link to a part of a stack.
    pub(crate) fn to(&self, stack: &Stack, path: &str, rel: &'static str) -> Link {
        Link { href: self.within(stack, path), rel }
    }
}

/// The identity of a stack, or with a path that of a part of it.
pub(crate) fn identity(stack: &Stack, path: &str) -> StackIdentity {
    StackIdentity {
        tenant: stack.project.clone(),
        stack_name: stack.name.clone(),
        stack_id: stack.id.to_string(),
        path: path.to_owned(),
    }
}

/// Parses an ARN: `arn:openstack:heat::<tenant>:stacks/<name>/<id><path>`; `None` if it is invalid.
pub(crate) fn from_arn(arn: &str) -> Option<StackIdentity> {
    let mut fields = arn.splitn(6, ':');
    let mut field = || fields.next();
    let is_ours = field()?.eq_ignore_ascii_case("arn") && field()? == "openstack" && field()? == "heat";
    let (_region, tenant, rest) = (field()?, field()?, field()?);
    let (name, rest) = rest.strip_prefix("stacks/")?.split_once('/')?;
    let (id, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !is_ours || name.is_empty() || id.is_empty() {
        return None;
    }
    let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    StackIdentity::with_path(decode(tenant), decode(name), decode(id), &decode(path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_go_both_ways() {
        let identity = StackIdentity::with_path("t", "a b", "1", "/resources/r").unwrap();
        assert_eq!(from_arn(&identity.arn()), Some(identity));
        for bad in
            ["arn:openstack:heat::t:stacks/a", "arn:aws:heat::t:stacks/a/1", "name", "arn:openstack:heat::t:x/a/1"]
        {
            assert_eq!(from_arn(bad), None, "{bad}");
        }
    }
}
