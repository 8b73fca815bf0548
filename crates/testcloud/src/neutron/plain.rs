//! Simple objects, which are stored unchanged: address scopes, subnet pools, segments, metering, RBAC policies, QoS
//! rules.

use serde_json::json;

use super::advanced;
use super::attributes::{Attribute, Kind, Noun, Post};
use super::{body, create_all, list, object, owned, refusal, stamp_new, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

/// A type of simple objects.
pub(super) struct Plain {
    /// The path without the version; `*` is the ID of the policy or floating IP.
    pub(super) path: &'static [&'static str],
    pub(super) noun: Noun,
    /// Attributes that are unique together.
    pub(super) key: &'static [&'static str],
    /// Whether it can be updated.
    pub(super) changes: bool,
    /// Whether it has a description, like objects with standard attributes.
    pub(super) is_described: bool,
    /// Its type in snapshots and in the error for a missing one.
    pub(super) kind: &'static str,
    /// The status of a new object, and the one that follows; empty: it has none.
    pub(super) status: (&'static str, &'static str),
}

pub(super) const NAME: Attribute = Attribute::new("name", Kind::Text(255), Post::Empty);
pub(super) const DESCRIPTION: Attribute = Attribute::new("description", Kind::Text(255), Post::Empty);
pub(super) const SHARED: Attribute = Attribute::new("shared", Kind::Bool, Post::False);
const DIRECTION: Attribute = Attribute::new("direction", Kind::OneOf(&["ingress", "egress"]), Post::Text("egress"));

const NOUNS: [Plain; 10] = [
    Plain {
        path: &["address-scopes"],
        noun: Noun {
            one: "address_scope",
            many: "address_scopes",
            attributes: &[NAME, SHARED, Attribute::fixed("ip_version", Kind::Number(&[4, 6]), Post::Number(4))],
        },
        key: &[],
        changes: true,
        is_described: false,
        kind: "AddressScope",
        status: ("", ""),
    },
    Plain {
        path: &["subnetpools"],
        noun: Noun {
            one: "subnetpool",
            many: "subnetpools",
            attributes: &[
                NAME,
                DESCRIPTION,
                SHARED,
                Attribute::new("prefixes", Kind::Any, Post::Required),
                Attribute::new("address_scope_id", Kind::UuidOrNull, Post::Null),
                Attribute::new("default_quota", Kind::Any, Post::Null),
                Attribute::new("default_prefixlen", Kind::Any, Post::Number(8)),
                Attribute::new("min_prefixlen", Kind::Any, Post::Number(8)),
                Attribute::new("max_prefixlen", Kind::Any, Post::Number(32)),
                Attribute::new("is_default", Kind::Bool, Post::False),
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "SubnetPool",
        status: ("", ""),
    },
    Plain {
        path: &["segments"],
        noun: Noun {
            one: "segment",
            many: "segments",
            attributes: &[
                Attribute::fixed("network_id", Kind::Uuid, Post::Required),
                Attribute::fixed("network_type", Kind::Text(32), Post::Required),
                Attribute::fixed("physical_network", Kind::TextOrNull(64), Post::Null),
                Attribute::fixed("segmentation_id", Kind::IntOrNull, Post::Null),
                NAME,
                DESCRIPTION,
            ],
        },
        key: &[],
        changes: true,
        is_described: true,
        kind: "Segment",
        status: ("", ""),
    },
    Plain {
        path: &["metering", "metering-labels"],
        noun: Noun { one: "metering_label", many: "metering_labels", attributes: &[NAME, DESCRIPTION, SHARED] },
        key: &[],
        changes: false,
        is_described: true,
        kind: "MeteringLabel",
        status: ("", ""),
    },
    Plain {
        path: &["metering", "metering-label-rules"],
        noun: Noun {
            one: "metering_label_rule",
            many: "metering_label_rules",
            attributes: &[
                Attribute::fixed("metering_label_id", Kind::Uuid, Post::Required),
                Attribute::fixed("remote_ip_prefix", Kind::Text(64), Post::Required),
                Attribute::fixed("direction", Kind::OneOf(&["ingress", "egress"]), Post::Text("ingress")),
                Attribute::fixed("excluded", Kind::Bool, Post::False),
            ],
        },
        key: &["metering_label_id", "remote_ip_prefix", "direction"],
        changes: false,
        is_described: false,
        kind: "MeteringLabelRule",
        status: ("", ""),
    },
    Plain {
        path: &["rbac-policies"],
        noun: Noun {
            one: "rbac_policy",
            many: "rbac_policies",
            attributes: &[
                Attribute::fixed("object_type", Kind::Text(255), Post::Required),
                Attribute::fixed("object_id", Kind::Uuid, Post::Required),
                Attribute::new("target_tenant", Kind::Text(255), Post::Required),
                Attribute::fixed("action", Kind::Text(255), Post::Required),
            ],
        },
        key: &["object_type", "object_id", "target_tenant", "action"],
        changes: true,
        is_described: false,
        kind: "RbacPolicy",
        status: ("", ""),
    },
    Plain {
        path: &["qos", "policies", "*", "bandwidth_limit_rules"],
        noun: Noun {
            one: "bandwidth_limit_rule",
            many: "bandwidth_limit_rules",
            attributes: &[
                Attribute::new("max_kbps", Kind::Int(0, i64::MAX), Post::Required),
                Attribute::new("max_burst_kbps", Kind::Int(0, i64::MAX), Post::Number(0)),
                DIRECTION,
            ],
        },
        key: &["_policy", "direction"],
        changes: true,
        is_described: false,
        kind: "QosRule",
        status: ("", ""),
    },
    Plain {
        path: &["qos", "policies", "*", "dscp_marking_rules"],
        noun: Noun {
            one: "dscp_marking_rule",
            many: "dscp_marking_rules",
            attributes: &[Attribute::new("dscp_mark", Kind::Int(0, 56), Post::Required)],
        },
        key: &["_policy"],
        changes: true,
        is_described: false,
        kind: "QosRule",
        status: ("", ""),
    },
    Plain {
        path: &["qos", "policies", "*", "minimum_bandwidth_rules"],
        noun: Noun {
            one: "minimum_bandwidth_rule",
            many: "minimum_bandwidth_rules",
            attributes: &[Attribute::new("min_kbps", Kind::Int(0, i64::MAX), Post::Required), DIRECTION],
        },
        key: &["_policy", "direction"],
        changes: true,
        is_described: false,
        kind: "QosRule",
        status: ("", ""),
    },
    Plain {
        path: &["qos", "policies", "*", "minimum_packet_rate_rules"],
        noun: Noun {
            one: "minimum_packet_rate_rule",
            many: "minimum_packet_rate_rules",
            attributes: &[
                Attribute::new("min_kpps", Kind::Int(0, i64::MAX), Post::Required),
                Attribute::new("direction", Kind::OneOf(&["any", "ingress", "egress"]), Post::Text("egress")),
            ],
        },
        key: &["_policy", "direction"],
        changes: true,
        is_described: false,
        kind: "QosRule",
        status: ("", ""),
    },
];

/// Handles a request if its path is that of a simple object.
pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    segments: &[&str],
) -> Option<Outcome> {
    let (plain, parent, id) = NOUNS.iter().chain(advanced::NOUNS).find_map(|plain| {
        let (path, rest) = segments.split_at_checked(plain.path.len())?;
        let fits = plain.path.iter().zip(path).all(|(wanted, segment)| *wanted == "*" || wanted == segment);
        let parent = plain.path.iter().zip(path).find(|(wanted, _)| **wanted == "*").map(|(_, id)| *id);
        match rest {
            _ if !fits => None,
            [] => Some((plain, parent, None)),
            [id] => Some((plain, parent, Some(*id))),
            _ => None,
        }
    })?;
    Some(plain.serve(world, request, caller, parent.unwrap_or_default(), id))
}

impl Plain {
    fn serve(
        &self,
        world: &mut CloudState,
        request: &ServiceCall,
        caller: &Caller,
        parent: &str,
        id: Option<&str>,
    ) -> Outcome {
        if self.path.first() == Some(&"floatingips") && world.neutron.floating_ips.get(parent).is_none() {
            let message = format!("Floating IP {parent} could not be found.");
            return Err(refusal(404, "FloatingIPNotFound", message));
        }
        if self.path.first() == Some(&"qos") && world.neutron.qos_policies.get(parent).is_none() {
            return Err(refusal(404, "QosPolicyNotFound", format!("QoS policy {parent} could not be found.")));
        }
        let missing = |id: &str| {
            let message = format!("{} {id} could not be found.", self.kind);
            refusal(404, "HTTPNotFound", message)
        };
        let is_one = |row: &Row| row.text("_noun") == self.noun.one && row.text("_policy") == parent;
        let sees = |row: &Row| is_one(row) && (caller.owns(row.text("project_id")) || row.flag("shared"));
        match (request.method.as_str(), id) {
            ("GET", None) => {
                if !self.is_described && request.param("description").is_some() {
                    let message = "['description'] is invalid attribute for filtering";
                    return Err(refusal(400, "HTTPBadRequest", message));
                }
                list::answer(world, request, &self.noun, &world.neutron.plain, sees, |_, row| public(row))
            }
            ("GET", Some(id)) => {
                let row = world.neutron.plain.get(id).filter(|row| sees(row)).ok_or_else(|| missing(id))?;
                Ok(Reply::ok(json!({self.noun.one: public(row)})))
            }
            ("POST", None) => create_all(world, request, &self.noun, |world, body| {
                self.has_no_description(body)?;
                let mut row = self.noun.creation(body, caller)?;
                row.put("_noun", self.noun.one);
                row.put("_policy", parent);
                self.is_free(world, &row, "")?;
                let id = stamp_new(world, &mut row);
                let (first, next) = self.status;
                if !first.is_empty() {
                    row.put("status", first);
                    let fails = world.build_fault.fails;
                    world.after(world.options.build_time, move |world| {
                        world.neutron.plain.edit(&id, |row| row.put("status", if fails { "ERROR" } else { next }));
                    });
                }
                world.neutron.plain.insert(row.clone());
                Ok(public(&row))
            }),
            ("PUT", Some(id)) if self.changes => {
                let row = world.neutron.plain.get(id).filter(|row| sees(row)).ok_or_else(|| missing(id))?;
                owned(caller, row, &format!("update_{}", self.noun.one))?;
                let given = object(body(request, &self.noun)?);
                self.has_no_description(&given)?;
                let change = self.noun.change(&given, caller)?;
                let mut changed = row.clone();
                changed.extend(change.clone());
                self.is_free(world, &changed, id)?;
                let now = world.stamp();
                world.neutron.plain.edit(id, |row| {
                    row.extend(change);
                    touch(row, now);
                });
                Ok(Reply::ok(json!({self.noun.one: public(&changed)})))
            }
            ("DELETE", Some(id)) => {
                let row = world.neutron.plain.get(id).filter(|row| sees(row)).ok_or_else(|| missing(id))?;
                owned(caller, row, &format!("delete_{}", self.noun.one))?;
                world.neutron.plain.remove(id);
                Ok(Reply::empty(204))
            }
            _ => Err(Refusal::no_method()),
        }
    }

    fn has_no_description(&self, body: &Row) -> Result<(), Refusal> {
        if self.is_described || !body.contains_key("description") {
            return Ok(());
        }
        Err(refusal(400, "HTTPBadRequest", "Unrecognized attribute(s) 'description'"))
    }

    /// Rejects a second object with the same key.
    fn is_free(&self, world: &CloudState, row: &Row, id: &str) -> Result<(), Refusal> {
        let is_same = |other: &Row| {
            other.text("_noun") == self.noun.one
                && other.text("id") != id
                && self.key.iter().all(|key| other.get(*key) == row.get(*key))
        };
        if self.key.is_empty() || !world.neutron.plain.iter().any(is_same) {
            return Ok(());
        }
        let message = format!("There is another {} like this.", self.noun.one);
        Err(refusal(409, "HTTPConflict", message))
    }
}
