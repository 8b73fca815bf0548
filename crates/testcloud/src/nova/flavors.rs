//! Flavors and their extra specs.

use serde_json::{Value, json};

use super::{Call, admin_only, check_fields, invalid, links, name_field, page, text_map, whole_number};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::python;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const FIELDS: [&str; 10] = [
    "name",
    "id",
    "ram",
    "vcpus",
    "disk",
    "OS-FLV-EXT-DATA:ephemeral",
    "swap",
    "rxtx_factor",
    "os-flavor-access:is_public",
    "description",
];

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", [] | ["detail"]) => list(world, call, !rest.is_empty()),
        ("POST", []) => {
            admin_only(call.caller, "os-flavor-manage:create")?;
            create(world, call)
        }
        ("GET", [id]) => {
            let row = find(world, call, id)?;
            Ok(Reply::ok(json!({"flavor": show(world, call, row)})))
        }
        ("PUT", [id]) => {
            admin_only(call.caller, "os-flavor-manage:update")?;
            let body = call.request.member("flavor")?;
            check_fields("flavor", &body, &["description"], &["description"])?;
            find(world, call, id)?;
            world.nova.flavors.edit(id, |row| row.extend(body));
            Ok(Reply::ok(json!({"flavor": show(world, call, find(world, call, id)?)})))
        }
        ("DELETE", [id]) => {
            admin_only(call.caller, "os-flavor-manage:delete")?;
            world.nova.flavors.remove(id).ok_or_else(|| missing(id))?;
            Ok(Reply::empty(202))
        }
        ("GET", [id, "os-flavor-access"]) => {
            admin_only(call.caller, "os-flavor-access")?;
            let row = find(world, call, id)?;
            if row.flag("os-flavor-access:is_public") {
                return Err(Refusal::missing("Access list not available for public flavors."));
            }
            let projects = row.texts("_projects");
            let list: Vec<Value> =
                projects.iter().map(|project| json!({"flavor_id": id, "tenant_id": project})).collect();
            Ok(Reply::ok(json!({"flavor_access": list})))
        }
        ("POST", [id, "action"]) => access(world, call, id),
        (_, [id, "os-extra_specs", key @ ..]) => extra_specs(world, call, id, key),
        _ => Err(Refusal::no_route()),
    }
}

fn missing(id: &str) -> Refusal {
    Refusal::missing(format!("Flavor {id} could not be found."))
}

fn sees(call: Call<'_>, row: &Row) -> bool {
    call.caller.admin || row.flag("os-flavor-access:is_public") || row.texts("_projects").contains(&call.caller.project)
}

fn find<'a>(world: &'a CloudState, call: Call<'_>, id: &str) -> Result<&'a Row, Refusal> {
    world.nova.flavors.get(id).filter(|row| sees(call, row)).ok_or_else(|| missing(id))
}

fn show(world: &CloudState, call: Call<'_>, row: &Row) -> Row {
    let mut seen = public(row);
    seen.put("links", links(world, "flavors", row.text("id")));
    if call.minor < 61 {
        seen.remove("extra_specs");
    }
    if call.minor < 55 {
        seen.remove("description");
    }
    if call.minor < 75 && seen.int("swap") == 0 {
        seen.put("swap", "");
    }
    seen
}

fn list(world: &CloudState, call: Call<'_>, detail: bool) -> Outcome {
    let request = call.request;
    let public = match request.param("is_public").map(str::to_ascii_lowercase).as_deref() {
        Some("none") if call.caller.admin => None,
        Some("false" | "0") if call.caller.admin => Some(false),
        _ => Some(true),
    };
    let at_least = |name: &str, field: &str, row: &Row| {
        request.param(name).and_then(|least| least.parse::<i64>().ok()).is_none_or(|least| row.int(field) >= least)
    };
    let fits = |row: &&Row| {
        (sees(call, row)
            && (!call.caller.admin || public.is_none_or(|wanted| row.flag("os-flavor-access:is_public") == wanted)))
            && at_least("minRam", "ram", row)
            && at_least("minDisk", "disk", row)
    };
    let mut rows: Vec<&Row> = world.nova.flavors.iter().filter(fits).collect();
    rows.sort_by(|one, other| one.text("id").cmp(other.text("id")));
    let (rows, next) = page(world, request, rows, "marker")?;
    let brief = |row: &Row| {
        let mut brief =
            json!({"id": row.text("id"), "name": row.text("name"), "links": links(world, "flavors", row.text("id"))});
        if call.minor >= 55 {
            brief["description"] = row.get("description").cloned().unwrap_or_default();
        }
        brief
    };
    let rows: Vec<Value> =
        rows.into_iter().map(|row| if detail { Value::Object(show(world, call, row)) } else { brief(row) }).collect();
    let mut reply = json!({"flavors": rows});
    if let Some(next) = next {
        reply["flavors_links"] = next;
    }
    Ok(Reply::ok(reply))
}

fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let body = call.request.member("flavor")?;
    check_fields("flavor", &body, &FIELDS, &["name", "ram", "vcpus", "disk"])?;
    let name = name_field(&body, "name", 255)?;
    let number = |field: &str, least: i64| whole_number(&body, field, least).map(|number| number.unwrap_or(least));
    let (ram, vcpus, disk) = (number("ram", 1)?, number("vcpus", 1)?, number("disk", 0)?);
    let (ephemeral, swap) = (number("OS-FLV-EXT-DATA:ephemeral", 0)?, number("swap", 0)?);
    let id = match body.get("id") {
        Some(Value::String(id)) if id != "auto" => {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
            if id.is_empty() || id.len() > 255 || !id.chars().all(fits) {
                return Err(invalid(
                    "id",
                    &body["id"],
                    &format!("{} is not valid under any of the given schemas", python(&body["id"])),
                ));
            }
            id.clone()
        }
        Some(Value::Number(id)) => id.to_string(),
        _ => world.uuid(),
    };
    if world.nova.flavors.by("name", &name).next().is_some() {
        return Err(Refusal::conflict(format!("Flavor with name {name} already exists.")));
    }
    if world.nova.flavors.get(&id).is_some() {
        return Err(Refusal::conflict(format!("Flavor with ID {id} already exists.")));
    }
    new_flavor(world, &id, &name, vcpus, ram, disk);
    world.nova.flavors.edit(&id, |row| {
        row.put("OS-FLV-EXT-DATA:ephemeral", ephemeral);
        row.put("swap", swap);
        for field in ["rxtx_factor", "os-flavor-access:is_public", "description"] {
            if let Some(value) = body.get(field) {
                row.put(field, value.clone());
            }
        }
    });
    let row = find(world, call, &id)?;
    Ok(Reply::ok(json!({"flavor": show(world, call, row)})))
}

/// Creates a public flavor: MiB of memory, GiB of disk.
pub(crate) fn new_flavor(world: &mut CloudState, id: &str, name: &str, vcpus: i64, ram: i64, disk: i64) {
    let mut row = Row::new();
    row.put("id", id);
    row.put("name", name);
    row.put("ram", ram);
    row.put("disk", disk);
    row.put("swap", 0);
    row.put("OS-FLV-EXT-DATA:ephemeral", 0);
    row.put("OS-FLV-DISABLED:disabled", false);
    row.put("vcpus", vcpus);
    row.put("os-flavor-access:is_public", true);
    row.put("rxtx_factor", 1.0);
    row.put("description", Value::Null);
    row.put("extra_specs", json!({}));
    world.nova.flavors.insert(row);
}

/// The projects that may use a private flavor.
fn access(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    admin_only(call.caller, "os-flavor-access:add_tenant_access")?;
    let body = call.request.json("Malformed request body")?;
    let row = find(world, call, id)?;
    let mut projects = row.texts("_projects");
    let named = |action: &str| body.get(action).and_then(|action| action.get("tenant")?.as_str()).map(str::to_owned);
    if let Some(project) = named("addTenantAccess") {
        if row.flag("os-flavor-access:is_public") {
            return Err(Refusal::conflict("Can not add access to a public flavor."));
        }
        if projects.contains(&project) {
            let message = format!("Flavor access already exists for flavor {id} and project {project} combination.");
            return Err(Refusal::conflict(message));
        }
        projects.push(project);
    } else if let Some(project) = named("removeTenantAccess") {
        if !projects.contains(&project) {
            let message = format!("Flavor access not found for {id} / {project} combination.");
            return Err(Refusal::missing(message));
        }
        projects.retain(|own| *own != project);
    } else {
        return Err(Refusal::bad("There is no such action"));
    }
    world.nova.flavors.edit(id, |row| row.put("_projects", projects.clone()));
    let list: Vec<Value> = projects.iter().map(|project| json!({"flavor_id": id, "tenant_id": project})).collect();
    Ok(Reply::ok(json!({"flavor_access": list})))
}

fn extra_specs(world: &mut CloudState, call: Call<'_>, id: &str, key: &[&str]) -> Outcome {
    let specs = find(world, call, id)?.get("extra_specs").and_then(Value::as_object).cloned().unwrap_or_default();
    let unknown = |key: &str| Refusal::missing(format!("Flavor {id} has no extra specs with key {key}."));
    let store =
        |world: &mut CloudState, specs: &Row| world.nova.flavors.edit(id, |row| row.put("extra_specs", specs.clone()));
    match (call.request.method.as_str(), key) {
        ("GET", []) => Ok(Reply::ok(json!({"extra_specs": specs}))),
        ("GET", [key]) => {
            let value = specs.get(*key).ok_or_else(|| unknown(key))?;
            Ok(Reply::ok(json!({*key: value})))
        }
        ("POST", []) => {
            admin_only(call.caller, "os-flavor-extra-specs:create")?;
            let body = match call.request.json("Malformed request body")? {
                Value::Object(body) if body.contains_key("extra_specs") => body,
                _ => return Err(Refusal::bad("'extra_specs' is a required property")),
            };
            let given = text_map(&body, "extra_specs")?;
            let mut specs = specs;
            specs.extend(given.clone());
            store(world, &specs);
            Ok(Reply::ok(json!({"extra_specs": given})))
        }
        ("PUT", [key]) => {
            admin_only(call.caller, "os-flavor-extra-specs:update")?;
            let body = call.request.json("Malformed request body")?;
            let value =
                body.get(*key).and_then(Value::as_str).ok_or_else(|| Refusal::bad("ServiceCall body is invalid"))?;
            let mut specs = specs;
            specs.put(key, value);
            store(world, &specs);
            Ok(Reply::ok(json!({*key: value})))
        }
        ("DELETE", [key]) => {
            admin_only(call.caller, "os-flavor-extra-specs:delete")?;
            let mut specs = specs;
            specs.remove(*key).ok_or_else(|| unknown(key))?;
            store(world, &specs);
            Ok(Reply::empty(200))
        }
        _ => Err(Refusal::no_method()),
    }
}
