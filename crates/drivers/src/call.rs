//! Helpers for the calls of drivers.

use kiln_resource::{CloudRequest, Context, Failure, FailureKind, Method};
use kiln_value::{Class, Map, Value};

/// A cloud service.
#[derive(Clone, Copy)]
pub(crate) struct Service(pub(crate) &'static str);

pub(crate) const AODH: Service = Service("alarming");
pub(crate) const BARBICAN: Service = Service("key-manager");
pub(crate) const BLAZAR: Service = Service("reservation");
pub(crate) const CINDER: Service = Service("block-storage");
pub(crate) const DESIGNATE: Service = Service("dns");
pub(crate) const GLANCE: Service = Service("image");
pub(crate) const KEYSTONE: Service = Service("identity");
pub(crate) const MISTRAL: Service = Service("workflowv2");
pub(crate) const NEUTRON: Service = Service("network");
pub(crate) const NOVA: Service = Service("compute");
pub(crate) const ORCHESTRATION: Service = Service("orchestration");
pub(crate) const OCTAVIA: Service = Service("load-balancer");
pub(crate) const SWIFT: Service = Service("object-store");
pub(crate) const TROVE: Service = Service("database");
pub(crate) const ZAQAR: Service = Service("messaging");

impl Service {
    /// Returns the body of an object or list.
    pub(crate) async fn get(self, cx: &Context<'_>, path: impl Into<String>) -> Result<Value, Failure> {
        Ok(cx.cloud.call(CloudRequest::new(self.0, Method::Get, path)).await?.body)
    }

    /// Returns one object, without the enclosing key.
    pub(crate) async fn show(self, cx: &Context<'_>, path: impl Into<String>, key: &str) -> Result<Value, Failure> {
        Ok(take(self.get(cx, path).await?, key))
    }

    /// Returns one object; `None` if it does not exist.
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

    /// Returns the objects of a list that match a query.
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

    /// Sends a POST request, to create an object or execute an action.
    pub(crate) async fn post(self, cx: &Context<'_>, path: impl Into<String>, body: Value) -> Result<Value, Failure> {
        Ok(cx.cloud.call(CloudRequest::new(self.0, Method::Post, path).body(body)).await?.body)
    }

    /// Sends a PUT request, to replace or update an object.
    pub(crate) async fn put(self, cx: &Context<'_>, path: impl Into<String>, body: Value) -> Result<Value, Failure> {
        Ok(cx.cloud.call(CloudRequest::new(self.0, Method::Put, path).body(body)).await?.body)
    }

    /// Deletes an object; succeeds if it does not exist.
    pub(crate) async fn delete(self, cx: &Context<'_>, path: impl Into<String>) -> Result<(), Failure> {
        absent_is_fine(cx.cloud.call(CloudRequest::new(self.0, Method::Delete, path)).await)
    }
}

/// The list under a key of a response; without a key, the response itself. A response without the list is an error, not
/// an empty list.
pub(crate) fn items(body: Value, key: &str) -> Result<Vec<Value>, Failure> {
    match if key.is_empty() { body } else { take(body, key) } {
        Value::List(items) => Ok(items),
        _ => Err(unreadable(format!("a response has no list {key}"))),
    }
}

/// The error for a successful response that cannot be read: the operation may have been executed.
pub(crate) fn unreadable(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Unavailable, Class::MalformedResponseBody, message)
}

/// The ID in the response to a create; `what` is the name of the object in the error.
pub(crate) fn made_id<'a>(id: Option<&'a str>, what: &str) -> Result<&'a str, Failure> {
    id.filter(|id| !id.is_empty()).ok_or_else(|| unreadable(format!("{what} was created without an ID")))
}

/// The ID of a security group. Drivers get IDs; a row of a release up to 0.1 has the name.
pub(crate) async fn security_group_id(cx: &Context<'_>, group: &str) -> Result<String, Failure> {
    cx.cloud.find("neutron.secgroup", group).await
}

/// The IDs of security groups, as [`security_group_id`].
pub(crate) async fn security_group_ids(cx: &Context<'_>, groups: &[Value]) -> Result<Vec<Value>, Failure> {
    let mut ids = Vec::with_capacity(groups.len());
    for group in groups.iter().filter_map(Value::as_str) {
        ids.push(security_group_id(cx, group).await?.into());
    }
    Ok(ids)
}

/// Treats NotFound as success.
pub(crate) fn absent_is_fine<T>(outcome: Result<T, Failure>) -> Result<(), Failure> {
    match outcome {
        Ok(_) => Ok(()),
        Err(failure) if failure.is_not_found() => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// The value of a key in a map; null if it is missing. Without a key, the whole body.
pub(crate) fn take(body: Value, key: &str) -> Value {
    match body {
        body if key.is_empty() => body,
        Value::Map(mut entries) => entries.swap_remove(key).unwrap_or_default(),
        _ => Value::Null,
    }
}

/// A map without null values.
pub(crate) fn without_nulls(mut map: Map) -> Map {
    map.retain(|_, value| !value.is_null());
    map
}

/// Whether a string is a UUID, with or without dashes: such a string is treated as an ID.
pub(crate) fn is_uuid_like(text: &str) -> bool {
    let digits = text.bytes().filter(|b| *b != b'-');
    digits.clone().count() == 32 && digits.clone().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn objects_without_a_key_are_whole() {
        assert_eq!(take(value!({"name": "n"}), ""), value!({"name": "n"}));
        assert_eq!(take(value!({"workflow": {"name": "n"}}), "workflow"), value!({"name": "n"}));
        assert_eq!(take(value!(["n"]), "workflow"), Value::Null);
    }
}
