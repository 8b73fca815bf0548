//! Trove: instances with databases and users, clusters, flavors and datastores.

use serde_json::{Value, json};

use super::{NOUN, Noun, States};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const STATES: Option<States> = Some(States {
    field: "status",
    making: "BUILD",
    made: "ACTIVE",
    changing: "",
    deleting: "SHUTDOWN",
    failed: "ERROR",
});

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        service: Service::Database,
        path: &["instances"],
        one: "instance",
        many: "instances",
        required: &["name", "flavorRef"],
        optional: &[
            "volume",
            "databases",
            "users",
            "restorePoint",
            "availability_zone",
            "datastore",
            "nics",
            "replica_of",
            "replica_count",
        ],
        update: "PATCH",
        changes: &["name"],
        defaults: r#"{"hostname": "10.0.0.7"}"#,
        states: STATES,
        ..NOUN
    },
    Noun {
        service: Service::Database,
        path: &["clusters"],
        one: "cluster",
        many: "clusters",
        required: &["name", "datastore", "instances"],
        defaults: r#"{"ip": ["10.0.0.8"], "task": {"id": 1, "name": "NONE"}}"#,
        states: STATES,
        ..NOUN
    },
];

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Option<Outcome> {
    match (segments, request.method.as_str()) {
        (["flavors"], "GET") => Some(Ok(Reply::ok(json!({"flavors": flavors(world)})))),
        (["flavors", id], "GET") => {
            let found = flavors(world).into_iter().find(|flavor| flavor["str_id"] == *id);
            Some(found.map(|flavor| Reply::ok(json!({"flavor": flavor}))).ok_or_else(|| missing(id)))
        }
        (["datastores", "mysql", "versions"], "GET") => {
            Some(Ok(Reply::ok(json!({"versions": [{"id": "v1", "name": "5.7"}, {"id": "v2", "name": "8.0"}]}))))
        }
        (["datastores", name, "versions"], "GET") => Some(Err(missing(name))),
        (["instances" | "clusters"], "POST") => Some(create(world, request, segments)),
        (["clusters", id], "GET") => Some(cluster(world, id)),
        (["instances", id, "action"], "POST") => Some(resize(world, request, id)),
        (["instances", id, what @ ("databases" | "users"), rest @ ..], _) => {
            Some(inside(world, request, id, what, rest))
        }
        _ => None,
    }
}

fn missing(id: &str) -> Refusal {
    Refusal::missing(format!("Resource {id} cannot be found."))
}

fn flavors(world: &CloudState) -> Vec<Value> {
    let flavor = |row: &Row| json!({"id": row.text("id"), "str_id": row.text("id"), "name": row.text("name")});
    world.nova.flavors.iter().map(flavor).collect()
}

fn key_of(world: &CloudState, noun: &str, id: &str) -> Result<String, Refusal> {
    let mut rows = world.nouns.rows.by("_noun", noun);
    rows.find(|row| row.text("_id") == id).map(|row| row.text("id").to_owned()).ok_or_else(|| missing(id))
}

/// Trove shows the flavor and the databases of an instance in another form than it gets them.
fn create(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Outcome {
    let noun = NOUNS.iter().find(|noun| noun.path == segments).ok_or_else(Refusal::no_route)?;
    let caller = crate::keystone::authenticate(world, request)?;
    let reply = noun.post(world, request, &caller, "", None)?;
    let crate::reply::Body::Json(body) = &reply.body else { return Ok(reply) };
    let key = body[noun.one]["id"].as_str().unwrap_or_default().to_owned();
    let nics = world.nouns.rows.get(&key).map(|row| row.list("nics").to_vec()).unwrap_or_default();
    let networks: Vec<Value> = nics.iter().map(|nic| network(world, nic)).collect();
    let ids = [world.uuid(), world.uuid(), world.uuid()];
    world.nouns.rows.edit(&key, |row| {
        if let Some(flavor) = row.shift_remove("flavorRef") {
            row.put("flavor", json!({"id": flavor}));
        }
        for hidden in ["availability_zone", "restorePoint", "replica_count"] {
            row.shift_remove(hidden);
        }
        if let Some(original) = row.shift_remove("replica_of") {
            row.put("replica_of", json!({"id": original}));
        }
        if let Some(Value::Array(nics)) = row.shift_remove("nics") {
            let addresses: Vec<Value> = nics.iter().zip(networks).map(address).collect();
            row.put("addresses", addresses);
        }
        for (shown, kept) in [("databases", "_databases"), ("users", "_users")] {
            if let Some(list) = row.shift_remove(shown) {
                row.put(kept, list);
            }
        }
        if let Some(Value::Array(instances)) = row.get_mut("instances") {
            for (instance, id) in instances.iter_mut().zip(ids) {
                let flavor = json!({"id": instance["flavorRef"]});
                let nics = instance["nics"].as_array().cloned().unwrap_or_default();
                let ip: Vec<Value> = nics.iter().map(|nic| address((nic, nic["net-id"].clone()))).collect();
                *instance = json!({"id": id, "name": id, "volume": instance["volume"], "flavor": flavor, "ip": ip});
            }
        }
    });
    Ok(reply)
}

/// The network of an interface.
fn network(world: &CloudState, nic: &Value) -> Value {
    let port = nic["port-id"].as_str().and_then(|port| world.neutron.ports.get(port));
    port.map_or_else(|| nic["net-id"].clone(), |port| json!(port.text("network_id")))
}

fn address((nic, network): (&Value, Value)) -> Value {
    let address = nic["v4-fixed-ip"].as_str().unwrap_or("10.0.0.7");
    json!({"address": address, "type": "private", "network": network})
}

/// Of databases, Trove shows only the names; of users no passwords.
fn shown(what: &str, one: &Value) -> Value {
    if what == "databases" {
        return json!({"name": one["name"]});
    }
    let databases = one.get("databases").cloned().unwrap_or_else(|| json!([]));
    json!({"name": one["name"], "host": one.get("host").cloned().unwrap_or_else(|| json!("%")), "databases": databases})
}

/// The instances of a cluster are in its state.
fn cluster(world: &CloudState, id: &str) -> Outcome {
    let key = key_of(world, "database/clusters", id)?;
    let mut row = world.nouns.rows.get(&key).map(public).ok_or_else(|| missing(id))?;
    let state = row.text("status").to_owned();
    if let Some(Value::Array(instances)) = row.get_mut("instances") {
        for instance in instances {
            instance["status"] = json!(state);
        }
    }
    Ok(Reply::ok(json!({"cluster": row})))
}

fn resize(world: &mut CloudState, request: &ServiceCall, id: &str) -> Outcome {
    let key = key_of(world, "database/instances", id)?;
    let change = request.json("The body is not valid JSON")?["resize"].take();
    let is_active = world.nouns.rows.get(&key).is_some_and(|row| row.text("status") == "ACTIVE");
    if !is_active {
        return Err(Refusal::new(422, "UnprocessableEntity", "Instance is not currently available."));
    }
    world.nouns.rows.edit(&key, |row| {
        if let Some(flavor) = change.get("flavorRef") {
            row.put("flavor", json!({"id": flavor}));
        }
        if let Some(volume) = change.get("volume") {
            row.put("volume", volume.clone());
        }
        row.put("status", "RESIZE");
    });
    if let Some(noun) = NOUNS.first() {
        noun.later(world, &key, "ACTIVE");
    }
    Ok(Reply::empty(202))
}

/// The databases or users of an instance.
fn inside(world: &mut CloudState, request: &ServiceCall, id: &str, what: &str, rest: &[&str]) -> Outcome {
    let key = key_of(world, "database/instances", id)?;
    let body = if request.body.is_empty() { Value::Null } else { request.json("The body is not valid JSON")? };
    let field = if what == "users" { "_users" } else { "_databases" };
    let edited = world.nouns.rows.edit(&key, |row| {
        let has = |row: &Row, name: &str| row.list(field).iter().any(|one| one["name"] == name);
        match (request.method.as_str(), rest) {
            ("GET", []) => {
                let list: Vec<Value> = row.list(field).iter().map(|one| shown(what, one)).collect();
                return Ok(Reply::ok(json!({what: list})));
            }
            ("POST", []) => {
                for new in body[what].as_array().into_iter().flatten() {
                    if has(row, new["name"].as_str().unwrap_or_default()) {
                        return Err(Refusal::conflict("It already exists"));
                    }
                    row.push(field, new.clone());
                }
            }
            (_, [name, ..]) if !has(row, name) => return Err(missing(name)),
            ("GET", [name]) => {
                let one = row.list(field).iter().find(|one| one["name"] == *name).map(|one| shown(what, one));
                return Ok(Reply::ok(json!({"user": one})));
            }
            ("DELETE", [name]) => row.drop_from(field, |one| one["name"] == *name),
            (method, [name, rest @ ..]) => {
                let Some(Value::Array(list)) = row.get_mut(field) else { return Err(missing(name)) };
                let Some(user) = list.iter_mut().find(|one| one["name"] == *name) else { return Err(missing(name)) };
                let granted = user["databases"].as_array().cloned().unwrap_or_default();
                match (method, rest) {
                    ("PUT", []) => {
                        for (key, value) in body["user"].as_object().into_iter().flatten() {
                            user[key] = value.clone();
                        }
                    }
                    ("PUT", ["databases"]) => {
                        let new = body["databases"].as_array().cloned().unwrap_or_default();
                        user["databases"] = granted.into_iter().chain(new).collect();
                    }
                    ("DELETE", ["databases", database]) => {
                        user["databases"] = granted.into_iter().filter(|one| one["name"] != *database).collect();
                    }
                    _ => return Err(Refusal::no_method()),
                }
            }
            _ => return Err(Refusal::no_method()),
        }
        Ok(Reply::empty(202))
    });
    edited.ok_or_else(|| missing(id))?
}
