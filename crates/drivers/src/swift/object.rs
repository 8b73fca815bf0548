//! Objects in containers.

use kiln_resource::{CloudRequest, Context, Failure, FailureKind, Method};
use kiln_value::Value;

use super::SWIFT;
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
    CloudRequest { headers, ..CloudRequest::new(SWIFT, method, path) }
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
    match cx.cloud.call(request(Method::Get, path(container, object), &[("accept", TEXT)])).await {
        Ok(response) => Ok(Some(response.body.as_str().unwrap_or_default().to_owned())),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
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

/// Versions that one call of [`delete_versions`] removes.
const AT_ONCE: usize = 20;

/// Deletes the versions of an object, the latest first, and then the container, unless it has other objects. False: there
/// are more versions.
pub(crate) async fn delete_versions(cx: &Context<'_>, container: &str, object: &str) -> Result<bool, Failure> {
    for _ in 0..AT_ONCE {
        if !delete(cx, container, object).await? {
            return delete_empty_container(cx, container).await.map(|()| true);
        }
    }
    Ok(false)
}
