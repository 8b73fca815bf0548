//! Services, endpoints and regions, and the catalog in tokens.

use serde_json::{Value, json};

use super::tokens::Caller;
use super::{admin_only, list, member, need, not_found, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, Table};

/// The catalog in a token for `project`; without one, endpoints that need a project are omitted.
pub(super) fn of_project(world: &CloudState, project: &str) -> Vec<Value> {
    let entry = |service: &Row| {
        let endpoints = world.keystone.endpoints.by("service_id", service.text("id"));
        let endpoints = endpoints.filter(|row| row.flag("enabled")).filter_map(|row| {
            let url = row.text("url");
            let url = ["%(project_id)s", "$(project_id)s", "%(tenant_id)s", "$(tenant_id)s"]
                .iter()
                .fold(url.to_owned(), |url, pattern| url.replace(pattern, project));
            if project.is_empty() && url != row.text("url") {
                return None;
            }
            Some(json!({
                "id": row.text("id"), "interface": row.text("interface"), "region_id": row.get("region_id"), "url": url,
                "region": row.get("region"),
            }))
        });
        let endpoints: Vec<Value> = endpoints.collect();
        json!({"endpoints": endpoints, "id": service.text("id"), "type": service.text("type"), "name": service.text("name")})
    };
    world.keystone.services.iter().filter(|service| service.flag("enabled")).map(entry).collect()
}

/// Creates a service with its three endpoints.
pub(crate) fn new_service(world: &mut CloudState, kind: &str, name: &str, url: &str) {
    let mut row = Row::new();
    let service = world.hex_id();
    row.put("id", service.clone());
    row.put("name", name);
    row.put("type", kind);
    row.put("enabled", true);
    world.keystone.services.insert(row);
    for interface in ["admin", "internal", "public"] {
        let mut row = Row::new();
        row.put("id", world.hex_id());
        row.put("interface", interface);
        row.put("region_id", "RegionOne");
        row.put("service_id", service.clone());
        row.put("url", url);
        row.put("enabled", true);
        row.put("region", "RegionOne");
        world.keystone.endpoints.insert(row);
    }
}

/// One of the three collections in this file.
struct Noun {
    one: &'static str,
    many: &'static str,
    required: &'static [&'static str],
    filters: &'static [&'static str],
    table: fn(&mut CloudState) -> &mut Table,
    /// Whether ordinary users may read it.
    open: bool,
}

pub(super) fn services(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let noun = Noun {
        one: "service",
        many: "services",
        required: &["type"],
        filters: &["type", "name"],
        table: |world| &mut world.keystone.services,
        open: false,
    };
    noun.serve(world, request, caller, rest)
}

pub(super) fn endpoints(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let noun = Noun {
        one: "endpoint",
        many: "endpoints",
        required: &["interface", "service_id", "url"],
        filters: &["interface", "service_id", "region_id"],
        table: |world| &mut world.keystone.endpoints,
        open: false,
    };
    noun.serve(world, request, caller, rest)
}

pub(super) fn regions(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let noun = Noun {
        one: "region",
        many: "regions",
        required: &[],
        filters: &["parent_region_id"],
        table: |world| &mut world.keystone.regions,
        open: true,
    };
    noun.serve(world, request, caller, rest)
}

impl Noun {
    fn serve(&self, world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
        let allow = |verb: &str, noun: &str, open: bool| {
            if open { Ok(()) } else { admin_only(caller, &format!("{verb}_{noun}")) }
        };
        match (request.method.as_str(), rest) {
            ("GET", []) => {
                allow("list", self.many, self.open)?;
                (self.table)(world);
                let table = match self.one {
                    "service" => &world.keystone.services,
                    "endpoint" => &world.keystone.endpoints,
                    _ => &world.keystone.regions,
                };
                Ok(list(world, request, self.many, table, self.filters))
            }
            ("GET", [id]) => {
                allow("get", self.one, self.open)?;
                self.reply(world, 200, id)
            }
            ("POST", []) => {
                allow("create", self.one, false)?;
                let mut body = member(request, self.one)?;
                for field in self.required {
                    need(&body, field)?;
                }
                let service = body.text("service_id").to_owned();
                if self.one == "endpoint" && world.keystone.services.get(&service).is_none() {
                    return Err(Refusal::bad(format!("Could not find service: {service}.")));
                }
                if self.one == "endpoint" {
                    let region = body.get("region_id").or(body.get("region")).cloned().unwrap_or_default();
                    body.put("region_id", region.clone());
                    body.put("region", region);
                }
                if self.one == "region" {
                    body.entry("description").or_insert(Value::from(""));
                    body.entry("parent_region_id").or_insert(Value::Null);
                } else {
                    body.entry("enabled").or_insert(Value::Bool(true));
                }
                let given =
                    Some(body.text("id")).filter(|id| !id.is_empty() && self.one == "region").map(str::to_owned);
                let id = given.unwrap_or_else(|| world.hex_id());
                if (self.table)(world).get(&id).is_some() {
                    return Err(Refusal::conflict(format!(
                        "Conflict occurred attempting to store {} - Duplicate ID, {id}.",
                        self.one
                    )));
                }
                body.put("id", id.clone());
                (self.table)(world).insert(body);
                self.reply(world, 201, &id)
            }
            ("PATCH", [id]) => {
                allow("update", self.one, false)?;
                let mut body = member(request, self.one)?;
                body.remove("id");
                (self.table)(world).edit(id, |row| row.extend(body)).ok_or_else(|| not_found(self.one, id))?;
                self.reply(world, 200, id)
            }
            ("DELETE", [id]) => {
                allow("delete", self.one, false)?;
                (self.table)(world).remove(id).ok_or_else(|| not_found(self.one, id))?;
                if self.one == "service" {
                    let orphans: Vec<String> =
                        world.keystone.endpoints.by("service_id", id).map(|row| row.text("id").to_owned()).collect();
                    for orphan in orphans {
                        world.keystone.endpoints.remove(&orphan);
                    }
                }
                Ok(Reply::empty(204))
            }
            _ => Err(Refusal::no_route()),
        }
    }

    fn reply(&self, world: &mut CloudState, status: u16, id: &str) -> Outcome {
        let row = (self.table)(world).get(id).ok_or_else(|| not_found(self.one, id))?.clone();
        Ok(Reply::json(status, json!({self.one: view(world, self.many, &row)})))
    }
}

/// Creates a region.
pub(crate) fn new_region(world: &mut CloudState, id: &str) {
    let mut row = Row::new();
    row.put("id", id);
    row.put("description", "");
    row.put("parent_region_id", Value::Null);
    world.keystone.regions.insert(row);
}
