//! Simple objects of Neutron's advanced services: trunks, port forwardings, VPN, firewalls, service chains, taps,
//! gateways.

use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::plain::{DESCRIPTION, NAME, Plain, SHARED};
use super::{object, refusal};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, public};

const ADMIN: Attribute = Attribute::new("admin_state_up", Kind::Bool, Post::True);

const fn any(name: &'static str) -> Attribute {
    Attribute::new(name, Kind::Any, Post::Null)
}

const fn fixed(name: &'static str) -> Attribute {
    Attribute::fixed(name, Kind::Any, Post::Null)
}

const fn required(name: &'static str) -> Attribute {
    Attribute::fixed(name, Kind::Any, Post::Required)
}

pub(super) const NOUNS: &[Plain] = &[
    Plain {
        path: &["trunks"],
        noun: Noun {
            one: "trunk",
            many: "trunks",
            attributes: &[
                NAME,
                DESCRIPTION,
                ADMIN,
                required("port_id"),
                Attribute::fixed("sub_ports", Kind::Any, Post::List),
            ],
        },
        key: &["port_id"],
        changes: true,
        is_described: true,
        kind: "Trunk",
        status: ("BUILD", "DOWN"),
    },
    Plain {
        path: &["floatingips", "*", "port_forwardings"],
        noun: Noun {
            one: "port_forwarding",
            many: "port_forwardings",
            attributes: &[
                Attribute::new("internal_port_id", Kind::Uuid, Post::Required),
                Attribute::new("internal_ip_address", Kind::AddressOrNull, Post::Null),
                Attribute::new("internal_port", Kind::Int(1, 65535), Post::Null),
                Attribute::new("external_port", Kind::Int(1, 65535), Post::Required),
                Attribute::new(
                    "protocol",
                    Kind::OneOf(&["tcp", "udp", "icmp", "icmp6", "sctp", "dccp"]),
                    Post::Required,
                ),
            ],
        },
        key: &["_policy", "external_port", "protocol"],
        changes: true,
        is_described: false,
        kind: "PortForwarding",
        status: ("", ""),
    },
    Plain {
        path: &["routers", "*", "conntrack_helpers"],
        noun: Noun {
            one: "conntrack_helper",
            many: "conntrack_helpers",
            attributes: &[
                Attribute::new("protocol", Kind::OneOf(&["tcp", "udp", "dccp", "sctp"]), Post::Required),
                Attribute::new("port", Kind::Int(1, 65535), Post::Required),
                Attribute::new("helper", Kind::Any, Post::Required),
            ],
        },
        key: &["_policy", "protocol", "port", "helper"],
        changes: true,
        is_described: false,
        kind: "ConntrackHelper",
        status: ("", ""),
    },
    Plain {
        path: &["vpn", "ikepolicies"],
        noun: Noun {
            one: "ikepolicy",
            many: "ikepolicies",
            attributes: &[
                NAME,
                DESCRIPTION,
                any("auth_algorithm"),
                any("encryption_algorithm"),
                any("lifetime"),
                any("pfs"),
                any("ike_version"),
                fixed("phase1_negotiation_mode"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "IKEPolicy",
        status: ("", ""),
    },
    Plain {
        path: &["vpn", "ipsecpolicies"],
        noun: Noun {
            one: "ipsecpolicy",
            many: "ipsecpolicies",
            attributes: &[
                NAME,
                DESCRIPTION,
                any("auth_algorithm"),
                any("encryption_algorithm"),
                any("lifetime"),
                any("pfs"),
                any("transform_protocol"),
                any("encapsulation_mode"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "IPsecPolicy",
        status: ("", ""),
    },
    Plain {
        path: &["vpn", "vpnservices"],
        noun: Noun {
            one: "vpnservice",
            many: "vpnservices",
            attributes: &[NAME, DESCRIPTION, ADMIN, required("subnet_id"), required("router_id")],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "VPNService",
        status: ("PENDING_CREATE", "ACTIVE"),
    },
    Plain {
        path: &["vpn", "ipsec-site-connections"],
        noun: Noun {
            one: "ipsec_site_connection",
            many: "ipsec_site_connections",
            attributes: &[
                NAME,
                DESCRIPTION,
                ADMIN,
                required("peer_address"),
                required("peer_id"),
                required("peer_cidrs"),
                required("psk"),
                required("ikepolicy_id"),
                required("ipsecpolicy_id"),
                required("vpnservice_id"),
                fixed("mtu"),
                Attribute::fixed("dpd", Kind::Keys(&["action", "interval", "timeout"]), Post::Null),
                fixed("initiator"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "IPsecSiteConnection",
        status: ("PENDING_CREATE", "ACTIVE"),
    },
    Plain {
        path: &["fw", "firewalls"],
        noun: Noun {
            one: "firewall",
            many: "firewalls",
            attributes: &[
                NAME,
                DESCRIPTION,
                ADMIN,
                SHARED,
                Attribute::new("firewall_policy_id", Kind::Uuid, Post::Required),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "Firewall",
        status: ("PENDING_CREATE", "INACTIVE"),
    },
    Plain {
        path: &["fw", "firewall_policies"],
        noun: Noun {
            one: "firewall_policy",
            many: "firewall_policies",
            attributes: &[
                NAME,
                DESCRIPTION,
                SHARED,
                Attribute::new("audited", Kind::Bool, Post::False),
                Attribute::new("firewall_rules", Kind::UuidList, Post::List),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "FirewallPolicy",
        status: ("", ""),
    },
    Plain {
        path: &["fw", "firewall_rules"],
        noun: Noun {
            one: "firewall_rule",
            many: "firewall_rules",
            attributes: &[
                NAME,
                DESCRIPTION,
                SHARED,
                any("protocol"),
                any("ip_version"),
                any("source_ip_address"),
                any("destination_ip_address"),
                any("source_port"),
                any("destination_port"),
                any("action"),
                Attribute::new("enabled", Kind::Bool, Post::True),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "FirewallRule",
        status: ("", ""),
    },
    Plain {
        path: &["sfc", "flow_classifiers"],
        noun: Noun {
            one: "flow_classifier",
            many: "flow_classifiers",
            attributes: &[
                NAME,
                DESCRIPTION,
                fixed("protocol"),
                fixed("ethertype"),
                fixed("source_ip_prefix"),
                fixed("destination_ip_prefix"),
                fixed("source_port_range_min"),
                fixed("source_port_range_max"),
                fixed("destination_port_range_min"),
                fixed("destination_port_range_max"),
                fixed("logical_source_port"),
                fixed("logical_destination_port"),
                fixed("l7_parameters"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "FlowClassifier",
        status: ("", ""),
    },
    Plain {
        path: &["sfc", "port_pairs"],
        noun: Noun {
            one: "port_pair",
            many: "port_pairs",
            attributes: &[
                NAME,
                DESCRIPTION,
                required("ingress"),
                required("egress"),
                fixed("service_function_parameters"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "PortPair",
        status: ("", ""),
    },
    Plain {
        path: &["sfc", "port_pair_groups"],
        noun: Noun {
            one: "port_pair_group",
            many: "port_pair_groups",
            attributes: &[NAME, DESCRIPTION, Attribute::new("port_pairs", Kind::UuidList, Post::List)],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "PortPairGroup",
        status: ("", ""),
    },
    Plain {
        path: &["sfc", "port_chains"],
        noun: Noun {
            one: "port_chain",
            many: "port_chains",
            attributes: &[
                NAME,
                DESCRIPTION,
                Attribute::new("port_pair_groups", Kind::UuidList, Post::Required),
                Attribute::new("flow_classifiers", Kind::UuidList, Post::List),
                fixed("chain_parameters"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "PortChain",
        status: ("", ""),
    },
    Plain {
        path: &["taas", "tap_services"],
        noun: Noun { one: "tap_service", many: "tap_services", attributes: &[NAME, DESCRIPTION, required("port_id")] },
        key: &[],
        changes: true,
        is_described: true,
        kind: "TapService",
        status: ("PENDING_CREATE", "ACTIVE"),
    },
    Plain {
        path: &["taas", "tap_flows"],
        noun: Noun {
            one: "tap_flow",
            many: "tap_flows",
            attributes: &[
                NAME,
                DESCRIPTION,
                required("source_port"),
                required("tap_service_id"),
                fixed("direction"),
                fixed("vlan_filter"),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "TapFlow",
        status: ("PENDING_CREATE", "ACTIVE"),
    },
    Plain {
        path: &["l2-gateways"],
        noun: Noun {
            one: "l2_gateway",
            many: "l2_gateways",
            attributes: &[NAME, Attribute::new("devices", Kind::Any, Post::Required)],
        },
        key: &[],
        changes: true,
        is_described: false,
        kind: "L2Gateway",
        status: ("", ""),
    },
    Plain {
        path: &["l2-gateway-connections"],
        noun: Noun {
            one: "l2_gateway_connection",
            many: "l2_gateway_connections",
            attributes: &[required("l2_gateway_id"), required("network_id"), fixed("segmentation_id")],
        },
        key: &["l2_gateway_id", "network_id", "segmentation_id"],
        changes: false,
        is_described: false,
        kind: "L2GatewayConnection",
        status: ("", ""),
    },
    Plain {
        path: &["network-gateways"],
        noun: Noun {
            one: "network_gateway",
            many: "network_gateways",
            attributes: &[NAME, Attribute::fixed("devices", Kind::Any, Post::Required), Attribute::own("ports")],
        },
        key: &[],
        changes: true,
        is_described: false,
        kind: "NetworkGateway",
        status: ("", ""),
    },
];

/// Changes of the members of an object: subports of trunks, connections of network gateways.
pub(super) fn act(world: &mut CloudState, request: &ServiceCall, caller: &Caller, id: &str, action: &str) -> Outcome {
    let row = world.neutron.plain.get(id).filter(|row| caller.owns(row.text("project_id")));
    let row = row.ok_or_else(|| refusal(404, "HTTPNotFound", format!("{id} could not be found.")))?.clone();
    let body = object(request.json("Body contains invalid data")?);
    let (list, key) = if action.ends_with("subports") { ("sub_ports", "port_id") } else { ("ports", "network_id") };
    let members = match body.get("sub_ports") {
        Some(Value::Array(members)) => members.clone(),
        _ => vec![Value::Object(body)],
    };
    for member in members {
        let is_same = |other: &Value| other[key] == member[key];
        let is_there = world.neutron.plain.get(id).is_some_and(|row| row.list(list).iter().any(is_same));
        match (action, is_there) {
            ("add_subports" | "connect_network", true) => {
                return Err(refusal(409, "Conflict", format!("{} is in use already.", member[key])));
            }
            ("add_subports" | "connect_network", false) => {
                world.neutron.plain.edit(id, |row| row.push(list, member.clone()));
            }
            (_, true) => drop(world.neutron.plain.edit(id, |row| row.drop_from(list, is_same))),
            (_, false) => return Err(refusal(404, "NotFound", format!("{} could not be found.", member[key]))),
        }
    }
    let now = world.neutron.plain.get(id).map_or_else(|| public(&row), public);
    Ok(Reply::ok(json!(now)))
}

/// Adds routes to a router, or removes them.
pub(super) fn extra_routes(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    id: &str,
    action: &str,
) -> Outcome {
    let router = world.neutron.routers.get(id).filter(|row| caller.owns(row.text("project_id")));
    let missing = || refusal(404, "RouterNotFound", format!("Router {id} could not be found"));
    let mut kept = router.ok_or_else(missing)?.list("routes").to_vec();
    let body = request.json("Body contains invalid data")?;
    let given = body["router"]["routes"].as_array().cloned();
    let given = given.ok_or_else(|| Refusal::bad("Unable to find 'routes' in request body"))?;
    kept.retain(|route| !given.contains(route));
    if action == "add_extraroutes" {
        kept.extend(given);
        super::routers::check_routes(world, id, &json!(kept))?;
    }
    world.neutron.routers.edit(id, |row| row.put("routes", kept));
    let row = world.neutron.routers.get(id).ok_or_else(missing)?;
    Ok(Reply::ok(json!({"router": public(row)})))
}
