//! OS::Octavia::Listener

use async_trait::async_trait;
use kiln_resource::Facts;
use kiln_value::Diagnostic;

use crate::rest::Shape;
use crate::validation::{failed, is_given};

/// A listener of a load balancer.
pub(super) struct Listener;

#[async_trait]
impl Shape for Listener {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let is_terminated = facts.property("protocol").as_str() == Some("TERMINATED_HTTPS");
        if is_terminated && !is_given(facts, "default_tls_container_ref") {
            return Err(failed("Property default_tls_container_ref required when protocol is TERMINATED_HTTPS."));
        }
        Ok(())
    }
}
