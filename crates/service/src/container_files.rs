//! Reads the files of a stack from a container of Swift.

use kiln_identity::Caller;
use kiln_resource::{Cloud, CloudRequest, Failure, Method};
use kiln_template::Files;
use kiln_value::{Class, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{Error, Service};

pub(crate) const SWIFT: &str = "object-store";

/// Characters that are encoded in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An object of a container.
struct Object {
    name: String,
    bytes: usize,
}

impl Service {
    /// Adds the objects of a container to the files of a request, which take precedence. The container is read with
    /// the permissions of the caller.
    pub async fn add_container(&self, caller: &Caller, container: &str, files: &mut Files) -> Result<(), Error> {
        let cloud = self.identity.cloud(caller).await;
        let cloud = cloud.ok_or_else(|| Error::NoContainer(container.to_owned(), "there is no cloud".to_owned()))?;
        let failed = |failure: Failure| Error::NoContainer(container.to_owned(), failure.message);
        let limit = self.options.limits.container;
        let (used, objects) = listed(&*cloud, container).await.map_err(failed)?;
        if used > limit {
            return Err(Error::Download { size: used, limit });
        }
        let mut left = limit;
        for object in objects {
            if files.0.contains_key(&object.name) {
                continue;
            }
            let text = content(&*cloud, container, &object, left).await.map_err(failed)?;
            left = left.checked_sub(text.len()).ok_or(Error::Download { size: limit + 1, limit })?;
            files.0.insert(object.name, text);
        }
        Ok(())
    }
}

/// The size of a container and its first objects: as many as Swift lists at once (10,000).
async fn listed(cloud: &dyn Cloud, container: &str) -> Result<(usize, Vec<Object>), Failure> {
    let request = CloudRequest::new(SWIFT, Method::Get, path(&[container])).query("format", "json");
    let listed = cloud.call(request).await?;
    let entries = listed.body.as_list().unwrap_or_default().iter();
    let objects: Vec<Object> = entries
        .filter_map(|entry| Some(Object { name: entry.str_at("name")?.to_owned(), bytes: size(entry.get("bytes")) }))
        .collect();
    let used = size(listed.headers.get("x-container-bytes-used"));
    Ok((used.max(objects.iter().map(|object| object.bytes).sum()), objects))
}

/// The text of an object: at most one byte more than `most`.
async fn content(cloud: &dyn Cloud, container: &str, object: &Object, most: usize) -> Result<String, Failure> {
    let mut parts = vec![container];
    parts.extend(object.name.split('/'));
    let path = path(&parts);
    if object.bytes == 0 {
        // It is empty, or a manifest of a large object, which has the size of its segments.
        let head = cloud.call(CloudRequest::new(SWIFT, Method::Head, &path)).await?;
        if size(head.headers.get("content-length")) == 0 {
            return Ok(String::new());
        }
    }
    let mut request = CloudRequest::new(SWIFT, Method::Get, path);
    // The object may have grown since it was listed.
    request.headers.push(("range".to_owned(), format!("bytes=0-{most}")));
    request.headers.push(("accept".to_owned(), "*/*".to_owned()));
    match cloud.call(request).await?.body {
        Value::Str(text) => Ok(text),
        _ => Err(Failure::other(Class::ValueError, format!("{} is not a text", object.name))),
    }
}

fn size(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Str(digits)) => digits.parse().unwrap_or(0),
        Some(value) => value.as_i64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0),
        None => 0,
    }
}

/// A path with encoded segments.
pub(crate) fn path(segments: &[&str]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        path.extend(utf8_percent_encode(segment, SEGMENT));
    }
    path
}
