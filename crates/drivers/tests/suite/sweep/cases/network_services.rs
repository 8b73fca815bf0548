//! Neutron's advanced services: trunks, routes, port forwardings, VPN, firewalls, service chains, taps, gateways.

use kiln_testcloud::Service;
use kiln_value::{Value, value};

use super::{Case, case};

impl Case {
    /// Ports `{a}` and `{b}` on a network.
    fn with_ports(self) -> Self {
        let port = || value!({"network": "{net}"});
        self.on_network().needs("a", "OS::Neutron::Port", port()).needs("b", "OS::Neutron::Port", port())
    }
}

pub(crate) fn trunk() -> Case {
    let sub = |port: &str, id: i64| value!({"port": port, "segmentation_type": "vlan", "segmentation_id": id});
    let given = |subs: Value| value!({"port": "{a}", "name": "given", "sub_ports": subs});
    case("OS::Neutron::Trunk", given(value!([(sub("{b}", 5))])))
        .with_ports()
        .needs("c", "OS::Neutron::Port", value!({"network": "{net}"}))
        .updated(given(value!([(sub("{b}", 6)), (sub("{c}", 5))])))
        .built_by(Service::Network, "/trunks$")
}

pub(crate) fn extra_route() -> Case {
    let given = value!({"router_id": "{router}", "destination": "10.99.0.0/24", "nexthop": "10.71.0.7"});
    case("OS::Neutron::ExtraRoute", given).behind_router()
}

pub(crate) fn extra_route_set() -> Case {
    let route = |net: &str| value!({"destination": net, "nexthop": "10.71.0.7"});
    let given = |routes: Value| value!({"router": "{router}", "routes": routes});
    case("OS::Neutron::ExtraRouteSet", given(value!([(route("10.98.0.0/24")), (route("10.99.0.0/24"))])))
        .behind_router()
        .updated(given(value!([(route("10.97.0.0/24")), (route("10.99.0.0/24"))])))
}

pub(crate) fn port_forward() -> Case {
    let given = |port: i64| {
        value!({
            "floating_ip": "{address}", "internal_port": "{port}", "internal_ip_address": "10.71.0.9",
            "internal_port_number": port, "external_port": 8080, "protocol": "tcp",
        })
    };
    case("OS::Neutron::FloatingIPPortForward", given(80))
        .behind_router()
        .needs("address", "OS::Neutron::FloatingIP", value!({"floating_network": "public"}))
        .needs("port", "OS::Neutron::Port", value!({"network": "{net}"}))
        .updated(given(81))
}

pub(crate) fn ike_policy() -> Case {
    let given = |version: &str| value!({"name": "given", "lifetime": {"units": "seconds"}, "ike_version": version});
    case("OS::Neutron::IKEPolicy", given("v1")).updated(given("v2"))
}

pub(crate) fn ipsec_policy() -> Case {
    let given = |text: &str| value!({"description": text});
    case("OS::Neutron::IPsecPolicy", given("d")).updated(given("e"))
}

impl Case {
    fn with_vpn(self) -> Self {
        self.behind_router()
            .needs("ike", "OS::Neutron::IKEPolicy", value!({}))
            .needs("ipsec", "OS::Neutron::IPsecPolicy", value!({}))
            .needs("vpn", "OS::Neutron::VPNService", value!({"subnet": "{subnet}", "router": "{router}"}))
    }
}

pub(crate) fn vpn_service() -> Case {
    let given = |up: bool| value!({"subnet": "{subnet}", "router": "{router}", "admin_state_up": up});
    case("OS::Neutron::VPNService", given(true)).behind_router().updated(given(false))
}

pub(crate) fn ipsec_site_connection() -> Case {
    let given = |text: &str| {
        value!({
            "peer_address": "172.1.1.1", "peer_id": "172.1.1.1", "peer_cidrs": ["10.2.0.0/24"], "psk": "secret",
            "ikepolicy_id": "{ike}", "ipsecpolicy_id": "{ipsec}", "vpnservice_id": "{vpn}", "description": text,
            "dpd": {"actions": "restart"},
        })
    };
    case("OS::Neutron::IPsecSiteConnection", given("d"))
        .with_vpn()
        .updated(given("e"))
        .built_by(Service::Network, "/vpn/ipsec-site-connections$")
}

pub(crate) fn firewall() -> Case {
    let given = |text: &str| value!({"firewall_policy_id": "{policy}", "description": text});
    case("OS::Neutron::Firewall", given("d"))
        .needs("policy", "OS::Neutron::FirewallPolicy", value!({"firewall_rules": []}))
        .updated(given("e"))
        .built_by(Service::Network, "/fw/firewalls$")
}

pub(crate) fn firewall_policy() -> Case {
    let given = |rules: Value| value!({"name": "given", "firewall_rules": rules});
    case("OS::Neutron::FirewallPolicy", given(value!(["{rule}"])))
        .needs("rule", "OS::Neutron::FirewallRule", value!({"protocol": "tcp"}))
        .updated(given(value!([])))
}

pub(crate) fn firewall_rule() -> Case {
    let given = |protocol: &str| value!({"protocol": protocol, "action": "allow", "destination_port": "80"});
    case("OS::Neutron::FirewallRule", given("tcp")).updated(given("any"))
}

pub(crate) fn flow_classifier() -> Case {
    let given = |text: &str| value!({"protocol": "tcp", "logical_source_port": "{a}", "description": text});
    case("OS::Neutron::FlowClassifier", given("d")).with_ports().updated(given("e"))
}

fn pair() -> Value {
    value!({"ingress": "{a}", "egress": "{b}"})
}

pub(crate) fn port_pair() -> Case {
    let given = value!({"ingress": "{a}", "egress": "{b}", "name": "given"});
    case("OS::Neutron::PortPair", pair()).with_ports().updated(given)
}

impl Case {
    fn with_pair(self) -> Self {
        self.with_ports().needs("pair", "OS::Neutron::PortPair", pair())
    }
}

pub(crate) fn port_pair_group() -> Case {
    let given = |pairs: Value| value!({"port_pairs": pairs});
    case("OS::Neutron::PortPairGroup", given(value!(["{pair}"]))).with_pair().updated(given(value!([])))
}

pub(crate) fn port_chain() -> Case {
    let given = |flows: Value| value!({"port_pair_groups": ["{group}"], "flow_classifiers": flows});
    case("OS::Neutron::PortChain", given(value!(["{flow}"])))
        .with_pair()
        .needs("group", "OS::Neutron::PortPairGroup", value!({"port_pairs": ["{pair}"]}))
        .needs("flow", "OS::Neutron::FlowClassifier", value!({"protocol": "udp"}))
        .updated(given(value!([])))
}

pub(crate) fn tap_service() -> Case {
    let given = |text: &str| value!({"port": "{a}", "description": text});
    case("OS::Neutron::TaaS::TapService", given("d"))
        .with_ports()
        .updated(given("e"))
        .built_by(Service::Network, "/taas/tap_services$")
}

pub(crate) fn tap_flow() -> Case {
    let given = |text: &str| value!({"port": "{b}", "tap_service": "{tap}", "description": text, "direction": "IN"});
    case("OS::Neutron::TaaS::TapFlow", given("d"))
        .with_ports()
        .needs("tap", "OS::Neutron::TaaS::TapService", value!({"port": "{a}"}))
        .updated(given("e"))
}

fn gateway(name: &str) -> Value {
    value!({"name": "given", "devices": [{"device_name": name, "interfaces": [{"name": "eth0"}]}]})
}

pub(crate) fn l2_gateway() -> Case {
    case("OS::Neutron::L2Gateway", gateway("switch1")).updated(gateway("switch2"))
}

pub(crate) fn l2_gateway_connection() -> Case {
    let given = value!({"l2_gateway_id": "{gateway}", "network_id": "{net}", "segmentation_id": "7"});
    case("OS::Neutron::L2GatewayConnection", given).on_network().needs(
        "gateway",
        "OS::Neutron::L2Gateway",
        gateway("switch1"),
    )
}

pub(crate) fn network_gateway() -> Case {
    let given = |id: i64| {
        let connection = value!({"network": "{net}", "segmentation_type": "vlan", "segmentation_id": id});
        value!({"devices": [{"id": "d", "interface_name": "breth1"}], "connections": [connection]})
    };
    case("OS::Neutron::NetworkGateway", given(7)).on_network().updated(given(8))
}
