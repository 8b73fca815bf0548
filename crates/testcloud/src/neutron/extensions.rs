//! The list of extensions, and collections with little or no support.

use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::{body, create_all, list, object, owned, refusal, stamp_new};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

/// Alias and name of each simulated extension.
const EXTENSIONS: [(&str, &str); 50] = [
    ("address-scope", "Address scope"),
    ("agent", "agent"),
    ("allowed-address-pairs", "Allowed Address Pairs"),
    ("availability_zone", "Availability Zone"),
    ("binding", "Port Binding"),
    ("default-subnetpools", "Default Subnetpools"),
    ("dns-integration", "DNS Integration"),
    ("empty-string-filtering", "Empty String Filtering Extension"),
    ("ext-gw-mode", "Neutron L3 Configurable external gateway mode"),
    ("external-net", "Neutron external network"),
    ("extra_dhcp_opt", "Neutron Extra DHCP options"),
    ("extraroute", "Neutron Extra Route"),
    ("extraroute-atomic", "Atomically add/remove extra routes"),
    ("filter-validation", "Filter parameters validation"),
    ("fip-port-details", "Floating IP Port Details Extension"),
    ("floating-ip-port-forwarding", "Floating IP Port Forwarding"),
    ("fwaas", "Firewall service"),
    ("ip_allocation", "IP Allocation"),
    ("l2-gateway", "L2 Gateway"),
    ("l2-gateway-connection", "L2 Gateway connection"),
    ("l2_adjacency", "L2 Adjacency"),
    ("l3-conntrack-helper", "Neutron L3 Conntrack Helper"),
    ("metering", "Neutron Metering"),
    ("net-mtu", "Network MTU"),
    ("net-mtu-writable", "Network MTU (writable)"),
    ("pagination", "Pagination support"),
    ("port-security", "Port Security"),
    ("project-id", "project_id field enabled"),
    ("provider", "Provider Network"),
    ("qos", "Quality of Service"),
    ("qos-bw-minimum-ingress", "Ingress direction for QoS minimum bandwidth rule"),
    ("qos-pps-minimum", "QoS minimum packet rate rule"),
    ("quota_details", "Quota details management support"),
    ("quotas", "Quota management support"),
    ("rbac-policies", "RBAC Policies"),
    ("revision-if-match", "If-Match constraints based on revision_number"),
    ("router", "Neutron L3 Router"),
    ("security-group", "security-group"),
    ("security-groups-normalized-cidr", "Normalized CIDR field for security group rules"),
    ("segment", "Segment"),
    ("sfc", "Service Function Chaining"),
    ("sorting", "Sorting support"),
    ("standard-attr-description", "standard-attr-description"),
    ("standard-attr-revisions", "Resource revision numbers"),
    ("standard-attr-tag", "Tag support for resources with standard attribute: port, subnet, router, network"),
    ("standard-attr-timestamp", "Resource timestamps"),
    ("subnet_allocation", "Subnet Allocation"),
    ("taas", "Neutron Tap as a Service"),
    ("trunk", "Trunk Extension"),
    ("vpnaas", "VPN service"),
];

/// The root of the API: its main collections.
pub(super) fn root(world: &CloudState) -> Value {
    let noun = |one: &str| {
        let link = format!("{}/network/v2.0/{one}s", world.base);
        json!({"name": one, "collection": format!("{one}s"), "links": [{"rel": "self", "href": link}]})
    };
    let nouns = ["network", "subnet", "subnetpool", "port"].map(noun);
    json!({"resources": nouns})
}

pub(super) fn route(request: &ServiceCall, rest: &[&str]) -> Outcome {
    let show = |(alias, name): &(&str, &str)| json!({"name": name, "alias": alias, "description": name, "updated": "2020-01-01T00:00:00-00:00", "links": []});
    match (request.method.as_str(), rest) {
        ("GET", []) => Ok(Reply::ok(json!({"extensions": EXTENSIONS.iter().map(show).collect::<Vec<_>>()}))),
        ("GET", [alias]) => {
            let found = EXTENSIONS.iter().find(|(known, _)| known == alias).ok_or_else(|| {
                refusal(404, "ExtensionNotFound", format!("Extension with alias {alias} does not exist"))
            })?;
            Ok(Reply::ok(json!({"extension": show(found)})))
        }
        _ => Err(Refusal::no_method()),
    }
}

/// Lists of collections that are always empty.
pub(super) fn empty_list(many: &str) -> Outcome {
    const NOUNS: [&str; 4] = ["agents", "availability_zones", "network-ip-availabilities", "flavors"];
    if NOUNS.contains(&many) {
        return Ok(Reply::ok(json!({many.replace('-', "_"): []})));
    }
    Err(Refusal::no_route())
}

const QOS_POLICY: Noun = Noun {
    one: "policy",
    many: "policies",
    attributes: &[
        Attribute::new("name", Kind::Text(255), Post::Required),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::new("shared", Kind::Bool, Post::False),
        Attribute::new("is_default", Kind::Bool, Post::False),
        Attribute::own("rules"),
    ],
};

/// `/qos/policies`: administrators create them, everyone may use the shared ones.
pub(super) fn qos_policies(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let sees = |row: &Row| caller.owns(row.text("project_id")) || row.flag("shared");
    match (request.method.as_str(), rest) {
        ("GET", []) => list::answer(world, request, &QOS_POLICY, &world.neutron.qos_policies, sees, with_rules),
        ("GET", [id]) => {
            let row = world.neutron.qos_policies.get(id).filter(|row| sees(row)).ok_or_else(|| no_policy(id))?;
            Ok(Reply::ok(json!({"policy": with_rules(world, row)})))
        }
        ("POST" | "PUT" | "DELETE", _) if !caller.admin => {
            let verb = match request.method.as_str() {
                "POST" => "create",
                "PUT" => "update",
                _ => "delete",
            };
            Err(refusal(403, "PolicyNotAuthorized", format!("rule:{verb}_policy is disallowed by policy")))
        }
        ("POST", []) => create_all(world, request, &QOS_POLICY, |world, body| {
            let mut row = QOS_POLICY.creation(body, caller)?;
            row.put("rules", json!([]));
            stamp_new(world, &mut row);
            world.neutron.qos_policies.insert(row.clone());
            Ok(public(&row))
        }),
        ("PUT", [id]) => {
            let row = world.neutron.qos_policies.get(id).filter(|row| sees(row)).ok_or_else(|| no_policy(id))?;
            owned(caller, row, "update_policy")?;
            let change = QOS_POLICY.change(&object(body(request, &QOS_POLICY)?), caller)?;
            world.neutron.qos_policies.edit(id, |row| row.extend(change));
            let row = world.neutron.qos_policies.get(id).ok_or_else(|| no_policy(id))?;
            Ok(Reply::ok(json!({"policy": with_rules(world, row)})))
        }
        ("DELETE", [id]) => {
            let users = world.neutron.ports.iter().chain(world.neutron.networks.iter());
            let used = users.into_iter().any(|row| row.text("qos_policy_id") == *id);
            if used {
                let message = format!("QoS Policy {id} is used by a network or port.");
                return Err(refusal(409, "QosPolicyInUse", message));
            }
            world.neutron.qos_policies.remove(id).ok_or_else(|| no_policy(id))?;
            let rules: Vec<String> = world
                .neutron
                .plain
                .iter()
                .filter(|row| row.text("_policy") == *id)
                .map(|row| row.text("id").to_owned())
                .collect();
            for rule in rules {
                world.neutron.plain.remove(&rule);
            }
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

/// A policy as it is shown, with its rules.
fn with_rules(world: &CloudState, row: &Row) -> Row {
    let policy = row.text("id");
    let rules = world.neutron.plain.iter().filter(|rule| rule.text("_policy") == policy).map(|rule| {
        let mut shown = public(rule);
        for common in ["project_id", "tenant_id", "created_at", "updated_at", "revision_number", "tags"] {
            shown.remove(common);
        }
        shown.put("qos_policy_id", policy);
        shown.put("type", rule.text("_noun").trim_end_matches("_rule"));
        Value::from(shown)
    });
    let rules: Vec<Value> = rules.collect();
    let mut shown = public(row);
    shown.put("rules", rules);
    shown
}

fn no_policy(id: &str) -> Refusal {
    refusal(404, "QosPolicyNotFound", format!("QoS policy {id} could not be found."))
}

/// Rejects a body with an unknown QoS policy.
pub(super) fn check_policy(world: &CloudState, body: &Row) -> Result<(), Refusal> {
    let id = body.text("qos_policy_id");
    if id.is_empty() || world.neutron.qos_policies.get(id).is_some() { Ok(()) } else { Err(no_policy(id)) }
}
