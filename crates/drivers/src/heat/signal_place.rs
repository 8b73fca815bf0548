//! Where the agent of a server leaves the result of a deployment when it does not send it to Kiln: an object of Swift
//! (`TEMP_URL_SIGNAL`) or a queue of Zaqar (`ZAQAR_SIGNAL`).
//!
//! The place is emptied before each deployment, so that what is found there later is its result. Reading does not remove
//! anything: the result is stored before the next deployment empties the place.

use std::time::Duration;

use kiln_resource::{Context, Facts, Failure, Step};
use kiln_value::{Map, Value};

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

/// The next step until the place is ready; `None`: it is, or the transport needs none. The names are stored before the
/// first call.
pub(super) async fn prepare(cx: &Context<'_>) -> Result<Option<Step>, Failure> {
    let facts = cx.facts;
    let next =
        |state: &str, after: Duration| Step::wait(Value::Map(Map::from([(PLACE.to_owned(), state.into())])), after);
    let name = facts.physical_name.as_str();
    Ok(match transport(facts) {
        "TEMP_URL_SIGNAL" if text(facts, URL).is_none() => Some(match object_of(facts) {
            None => next("object", Duration::ZERO).data(OBJECT, name),
            Some((container, name)) => {
                object::put_container(cx, container).await?;
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
        return match user_queue::first(cx, queue, signature).await? {
            None => Ok(None),
            Some(Value::Map(found)) => Ok(Some(found.into_iter().collect())),
            Some(Value::Str(body)) => details(&body),
            Some(_) => Err(Failure::other("AttributeError", "A signal is a map")),
        };
    }
    Ok(None)
}

/// Deletes the place, before the user; false: there is more to delete.
pub(super) async fn delete(cx: &Context<'_>) -> Result<bool, Failure> {
    if let Some((container, name)) = object_of(cx.facts)
        && !object::delete_versions(cx, container, name).await?
    {
        return Ok(false);
    }
    if let Some(queue) = text(cx.facts, QUEUE) {
        user_queue::delete(cx, queue).await?;
    }
    Ok(true)
}
