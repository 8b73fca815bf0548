//! The initial networks: the external network `public`, and for demo `private` behind `router`.

use serde_json::{Value, json};

use super::{networks, routers, subnets};
use crate::keystone::Caller;
use crate::reply::Refusal;
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// Creates them. With fixed addresses in an empty cloud this cannot fail; if it did, the cloud would start without
/// them.
pub(crate) fn furnish(world: &mut CloudState, admin: &Caller, demo: &Caller) {
    if let Err(refusal) = build(world, admin, demo) {
        tracing::error!(reason = refusal.message, "failed to create the initial networks");
    }
}

fn build(world: &mut CloudState, admin: &Caller, demo: &Caller) -> Result<(), Refusal> {
    let public = networks::create(
        world,
        admin,
        &row(json!({
            "name": "public", "router:external": true, "is_default": true, "mtu": 1500,
            "provider:network_type": "flat", "provider:physical_network": "public", "provider:segmentation_id": null,
        })),
    )?;
    let outside = json!({
        "name": "public-subnet", "network_id": public.text("id"), "ip_version": 4, "cidr": "172.24.0.0/16",
        "gateway_ip": "172.24.0.1", "enable_dhcp": false,
    });
    subnets::create(world, admin, &row(outside))?;
    let private = networks::create(world, demo, &row(json!({"name": "private"})))?;
    let inside = json!({
        "name": "private-subnet", "network_id": private.text("id"), "ip_version": 4, "cidr": "10.0.0.0/16",
        "dns_nameservers": ["172.24.0.2"],
    });
    let subnet = subnets::create(world, demo, &row(inside))?;
    let gateway = json!({"name": "router", "external_gateway_info": {"network_id": public.text("id")}});
    let router = routers::create(world, demo, &row(gateway))?;
    routers::add_subnet(world, demo, router.text("id"), subnet.text("id"))?;
    Ok(())
}

fn row(value: Value) -> Row {
    super::object(value)
}
