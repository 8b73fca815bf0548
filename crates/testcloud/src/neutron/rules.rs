//! Security group rules.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post, integer};
use super::{create_all, list, quotas, refusal, security_groups, stamp_new};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{ServiceCall, python_text};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const RULE: Noun = Noun {
    one: "security_group_rule",
    many: "security_group_rules",
    attributes: &[
        Attribute::fixed("security_group_id", Kind::Uuid, Post::Required),
        Attribute::fixed("ethertype", Kind::Any, Post::Text("IPv4")),
        Attribute::fixed("direction", Kind::OneOf(&["ingress", "egress"]), Post::Required),
        Attribute::fixed("protocol", Kind::Any, Post::Null),
        Attribute::fixed("port_range_min", Kind::IntOrNull, Post::Null),
        Attribute::fixed("port_range_max", Kind::IntOrNull, Post::Null),
        Attribute::fixed("remote_ip_prefix", Kind::TextOrNull(255), Post::Null),
        Attribute::fixed("remote_address_group_id", Kind::UuidOrNull, Post::Null),
        Attribute::fixed("remote_group_id", Kind::UuidOrNull, Post::Null),
        Attribute::own("normalized_cidr"),
        Attribute::new("description", Kind::TextOrNull(255), Post::Empty),
    ],
};

const PROTOCOLS: [&str; 26] = [
    "ah",
    "dccp",
    "egp",
    "esp",
    "gre",
    "hopopt",
    "icmp",
    "igmp",
    "ip",
    "ipip",
    "ipv6-encap",
    "ipv6-frag",
    "ipv6-icmp",
    "icmpv6",
    "ipv6-nonxt",
    "ipv6-opts",
    "ipv6-route",
    "ospf",
    "pgm",
    "rsvp",
    "sctp",
    "tcp",
    "udp",
    "udplite",
    "vrrp",
    "any",
];

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let sees = |row: &Row| caller.owns(row.text("project_id"));
            list::answer(world, request, &RULE, &world.neutron.rules, sees, |_, row| public(row))
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"security_group_rule": list::pick(request, public(row))})))
        }
        ("POST", []) => create_all(world, request, &RULE, |world, body| create(world, caller, body)),
        ("DELETE", [id]) => {
            visible(world, caller, id)?;
            world.neutron.rules.remove(id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.neutron.rules.get(id).filter(|row| caller.owns(row.text("project_id")));
    row.ok_or_else(|| refusal(404, "SecurityGroupRuleNotFound", format!("Security group rule {id} does not exist")))
}

fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<Row, Refusal> {
    let mut row = RULE.creation(body, caller)?;
    let ethertype = row.get("ethertype").map(python_text).unwrap_or_default();
    row.put("ethertype", match ethertype.to_ascii_lowercase().as_str() {
        "ipv4" => "IPv4",
        "ipv6" => "IPv6",
        _ => {
            let message = format!(
                "Security group rule for ethertype '{ethertype}' not supported. Allowed values are ['IPv4', 'IPv6']."
            );
            return Err(refusal(400, "SecurityGroupRuleInvalidEtherType", message));
        }
    });
    check_protocol(&mut row)?;
    check_ports(&mut row)?;
    check_remote(&mut row)?;
    let group = row.text("security_group_id").to_owned();
    let project = security_groups::visible(world, caller, &group)?.text("project_id").to_owned();
    if !row.text("remote_group_id").is_empty() {
        security_groups::visible(world, caller, row.text("remote_group_id"))?;
    }
    let same = |other: &&Row| {
        SAME.iter().all(|field| other.get(*field).unwrap_or(&Value::Null) == row.get(*field).unwrap_or(&Value::Null))
    };
    if let Some(other) = world.neutron.rules.by("security_group_id", &group).find(same) {
        let message = format!("Security group rule already exists. Rule id is {}.", other.text("id"));
        return Err(refusal(409, "SecurityGroupRuleExists", message));
    }
    quotas::check(world, &project, "security_group_rule", 1)?;
    let prefix = row.get("remote_ip_prefix").cloned().unwrap_or_default();
    row.put("normalized_cidr", prefix);
    stamp_new(world, &mut row);
    let seen = public(&row);
    world.neutron.rules.insert(row);
    Ok(seen)
}

/// Two rules with equal values of these attributes are duplicates.
const SAME: [&str; 8] = [
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
    "remote_group_id",
    "remote_address_group_id",
];

fn check_protocol(row: &mut Row) -> Result<(), Refusal> {
    let Some(value) = row.get("protocol").filter(|value| !value.is_null()) else { return Ok(()) };
    let text = python_text(value).to_ascii_lowercase();
    let numbered = text.parse::<u16>().is_ok_and(|number| number <= 255);
    if !numbered && !PROTOCOLS.contains(&text.as_str()) {
        let names: Vec<String> =
            PROTOCOLS.iter().filter(|name| **name != "any").map(|name| format!("'{name}'")).collect();
        let message = format!(
            "Security group rule protocol {text} not supported. Only protocol values [None, {}] and integer \
             representations [0 to 255] are supported.",
            names.join(", ")
        );
        return Err(refusal(400, "SecurityGroupRuleInvalidProtocol", message));
    }
    let canonical = match text.as_str() {
        "any" | "-1" => Value::Null,
        "6" => "tcp".into(),
        "17" => "udp".into(),
        "1" => "icmp".into(),
        "icmp" | "icmpv6" if row.text("ethertype") == "IPv6" => "ipv6-icmp".into(),
        _ => text.into(),
    };
    row.put("protocol", canonical);
    Ok(())
}

fn check_ports(row: &mut Row) -> Result<(), Refusal> {
    let number = |row: &Row, field: &str| row.get(field).and_then(integer);
    let (least, most) = (number(row, "port_range_min"), number(row, "port_range_max"));
    row.put("port_range_min", least);
    row.put("port_range_max", most);
    if least.is_none() && most.is_none() {
        return Ok(());
    }
    match row.text("protocol") {
        "" => {
            let message = "Must also specify protocol if port range is given.";
            Err(refusal(400, "SecurityGroupProtocolRequiredWithPorts", message))
        }
        "tcp" | "udp" | "sctp" | "dccp" | "udplite" => {
            for port in [least, most].into_iter().flatten() {
                if !(0..=65535).contains(&port) {
                    let message = format!("Invalid value for port {port}");
                    return Err(refusal(400, "SecurityGroupInvalidPortValue", message));
                }
            }
            match (least, most) {
                (Some(least), Some(most)) if least <= most => Ok(()),
                _ => {
                    let message = "For TCP/UDP protocols, port_range_min must be <= port_range_max";
                    Err(refusal(400, "SecurityGroupInvalidPortRange", message))
                }
            }
        }
        "icmp" | "icmpv6" | "ipv6-icmp" => {
            if let (None, Some(code)) = (least, most) {
                let message =
                    format!("ICMP code (port-range-max) {code} is provided but ICMP type (port-range-min) is missing.");
                return Err(refusal(400, "SecurityGroupMissingIcmpType", message));
            }
            let fields = [("type", "port_range_min", least), ("code", "port_range_max", most)];
            for (field, attribute, value) in fields {
                if let Some(value) = value.filter(|value| !(0..=255).contains(value)) {
                    let message = format!("Invalid value for ICMP {field} ({attribute}) {value}. It must be 0 to 255.");
                    return Err(refusal(400, "SecurityGroupInvalidIcmpValue", message));
                }
            }
            Ok(())
        }
        protocol => {
            let message = format!(
                "Ports cannot be specified for protocol {protocol}. Ports are only supported for dccp, sctp, tcp, udp, \
                 udplite."
            );
            Err(refusal(400, "SecurityGroupInvalidProtocolForPort", message))
        }
    }
}

fn check_remote(row: &mut Row) -> Result<(), Refusal> {
    let given = ["remote_ip_prefix", "remote_group_id", "remote_address_group_id"];
    if given.iter().filter(|field| row.get(**field).is_some_and(|value| !value.is_null())).count() > 1 {
        let message = "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.";
        return Err(refusal(400, "SecurityGroupMultipleRemoteEntites", message));
    }
    let prefix = row.text("remote_ip_prefix").to_owned();
    if prefix.is_empty() {
        return Ok(());
    }
    let whole = if prefix.contains('/') {
        prefix.clone()
    } else {
        format!("{prefix}/{}", if prefix.contains(':') { 128 } else { 32 })
    };
    let net: IpNet =
        whole.parse().map_err(|_| refusal(400, "InvalidCIDR", format!("Invalid CIDR {prefix} given as IP prefix.")))?;
    let ethertype = row.text("ethertype");
    if net.addr().is_ipv4() != (ethertype == "IPv4") {
        let message = format!("Conflicting value ethertype {ethertype} for CIDR {prefix}");
        return Err(refusal(400, "SecurityGroupRuleParameterConflict", message));
    }
    row.put("remote_ip_prefix", whole);
    Ok(())
}

/// Adds one of the default rules of a group.
pub(super) fn add(
    world: &mut CloudState,
    project: &str,
    group: &str,
    direction: &str,
    ethertype: &str,
    remote: Option<&str>,
) {
    let mut row = Row::new();
    row.put("security_group_id", group);
    row.put("ethertype", ethertype);
    row.put("direction", direction);
    for field in [
        "protocol",
        "port_range_min",
        "port_range_max",
        "remote_ip_prefix",
        "remote_address_group_id",
        "normalized_cidr",
    ] {
        row.put(field, Value::Null);
    }
    row.put("remote_group_id", remote);
    row.put("description", Value::Null);
    row.put("project_id", project);
    row.put("tenant_id", project);
    stamp_new(world, &mut row);
    world.neutron.rules.insert(row);
}
