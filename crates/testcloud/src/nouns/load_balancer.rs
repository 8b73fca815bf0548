//! Octavia: while an object is being changed, its load balancer is immutable.

use serde_json::json;

use super::{Id, NOUN, Noun, States};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

const STATES: Option<States> = Some(States {
    field: "provisioning_status",
    making: "PENDING_CREATE",
    made: "ACTIVE",
    changing: "PENDING_UPDATE",
    deleting: "PENDING_DELETE",
    failed: "ERROR",
});

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        path: &["lbaas", "loadbalancers"],
        one: "loadbalancer",
        many: "loadbalancers",
        required: &["vip_subnet_id"],
        optional: &[
            "name",
            "description",
            "admin_state_up",
            "vip_address",
            "provider",
            "flavor_id",
            "availability_zone",
            "project_id",
            "tags",
        ],
        update: "PUT",
        changes: &["name", "description", "admin_state_up", "vip_qos_policy_id", "tags"],
        defaults: r#"{"description": "", "vip_address": "10.0.0.9", "provider": "amphora", "pools": [], "listeners": []}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "listeners"],
        one: "listener",
        many: "listeners",
        required: &["protocol", "protocol_port", "loadbalancer_id"],
        optional: &[
            "name",
            "description",
            "admin_state_up",
            "default_pool_id",
            "default_tls_container_ref",
            "sni_container_refs",
            "connection_limit",
            "allowed_cidrs",
            "tenant_id",
            "project_id",
            "tags",
        ],
        update: "PUT",
        changes: &[
            "name",
            "description",
            "admin_state_up",
            "default_pool_id",
            "default_tls_container_ref",
            "sni_container_refs",
            "connection_limit",
            "allowed_cidrs",
            "tags",
        ],
        key: &["loadbalancer_id", "protocol_port"],
        defaults: r#"{"description": "", "default_pool_id": null}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "pools", "*", "members"],
        one: "member",
        many: "members",
        required: &["address", "protocol_port"],
        optional: &["name", "weight", "admin_state_up", "subnet_id", "monitor_address", "monitor_port", "tags"],
        update: "PUT",
        changes: &["name", "weight", "admin_state_up", "monitor_address", "monitor_port", "tags"],
        key: &["address", "protocol_port"],
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "pools"],
        one: "pool",
        many: "pools",
        required: &["protocol", "lb_algorithm"],
        optional: &[
            "name",
            "description",
            "admin_state_up",
            "session_persistence",
            "listener_id",
            "loadbalancer_id",
            "tls_enabled",
            "tags",
        ],
        update: "PUT",
        changes: &[
            "name",
            "description",
            "admin_state_up",
            "session_persistence",
            "lb_algorithm",
            "tls_enabled",
            "tags",
        ],
        defaults: r#"{"description": "", "healthmonitor_id": null, "members": [], "listeners": []}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "healthmonitors"],
        one: "healthmonitor",
        many: "healthmonitors",
        required: &["type", "delay", "timeout", "max_retries", "pool_id"],
        optional: &["name", "admin_state_up", "expected_codes", "http_method", "url_path", "tenant_id", "tags"],
        update: "PUT",
        changes: &[
            "name",
            "admin_state_up",
            "delay",
            "expected_codes",
            "http_method",
            "max_retries",
            "timeout",
            "url_path",
            "tags",
        ],
        key: &["pool_id"],
        defaults: r#"{"name": ""}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "l7policies", "*", "rules"],
        one: "rule",
        many: "rules",
        required: &["type", "compare_type", "value"],
        optional: &["admin_state_up", "invert", "key", "tags"],
        update: "PUT",
        changes: &["type", "compare_type", "value", "admin_state_up", "invert", "key", "tags"],
        defaults: r#"{"key": null}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "l7policies"],
        one: "l7policy",
        many: "l7policies",
        required: &["action", "listener_id"],
        optional: &["name", "description", "admin_state_up", "redirect_pool_id", "redirect_url", "position", "tags"],
        update: "PUT",
        changes: &[
            "name",
            "description",
            "admin_state_up",
            "action",
            "redirect_pool_id",
            "redirect_url",
            "position",
            "tags",
        ],
        defaults: r#"{"description": "", "rules": []}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "flavorprofiles"],
        one: "flavorprofile",
        many: "flavorprofiles",
        required: &["name", "flavor_data", "provider_name"],
        update: "PUT",
        changes: &["name", "flavor_data", "provider_name"],
        admin: true,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "flavors"],
        one: "flavor",
        many: "flavors",
        required: &["name", "flavor_profile_id"],
        optional: &["description", "enabled"],
        update: "PUT",
        changes: &["name", "description", "enabled"],
        key: &["name"],
        admin: true,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "availabilityzoneprofiles"],
        one: "availability_zone_profile",
        many: "availability_zone_profiles",
        required: &["name", "availability_zone_data", "provider_name"],
        update: "PUT",
        changes: &["name", "availability_zone_data", "provider_name"],
        admin: true,
        ..NOUN
    },
    Noun {
        path: &["lbaas", "availabilityzones"],
        one: "availability_zone",
        many: "availability_zones",
        id: Id::Given("name"),
        required: &["name", "availability_zone_profile_id"],
        optional: &["description", "enabled"],
        update: "PUT",
        changes: &["description", "enabled"],
        admin: true,
        ..NOUN
    },
];

/// The key of the load balancer that an object belongs to; empty if it belongs to none.
fn balancer(world: &CloudState, row: &Row) -> String {
    if row.text("_noun").ends_with("/loadbalancers") {
        return row.text("id").to_owned();
    }
    if !row.text("_loadbalancer_id").is_empty() {
        return row.text("_loadbalancer_id").to_owned();
    }
    let owner = ["_listener_id", "listener_id", "pool_id", "_parent"].into_iter().map(|field| row.text(field));
    let owner = owner.filter(|id| !id.is_empty()).find_map(|id| world.nouns.rows.get(id));
    owner.map(|owner| balancer(world, owner)).unwrap_or_default()
}

/// Checks that the load balancer of an object may be changed, and marks it as being changed.
pub(super) fn lock(world: &mut CloudState, key: &str, is_delete: bool) -> Result<(), Refusal> {
    let Some(row) = world.nouns.rows.get(key).cloned() else { return Ok(()) };
    lock_row(world, &row, is_delete)
}

fn lock_row(world: &mut CloudState, row: &Row, is_delete: bool) -> Result<(), Refusal> {
    let id = balancer(world, row);
    if id.is_empty() {
        return Ok(());
    }
    let Some(owner) = world.nouns.rows.get(&id) else {
        return Err(Refusal::missing(format!("Load Balancer {id} not found.")));
    };
    let is_deletable = is_delete && owner.text("provisioning_status") == "ERROR";
    if owner.text("provisioning_status") != "ACTIVE" && !is_deletable {
        return Err(Refusal::conflict(format!("Load Balancer {id} is immutable and cannot be updated.")));
    }
    if row.text("id") != id {
        world.nouns.rows.edit(&id, |row| row.put("provisioning_status", "PENDING_UPDATE"));
        world.after(world.options.build_time, move |world| {
            world.nouns.rows.edit(&id, |row| row.put("provisioning_status", "ACTIVE"));
        });
    }
    Ok(())
}

/// Completes a new object.
pub(super) fn prepare(world: &mut CloudState, noun: &Noun, row: &mut Row) -> Result<(), Refusal> {
    if noun.one == "loadbalancer" {
        row.put("vip_port_id", world.uuid());
        return Ok(());
    }
    if matches!(noun.one, "listener" | "pool") {
        // They show what they belong to only in lists.
        for (sent, kept) in [("loadbalancer_id", "_loadbalancer_id"), ("listener_id", "_listener_id")] {
            if let Some(owner) = row.remove(sent).filter(|owner| !owner.is_null()) {
                row.put(kept, owner);
            }
        }
        row.put("loadbalancers", json!([{"id": balancer(world, row)}]));
        if !row.text("_listener_id").is_empty() {
            row.put("listeners", json!([{"id": row.text("_listener_id")}]));
        }
    }
    if noun.states.is_some() {
        lock_row(world, row, false)?;
        if let Some(pool) = Some(row.text("pool_id")).filter(|id| !id.is_empty()) {
            row.put("pools", json!([{"id": pool}]));
        }
    }
    Ok(())
}

/// Quotas.
pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    segments: &[&str],
) -> Option<Outcome> {
    const RESOURCES: [&str; 5] = ["loadbalancer", "listener", "pool", "member", "healthmonitor"];
    let ["lbaas", "quotas", project] = segments else { return None };
    Some(super::other::quota(world, request, caller, &format!("load-balancer {project}"), "quota", &RESOURCES))
}
