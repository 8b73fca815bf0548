//! The agent in a server (os-collect-config): its user, and how it collects the metadata of the server.
//!
//! All of this is stored in the data of the resource, before a server gets it. It is added to the metadata when these
//! are read (`kiln_resource::software::add_for_agent`).

use kiln_resource::software::COLLECT;
use kiln_resource::{Context, Facts, Failure, Found, Progress, Step};
use kiln_value::{Diagnostic, Map, Value, value};

use super::stack_user::{self, ACCESS, PASSWORD, SECRET, USER, text};
use crate::nova::metadata_url;
use crate::validation::failed;

/// The entry of the data with the next step of the user.
const STEP: &str = "agent_step";
/// The keys of the ways to collect metadata.
const WAYS: [&str; 2] = ["cfn", "heat"];

/// How the agent collects its metadata.
pub(crate) fn transport(facts: &Facts) -> &str {
    facts.property("software_config_transport").as_str().unwrap_or("POLL_SERVER_CFN")
}

/// The transports that Kiln does not have yet.
pub(crate) fn refuse_transport(facts: &Facts) -> Result<(), Diagnostic> {
    match transport(facts) {
        transport @ ("POLL_TEMP_URL" | "ZAQAR_MESSAGE") => {
            Err(failed(format!("software_config_transport {transport} is not implemented by Kiln yet.")))
        }
        _ => Ok(()),
    }
}

/// How the agent collects its metadata, once that is stored.
pub(crate) fn collect(facts: &Facts) -> Value {
    facts.data.get(COLLECT).filter(|collect| !collect.is_null()).cloned().unwrap_or_else(|| value!({}))
}

/// Whether the data are complete for the transport.
pub(crate) fn is_prepared(facts: &Facts) -> bool {
    let collectors = facts.data.get(COLLECT).and_then(|collect| collect.get("collectors")?.as_list());
    collectors.unwrap_or_default().iter().any(|one| one.as_str() == Some(way(facts)))
        && facts.data.get(STEP).is_none_or(Value::is_null)
}

/// Whether the resource has a user, or may have one.
pub(crate) fn has_user(facts: &Facts) -> bool {
    text(facts, PASSWORD).is_some()
}

fn way(facts: &Facts) -> &'static str {
    if transport(facts) == "POLL_SERVER_HEAT" { "heat" } else { "cfn" }
}

/// The next step until [`is_prepared`]: the data of the step must be stored before the next call. `collectors`: the
/// first ones of the server.
pub(crate) async fn prepare(cx: &Context<'_>, collectors: &[&str]) -> Result<Step, Failure> {
    let keys = way(cx.facts) == "cfn";
    let step = match cx.facts.data.get(STEP).filter(|step| !step.is_null()) {
        Some(state) => stack_user::poll(cx, state, keys).await?,
        None if !has_user(cx.facts) => Some(stack_user::start(cx).await?),
        None if keys && text(cx.facts, stack_user::CREDENTIAL).is_none() => Some(stack_user::create_keys_of(cx).await?),
        None => None,
    };
    let Some(step) = step else {
        let collect = collect_from(cx, collectors).await?;
        return Ok(Step::prepared().data(COLLECT, collect).data(STEP, Value::Null));
    };
    Ok(prepared(step))
}

/// Looks for what a lost first step has created.
pub(crate) async fn find(cx: &Context<'_>) -> Result<Found, Failure> {
    if has_user(cx.facts) {
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

/// The data without the user, which is deleted.
pub(crate) fn forget(step: Step) -> Step {
    let keys = [USER, PASSWORD, ACCESS, SECRET, stack_user::CREDENTIAL, STEP, COLLECT];
    keys.into_iter().fold(step, |step, key| step.data(key, Value::Null))
}

/// What the agent has to know. What it knew of another transport is null, so that it forgets that.
async fn collect_from(cx: &Context<'_>, collectors: &[&str]) -> Result<Map, Failure> {
    let facts = cx.facts;
    let secret = |key: &str| Value::from(text(facts, key).map(str::to_owned));
    let way = way(facts);
    let mut all: Map = Map::new();
    for (key, value) in collect(facts).as_map().into_iter().flatten().filter(|(key, _)| WAYS.contains(&key.as_str())) {
        let nothing = value.as_map().into_iter().flatten().map(|(key, _)| (key.clone(), Value::Null));
        all.insert(key.clone(), nothing.collect());
    }
    let collectors = collectors.iter().copied().chain([way, "local"]);
    all.insert("collectors".to_owned(), collectors.map(Value::from).collect());
    let entry = if way == "heat" {
        let endpoints = cx.cloud.signal_endpoints().await?;
        value!({
            "user_id": secret(USER),
            "password": secret(PASSWORD),
            "auth_url": (endpoints.keystone),
            "project_id": (facts.stack.user_project_id.clone()),
            "stack_id": (format!("{}/{}", facts.stack.name, facts.stack.id)),
            "resource_name": (facts.name.as_str()),
            "region_name": (endpoints.region),
        })
    } else {
        let endpoints = cx.cloud.signal_endpoints().await?;
        let url = cx.cloud.endpoint("cloudformation").await?.or(endpoints.cfn).map(|url| metadata_url(&url));
        value!({
            "metadata_url": url,
            "access_key_id": secret(ACCESS),
            "secret_access_key": secret(SECRET),
            "stack_name": (facts.stack.name.as_str()),
            "path": (format!("{}.Metadata", facts.name)),
        })
    };
    all.insert(way.to_owned(), entry);
    Ok(all)
}
