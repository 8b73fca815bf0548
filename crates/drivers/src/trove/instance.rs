//! OS::Trove::Instance

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    CloudRequest, Context, Driver, Facts, Failure, Found, Method, Operation, PropertyChange, ResourceType, Step,
    TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, text, value};

use super::{check_datastore, check_version, has_datastore, named, read_datastore, shown_networks};
use crate::call::TROVE;
use crate::path::segment;
use crate::queue;
use crate::rest::{RestDriver, Shape};
use crate::validation::failed;

/// A database instance. An update is a sequence of requests, each of which waits until the instance is active: every
/// poll compares the instance with its properties and sends the first request that is still needed.
pub(super) struct Instance(RestDriver);

/// Stages of an update.
const UPDATE: &str = "update";
const USERS: &str = "users";

impl Instance {
    pub(super) fn new(resource_type: &ResourceType) -> Option<Self> {
        RestDriver::shaped(resource_type, Plain).map(Self)
    }
}

/// What the definition cannot express.
struct Plain;

fn path_of(id: &str, what: &str) -> String {
    format!("/instances/{}/{what}", segment(id))
}

/// A user as in requests.
fn wire_user(user: &Value) -> Value {
    let mut wire = user.as_map().cloned().unwrap_or_default();
    wire.insert("databases".to_owned(), named(user.get("databases")));
    wire.into()
}

/// Users as in templates. Trove does not show passwords: if nobody has changed anything else, they count as they are given,
/// else they are left out, so that a comparison does not show them.
fn shown_users(users: &[Value], given: &[Value]) -> Value {
    let databases = |user: &Value| user.get("databases").and_then(Value::as_list).unwrap_or_default().to_vec();
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    let own = |user: &Value| sorted(databases(user).iter().map(text::str).collect());
    let granted = |user: &Value| sorted(names(&databases(user)).into_iter().map(str::to_owned).collect());
    let is_it = |one: &Value, user: &Value| {
        ["name", "host"].iter().all(|key| one.get(key) == user.get(key)) && own(one) == granted(user)
    };
    let is_as_given = users.len() == given.len() && given.iter().all(|one| users.iter().any(|user| is_it(one, user)));
    if is_as_given {
        return given.to_vec().into();
    }
    let part = |user: &Value, key: &str| user.get(key).cloned();
    let shown = |user: &Value| {
        let databases: Vec<Value> = granted(user).into_iter().map(Value::from).collect();
        value!({"name": (part(user, "name")), "host": (part(user, "host")), "databases": databases})
    };
    users.iter().map(shown).collect()
}

fn list<'a>(facts: &'a Facts, property: &str) -> &'a [Value] {
    facts.property(property).as_list().unwrap_or_default()
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().filter_map(|object| object.str_at("name")).collect()
}

#[async_trait]
impl Shape for Plain {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.insert("users".to_owned(), list(cx.facts, "users").iter().map(wire_user).collect());
        body.retain(|_, value| value.as_list().is_none_or(|items| !items.is_empty()));
        Ok(())
    }

    fn reason(&self, _facts: &Facts, object: &Value) -> Option<String> {
        super::reason(object.str_at("status")?)
    }

    async fn attribute(&self, _cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name != "href" {
            return Ok(None);
        }
        let links = object.get("links").and_then(Value::as_list).unwrap_or_default();
        let own = links.iter().find(|link| link.str_at("rel") == Some("self"));
        Ok(Some(own.and_then(|link| link.get("href")).cloned().unwrap_or_default()))
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let id = object.str_at("id").unwrap_or_default();
        live.retain(|name, _| matches!(name.as_str(), "name" | "size"));
        if let Some(flavor) = object.get("flavor").and_then(|flavor| flavor.get("id")) {
            live.insert("flavor".to_owned(), text::str(flavor).into());
        }
        // Trove shows only their names, and of users no passwords.
        let present = TROVE.list(cx, path_of(id, "databases"), &[], "databases").await?;
        let given = list(cx.facts, "databases");
        let kept =
            given.iter().filter(|database| names(&present).contains(&database.str_at("name").unwrap_or_default()));
        let others = present.iter().filter(|own| !names(given).contains(&own.str_at("name").unwrap_or_default()));
        live.insert("databases".to_owned(), kept.chain(others).cloned().collect());
        let users = TROVE.list(cx, path_of(id, "users"), &[], "users").await?;
        live.insert("users".to_owned(), shown_users(&users, list(cx.facts, "users")));
        read_datastore(cx, object, live);
        let original = object.get("replica_of").and_then(|original| original.get("id"));
        live.insert("replica_of".to_owned(), original.cloned().unwrap_or_default());
        live.extend(
            shown_networks(object.get("addresses"), list(cx.facts, "networks"))
                .map(|networks| ("networks".to_owned(), networks)),
        );
        Ok(())
    }
}

/// Creates and deletes databases. Idempotent.
async fn settle_databases(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    let wanted = list(cx.facts, "databases");
    let present = TROVE.list(cx, path_of(id, "databases"), &[], "databases").await?;
    let new: Vec<Value> = wanted
        .iter()
        .filter(|one| !names(&present).contains(&one.str_at("name").unwrap_or_default()))
        .cloned()
        .collect();
    if !new.is_empty() {
        TROVE.post(cx, path_of(id, "databases"), value!({"databases": new})).await?;
    }
    for name in names(&present).into_iter().filter(|name| !names(wanted).contains(name)) {
        TROVE.delete(cx, path_of(id, &format!("databases/{}", segment(name)))).await?;
    }
    Ok(())
}

/// Creates and deletes users, and updates the others. Idempotent.
async fn settle_users(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    let wanted = list(cx.facts, "users");
    let present = TROVE.list(cx, path_of(id, "users"), &[], "users").await?;
    for name in names(&present).into_iter().filter(|name| !names(wanted).contains(name)) {
        TROVE.delete(cx, path_of(id, &format!("users/{}", segment(name)))).await?;
    }
    for user in wanted {
        let name = user.str_at("name").unwrap_or_default();
        if !names(&present).contains(&name) {
            TROVE.post(cx, path_of(id, "users"), value!({"users": [(wire_user(user))]})).await?;
            continue;
        }
        let path = path_of(id, &format!("users/{}", segment(name)));
        let own = ["host", "password"].into_iter().filter_map(|key| Some((key.to_owned(), user.get(key)?.clone())));
        TROVE.put(cx, path.clone(), value!({"user": (own.collect::<Map>())})).await?;
        let current = TROVE.show(cx, path.clone(), "user").await?;
        let held = current.get("databases").and_then(Value::as_list).unwrap_or_default();
        let given = user.get("databases").and_then(Value::as_list).unwrap_or_default();
        let grants: Vec<Value> =
            given.iter().filter(|one| !names(held).contains(&one.as_str().unwrap_or_default())).cloned().collect();
        if !grants.is_empty() {
            let body = value!({"databases": (named(Some(&grants.into())))});
            TROVE.put(cx, format!("{path}/databases"), body).await?;
        }
        for database in names(held).into_iter().filter(|held| !given.iter().any(|one| one.as_str() == Some(held))) {
            TROVE.delete(cx, format!("{path}/databases/{}", segment(database))).await?;
        }
    }
    Ok(())
}

/// Sends the first request that the update still needs; false if there is none.
async fn adjust(cx: &Context<'_>, object: &Value, changed: &Map) -> Result<bool, Failure> {
    let id = cx.facts.require_id()?;
    let wanted = |property: &str| {
        let value = cx.facts.property(property);
        changed.contains_key(property).then(|| text::str(value)).filter(|_| value.is_truthy())
    };
    let own = |path: &[&str]| path.iter().try_fold(object, |object, key| object.get(key)).map(text::str);
    let name = wanted("name").or_else(|| changed.contains_key("name").then(|| cx.facts.physical_name.clone()));
    if let Some(name) = name
        && own(&["name"]).as_deref() != Some(&name)
    {
        let path = format!("/instances/{}", segment(id));
        let request = CloudRequest::new(TROVE.0, Method::Patch, path);
        cx.cloud.call(request.body(value!({"instance": {"name": name}}))).await?;
        return Ok(true);
    }
    if let Some(flavor) = wanted("flavor")
        && own(&["flavor", "id"]).as_deref() != Some(&flavor)
    {
        TROVE.post(cx, path_of(id, "action"), value!({"resize": {"flavorRef": flavor}})).await?;
        return Ok(true);
    }
    if let Some(size) = wanted("size")
        && own(&["volume", "size"]).as_deref() != Some(&size)
    {
        let size = cx.facts.property("size").clone();
        TROVE.post(cx, path_of(id, "action"), value!({"resize": {"volume": {"size": size}}})).await?;
        return Ok(true);
    }
    Ok(false)
}

impl TypeRules for Instance {
    /// Trove stops an instance to resize it.
    fn restarts(&self, changed: &Map) -> bool {
        changed.contains_key("flavor")
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        self.0.needs_replace(change)
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        check_datastore(facts)?;
        let (users, databases) = (list(facts, "users"), list(facts, "databases"));
        if !users.is_empty() && databases.is_empty() && !facts.given.iter().any(|given| given == "databases") {
            return Err(failed(format!(
                "Databases property is required if users property is provided for resource {}.",
                facts.name
            )));
        }
        // Names that are not known yet are null.
        let is_known = databases.iter().all(|database| database.str_at("name").is_some());
        for user in users.iter().filter(|_| is_known) {
            let own = user.get("databases").and_then(Value::as_list).unwrap_or_default();
            let missing = own.iter().filter(|name| name.as_str().is_some_and(|name| !names(databases).contains(&name)));
            let missing: Vec<String> = missing.filter_map(Value::as_str).map(text::quote).collect();
            if !missing.is_empty() {
                return Err(failed(format!(
                    "Database [{}] specified for user does not exist in databases for resource {}.",
                    missing.join(", "),
                    facts.name
                )));
            }
        }
        for network in list(facts, "networks") {
            let has = |name: &str| network.get(name).is_some_and(|value| !value.is_null());
            let is_unknown = network.as_map().is_none_or(|map| map.values().all(Value::is_null));
            if has("network") == has("port") && !is_unknown {
                return Err(failed("Either network or port must be provided."));
            }
        }
        Ok(())
    }

    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        has_datastore(facts)
    }
}

#[async_trait]
impl Driver for Instance {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Update { changed, .. } if changed.is_empty() => Ok(Step::done()),
            Operation::Update { .. } => Ok(queue::now(UPDATE)),
            Operation::Check => {
                let object = self.0.show(cx, cx.facts.require_id()?).await?;
                match object.str_at("status") {
                    Some("ACTIVE") => Ok(Step::done()),
                    status => {
                        let status = status.unwrap_or_default();
                        Err(Failure::other(Class::Error, format!("'status': expected 'ACTIVE', got '{status}'")))
                    }
                }
            }
            _ => self.0.start(cx, operation).await,
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let Operation::Update { changed, .. } = operation else { return self.0.poll(cx, operation, state).await };
        let id = cx.facts.require_id()?;
        let object = self.0.show(cx, id).await?;
        if let Some(failure) = self.0.broken(cx.facts, &object) {
            return Err(failure);
        }
        let status = object.str_at("status").unwrap_or("UNKNOWN");
        if status != "ACTIVE" {
            return Ok(queue::again(cx, state, format!("the status ACTIVE, not {status}")));
        }
        if state.str_at("stage") == Some(USERS) {
            settle_users(cx, id).await?;
            return Ok(Step::done());
        }
        if adjust(cx, &object, changed).await? {
            return Ok(Step::wait(state.clone(), Duration::from_secs(1)));
        }
        if changed.contains_key("databases") {
            settle_databases(cx, id).await?;
        }
        Ok(if changed.contains_key("users") { queue::now(USERS) } else { Step::done() })
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        self.0.find(cx).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        self.0.attributes(cx, names).await
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        self.0.live(cx).await
    }

    async fn live_in(&self, cx: &Context<'_>, object: &Value) -> Result<Map, Failure> {
        self.0.live_in(cx, object).await
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        self.0.needs_replace_failed(cx).await
    }

    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        check_version(cx).await
    }
}
