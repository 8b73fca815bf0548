//! Services whose objects are simple: tables of collections instead of a module for each.
//!
//! Fields that a service does not know are rejected, as are missing ones, second objects with the same key, and
//! requests that the state of an object does not allow. `*` in a path is the ID of a parent object.

mod alarming;
mod containers;
mod databases;
mod key_manager;
mod load_balancer;
mod messaging;
mod object_store;
mod other;
mod shares;
mod workflow;

use serde_json::{Value, json};

use crate::keystone::{Caller, authenticate};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row, Table, public};

pub(crate) use other::{quota, quota_of};

/// The objects of all simple services.
#[derive(Clone, Debug)]
pub(crate) struct Nouns {
    pub(crate) rows: Table,
}

impl Nouns {
    pub(crate) fn new() -> Self {
        Nouns { rows: Table::new(&["_noun", "name", "_parent"]) }
    }
}

/// A collection.
pub(super) struct Noun {
    service: Service,
    path: &'static [&'static str],
    /// The key of one object in bodies; empty: none.
    one: &'static str,
    /// Whether requests have no such key.
    bare: bool,
    /// The key of the list; empty: the body is the list.
    many: &'static str,
    id: Id,
    /// The method that creates an object.
    create: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    /// The method of an update; empty: none.
    update: &'static str,
    /// The fields of an update.
    changes: &'static [&'static str],
    /// Fields that no two objects have in common.
    key: &'static [&'static str],
    /// Further fields of a new object, as JSON.
    defaults: &'static str,
    states: Option<States>,
    /// Whether only administrators may change it.
    admin: bool,
}

/// A collection with the usual values; the others are set with `..NOUN`.
const NOUN: Noun = Noun {
    service: Service::LoadBalancer,
    path: &[],
    one: "",
    bare: false,
    many: "",
    id: Id::Uuid("id"),
    create: "POST",
    required: &[],
    optional: &[],
    update: "",
    changes: &[],
    key: &[],
    defaults: "{}",
    states: None,
    admin: false,
};

/// The ID of an object.
enum Id {
    /// A UUID in this field.
    Uuid(&'static str),
    /// The value of this field, which the client chooses.
    Given(&'static str),
    /// The last part of the URL in this field.
    Href(&'static str),
}

impl Id {
    fn field(&self) -> &'static str {
        match self {
            Id::Uuid(field) | Id::Given(field) | Id::Href(field) => field,
        }
    }
}

/// The states of an object.
struct States {
    field: &'static str,
    making: &'static str,
    made: &'static str,
    changing: &'static str,
    /// The state during a delete; empty: the object disappears at once.
    deleting: &'static str,
    failed: &'static str,
}

fn nouns() -> impl Iterator<Item = &'static Noun> {
    [load_balancer::NOUNS, key_manager::NOUNS, alarming::NOUNS, messaging::NOUNS, workflow::NOUNS, other::NOUNS]
        .into_iter()
        .chain([containers::NOUNS, databases::NOUNS, shares::NOUNS])
        .flatten()
}

/// Handles a request to a simple service.
pub(crate) fn serve(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    if request.service == Service::ObjectStore
        && let Some(outcome) = object_store::serve_signed(world, request)
    {
        return outcome;
    }
    if request.service == Service::Messaging
        && let Some(outcome) = messaging::serve_signed(world, request)
    {
        return outcome;
    }
    let caller = authenticate(world, request)?;
    let segments = request.segments();
    let special = match request.service {
        Service::ObjectStore => Some(object_store::serve(world, request, &caller, &segments)),
        Service::LoadBalancer => load_balancer::route(world, request, &caller, &segments),
        Service::KeyManager => key_manager::route(world, request, &segments),
        Service::Messaging => messaging::route(world, request, &caller, &segments),
        Service::Workflow => workflow::route(world, request, &caller, &segments),
        Service::Share => shares::route(world, request, &segments),
        Service::Database => databases::route(world, request, &segments),
        Service::Container => containers::route(world, request, &segments),
        _ => other::route(world, request, &caller, &segments),
    };
    if let Some(outcome) = special {
        return outcome;
    }
    let found = nouns().filter(|noun| noun.service == request.service).find_map(|noun| {
        let (path, rest) = segments.split_at_checked(noun.path.len())?;
        let fits = noun.path.iter().zip(path).all(|(wanted, segment)| *wanted == "*" || wanted == segment);
        (fits && rest.len() < 2).then(|| (noun, path.to_vec(), rest.first().copied()))
    });
    let Some((noun, path, id)) = found else { return Err(Refusal::no_route()) };
    let parent = path.iter().zip(noun.path).filter(|(_, wanted)| **wanted == "*").map(|(id, _)| *id).next_back();
    noun.has_parent(world, &path)?;
    noun.serve(world, request, &caller, parent.unwrap_or_default(), id)
}

/// An error in the format of the service.
pub(crate) fn refuse(service: Service, refusal: &Refusal) -> Reply {
    let (status, message) = (refusal.status, refusal.message.as_str());
    let body = match service {
        Service::LoadBalancer => json!({"faultcode": "Client", "faultstring": message, "debuginfo": null}),
        Service::Alarming | Service::Baremetal => {
            json!({"error_message": {"faultcode": "Client", "faultstring": message, "debuginfo": null}})
        }
        Service::Workflow => json!({"faultcode": "Client", "faultstring": message}),
        Service::KeyManager | Service::Messaging => {
            json!({"code": status, "title": refusal.kind, "description": message})
        }
        Service::ContainerInfra | Service::Container => json!({"errors": [{"status": status, "title": message}]}),
        Service::Share | Service::Database => json!({"badRequest": {"code": status, "message": message}}),
        _ => json!({"code": status, "type": refusal.kind, "message": message}),
    };
    Reply::json(status, body)
}

impl Noun {
    /// The name of the collection, which distinguishes the rows of all.
    fn name(&self) -> String {
        format!("{}/{}", self.service.prefix(), self.path.join("/"))
    }

    fn missing(&self, id: &str) -> Refusal {
        Refusal::missing(format!("{} {id} was not found", self.path.last().unwrap_or(&"object")))
    }

    fn has_parent(&self, world: &CloudState, path: &[&str]) -> Result<(), Refusal> {
        let Some(at) = self.path.iter().position(|part| *part == "*") else { return Ok(()) };
        let parent = nouns().find(|noun| noun.service == self.service && Some(noun.path) == self.path.get(..at));
        let (Some(parent), Some(id)) = (parent, path.get(at)) else { return Ok(()) };
        parent.find(world, id).map(|_| ())
    }

    fn find<'a>(&self, world: &'a CloudState, id: &str) -> Result<&'a Row, Refusal> {
        let name = self.name();
        let rows = world.nouns.rows.by("_noun", &name);
        rows.into_iter().find(|row| row.text("_id") == id).ok_or_else(|| self.missing(id))
    }

    fn show(&self, row: &Row) -> Value {
        let row = Value::Object(public(row));
        if self.one.is_empty() { row } else { json!({self.one: row}) }
    }

    fn serve(
        &self,
        world: &mut CloudState,
        request: &ServiceCall,
        caller: &Caller,
        parent: &str,
        id: Option<&str>,
    ) -> Outcome {
        let owned = |row: &Row| caller.admin || row.text("_project") == caller.project || row.flag("_public");
        let method = request.method.as_str();
        if self.admin && !caller.admin && method != "GET" {
            return Err(Refusal::forbidden("Policy does not allow this request to be performed."));
        }
        match (method, id) {
            ("GET", None) => {
                let name = self.name();
                let fits = |row: &&Row| {
                    row.text("_parent") == parent
                        && owned(row)
                        && request.query.iter().all(|(key, value)| row.get(key).is_none_or(|own| is_value(own, value)))
                };
                let rows: Vec<Row> = world.nouns.rows.by("_noun", &name).filter(fits).map(public).collect();
                Ok(Reply::ok(if self.many.is_empty() { json!(rows) } else { json!({self.many: rows}) }))
            }
            ("GET", Some(id)) => {
                let row = self.find(world, id)?;
                if owned(row) { Ok(Reply::ok(self.show(row))) } else { Err(self.missing(id)) }
            }
            (verb, None) if verb == self.create => self.post(world, request, caller, parent, None),
            (verb, Some(id)) if verb == self.create && matches!(self.id, Id::Given(_)) => {
                self.post(world, request, caller, parent, Some(id))
            }
            (verb, Some(id)) if verb == self.update => self.put(world, request, id),
            ("DELETE", Some(id)) => self.delete(world, id),
            _ => Err(Refusal::no_method()),
        }
    }

    fn body(&self, request: &ServiceCall, known: &[&[&str]]) -> Result<Row, Refusal> {
        if request.body.is_empty() {
            return Ok(Row::new());
        }
        let mut body = request.json("The body is not valid JSON")?;
        let body = if self.one.is_empty() || self.bare {
            body
        } else {
            body.get_mut(self.one).map(Value::take).unwrap_or_default()
        };
        let Value::Object(body) = body else { return Err(Refusal::bad(format!("'{}' is required", self.one))) };
        let unknown = body.keys().find(|key| !known.iter().any(|names| names.contains(&key.as_str())));
        match unknown {
            Some(key) => Err(Refusal::bad(format!("Unknown attribute {key}"))),
            None => Ok(body),
        }
    }

    fn post(
        &self,
        world: &mut CloudState,
        request: &ServiceCall,
        caller: &Caller,
        parent: &str,
        given: Option<&str>,
    ) -> Outcome {
        let body = self.body(request, &[self.required, self.optional])?;
        if let Some(field) = self.required.iter().find(|field| body.get(**field).is_none_or(Value::is_null)) {
            return Err(Refusal::bad(format!("Mandatory field missing: {field}")));
        }
        let mut row = Row::new();
        let uuid = world.uuid();
        let id = match &self.id {
            Id::Given(field) => given.unwrap_or_else(|| body.text(field)).to_owned(),
            _ => uuid.clone(),
        };
        if matches!(self.id, Id::Given(_)) && self.find(world, &id).is_ok() {
            if given.is_some() {
                return Ok(Reply::empty(204));
            }
            return Err(Refusal::conflict(format!("{id} already exists")));
        }
        let shown = match &self.id {
            Id::Href(_) => {
                let (base, service) = (&world.base, request.service.prefix());
                format!("{base}/{service}/v1/{}/{id}", self.path.join("/"))
            }
            _ => id.clone(),
        };
        row.put(self.id.field(), shown.clone());
        if let Ok(Value::Object(defaults)) = serde_json::from_str(self.defaults) {
            row.extend(defaults);
        }
        if matches!(self.service, Service::LoadBalancer | Service::Share) {
            row.put("project_id", caller.project.clone());
            row.put("created_at", world.stamp().trim_end_matches('Z'));
        }
        if self.service == Service::ContainerInfra {
            row.put("project_id", caller.project.clone());
            row.put("created_at", world.stamp().replace('Z', "+00:00"));
        }
        row.extend(body);
        match (self.service, self.path) {
            (Service::KeyManager, ["secrets"]) => key_manager::hide_payload(&mut row),
            (Service::Reservation, _) => other::as_blazar_shows(world, &mut row),
            (Service::Messaging, _) => row.put("source", parent),
            (Service::Workflow, ["cron_triggers"]) => workflow::as_mistral_shows(&mut row),
            (Service::Container, _) => containers::as_zun_shows(world, caller, &mut row)?,
            _ => {}
        }
        row.put("_id", id);
        row.put("_noun", self.name());
        row.put("_parent", parent);
        row.put("_project", caller.project.clone());
        // The key of the table.
        if self.id.field() != "id" {
            row.put(
                "id",
                if matches!(self.id, Id::Given(_)) { json!(format!("{}/{shown}", self.name())) } else { json!(uuid) },
            );
        }
        let is_same = |other: &Row| {
            other.text("_parent") == parent && self.key.iter().all(|field| other.get(*field) == row.get(*field))
        };
        if !self.key.is_empty() && world.nouns.rows.by("_noun", &self.name()).any(is_same) {
            return Err(Refusal::conflict(format!("Another object has the same {}", self.key.join(", "))));
        }
        if self.service == Service::LoadBalancer {
            load_balancer::prepare(world, self, &mut row)?;
        }
        let key = row.text("id").to_owned();
        if let Some(states) = &self.states {
            row.put(states.field, states.making);
            let fails = world.build_fault.fails;
            self.later(world, &key, if fails { states.failed } else { states.made });
        }
        world.nouns.rows.insert(row.clone());
        Ok(match &self.id {
            Id::Href(field) => Reply::created(json!({*field: shown})),
            Id::Given(_) if given.is_some() => Reply::empty(201),
            _ => Reply::created(self.show(&row)),
        })
    }

    /// Sets the state after some time.
    fn later(&self, world: &mut CloudState, key: &str, state: &'static str) {
        let Some(field) = self.states.as_ref().map(|states| states.field) else { return };
        let (key, pause) = (key.to_owned(), world.options.build_time + world.build_fault.slower);
        world.after(pause, move |world| {
            world.nouns.rows.edit(&key, |row| row.put(field, state));
        });
    }

    fn put(&self, world: &mut CloudState, request: &ServiceCall, id: &str) -> Outcome {
        let body = self.body(request, &[self.changes])?;
        let key = self.find(world, id)?.text("id").to_owned();
        if self.service == Service::LoadBalancer {
            load_balancer::lock(world, &key, false)?;
        }
        world.nouns.rows.edit(&key, |row| row.extend(body));
        if let Some(states) = self.states.as_ref().filter(|states| !states.changing.is_empty()) {
            world.nouns.rows.edit(&key, |row| row.put(states.field, states.changing));
            self.later(world, &key, states.made);
        }
        Ok(Reply::ok(self.show(self.find(world, id)?)))
    }

    fn delete(&self, world: &mut CloudState, id: &str) -> Outcome {
        let key = self.find(world, id)?.text("id").to_owned();
        if self.service == Service::LoadBalancer {
            load_balancer::lock(world, &key, true)?;
        }
        let deleting = self.states.as_ref().filter(|states| !states.deleting.is_empty());
        let Some(states) = deleting else {
            remove(world, &key);
            return Ok(Reply::empty(204));
        };
        world.nouns.rows.edit(&key, |row| row.put(states.field, states.deleting));
        world.after(world.options.build_time, move |world| remove(world, &key));
        Ok(Reply::empty(202))
    }
}

/// Removes an object with those below it.
fn remove(world: &mut CloudState, key: &str) {
    let Some(row) = world.nouns.rows.remove(key) else { return };
    let below: Vec<String> =
        world.nouns.rows.by("_parent", row.text("_id")).map(|row| row.text("id").to_owned()).collect();
    for key in below {
        remove(world, &key);
    }
}

fn is_value(own: &Value, wanted: &str) -> bool {
    match own {
        Value::String(text) => text == wanted,
        other => other.to_string().eq_ignore_ascii_case(wanted),
    }
}
