//! Manila: shares with access rules and metadata, share networks with security services, share types.

use serde_json::{Value, json};

use super::{NOUN, Noun, States};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        service: Service::Share,
        path: &["shares"],
        one: "share",
        many: "shares",
        required: &["share_proto", "size"],
        optional: &["snapshot_id", "name", "description", "metadata", "share_network_id", "share_type", "is_public"],
        update: "PUT",
        changes: &["display_name", "display_description", "is_public"],
        defaults: r#"{
            "name": null, "description": null, "metadata": {}, "is_public": false, "snapshot_id": null,
            "share_network_id": null, "share_type": "d3b6a7f0-6a38-4a1e-9d28-3c0f3f0f7a51"
        }"#,
        states: Some(States {
            field: "status",
            making: "creating",
            made: "available",
            changing: "",
            deleting: "deleting",
            failed: "error",
        }),
        ..NOUN
    },
    Noun {
        service: Service::Share,
        path: &["share-networks"],
        one: "share_network",
        many: "share_networks",
        optional: &["name", "description", "neutron_net_id", "neutron_subnet_id"],
        update: "PUT",
        changes: &["name", "description", "neutron_net_id", "neutron_subnet_id"],
        defaults: r#"{"name": null, "description": null, "segmentation_id": null, "cidr": null}"#,
        ..NOUN
    },
    Noun {
        service: Service::Share,
        path: &["security-services"],
        one: "security_service",
        many: "security_services",
        required: &["type"],
        optional: &["name", "dns_ip", "server", "domain", "user", "password", "description"],
        update: "PUT",
        changes: &["name", "dns_ip", "server", "domain", "user", "password", "description"],
        ..NOUN
    },
    Noun {
        service: Service::Share,
        path: &["types"],
        one: "share_type",
        many: "share_types",
        required: &["name", "extra_specs"],
        optional: &["share_type_access:is_public", "description"],
        key: &["name"],
        admin: true,
        ..NOUN
    },
];

/// Lists with details, actions and extra specs.
pub(super) fn route(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Option<Outcome> {
    match (segments, request.method.as_str()) {
        (["security-services", "detail"], "GET") => {
            let network = request.param("share_network_id").unwrap_or_default().to_owned();
            let rows = world.nouns.rows.by("_noun", "share/security-services");
            let belongs = |row: &&Row| network.is_empty() || row.texts("_networks").contains(&network);
            Some(Ok(Reply::ok(json!({"security_services": rows.filter(belongs).map(public).collect::<Vec<_>>()}))))
        }
        ([many @ ("shares" | "share-networks"), "detail"], "GET") => {
            let rows: Vec<Row> = world.nouns.rows.by("_noun", &format!("share/{many}")).map(public).collect();
            Some(Ok(Reply::ok(json!({many.replace('-', "_"): rows}))))
        }
        (["shares", id], "PUT") => Some(rename(world, request, id)),
        (["shares", id, "metadata"], "PUT") => Some(change(world, "shares", id, |row| {
            let metadata = request.json("The body is not valid JSON")?["metadata"].clone();
            row.put("metadata", metadata);
            Ok(json!({}))
        })),
        (["shares", id, "export_locations"], "GET") => {
            let path = format!("10.0.0.1:/shares/{id}");
            Some(Ok(Reply::ok(json!({"export_locations": [{"path": path, "id": id}]}))))
        }
        (["shares", id, "action"], "POST") => {
            let rule_id = world.uuid();
            Some(change(world, "shares", id, |row| access(row, request, rule_id)))
        }
        (["share-networks", id, "action"], "POST") => Some(services(world, request, id)),
        (["types", id, "extra_specs", rest @ ..], method) => Some(change(world, "types", id, |row| {
            let Some(Value::Object(specs)) = row.get_mut("extra_specs") else { return Ok(json!({})) };
            match (method, rest) {
                ("POST", []) => {
                    if let Value::Object(new) = request.json("The body is not valid JSON")?["extra_specs"].take() {
                        specs.extend(new);
                    }
                }
                ("DELETE", [key]) => {
                    specs.shift_remove(*key).ok_or_else(|| Refusal::missing(format!("{key} was not found")))?;
                }
                _ => return Err(Refusal::no_method()),
            }
            Ok(json!({}))
        })),
        _ => None,
    }
}

fn find<'a>(world: &'a CloudState, many: &str, id: &str) -> Result<&'a Row, Refusal> {
    let noun = format!("share/{many}");
    let mut rows = world.nouns.rows.by("_noun", &noun);
    rows.find(|row| row.text("_id") == id).ok_or_else(|| Refusal::missing(format!("{id} was not found")))
}

/// Changes a row; the answer is the body of the response.
fn change(
    world: &mut CloudState,
    many: &str,
    id: &str,
    change: impl FnOnce(&mut Row) -> Result<Value, Refusal>,
) -> Outcome {
    let key = find(world, many, id)?.text("id").to_owned();
    let body = world.nouns.rows.edit(&key, change).unwrap_or_else(|| Ok(json!({})))?;
    Ok(Reply::ok(body))
}

/// An update has other keys than a create.
fn rename(world: &mut CloudState, request: &ServiceCall, id: &str) -> Outcome {
    change(world, "shares", id, |row| {
        let body = request.json("The body is not valid JSON")?;
        for (key, value) in body["share"].as_object().into_iter().flatten() {
            match key.as_str() {
                "display_name" => row.put("name", value.clone()),
                "display_description" => row.put("description", value.clone()),
                "is_public" => row.put("is_public", value.clone()),
                other => return Err(Refusal::bad(format!("Unknown attribute {other}"))),
            }
        }
        Ok(json!({"share": public(row)}))
    })
}

/// The rules of a share, which must be available.
fn access(row: &mut Row, request: &ServiceCall, rule_id: String) -> Result<Value, Refusal> {
    let body = request.json("The body is not valid JSON")?;
    if body.get("access_list").is_some() {
        return Ok(json!({"access_list": row.list("_rules")}));
    }
    if row.text("status") != "available" {
        return Err(Refusal::bad("New access rules cannot be applied while the share is not available."));
    }
    if let Some(Value::Object(rule)) = body.get("allow_access") {
        let target = rule.get("access_to").cloned();
        if row.list("_rules").iter().any(|other| other.get("access_to") == target.as_ref()) {
            return Err(Refusal::bad("Share access rule already exists."));
        }
        let mut rule = rule.clone();
        rule.put("id", rule_id);
        if rule.get("access_level").is_none_or(Value::is_null) {
            rule.put("access_level", "rw");
        }
        row.push("_rules", Value::Object(rule.clone()));
        return Ok(json!({"access": rule}));
    }
    let id = body["deny_access"]["access_id"].clone();
    row.drop_from("_rules", |rule| rule["id"] == id);
    Ok(json!({}))
}

/// Adds a security service to a share network, or removes it.
fn services(world: &mut CloudState, request: &ServiceCall, id: &str) -> Outcome {
    find(world, "share-networks", id)?;
    let body = request.json("The body is not valid JSON")?;
    let (adds, entry) = match (body.get("add_security_service"), body.get("remove_security_service")) {
        (Some(entry), _) => (true, entry),
        (None, Some(entry)) => (false, entry),
        _ => return Err(Refusal::bad("Unknown action")),
    };
    let service = entry["security_service_id"].as_str().unwrap_or_default();
    change(world, "security-services", service, |row| {
        if adds && row.texts("_networks").iter().any(|network| network == id) {
            return Err(Refusal::forbidden("The security service is already associated."));
        }
        if adds {
            row.push("_networks", id);
        } else {
            row.drop_from("_networks", |network| network == id);
        }
        Ok(json!({}))
    })
}
