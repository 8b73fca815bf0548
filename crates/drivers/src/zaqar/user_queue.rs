//! Queues in the project of a stack's users: their agents read and write messages there.
//!
//! The user of a resource creates and deletes its queue. Messages are read and posted with a signature, which needs no
//! token and so no request to Keystone.

use std::collections::HashSet;

use indexmap::IndexMap;
use kiln_resource::{CloudRequest, Context, Failure, FailureKind, Method};
use kiln_value::url::unquote;
use kiln_value::{Map, Value, text, value};

use crate::call::{ZAQAR, absent_is_fine, items};
use crate::heat::stack_user;
use crate::path::segment;

/// When a signature expires that should not.
const END: &str = "2038-01-19T03:13:07";

/// How long a message is kept, in seconds.
const LIFE: i64 = 3600;

fn path(queue: &str, below: &str) -> String {
    format!("/v2/queues/{}{below}", segment(queue))
}

async fn as_user(cx: &Context<'_>, mut request: CloudRequest) -> Result<Value, Failure> {
    request.headers.push(("x-auth-token".to_owned(), stack_user::token(cx).await?));
    Ok(cx.cloud.call(request).await?.body)
}

/// Creates a queue; returns a signature for these methods on its messages. Idempotent.
pub(crate) async fn create(cx: &Context<'_>, queue: &str, methods: &[&str]) -> Result<Value, Failure> {
    as_user(cx, CloudRequest::new(ZAQAR.0, Method::Put, path(queue, "")).body(value!({}))).await?;
    let methods: Value = methods.iter().copied().map(Value::from).collect();
    let body = value!({"paths": ["messages"], "methods": methods, "expires": END});
    as_user(cx, CloudRequest::new(ZAQAR.0, Method::Post, path(queue, "/share")).body(body)).await
}

/// Deletes all messages of a queue.
pub(crate) async fn clear(cx: &Context<'_>, queue: &str) -> Result<(), Failure> {
    as_user(cx, purge(queue)).await.map(drop)
}

fn purge(queue: &str) -> CloudRequest {
    let body = value!({"resource_types": ["messages"]});
    CloudRequest::new(ZAQAR.0, Method::Post, path(queue, "/purge")).body(body)
}

/// Deletes a queue; succeeds if it does not exist. The user is deleted after its queue: without a user there is none.
pub(crate) async fn delete(cx: &Context<'_>, queue: &str) -> Result<(), Failure> {
    as_user_if_any(cx, CloudRequest::new(ZAQAR.0, Method::Delete, path(queue, ""))).await
}

/// Deletes all messages of a queue; succeeds if it or its user does not exist.
pub(crate) async fn forget(cx: &Context<'_>, queue: &str) -> Result<(), Failure> {
    as_user_if_any(cx, purge(queue)).await
}

async fn as_user_if_any(cx: &Context<'_>, mut request: CloudRequest) -> Result<(), Failure> {
    let token = match stack_user::token(cx).await {
        Err(failure) if matches!(failure.kind, FailureKind::Refused | FailureKind::NotFound) => return Ok(()),
        token => token?,
    };
    request.headers.push(("x-auth-token".to_owned(), token));
    absent_is_fine(cx.cloud.call(request).await)
}

/// The oldest message of a queue.
pub(crate) async fn first(cx: &Context<'_>, queue: &str, signature: &Value) -> Result<Option<Value>, Failure> {
    let (messages, _) = page(cx, queue, signature, 1, None).await?;
    Ok(messages.into_iter().next().map(|message| crate::call::take(message, "body")))
}

/// The messages of a queue except those with `known` IDs, with their IDs, the oldest first and about [`PAGE`] of them.
pub(crate) async fn new_messages(
    cx: &Context<'_>,
    queue: &str,
    signature: &Value,
    known: &HashSet<&str>,
) -> Result<Vec<(String, Value)>, Failure> {
    let mut found = IndexMap::new();
    let mut marker = None;
    for _ in 0..PAGES {
        let (messages, next) = page(cx, queue, signature, PAGE, marker.as_deref()).await?;
        // Zaqar on Redis lists the first message again if it is the marker.
        let is_last = messages.is_empty() || next.is_none() || next == marker;
        found.extend(messages.into_iter().filter_map(|message| {
            let id = message.str_at("id").or_else(|| message.str_at("href")?.rsplit('/').next())?.to_owned();
            (!known.contains(id.as_str())).then(|| (id, crate::call::take(message, "body")))
        }));
        if is_last || found.len() >= PAGE {
            break;
        }
        marker = next;
    }
    Ok(found.into_iter().collect())
}

/// Messages of a page: Zaqar's own limit.
const PAGE: usize = 20;

/// The pages that are searched for new messages.
const PAGES: usize = 50;

/// A page of messages, and the marker of the next one.
async fn page(
    cx: &Context<'_>,
    queue: &str,
    signature: &Value,
    limit: usize,
    marker: Option<&str>,
) -> Result<(Vec<Value>, Option<String>), Failure> {
    let request = CloudRequest::new(ZAQAR.0, Method::Get, path(queue, "/messages"));
    let mut request = request.query("echo", "true").query("limit", limit.to_string());
    if let Some(marker) = marker {
        request = request.query("marker", marker);
    }
    let body = match cx.cloud.call(signed(request, signature)).await?.body {
        // Some versions answer 204 without messages.
        Value::Null => return Ok((Vec::new(), None)),
        body => body,
    };
    let links = body.get("links").and_then(Value::as_list).unwrap_or_default();
    let next = links.iter().find(|link| link.str_at("rel") == Some("next")).and_then(|link| link.str_at("href"));
    let next = next.and_then(|href| href.split_once('?')).and_then(|(_, query)| {
        let marker = query.split('&').find_map(|pair| pair.strip_prefix("marker="))?;
        Some(unquote(marker))
    });
    Ok((items(body, "messages")?, next))
}

/// Posts a message. A queue that does not exist any more needs none.
pub(crate) async fn post(cx: &Context<'_>, queue: &str, signature: &Value, body: &Map) -> Result<(), Failure> {
    let body = value!({"messages": [{"ttl": LIFE, "body": (body.clone())}]});
    let request = signed(CloudRequest::new(ZAQAR.0, Method::Post, path(queue, "/messages")), signature);
    absent_is_fine(cx.cloud.call(request.body(body)).await)
}

/// A request with the signature of [`create`].
fn signed(mut request: CloudRequest, signature: &Value) -> CloudRequest {
    let header = |name: &str, key: &str| {
        let value = match signature.get(key) {
            Some(Value::List(items)) => items.iter().map(text::str).collect::<Vec<_>>().join(","),
            value => value.map(text::str).unwrap_or_default(),
        };
        (name.to_owned(), value)
    };
    request.headers.extend([
        header("url-signature", "signature"),
        header("url-expires", "expires"),
        header("url-methods", "methods"),
        header("url-paths", "paths"),
        header("x-project-id", "project"),
    ]);
    request
}
