//! Helpers for calls of drivers.

use kiln_resource::{CloudRequest, Context, Failure, FailureKind, Method};
use kiln_value::{Map, Value};

/// A service as a driver uses it.
#[derive(Clone, Copy)]
pub(crate) struct Service(pub(crate) &'static str);

impl Service {
    /// The body of an object or list.
    pub(crate) async fn get(self, cx: &Context<'_>, path: impl Into<String>) -> Result<Value, Failure> {
        Ok(cx.cloud.call(CloudRequest::new(self.0, Method::Get, path)).await?.body)
    }

    /// One object, without the key around it.
    pub(crate) async fn show(self, cx: &Context<'_>, path: impl Into<String>, key: &str) -> Result<Value, Failure> {
        Ok(take(self.get(cx, path).await?, key))
    }

    /// One object; `None` if it is not there.
    pub(crate) async fn seek(
        self,
        cx: &Context<'_>,
        path: impl Into<String>,
        key: &str,
    ) -> Result<Option<Value>, Failure> {
        match self.show(cx, path, key).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The objects of a list that a query selects.
    pub(crate) async fn list(
        self,
        cx: &Context<'_>,
        path: impl Into<String>,
        query: &[(&str, &str)],
        key: &str,
    ) -> Result<Vec<Value>, Failure> {
        let mut request = CloudRequest::new(self.0, Method::Get, path);
        for (name, value) in query {
            request = request.query(*name, *value);
        }
        items(cx.cloud.call(request).await?.body, key)
    }

    /// Makes or does something.
    pub(crate) async fn post(self, cx: &Context<'_>, path: impl Into<String>, body: Value) -> Result<Value, Failure> {
        Ok(cx.cloud.call(CloudRequest::new(self.0, Method::Post, path).body(body)).await?.body)
    }

    /// Replaces or changes something.
    pub(crate) async fn put(self, cx: &Context<'_>, path: impl Into<String>, body: Value) -> Result<Value, Failure> {
        Ok(cx.cloud.call(CloudRequest::new(self.0, Method::Put, path).body(body)).await?.body)
    }

    /// Takes something away; fine if it is not there.
    pub(crate) async fn delete(self, cx: &Context<'_>, path: impl Into<String>) -> Result<(), Failure> {
        absent_is_fine(cx.cloud.call(CloudRequest::new(self.0, Method::Delete, path)).await)
    }
}

/// The list under a key of an answer. An answer without it tells nothing, least of all that there is nothing.
pub(crate) fn items(body: Value, key: &str) -> Result<Vec<Value>, Failure> {
    match take(body, key) {
        Value::List(items) => Ok(items),
        _ => Err(unreadable(format!("an answer has no list of {key}"))),
    }
}

/// An answer that says yes and cannot be read: what was asked for may have happened.
pub(crate) fn unreadable(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Unavailable, "MalformedResponseBody", message)
}

/// The id that an answer to a create tells, as `what` has it.
pub(crate) fn made_id<'a>(id: Option<&'a str>, what: &str) -> Result<&'a str, Failure> {
    id.filter(|id| !id.is_empty()).ok_or_else(|| unreadable(format!("{what} was made without an id")))
}

/// The id of a security group that may be given by name. What looks like an id is taken for one, as Heat does, and so is
/// the text where there is no such group.
pub(crate) async fn security_group_id(cx: &Context<'_>, group: &str) -> Result<String, Failure> {
    if is_uuid_like(group) {
        return Ok(group.to_owned());
    }
    cx.cloud.find("neutron.security_group", group).await.map_err(|failure| {
        if failure.is_not_found() {
            let text = format!("The Resource ({group}) could not be found.");
            Failure::new(FailureKind::NotFound, "EntityNotFound", text)
        } else {
            failure
        }
    })
}

/// Takes NotFound as success.
pub(crate) fn absent_is_fine<T>(outcome: Result<T, Failure>) -> Result<(), Failure> {
    match outcome {
        Ok(_) => Ok(()),
        Err(failure) if failure.is_not_found() => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// The value of a map's key; null if there is none.
pub(crate) fn take(body: Value, key: &str) -> Value {
    match body {
        Value::Map(mut entries) => entries.swap_remove(key).unwrap_or_default(),
        _ => Value::Null,
    }
}

/// A map without the entries that have no value.
pub(crate) fn without_nulls(mut map: Map) -> Map {
    map.retain(|_, value| !value.is_null());
    map
}

/// Whether a text is a UUID, with or without dashes: such a text is taken for an id.
pub(crate) fn is_uuid_like(text: &str) -> bool {
    let digits = text.bytes().filter(|b| *b != b'-');
    digits.clone().count() == 32 && digits.clone().all(|b| b.is_ascii_hexdigit())
}
