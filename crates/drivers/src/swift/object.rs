//! Objects in containers.

use std::collections::{BTreeSet, HashSet};

use kiln_resource::{CloudRequest, CloudResponse, Context, Failure, FailureKind, Method};
use kiln_value::{Map, Value};

use crate::call::SWIFT;
use crate::call::{absent_is_fine, items};
use crate::path::segment;

const TEXT: &str = "text/plain";

/// The path of a container below the account.
pub(crate) fn container_path(container: &str) -> String {
    format!("/{}", segment(container))
}

/// The path of an object below the account. Slashes in its name are part of the path.
pub(crate) fn path(container: &str, object: &str) -> String {
    let parts: Vec<String> = object.split('/').map(segment).collect();
    format!("{}/{}", container_path(container), parts.join("/"))
}

/// A request with headers.
pub(crate) fn request(method: Method, path: String, headers: &[(&str, &str)]) -> CloudRequest {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    CloudRequest { headers, ..CloudRequest::new(SWIFT.0, method, path) }
}

/// The name of a header in an answer. Names of headers have no case, and Swift shows underscores as dashes.
pub(crate) fn header_name(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// A header of an answer.
pub(crate) fn header<'a>(headers: &'a Map, name: &str) -> Option<&'a Value> {
    headers.get(&header_name(name))
}

/// Creates a container. Idempotent.
pub(crate) async fn put_container(cx: &Context<'_>, container: &str) -> Result<(), Failure> {
    cx.cloud.call(request(Method::Put, container_path(container), &[])).await.map(drop)
}

/// Creates a container that keeps the old versions of its objects in itself. Idempotent.
pub(crate) async fn put_versioned_container(cx: &Context<'_>, container: &str) -> Result<(), Failure> {
    let headers = [("x-versions-location", container)];
    cx.cloud.call(request(Method::Put, container_path(container), &headers)).await.map(drop)
}

/// Deletes a container; succeeds if it does not exist or is not empty.
async fn delete_empty_container(cx: &Context<'_>, container: &str) -> Result<(), Failure> {
    match cx.cloud.call(request(Method::Delete, container_path(container), &[])).await {
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
        outcome => absent_is_fine(outcome),
    }
}

/// The names of the objects in a container, in the order of Swift; none if it does not exist.
pub(crate) async fn names(cx: &Context<'_>, container: &str, prefix: &str) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let mut request = request(Method::Get, container_path(container), &[]).query("format", "json");
        if !prefix.is_empty() {
            request = request.query("prefix", prefix);
        }
        if let Some(last) = names.last() {
            request = request.query("marker", last.as_str());
        }
        let page = match cx.cloud.call(request).await {
            Ok(response) => items(response.body, "")?,
            Err(failure) if failure.is_not_found() => return Ok(names),
            Err(failure) => return Err(failure),
        };
        let before = names.len();
        // A service that ignores the marker returns the same page again.
        let new: Vec<String> = page.iter().filter_map(|object| object.str_at("name").map(str::to_owned)).collect();
        names.extend(new.into_iter().filter(|name| names.last().is_none_or(|last| name > last)).collect::<Vec<_>>());
        if page.len() < PAGE || names.len() == before {
            return Ok(names);
        }
    }
}

/// The smallest page that another one may follow: Swift's own limit is 10,000.
const PAGE: usize = 1000;

/// The content of an object; `None` if it does not exist.
pub(crate) async fn text(cx: &Context<'_>, container: &str, object: &str) -> Result<Option<String>, Failure> {
    Ok(get(cx, container, object).await?.as_ref().map(text_of))
}

async fn get(cx: &Context<'_>, container: &str, object: &str) -> Result<Option<CloudResponse>, Failure> {
    match cx.cloud.call(request(Method::Get, path(container, object), &[("accept", TEXT)])).await {
        Ok(response) => Ok(Some(response)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn text_of(response: &CloudResponse) -> String {
    response.body.as_str().unwrap_or_default().to_owned()
}

/// Writes an object.
pub(crate) async fn put(cx: &Context<'_>, container: &str, object: &str, content: &str) -> Result<(), Failure> {
    let request = request(Method::Put, path(container, object), &[("content-type", TEXT)]);
    cx.cloud.call(request.body(Value::from(content))).await.map(drop)
}

/// Deletes an object, or its latest version; false if it does not exist.
pub(crate) async fn delete(cx: &Context<'_>, container: &str, object: &str) -> Result<bool, Failure> {
    match cx.cloud.call(request(Method::Delete, path(container, object), &[])).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.is_not_found() => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Versions that one step reads or deletes.
const AT_ONCE: usize = 20;

/// Deletes the versions of an object, the latest first. False: there are more versions.
pub(crate) async fn delete_versions(cx: &Context<'_>, container: &str, object: &str) -> Result<bool, Failure> {
    for _ in 0..AT_ONCE {
        if !delete(cx, container, object).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same, and then deletes the container, unless it has other objects.
pub(crate) async fn delete_with_container(cx: &Context<'_>, container: &str, object: &str) -> Result<bool, Failure> {
    if !delete_versions(cx, container, object).await? {
        return Ok(false);
    }
    delete_empty_container(cx, container).await.map(|()| true)
}

/// A version of an object.
pub(crate) struct Version {
    /// When it was written, in seconds since 1970 with the digits of Swift, which sort. Each version has its own.
    pub(crate) time: String,
    /// Its content.
    pub(crate) text: String,
}

/// The versions of an object except those of `known` times, the oldest first and at most [`AT_ONCE`]; none if it does not
/// exist.
pub(crate) async fn new_versions(
    cx: &Context<'_>,
    container: &str,
    object: &str,
    known: &HashSet<&str>,
) -> Result<Vec<Version>, Failure> {
    // Read before the old versions are listed: then no version before it is missing in the list.
    let latest = get(cx, container, object).await?.map(|response| {
        let time = response.headers.get("x-timestamp").and_then(Value::as_str).unwrap_or_default().to_owned();
        Version { time, text: text_of(&response) }
    });
    let prefix = old_versions(object);
    let names = names(cx, container, &prefix).await?;
    let old = names.iter().filter_map(|name| name.strip_prefix(&prefix));
    let times: BTreeSet<&str> = old.chain(latest.as_ref().map(|latest| latest.time.as_str())).collect();
    let mut new = Vec::new();
    for time in times.into_iter().filter(|time| !known.contains(time)).take(AT_ONCE) {
        let text = match &latest {
            Some(latest) if latest.time == time => Some(latest.text.clone()),
            _ => text(cx, container, &format!("{prefix}{time}")).await?,
        };
        new.extend(text.map(|text| Version { time: time.to_owned(), text }));
    }
    Ok(new)
}

/// What the names of the old versions of an object begin with: Swift adds the time.
pub(crate) fn old_versions(object: &str) -> String {
    format!("{:03x}{object}/", object.len())
}
