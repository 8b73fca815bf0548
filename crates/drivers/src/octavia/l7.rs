//! OS::Octavia::L7Policy and OS::Octavia::L7Rule

use async_trait::async_trait;
use kiln_resource::Facts;
use kiln_value::Diagnostic;

use crate::rest::Shape;
use crate::validation::{failed, is_given, value_dependency};

/// A policy: what a listener does with the requests that match its rules.
pub(super) struct Policy;

#[async_trait]
impl Shape for Policy {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let (pool, url) = (is_given(facts, "redirect_pool"), is_given(facts, "redirect_url"));
        let required = |name: &str, action: &str| {
            Err(failed(format!("Property {name} is required when action type is set to {action}.")))
        };
        match facts.property("action").as_str() {
            Some("REJECT") if pool || url => Err(failed(
                "Properties redirect_pool and redirect_url are not required when action type is set to REJECT.",
            )),
            Some("REDIRECT_TO_POOL") if url => Err(value_dependency("redirect_url", "action", "REDIRECT_TO_URL")),
            Some("REDIRECT_TO_POOL") if !pool => required("redirect_pool", "REDIRECT_TO_POOL"),
            Some("REDIRECT_TO_URL") if pool => Err(value_dependency("redirect_pool", "action", "REDIRECT_TO_POOL")),
            Some("REDIRECT_TO_URL") if !url => required("redirect_url", "REDIRECT_TO_URL"),
            _ => Ok(()),
        }
    }
}

/// A rule of a policy.
pub(super) struct Rule;

#[async_trait]
impl Shape for Rule {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let needs_key = matches!(facts.property("type").as_str(), Some("HEADER" | "COOKIE"));
        if needs_key && !is_given(facts, "key") {
            return Err(failed(
                "Property key is missing. This property should be specified for rules of HEADER and COOKIE types.",
            ));
        }
        Ok(())
    }
}
