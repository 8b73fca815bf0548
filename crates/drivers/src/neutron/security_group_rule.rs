//! OS::Neutron::SecurityGroupRule

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map};

use super::rename;
use crate::rest::Shape;
use crate::validation::{failed, not_both};

/// A rule of a security group.
pub(super) struct SecurityGroupRule;

#[async_trait]
impl Shape for SecurityGroupRule {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        rename(body, "security_group", "security_group_id");
        rename(body, "remote_group", "remote_group_id");
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        not_both(facts, "remote_group", "remote_ip_prefix")?;
        let port = |name: &str| facts.property(name).as_i64();
        let is_icmp = matches!(facts.property("protocol").as_str(), Some("icmp" | "icmpv6" | "ipv6-icmp"));
        match (port("port_range_min"), port("port_range_max")) {
            (Some(min), Some(max)) if !is_icmp && max < min => {
                Err(failed("The minimum port number must be less than or equal to the maximum port number."))
            }
            _ => Ok(()),
        }
    }
}
