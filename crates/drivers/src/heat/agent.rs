//! The agent in a server (os-collect-config): its user, and how it collects the metadata of the server.
//!
//! All of this is stored in the data of the resource, before a server gets it. It is added to the metadata when these
//! are read (`kiln_resource::shared_software::add_for_agent`).

use kiln_resource::shared_software::{COLLECT, METADATA_OBJECT, METADATA_QUEUE};
use kiln_resource::{Cloud, Context, Facts, Failure, Found, Progress, Step};
use kiln_value::{Map, Value, value};

use super::push;
use super::stack_user::{self, ACCESS, PASSWORD, SECRET, USER, text};
use crate::nova::metadata_url;
use crate::swift::{object, temp_url};
use crate::zaqar::user_queue;

/// The entry of the data with the next step of the user.
const STEP: &str = "agent_step";
/// The entry of the data of a server whose metadata have not been written yet.
const UNWRITTEN: &str = "agent_unwritten";
/// The keys of the ways to collect metadata.
const WAYS: [&str; 4] = ["cfn", "heat", "request", "zaqar"];

/// How the agent collects its metadata.
pub(crate) fn transport(facts: &Facts) -> &str {
    facts.property("software_config_transport").as_str().unwrap_or("POLL_SERVER_CFN")
}

/// How the agent collects its metadata, once that is stored.
pub(crate) fn collect(facts: &Facts) -> Value {
    facts.data.get(COLLECT).filter(|collect| !collect.is_null()).cloned().unwrap_or_else(|| value!({}))
}

/// Whether the data are complete for the transport.
pub(crate) fn is_prepared(facts: &Facts) -> bool {
    let collectors = facts.data.get(COLLECT).and_then(|collect| collect.get("collectors")?.as_list());
    collectors.unwrap_or_default().iter().any(|one| one.as_str() == Some(way(facts)))
        && !has(facts, STEP)
        && !has(facts, UNWRITTEN)
}

fn has(facts: &Facts, key: &str) -> bool {
    facts.data.get(key).is_some_and(|value| !value.is_null())
}

/// Whether the agent has objects in the cloud, or may have some.
pub(crate) fn has_objects(facts: &Facts) -> bool {
    has_user(facts) || has(facts, METADATA_OBJECT) || has(facts, METADATA_QUEUE)
}

fn has_user(facts: &Facts) -> bool {
    text(facts, PASSWORD).is_some()
}

fn way(facts: &Facts) -> &'static str {
    match transport(facts) {
        "POLL_SERVER_HEAT" => "heat",
        "POLL_TEMP_URL" => "request",
        "ZAQAR_MESSAGE" => "zaqar",
        _ => "cfn",
    }
}

/// The next step until [`is_prepared`]: the data of the step must be stored before the next call. `collectors`: the
/// first ones of the server.
pub(crate) async fn prepare(cx: &Context<'_>, collectors: &[&str]) -> Result<Step, Failure> {
    if has(cx.facts, UNWRITTEN) {
        push::own(cx).await?;
        return Ok(Step::prepared().data(UNWRITTEN, Value::Null));
    }
    let way = way(cx.facts);
    if way == "request" {
        return prepare_object(cx, collectors).await;
    }
    if let Some(step) = prepare_user(cx, way == "cfn").await? {
        return Ok(prepared(step));
    }
    if way == "zaqar" && queue_of(cx.facts).is_none() {
        let queue = value!({"queue": (cx.facts.physical_name.as_str())});
        return Ok(Step::prepared().data(METADATA_QUEUE, queue).data(STEP, Value::Null));
    }
    let mut step = Step::prepared();
    if let ("zaqar", Some(queue)) = (way, queue_of(cx.facts)) {
        let signature = user_queue::create(cx, queue, &["POST"]).await?;
        step = step.data(METADATA_QUEUE, value!({"queue": queue, "signature": signature}));
    }
    let entry = match way {
        "heat" => for_heat(cx).await?,
        "zaqar" => for_zaqar(cx).await?,
        _ => for_cfn(cx).await?,
    };
    Ok(collected(cx.facts, step, collectors, entry))
}

/// The next step of the user; `None`: it is complete.
async fn prepare_user(cx: &Context<'_>, keys: bool) -> Result<Option<Step>, Failure> {
    match cx.facts.data.get(STEP).filter(|step| !step.is_null()) {
        Some(state) => stack_user::poll(cx, state, keys).await,
        None if !has_user(cx.facts) => stack_user::start(cx).await.map(Some),
        None if keys && text(cx.facts, stack_user::CREDENTIAL).is_none() => {
            stack_user::create_keys_of(cx).await.map(Some)
        }
        None => Ok(None),
    }
}

/// The object: its names are stored before the first call. Heat gives it a random name.
async fn prepare_object(cx: &Context<'_>, collectors: &[&str]) -> Result<Step, Failure> {
    let Some(place) = cx.facts.data.get(METADATA_OBJECT).filter(|place| !place.is_null()) else {
        let given = |key: &str| cx.facts.property("deployment_swift_data").str_at(key).map(str::to_owned);
        let container = given("container").unwrap_or_else(|| cx.facts.physical_name.clone());
        let random = || {
            let bytes = cx.seed.first_chunk::<16>().copied().unwrap_or_default();
            uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
        };
        let object = given("object").unwrap_or_else(random);
        return Ok(Step::prepared().data(METADATA_OBJECT, value!({"container": container, "object": object})));
    };
    let part = |key: &str| place.str_at(key).unwrap_or_default();
    object::put_container(cx, part("container")).await?;
    match temp_url::ready(cx, "GET", part("container"), part("object")).await? {
        Some(url) => {
            let entry = value!({ "metadata_url": url });
            Ok(collected(cx.facts, Step::prepared(), collectors, entry))
        }
        None => Ok(Step::prepared().data(METADATA_OBJECT, place.clone())),
    }
}

fn queue_of(facts: &Facts) -> Option<&str> {
    facts.data.get(METADATA_QUEUE)?.str_at("queue")
}

/// Deletes what the agent has in the cloud: the user last, because it deletes the queue. False: there is more to delete.
pub(crate) async fn delete(cx: &Context<'_>) -> Result<bool, Failure> {
    if let Some(place) = cx.facts.data.get(METADATA_OBJECT).filter(|place| !place.is_null()) {
        let part = |key: &str| place.str_at(key).unwrap_or_default();
        if !object::delete_with_container(cx, part("container"), part("object")).await? {
            return Ok(false);
        }
    }
    if let Some(queue) = queue_of(cx.facts) {
        user_queue::delete(cx, queue).await?;
    }
    if has_user(cx.facts) {
        stack_user::delete(cx).await?;
    }
    Ok(true)
}

/// Looks for what a lost first step has created.
pub(crate) async fn find(cx: &Context<'_>) -> Result<Found, Failure> {
    if has_user(cx.facts) || way(cx.facts) == "request" {
        return Ok(Found::NotMade);
    }
    Ok(match stack_user::find(cx).await? {
        Found::Made(step) => Found::Made(prepared(step)),
        other => other,
    })
}

/// A step of the user. The ID in it is that of the user.
fn prepared(step: Step) -> Step {
    let state = match &step.progress {
        Progress::Wait { state, .. } => state.clone(),
        _ => Value::Null,
    };
    Step { physical_id: None, progress: Progress::Prepared, ..step }.data(STEP, state)
}

/// The data without what [`delete`] has deleted.
pub(crate) fn forget(step: Step) -> Step {
    let user = [USER, PASSWORD, ACCESS, SECRET, stack_user::CREDENTIAL, STEP];
    let keys = [COLLECT, UNWRITTEN, METADATA_OBJECT, METADATA_QUEUE].into_iter().chain(user);
    keys.fold(step, |step, key| step.data(key, Value::Null))
}

/// The step with what the agent has to know. What it knew of another transport is null, so that it forgets that. If the
/// agent reads a place, or did before, they are written there next.
fn collected(facts: &Facts, step: Step, collectors: &[&str], entry: Value) -> Step {
    let way = way(facts);
    let mut all: Map = Map::new();
    for (key, value) in collect(facts).as_map().into_iter().flatten().filter(|(key, _)| WAYS.contains(&key.as_str())) {
        let nothing = value.as_map().into_iter().flatten().map(|(key, _)| (key.clone(), Value::Null));
        all.insert(key.clone(), nothing.collect());
    }
    let collectors = collectors.iter().copied().chain([way, "local"]);
    all.insert("collectors".to_owned(), collectors.map(Value::from).collect());
    all.insert(way.to_owned(), entry);
    let is_written = has(facts, METADATA_OBJECT) || has(facts, METADATA_QUEUE);
    let step = step.data(COLLECT, all).data(STEP, Value::Null);
    if is_written { step.data(UNWRITTEN, true) } else { step }
}

fn secret(cx: &Context<'_>, key: &str) -> Value {
    Value::from(text(cx.facts, key).map(str::to_owned))
}

async fn for_heat(cx: &Context<'_>) -> Result<Value, Failure> {
    let (facts, endpoints) = (cx.facts, cx.cloud.signal_endpoints().await?);
    Ok(value!({
        "user_id": (secret(cx, USER)),
        "password": (secret(cx, PASSWORD)),
        "auth_url": (endpoints.keystone),
        "project_id": (facts.stack.user_project_id.clone()),
        "stack_id": (format!("{}/{}", facts.stack.name, facts.stack.id)),
        "resource_name": (facts.name.as_str()),
        "region_name": (endpoints.region),
    }))
}

async fn for_zaqar(cx: &Context<'_>) -> Result<Value, Failure> {
    let endpoints = cx.cloud.signal_endpoints().await?;
    Ok(value!({
        "user_id": (secret(cx, USER)),
        "password": (secret(cx, PASSWORD)),
        "auth_url": (endpoints.keystone),
        "project_id": (cx.facts.stack.user_project_id.clone()),
        "queue_id": (queue_of(cx.facts).map(str::to_owned)),
        "region_name": (endpoints.region),
    }))
}

/// The CloudFormation API where servers read their metadata, if it is configured or in the catalog.
pub(crate) async fn metadata_server(cloud: &dyn Cloud) -> Result<Option<String>, Failure> {
    match cloud.signal_endpoints().await?.metadata {
        Some(url) => Ok(Some(url)),
        None => cloud.endpoint("cloudformation").await,
    }
}

async fn for_cfn(cx: &Context<'_>) -> Result<Value, Failure> {
    let facts = cx.facts;
    let endpoints = cx.cloud.signal_endpoints().await?;
    let url = metadata_server(cx.cloud).await?.or(endpoints.cfn).map(|url| metadata_url(&url));
    Ok(value!({
        "metadata_url": url,
        "access_key_id": (secret(cx, ACCESS)),
        "secret_access_key": (secret(cx, SECRET)),
        "stack_name": (facts.stack.name.as_str()),
        "path": (format!("{}.Metadata", facts.name)),
    }))
}
