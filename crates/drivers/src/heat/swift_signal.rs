//! `OS::Heat::SwiftSignal`: waits until a Swift signal handle has received enough signals.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, number, text};

use super::swift_signal_handle::details;
use super::wait_handle::{FAILURE, SUCCESS};
use crate::queue;
use crate::swift::object;

/// The driver. It has no object.
pub(super) struct SwiftSignal;

/// The path of the URL of the handle.
fn url_path(facts: &Facts) -> String {
    let url = text::str(facts.property("handle"));
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| rest.split_at(at).1);
    path.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// The name of the object of the handle: the last part of `…/v1/<account>/<stack ID>/<object>`.
fn object_of(facts: &Facts, project: &str) -> Result<String, Failure> {
    let path = url_path(facts);
    let invalid = |part: &str| {
        let text = format!("\"{path}\" is not a valid SwiftSignalHandle.  The {part} is invalid");
        Err(Failure::other(Class::ValueError, text))
    };
    let mut parts = path.rsplitn(5, '/');
    let (object, container, account, version) = (parts.next(), parts.next(), parts.next(), parts.next());
    let (Some(object), Some(container), Some(account), Some("v1"), Some(_)) =
        (object, container, account, version, parts.next())
    else {
        return invalid("Swift TempURL path");
    };
    if object.is_empty() || container.is_empty() || !account.ends_with(project) {
        return invalid("Swift TempURL path");
    }
    if container != facts.stack.id {
        return invalid("container name");
    }
    Ok(kiln_value::url::unquote(object))
}

/// The signals so far, the oldest first, with all entries. A later signal with the same ID replaces an earlier one.
async fn signals(cx: &Context<'_>) -> Result<Vec<Map>, Failure> {
    let container = cx.facts.stack.id.as_str();
    let name = object_of(cx.facts, &cx.facts.stack.project_id)?;
    let mut names = object::names(cx, container, &object::old_versions(&name)).await?;
    names.push(name);
    let mut signals: Vec<Map> = Vec::new();
    let mut number: i64 = 0;
    for name in names {
        let Some(body) = object::text(cx, container, &name).await? else { continue };
        let Some(mut signal) = details(&body)? else { continue };
        number = number.saturating_add(1);
        if let Some(id) = signal.get("id") {
            signals.retain(|earlier| earlier.get("id") != Some(id));
        }
        signal.entry("data".to_owned()).or_default();
        let id = text::str(signal.entry("id".to_owned()).or_insert(Value::Int(number)));
        signal.entry("reason".to_owned()).or_insert_with(|| format!("Signal {id} received").into());
        signal.entry("status".to_owned()).or_insert_with(|| SUCCESS.into());
        signals.push(signal);
    }
    Ok(signals)
}

fn reasons(signals: &[Map], status: &str) -> Vec<String> {
    let given = signals.iter().filter(|signal| signal.get("status").and_then(Value::as_str) == Some(status));
    given.filter_map(|signal| signal.get("reason")).map(text::str).collect()
}

/// Whether there are enough signals. `until`: seconds since 1970.
async fn look(cx: &Context<'_>, until: f64) -> Result<Step, Failure> {
    let signals = signals(cx).await?;
    for status in signals.iter().filter_map(|signal| signal.get("status")) {
        match status.as_str() {
            Some(SUCCESS) => {}
            Some(FAILURE) => {
                return Err(Failure::other(Class::SwiftSignalFailure, reasons(&signals, FAILURE).join(";")));
            }
            _ => return Err(Failure::other(Class::Error, format!("Unknown status: {}", text::str(status)))),
        }
    }
    let count = cx.facts.property("count").as_i64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    if !signals.is_empty() && signals.len() >= count {
        return Ok(Step::done());
    }
    match Duration::try_from_secs_f64(until - cx.now) {
        Ok(left) if !left.is_zero() => {
            let after = queue::pace(cx.polls.saturating_add(1)).min(left);
            Ok(Step::wait(Value::Float(until), after))
        }
        _ => {
            let reasons = reasons(&signals, SUCCESS);
            let mut text = format!("{} of {count} received", reasons.len());
            if !reasons.is_empty() {
                text = format!("{text} - {}", reasons.join(";"));
            }
            Err(Failure::other(Class::SwiftSignalTimeout, text))
        }
    }
}

impl TypeRules for SwiftSignal {}

#[async_trait]
impl Driver for SwiftSignal {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let timeout = number::to_f64(cx.facts.property("timeout")).unwrap_or(0.0);
                look(cx, cx.now + timeout).await
            }
            _ => Ok(Step::done()),
        }
    }

    /// `state` is the time until which it waits.
    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        look(cx, number::to_f64(state).unwrap_or(0.0)).await
    }

    /// Nothing is made.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn has_object(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        if !names.contains(&"data") {
            return Ok(Map::new());
        }
        let signals = signals(cx).await?;
        let entry = |signal: Map| {
            let id = signal.get("id").map(text::str).unwrap_or_default();
            (id, signal.get("data").cloned().unwrap_or_default())
        };
        let data =
            if signals.is_empty() { Value::Null } else { signals.into_iter().map(entry).collect::<Map>().into() };
        Ok(Map::from([("data".to_owned(), text::json(&data).into())]))
    }

    async fn live(&self, _: &Context<'_>) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
