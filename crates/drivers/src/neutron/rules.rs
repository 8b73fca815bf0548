//! The rules of a security group.
//!
//! Unlike in Heat, an update does not touch unchanged rules, so that the traffic they allow is never interrupted.

use std::net::IpAddr;

use futures::future::join_all;
use ipnet::IpNet;
use kiln_resource::{Context, Failure, FailureKind};
use kiln_value::{Map, Value, text, value};

use crate::call::{NEUTRON, security_group_id};
use crate::path;

/// Most rules of a group that are created at the same time.
const AT_ONCE: usize = 4;

/// The fields that identify a rule in Neutron.
const KEY: [&str; 8] = [
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_group_id",
    "remote_address_group_id",
    "remote_ip_prefix",
];

/// The protocols that have several names.
const PROTOCOLS: [(&str, &str); 22] = [
    ("1", "icmp"),
    ("2", "igmp"),
    ("6", "tcp"),
    ("8", "egp"),
    ("17", "udp"),
    ("33", "dccp"),
    ("41", "ipv6-encap"),
    ("43", "ipv6-route"),
    ("44", "ipv6-frag"),
    ("46", "rsvp"),
    ("47", "gre"),
    ("50", "esp"),
    ("51", "ah"),
    ("58", "ipv6-icmp"),
    ("icmpv6", "ipv6-icmp"),
    ("59", "ipv6-nonxt"),
    ("60", "ipv6-opts"),
    ("89", "ospf"),
    ("112", "vrrp"),
    ("113", "pgm"),
    ("132", "sctp"),
    ("136", "udplite"),
];

/// Entry of the resource data with the rules that Neutron gave a group for which the template has none: an operator can
/// change the rules of new groups.
const DEFAULT: &str = "default_rules";

/// What a rule allows and its description, as Neutron stores them: protocols by name, networks without host bits, and
/// without a prefix for any address. Fields without a value are left out.
fn normal(rule: &Map) -> Map {
    let has_value = |value: &&Value| !value.is_null() && value.as_str() != Some("");
    let text = |key: &str| rule.get(key).filter(has_value).map(text::str).unwrap_or_default().to_lowercase();
    let field = |key: &&str| Some(((*key).to_owned(), rule.get(*key).filter(has_value)?.clone()));
    let mut out: Map = KEY.iter().chain(&["description"]).filter_map(field).collect();
    match text("protocol").as_str() {
        "" | "any" | "-1" => drop(out.shift_remove("protocol")),
        own => {
            let name = PROTOCOLS.iter().find(|(other, _)| *other == own).map_or(own, |(_, name)| *name);
            let name = if name == "icmp" && text("ethertype") == "ipv6" { "ipv6-icmp" } else { name };
            out.insert("protocol".to_owned(), name.into());
        }
    }
    let prefix = text("remote_ip_prefix");
    let network = prefix.parse::<IpNet>().ok().or_else(|| prefix.parse::<IpAddr>().ok().map(IpNet::from));
    match network {
        Some(network) if network.prefix_len() == 0 => drop(out.shift_remove("remote_ip_prefix")),
        Some(network) => drop(out.insert("remote_ip_prefix".to_owned(), network.trunc().to_string().into())),
        None => {}
    }
    out
}

/// Whether two rules allow the same, and have the same description.
pub(crate) fn is_same(one: &Map, other: &Map) -> bool {
    normal(one) == normal(other)
}

/// Rules in an order that only depends on what they allow, to be compared with others.
fn sorted<'a>(rules: impl IntoIterator<Item = &'a Map>) -> Value {
    let mut rules: Vec<Value> = rules.into_iter().map(|rule| normal(rule).into()).collect();
    rules.sort_by_cached_key(text::json);
    rules.into()
}

/// A rule of the template in Neutron's format, without its group.
async fn rule(cx: &Context<'_>, group: &str, given: &Value) -> Result<Map, Failure> {
    let mut rule = given.as_map().cloned().unwrap_or_default();
    let by_group = rule.shift_remove("remote_mode").is_some_and(|mode| mode.as_str() == Some("remote_group_id"));
    if by_group {
        let remote = rule.get("remote_group_id").and_then(Value::as_str).filter(|r| !r.is_empty());
        let remote = match remote {
            None => group.to_owned(),
            Some(name) => security_group_id(cx, name).await?,
        };
        rule.insert("remote_group_id".into(), remote.into());
        rule.shift_remove("remote_ip_prefix");
    } else {
        rule.shift_remove("remote_group_id");
    }
    rule.retain(|_, value| !value.is_null());
    Ok(rule)
}

/// The rules that a group has if nobody else changes it: those of the template, with the default egress rules if none of
/// them is for egress. Without rules in the template, those that Neutron gave it.
async fn wanted(cx: &Context<'_>, group: &str, given: &[Value]) -> Result<Vec<Map>, Failure> {
    if let Some(default) = cx.facts.data.get(DEFAULT).and_then(Value::as_list).filter(|_| given.is_empty()) {
        return Ok(default.iter().filter_map(Value::as_map).cloned().collect());
    }
    let mut wanted: Vec<Map> = Vec::new();
    for given in given {
        let rule = rule(cx, group, given).await?;
        let is_same = |other: &Map| {
            let (one, other) = (normal(&rule), normal(other));
            KEY.iter().all(|key| one.get(*key) == other.get(*key))
        };
        // Neutron refuses a second rule that allows the same.
        if !wanted.iter().any(is_same) {
            wanted.push(rule);
        }
    }
    if !wanted.iter().any(|rule| rule.get("direction").and_then(Value::as_str) == Some("egress")) {
        wanted.extend(egress());
    }
    Ok(wanted)
}

/// The default egress rules.
fn egress() -> [Map; 2] {
    ["IPv4", "IPv6"].map(|ethertype| {
        [("direction", "egress"), ("ethertype", ethertype)].map(|(key, text)| (key.to_owned(), text.into())).into()
    })
}

/// The rules of a group in Neutron, or null: what identifies them, their descriptions and their IDs.
pub(crate) fn of(group: &Value) -> Value {
    let Some(rules) = group.get("security_group_rules").and_then(Value::as_list) else { return Value::Null };
    let fields = |rule: &Value| -> Map {
        let keys = KEY.iter().chain(&["description", "id"]);
        keys.filter_map(|key| Some(((*key).to_owned(), rule.get(key)?.clone()))).collect()
    };
    rules.iter().map(|rule| Value::Map(fields(rule))).collect()
}

/// Entries of the resource data for a new group. `given` are the rules of its template.
pub(crate) fn keep(group: &Value, given: &Value) -> Map {
    match of(group) {
        Value::List(rules) if !given.is_truthy() => {
            let rules: Value = rules.iter().filter_map(Value::as_map).map(|rule| Value::Map(normal(rule))).collect();
            Map::from([(DEFAULT.to_owned(), rules)])
        }
        _ => Map::new(),
    }
}

/// The rules of a group, for [`expected`], without those that are resources themselves. `None`: it has other rules than new
/// groups usually have, and nobody knows whether it got them from Neutron.
pub(crate) async fn live(cx: &Context<'_>, group: &Value, given: &Value) -> Result<Option<Value>, Failure> {
    let is_known = given.is_truthy() || cx.facts.data.contains_key(DEFAULT);
    let wanted = if is_known {
        wanted(cx, cx.facts.require_id()?, given.as_list().unwrap_or_default()).await?
    } else {
        egress().to_vec()
    };
    let wanted: Vec<Map> = wanted.iter().map(normal).collect();
    let rules = of(group);
    let mut own = Vec::new();
    for rule in rules.as_list().unwrap_or_default().iter().filter_map(Value::as_map) {
        if wanted.contains(&normal(rule)) || !is_a_resource(cx, rule).await? {
            own.push(rule);
        }
    }
    let own = sorted(own);
    Ok((is_known || own == sorted(&egress())).then_some(own))
}

/// Whether a rule is the object of a resource: it belongs to that, not to the group.
async fn is_a_resource(cx: &Context<'_>, rule: &Map) -> Result<bool, Failure> {
    cx.software.is_of_a_resource(id_of(rule)).await
}

fn id_of(rule: &Map) -> &str {
    rule.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// The rules of a group that nobody else has changed.
pub(crate) async fn expected(cx: &Context<'_>, given: &Value) -> Result<Value, Failure> {
    let group = cx.facts.require_id()?;
    Ok(sorted(&wanted(cx, group, given.as_list().unwrap_or_default()).await?))
}

/// Sets exactly the rules of the template; those that are resources themselves stay. `known` are those of a group that was
/// just created; otherwise they are read.
pub(crate) async fn set(cx: &Context<'_>, id: &str, given: &Value, known: &Value) -> Result<(), Failure> {
    let wanted = wanted(cx, id, given.as_list().unwrap_or_default()).await?;
    let present = if known.is_null() {
        let path = format!("/v2.0/security-groups/{}", path::segment(id));
        &of(&NEUTRON.show(cx, path, "security_group").await?)
    } else {
        known
    };
    let present: Vec<&Map> = present.as_list().unwrap_or_default().iter().filter_map(Value::as_map).collect();
    let kept: Vec<Map> = present.iter().map(|rule| normal(rule)).collect();
    let asked: Vec<Map> = wanted.iter().map(normal).collect();
    // Neutron cannot change a rule: one with another description is deleted, and created again.
    for (rule, _) in present.iter().zip(&kept).filter(|(_, kept)| !asked.contains(kept)) {
        if !is_a_resource(cx, rule).await? {
            NEUTRON.delete(cx, format!("/v2.0/security-group-rules/{}", path::segment(id_of(rule)))).await?;
        }
    }
    let missing = wanted.iter().zip(&asked).filter(|(_, asked)| !kept.contains(asked));
    let missing: Vec<&Map> = missing.map(|(rule, _)| rule).collect();
    // Each takes Neutron a tenth of a second or more. All of them change the row of their group, so not too many at once.
    for rules in missing.chunks(AT_ONCE) {
        let created = join_all(rules.iter().map(|rule| create(cx, id, rule))).await;
        created.into_iter().collect::<Result<(), Failure>>()?;
    }
    Ok(())
}

async fn create(cx: &Context<'_>, group: &str, rule: &Map) -> Result<(), Failure> {
    let mut rule = rule.clone();
    rule.insert("security_group_id".to_owned(), group.into());
    match NEUTRON.post(cx, "/v2.0/security-group-rules", value!({"security_group_rule": rule})).await {
        // The same rule in another notation.
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
        outcome => outcome.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_has_one_normal_form() {
        let form = |rule: Value| normal(rule.as_map().expect("a map"));
        let same = |one: Value, other: Value| assert_eq!(form(one), form(other));
        same(value!({"protocol": "6", "description": ""}), value!({"protocol": "TCP", "port_range_min": null}));
        same(value!({"protocol": "icmp", "ethertype": "IPv6"}), value!({"protocol": "58", "ethertype": "IPv6"}));
        same(value!({"protocol": "any", "remote_ip_prefix": "0.0.0.0/0"}), value!({"protocol": null}));
        same(value!({"remote_ip_prefix": "10.0.0.7/24"}), value!({"remote_ip_prefix": "10.0.0.0/24", "id": "x"}));
        same(value!({"remote_ip_prefix": "10.0.0.7"}), value!({"remote_ip_prefix": "10.0.0.7/32"}));
        let other = [value!({"protocol": "tcp"}), value!({"protocol": "tcp", "remote_address_group_id": "a"})];
        assert_ne!(form(other[0].clone()), form(other[1].clone()));
        assert_ne!(form(value!({"description": "a"})), form(value!({"description": "b"})));
    }
}
