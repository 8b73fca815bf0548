//! OS::Neutron::*: the types with code.

mod extra_route;
mod firewall;
mod floating_ip;
mod floating_ip_association;
mod net;
mod network_gateway;
mod port;
mod router;
mod router_gateway;
mod router_interface;
pub(crate) mod rules;
mod security_group;
mod security_group_rule;
pub(crate) mod server_address;
mod subnet;
mod trunk;

use std::sync::Arc;

use kiln_resource::{Context, Driver, Failure, ResourceType, Sibling, Siblings};
use kiln_value::Value;

use crate::call::NEUTRON;
use crate::quota::Quota;
use crate::rest::shaped;

/// The limits of OS::Neutron::Quota.
const LIMITS: &[&str] = &[
    "floatingip",
    "network",
    "port",
    "rbac_policy",
    "router",
    "security_group",
    "security_group_rule",
    "subnet",
    "subnetpool",
];

/// The driver of a Neutron type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Neutron::")? {
        "Net" => shaped(resource_type, net::Net),
        "Subnet" => shaped(resource_type, subnet::Subnet),
        "Port" => shaped(resource_type, port::Port),
        "Router" => shaped(resource_type, router::Router),
        "RouterGateway" => Some(Arc::new(router_gateway::RouterGateway)),
        "RouterInterface" => Some(Arc::new(router_interface::RouterInterface)),
        "FloatingIP" => shaped(resource_type, floating_ip::FloatingIp),
        "FloatingIPAssociation" => Some(Arc::new(floating_ip_association::FloatingIpAssociation)),
        "Firewall" => shaped(resource_type, firewall::Firewall),
        "FirewallRule" => shaped(resource_type, firewall::FirewallRule),
        "NetworkGateway" => shaped(resource_type, network_gateway::NetworkGateway::new(resource_type)?),
        "Trunk" => shaped(resource_type, trunk::Trunk),
        "ExtraRoute" => Some(Arc::new(extra_route::ExtraRoute)),
        "ExtraRouteSet" => Some(Arc::new(extra_route::ExtraRouteSet)),
        "FloatingIPPortForward" => shaped(resource_type, floating_ip::PortForward),
        "Quota" => Some(Arc::new(Quota::new(NEUTRON, "/v2.0/quotas", "quota", LIMITS))),
        "SecurityGroup" => shaped(resource_type, security_group::SecurityGroup),
        "SecurityGroupRule" => shaped(resource_type, security_group_rule::SecurityGroupRule),
        _ => None,
    }
}

/// The IDs of the agents in a list, such as those of a router.
async fn agent_ids(cx: &Context<'_>, path: String) -> Result<Vec<Value>, Failure> {
    let agents = NEUTRON.list(cx, path, &[], "agents").await?;
    Ok(agents.iter().filter_map(|agent| agent.get("id").cloned()).collect())
}

/// A property of a sibling by its current or former name; `None` if it is unknown.
fn sibling_property<'a>(sibling: &'a Sibling<'_>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| sibling.properties().get(*name).filter(|v| !v.is_null()))
}

/// The network of a sibling, as written in the template.
fn network_of<'a>(sibling: &'a Sibling<'_>) -> Option<&'a Value> {
    sibling_property(sibling, &["network", "network_id"])
}

/// The siblings that are subnets of a network.
fn subnets_of(network: &Value, siblings: &Siblings<'_>) -> Vec<String> {
    siblings
        .of_type("OS::Neutron::Subnet")
        .filter(|s| network_of(s) == Some(network))
        .map(|s| s.name.to_owned())
        .collect()
}

/// The siblings that are interfaces of a router to a subnet of a port that `this` requires: without such an interface,
/// a floating IP cannot reach the port. A port without fixed addresses may be on any subnet of its network.
fn interfaces_to_ports_of(this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
    let required = this.requires.iter().filter_map(|name| siblings.get(name));
    let ports: Vec<_> = required.filter(|s| s.resource_type == "OS::Neutron::Port").collect();
    if ports.is_empty() {
        return Vec::new();
    }
    let reaches = |interface: &Sibling<'_>| {
        let subnet = sibling_property(interface, &["subnet", "subnet_id"]);
        ports.iter().any(|port| port_may_be_on(port, subnet, siblings))
    };
    siblings.of_type("OS::Neutron::RouterInterface").filter(|s| reaches(s)).map(|s| s.name.to_owned()).collect()
}

fn port_may_be_on(port: &Sibling<'_>, subnet: Option<&Value>, siblings: &Siblings<'_>) -> bool {
    let addresses = sibling_property(port, &["fixed_ips"]).and_then(Value::as_list).unwrap_or_default();
    let subnets: Vec<_> = addresses
        .iter()
        .filter_map(|a| a.get("subnet").or_else(|| a.get("subnet_id")).filter(|s| !s.is_null()))
        .collect();
    if !subnets.is_empty() {
        return subnet.is_some_and(|subnet| subnets.contains(&subnet));
    }
    let Some(subnet) = subnet else { return true };
    // The network of a subnet in this template is known; any other subnet may be that of the port.
    let sibling = subnet.str_at("get_resource").and_then(|name| siblings.get(name));
    match (sibling.and_then(network_of), network_of(port)) {
        (Some(of_subnet), Some(of_port)) => of_subnet == of_port,
        _ => false,
    }
}
