//! OS::Neutron::Subnet

use std::net::IpAddr;

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Class, Diagnostic, Map, Value};

use crate::rest::{Edit, Shape};
use crate::validation::{conflict, failed, is_given, unspecified};

/// A subnet.
pub(super) struct Subnet;

#[async_trait]
impl Shape for Subnet {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        set_gateway(body);
        Ok(())
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        if cx.facts.property("prefixlen").is_truthy() {
            let length = object.str_at("cidr").and_then(|cidr| cidr.split_once('/')?.1.parse::<i64>().ok());
            live.extend(length.map(|length| ("prefixlen".to_owned(), length.into())));
        }
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        set_gateway(body);
        if let Some(pools) = body.get_mut("allocation_pools").filter(|pools| pools.is_null()) {
            *pools = Value::List(Vec::new());
        }
        let had_segment = edit.before.get("segment").is_some_and(|s| !s.is_null());
        if had_segment && edit.changed.get("segment").is_some_and(Value::is_truthy) {
            let action = "Updating the subnet segment assciation only allowed when the current segment_id is None. \
                          The subnet is currently associated with segment. In this state update";
            let message = format!("{action} is not supported for resource.");
            return Err(Failure::other(Class::ResourceActionNotSupported, message));
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let has = |name: &str| facts.property(name).is_truthy();
        if has("subnetpool") && has("cidr") {
            return Err(conflict(&["subnetpool", "cidr"]));
        }
        if !is_given(facts, "subnetpool") && !is_given(facts, "cidr") {
            return Err(unspecified(&["subnetpool", "cidr"]));
        }
        if has("prefixlen") && has("cidr") {
            return Err(conflict(&["prefixlen", "cidr"]));
        }
        let (advertised, addressed) = (facts.property("ipv6_ra_mode"), facts.property("ipv6_address_mode"));
        let is_v4 = facts.property("ip_version").as_i64() == Some(4);
        if is_v4 && (advertised.is_truthy() || addressed.is_truthy()) {
            return Err(failed("ipv6_ra_mode and ipv6_address_mode are not supported for ipv4."));
        }
        if advertised.is_truthy() && addressed.is_truthy() && advertised != addressed {
            return Err(failed("When both ipv6_ra_mode and ipv6_address_mode are set, they must be equal."));
        }
        match facts.property("gateway_ip").as_str() {
            None | Some("" | "~") => Ok(()),
            Some(gateway) if gateway.parse::<IpAddr>().is_ok() => Ok(()),
            Some(gateway) => Err(failed(format!("Gateway IP address \"{gateway}\" is in invalid format."))),
        }
    }
}

/// A null gateway in the template arrives as an empty string and means: no gateway.
fn set_gateway(body: &mut Map) {
    if let Some(gateway) = body.get_mut("gateway_ip").filter(|g| g.as_str() == Some("")) {
        *gateway = Value::Null;
    }
}
