//! OS::Neutron::Port

use std::collections::BTreeSet;

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, PropertyChange, Sibling, Siblings};
use kiln_value::{Diagnostic, Map, Value, text, value};

use super::{network_of, subnets_of};
use crate::call::{NEUTRON, security_group_ids};
use crate::path;
use crate::rest::{Edit, Shape};
use crate::validation::not_both;

/// A port.
pub(super) struct Port;

#[async_trait]
impl Shape for Port {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let no_addresses = cx.facts.property("no_fixed_ips").is_truthy();
        to_wire(cx, body, no_addresses).await
    }

    async fn update_body(&self, cx: &Context<'_>, edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        if let Some(groups) = body.get_mut("security_groups").filter(|groups| groups.is_null()) {
            // Without groups, Neutron uses the default group, also in updates.
            *groups = vec!["default"].into();
        }
        if let Some(pairs) = body.get_mut("allowed_address_pairs").filter(|pairs| pairs.is_null()) {
            *pairs = Value::List(Vec::new());
        }
        let no_addresses = edit.changed.get("no_fixed_ips").is_some_and(Value::is_truthy);
        to_wire(cx, body, no_addresses).await
    }

    /// Security groups have no order.
    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let may_have = !cx.facts.property("no_fixed_ips").is_truthy();
        let has_none = object.get("fixed_ips").and_then(Value::as_list).is_none_or(<[Value]>::is_empty);
        live.insert("no_fixed_ips".to_owned(), (has_none && !may_have).into());
        let stored = cx.facts.property("security_groups");
        let wanted = match security_group_ids(cx, stored.as_list().unwrap_or_default()).await {
            Err(failure) if failure.is_passing() => return Err(failure),
            wanted => wanted.unwrap_or_default(),
        };
        let ids = |ids: &[Value]| ids.iter().map(text::str).collect::<BTreeSet<String>>();
        let shown = live.get("security_groups").and_then(Value::as_list).unwrap_or_default();
        if !wanted.is_empty() && ids(&wanted) == ids(shown) {
            live.insert("security_groups".to_owned(), stored.clone());
        }
        Ok(())
    }

    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        match name {
            "subnets" => {
                let addresses = object.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
                let mut subnets = Vec::new();
                for id in addresses.iter().filter_map(|address| address.str_at("subnet_id")) {
                    let path = format!("/v2.0/subnets/{}", path::segment(id));
                    subnets.push(NEUTRON.show(cx, path, "subnet").await?);
                }
                Ok(Some(subnets.into()))
            }
            "network" => {
                let id = object.str_at("network_id").unwrap_or_default();
                let path = format!("/v2.0/networks/{}", path::segment(id));
                NEUTRON.show(cx, path, "network").await.map(Some)
            }
            _ => Ok(None),
        }
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        change.after.get("replacement_policy").and_then(Value::as_str) == Some("REPLACE_ALWAYS")
    }

    /// Two ports cannot have the same address.
    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let wanted = fixed_addresses(wanted);
        let collide = fixed_addresses(held).iter().any(|address| wanted.contains(address));
        if collide { vec!["fixed_ips"] } else { Vec::new() }
    }

    /// As in Heat, it releases all its addresses.
    async fn release(&self, cx: &Context<'_>, id: &str, wanted: &Map) -> Result<(), Failure> {
        let path = format!("/v2.0/ports/{}", path::segment(id));
        let port = NEUTRON.show(cx, path.as_str(), "port").await?;
        let wanted = fixed_addresses(wanted);
        let held = port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
        if held.iter().filter_map(|address| address.str_at("ip_address")).any(|address| wanted.contains(&address)) {
            NEUTRON.put(cx, path, value!({"port": {"fixed_ips": []}})).await?;
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        not_both(facts, "fixed_ips", "no_fixed_ips")
    }

    /// The subnet of the port is unknown: all subnets of its network are created first.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        network_of(this).map_or_else(Vec::new, |network| subnets_of(network, siblings))
    }
}

/// The addresses in properties.
fn fixed_addresses(properties: &Map) -> Vec<&str> {
    let addresses = properties.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
    addresses.iter().filter_map(|address| address.str_at("ip_address")).collect()
}

async fn to_wire(cx: &Context<'_>, body: &mut Map, no_addresses: bool) -> Result<(), Failure> {
    if let Some(policy) = body.get_mut("qos_policy_id").filter(|policy| !policy.is_truthy()) {
        *policy = Value::Null;
    }
    if no_addresses {
        body.insert("fixed_ips".into(), Value::List(Vec::new()));
    } else if body.get("fixed_ips").is_some_and(|addresses| !addresses.is_truthy()) {
        // An empty list would remove all addresses, but in templates it means any address.
        body.shift_remove("fixed_ips");
    }
    if let Some(groups) = body.get_mut("security_groups") {
        *groups = security_group_ids(cx, groups.as_list().unwrap_or_default()).await?.into();
    }
    Ok(())
}
