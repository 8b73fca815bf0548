//! OS::Neutron::SecurityGroupRule

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map, Value};

use super::rules;
use crate::rest::Shape;
use crate::validation::{failed, not_both};

/// A rule of a security group.
pub(super) struct SecurityGroupRule;

#[async_trait]
impl Shape for SecurityGroupRule {
    /// The same rule may be written in another way.
    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let given = &cx.facts.properties;
        let mut wanted = given.clone();
        wanted.insert("remote_group_id".to_owned(), cx.facts.property("remote_group").clone());
        if object.as_map().is_some_and(|object| rules::is_same(&wanted, object)) {
            live.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
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
