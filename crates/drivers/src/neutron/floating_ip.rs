//! OS::Neutron::FloatingIP

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, Sibling, Siblings};
use kiln_value::{Diagnostic, Map};

use super::{interfaces_to_ports_of, network_of, sibling_property};
use crate::rest::{Edit, Shape};
use crate::validation::{dependency, is_given};

/// A floating IP.
pub(super) struct FloatingIp;

#[async_trait]
impl Shape for FloatingIp {
    /// Only the association can change, always as a whole: the address of a new port is not that of the old one.
    async fn update_body(&self, cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        body.clear();
        for name in ["port_id", "fixed_ip_address"] {
            body.insert(name.into(), cx.facts.property(name).clone());
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if !is_given(facts, "port_id") && !facts.property("fixed_ip_address").is_null() {
            return Err(dependency("fixed_ip_address", "port_id"));
        }
        Ok(())
    }

    /// A route from the external network is required: the gateway of the router, and its interface to the subnet of the
    /// port.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let mut names = interfaces_to_ports_of(this, siblings);
        let Some(network) = sibling_property(this, &["floating_network", "floating_network_id"]) else { return names };
        let gateways = siblings.of_type("OS::Neutron::RouterGateway").filter(|s| network_of(s) == Some(network));
        let routers = siblings.of_type("OS::Neutron::Router").filter(|router| {
            let gateway = router.properties().get("external_gateway_info").and_then(|gateway| gateway.get("network"));
            gateway == Some(network)
        });
        names.extend(gateways.chain(routers).map(|sibling| sibling.name.to_owned()));
        names
    }
}

/// A port forwarding of a floating IP.
pub(super) struct PortForward;

#[async_trait]
impl Shape for PortForward {
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        interfaces_to_ports_of(this, siblings)
    }
}
