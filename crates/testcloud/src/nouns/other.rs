//! Designate, cluster templates of Magnum, Ironic and Blazar; and quotas.

use serde_json::{Value, json};

use super::{NOUN, Noun, States};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const DNS: Option<States> = Some(States {
    field: "status",
    making: "PENDING",
    made: "ACTIVE",
    changing: "PENDING",
    deleting: "PENDING",
    failed: "ERROR",
});

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        service: Service::Dns,
        path: &["zones", "*", "recordsets"],
        many: "recordsets",
        required: &["name", "type", "records"],
        optional: &["ttl", "description"],
        update: "PUT",
        changes: &["ttl", "description", "records"],
        key: &["name", "type"],
        defaults: r#"{"ttl": null, "description": null}"#,
        states: DNS,
        ..NOUN
    },
    Noun {
        service: Service::Dns,
        path: &["zones"],
        many: "zones",
        required: &["name"],
        optional: &["type", "email", "ttl", "description", "masters", "attributes"],
        update: "PATCH",
        changes: &["email", "ttl", "description", "masters"],
        key: &["name"],
        defaults: r#"{"serial": 1767225600, "ttl": 3600, "description": null}"#,
        states: DNS,
        ..NOUN
    },
    Noun {
        service: Service::ContainerInfra,
        path: &["clustertemplates"],
        many: "clustertemplates",
        id: super::Id::Uuid("uuid"),
        required: &["name", "coe", "image_id", "external_network_id"],
        optional: &[
            "flavor_id",
            "master_flavor_id",
            "keypair_id",
            "fixed_network",
            "fixed_subnet",
            "dns_nameserver",
            "docker_volume_size",
            "docker_storage_driver",
            "network_driver",
            "volume_driver",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "labels",
            "tls_disabled",
            "public",
            "registry_enabled",
            "server_type",
            "master_lb_enabled",
            "floating_ip_enabled",
        ],
        ..NOUN
    },
    Noun {
        service: Service::Baremetal,
        path: &["nodes"],
        many: "nodes",
        id: super::Id::Uuid("uuid"),
        required: &["driver"],
        optional: &["name"],
        ..NOUN
    },
    Noun {
        service: Service::Baremetal,
        path: &["ports"],
        many: "ports",
        id: super::Id::Uuid("uuid"),
        required: &["node_uuid", "address"],
        optional: &[
            "portgroup_uuid",
            "local_link_connection",
            "pxe_enabled",
            "physical_network",
            "extra",
            "is_smartnic",
        ],
        key: &["address"],
        ..NOUN
    },
    Noun {
        service: Service::Reservation,
        path: &["os-hosts"],
        one: "host",
        bare: true,
        many: "hosts",
        required: &["name"],
        optional: &["gpu", "ssd"],
        key: &["_name"],
        admin: true,
        ..NOUN
    },
    Noun {
        service: Service::Reservation,
        path: &["leases"],
        one: "lease",
        bare: true,
        many: "leases",
        required: &["name", "start_date", "end_date", "reservations"],
        optional: &["events", "before_end_date"],
        key: &["name"],
        defaults: r#"{"degraded": false}"#,
        states: Some(States {
            field: "status",
            making: "CREATING",
            made: "PENDING",
            changing: "",
            deleting: "",
            failed: "ERROR",
        }),
        ..NOUN
    },
];

/// JSON patches of Magnum and Ironic.
pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    segments: &[&str],
) -> Option<Outcome> {
    let is_patched = matches!(request.service, Service::ContainerInfra | Service::Baremetal);
    let ([many, id], "PATCH", true) = (segments, request.method.as_str(), is_patched) else { return None };
    let noun = super::nouns().find(|noun| noun.service == request.service && noun.path == [*many])?;
    Some(patch(world, request, caller, noun, id))
}

fn patch(world: &mut CloudState, request: &ServiceCall, caller: &Caller, noun: &Noun, id: &str) -> Outcome {
    let row = noun.find(world, id)?;
    if !caller.admin && row.text("_project") != caller.project {
        return Err(noun.missing(id));
    }
    let (key, mut changed) = (row.text("id").to_owned(), row.clone());
    let patches = request.json("The body is not valid JSON")?;
    for change in patches.as_array().into_iter().flatten() {
        let field = change["path"].as_str().unwrap_or_default().trim_start_matches('/');
        if !noun.required.contains(&field) && !noun.optional.contains(&field) {
            return Err(Refusal::bad(format!("Adding a new attribute (/{field}) is not allowed")));
        }
        changed.put(field, change["value"].clone());
    }
    if let Some(states) = &noun.states {
        changed.put(states.field, states.changing);
        noun.later(world, &key, if states.failed == "CREATE_FAILED" { "UPDATE_COMPLETE" } else { states.made });
    }
    world.nouns.rows.edit(&key, |row| row.clone_from(&changed));
    Ok(Reply::ok(Value::Object(public(&changed))))
}

/// A host has the names of its hypervisor and service. A lease has events, also for the date before its end, and times with
/// seconds; its reservations have IDs.
pub(super) fn as_blazar_shows(world: &mut CloudState, row: &mut Row) {
    if row.get("reservations").is_none() {
        let name = row.shift_remove("name").unwrap_or_default();
        for field in ["_name", "hypervisor_hostname", "service_name"] {
            row.put(field, name.clone());
        }
        return;
    }
    let seconds = |time: &str| format!("{}:00.000000", time.replace(' ', "T"));
    let (start, end) = (row.text("start_date").to_owned(), row.text("end_date").to_owned());
    let mut events = vec![("start_lease", start.clone()), ("end_lease", end.clone())];
    if let Some(Value::String(before)) = row.shift_remove("before_end_date") {
        events.push(("before_end_lease", before));
    }
    row.put("start_date", seconds(&start));
    row.put("end_date", seconds(&end));
    let given = row.list("events").to_vec();
    let given =
        given.iter().filter_map(|event| Some((event["event_type"].as_str()?, event["time"].as_str()?.to_owned())));
    let all: Vec<(&str, String)> = events.into_iter().chain(given).collect();
    let event = |(kind, time): (&str, String)| json!({"id": world.uuid(), "event_type": kind, "time": seconds(&time), "status": "UNDONE"});
    let events: Vec<Value> = all.into_iter().map(event).collect();
    row.put("events", events);
    for reservation in row.get_mut("reservations").and_then(Value::as_array_mut).into_iter().flatten() {
        reservation["id"] = json!(world.uuid());
        reservation["status"] = json!("pending");
    }
}

/// The limits of a project: the defaults, with those that an administrator has set ([`quota`]).
pub(crate) fn quota_of(world: &CloudState, key: &str, mut defaults: Value) -> Value {
    for (name, limit) in world.nouns.rows.get(key).into_iter().flatten().filter(|(name, _)| *name != "id") {
        if let Some(default) = defaults.get_mut(name.as_str()) {
            *default = limit.clone();
        }
    }
    defaults
}

/// The quotas of a project, in one row with the key `key`.
pub(crate) fn quota(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    key: &str,
    wrapper: &str,
    resources: &[&str],
) -> Outcome {
    if !caller.admin {
        return Err(Refusal::forbidden("Policy does not allow quotas to be changed."));
    }
    let shown = |row: Option<&Row>| {
        let limit =
            |name: &&str| ((*name).to_owned(), row.and_then(|row| row.get(*name)).cloned().unwrap_or(json!(-1)));
        Reply::ok(json!({wrapper: resources.iter().map(limit).collect::<Row>()}))
    };
    match request.method.as_str() {
        "GET" => Ok(shown(world.nouns.rows.get(key))),
        "PUT" => {
            let mut body = request.json("The body is not valid JSON")?;
            let Some(Value::Object(limits)) = body.get_mut(wrapper).map(Value::take) else {
                return Err(Refusal::bad(format!("'{wrapper}' is required")));
            };
            if let Some(unknown) = limits.keys().find(|name| !resources.contains(&name.as_str())) {
                return Err(Refusal::bad(format!("Unknown resource {unknown}")));
            }
            let mut row = world.nouns.rows.get(key).cloned().unwrap_or_default();
            row.put("id", key);
            row.put("_noun", "quotas");
            row.extend(limits);
            world.nouns.rows.insert(row);
            Ok(shown(world.nouns.rows.get(key)))
        }
        "DELETE" => {
            world.nouns.rows.remove(key);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}
