//! Where signals are left that are not sent to Kiln: an object of Swift (`TEMP_URL_SIGNAL`) or a queue of Zaqar
//! (`ZAQAR_SIGNAL`).
//!
//! Reading does not remove anything, because an engine may die before it has stored what it read. The place of a
//! deployment is emptied before each deployment, so that what is found there later is its result. That of a wait condition
//! handle keeps all signals, and the wait condition remembers those that it has recorded.

use std::collections::HashSet;
use std::time::Duration;

use kiln_resource::{Context, Facts, Failure, Step};
use kiln_value::{Class, Map, Value};

use super::derived_config::transport;
use super::stack_user::text;
use super::swift_signal_handle::details;
use crate::swift::{object, temp_url};
use crate::zaqar::user_queue;

/// Entries of the data: the name of the object and its URL, the queue and its signature.
const OBJECT: &str = "swift_signal_object_name";
pub(super) const URL: &str = "swift_signal_url";
pub(super) const QUEUE: &str = "zaqar_signal_queue_id";
const SIGNATURE: &str = "zaqar_queue_signed_url_data";

/// The key of the states in which the place is prepared.
pub(super) const PLACE: &str = "place";

/// The container and the object.
fn object_of(facts: &Facts) -> Option<(&str, &str)> {
    text(facts, OBJECT).map(|name| (facts.stack.id.as_str(), name))
}

/// The signals that a place keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    /// The last one counts.
    Last,
    /// All of them.
    All,
}

/// Whether signals of the transport are left at a place.
pub(super) fn is_used(facts: &Facts) -> bool {
    matches!(transport(facts), "TEMP_URL_SIGNAL" | "ZAQAR_SIGNAL")
}

/// The next step until the place is ready; `None`: it is, or the transport needs none. The names are stored before the
/// first call.
pub(super) async fn prepare(cx: &Context<'_>, keeps: Keeps) -> Result<Option<Step>, Failure> {
    let facts = cx.facts;
    let next =
        |state: &str, after: Duration| Step::wait(Value::Map(Map::from([(PLACE.to_owned(), state.into())])), after);
    let name = facts.physical_name.as_str();
    Ok(match transport(facts) {
        "TEMP_URL_SIGNAL" if text(facts, URL).is_none() => Some(match object_of(facts) {
            None => next("object", Duration::ZERO).data(OBJECT, name),
            Some((container, name)) => {
                match keeps {
                    Keeps::Last => object::put_container(cx, container).await?,
                    Keeps::All => object::put_versioned_container(cx, container).await?,
                }
                match temp_url::ready(cx, "PUT", container, name).await? {
                    Some(url) => next("url", Duration::ZERO).data(URL, url),
                    None => next("key", temp_url::OTHERS),
                }
            }
        }),
        "ZAQAR_SIGNAL" if !facts.data.contains_key(SIGNATURE) => Some(match text(facts, QUEUE) {
            None => next("queue", Duration::ZERO).data(QUEUE, name),
            Some(queue) => {
                let signature = user_queue::create(cx, queue, &["GET"]).await?;
                next("signature", Duration::ZERO).data(SIGNATURE, signature)
            }
        }),
        _ => None,
    })
}

/// Empties the place for the next deployment. No agent knows the deployment yet.
pub(super) async fn clear(cx: &Context<'_>) -> Result<(), Failure> {
    match transport(cx.facts) {
        "TEMP_URL_SIGNAL" => match object_of(cx.facts) {
            Some((container, name)) => object::put(cx, container, name, "").await,
            None => Ok(()),
        },
        "ZAQAR_SIGNAL" => match text(cx.facts, QUEUE) {
            Some(queue) => user_queue::clear(cx, queue).await,
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The result; `None` if there is none yet.
pub(super) async fn read(cx: &Context<'_>) -> Result<Option<Map>, Failure> {
    let facts = cx.facts;
    if let ("TEMP_URL_SIGNAL", Some((container, name))) = (transport(facts), object_of(facts)) {
        let found = object::text(cx, container, name).await?;
        return found.filter(|body| !body.is_empty()).map_or(Ok(None), |body| details(&body));
    }
    if let ("ZAQAR_SIGNAL", Some(queue), Some(signature)) =
        (transport(facts), text(facts, QUEUE), facts.data.get(SIGNATURE))
    {
        return user_queue::first(cx, queue, signature).await?.map_or(Ok(None), of_message);
    }
    Ok(None)
}

/// A signal at a place.
pub(super) struct Left {
    /// What no other signal of the place has.
    pub(super) id: String,
    pub(super) details: Map,
}

/// The signals of a place except those with `known` IDs, the oldest first. Not all of them, if there are many.
pub(super) async fn signals(cx: &Context<'_>, known: &HashSet<&str>) -> Result<Vec<Left>, Failure> {
    let facts = cx.facts;
    let mut signals = Vec::new();
    if let ("TEMP_URL_SIGNAL", Some((container, name))) = (transport(facts), object_of(facts)) {
        for version in object::new_versions(cx, container, name, known).await? {
            signals.extend(details(&version.text)?.map(|details| Left { id: version.time, details }));
        }
    }
    if let ("ZAQAR_SIGNAL", Some(queue), Some(signature)) =
        (transport(facts), text(facts, QUEUE), facts.data.get(SIGNATURE))
    {
        for (id, message) in user_queue::new_messages(cx, queue, signature, known).await? {
            signals.extend(of_message(message)?.map(|details| Left { id, details }));
        }
    }
    Ok(signals)
}

/// The details in a message.
fn of_message(message: Value) -> Result<Option<Map>, Failure> {
    match message {
        Value::Map(found) => Ok(Some(found)),
        Value::Str(body) => details(&body),
        _ => Err(Failure::other(Class::AttributeError, "A signal is a map")),
    }
}

/// Deletes the signals, and keeps the place; false: there are more.
pub(super) async fn forget(cx: &Context<'_>) -> Result<bool, Failure> {
    match (transport(cx.facts), object_of(cx.facts), text(cx.facts, QUEUE)) {
        ("TEMP_URL_SIGNAL", Some((container, name)), _) => object::delete_versions(cx, container, name).await,
        ("ZAQAR_SIGNAL", _, Some(queue)) => user_queue::forget(cx, queue).await.map(|()| true),
        _ => Ok(true),
    }
}

/// Deletes the place, before the user; false: there is more to delete.
pub(super) async fn delete(cx: &Context<'_>) -> Result<bool, Failure> {
    if let Some((container, name)) = object_of(cx.facts)
        && !object::delete_with_container(cx, container, name).await?
    {
        return Ok(false);
    }
    if let Some(queue) = text(cx.facts, QUEUE) {
        user_queue::delete(cx, queue).await?;
    }
    Ok(true)
}
