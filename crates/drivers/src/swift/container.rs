//! OS::Swift::Container

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Driver, Failure, Found, Method, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, value};

use super::object;
use crate::call::SWIFT;
use crate::call::absent_is_fine;
use crate::queue;

/// Objects that one step of a delete removes.
const AT_ONCE: usize = 20;

/// A container. Its ID is its name; a container with this name is the same container.
pub(super) struct Container;

fn request(method: Method, path: String, headers: Vec<(String, String)>) -> CloudRequest {
    CloudRequest { headers, ..CloudRequest::new(SWIFT.0, method, path) }
}

/// The headers for the entries of a map property.
fn metadata(cx: &Context<'_>, property: &str) -> Vec<(String, String)> {
    let entries = cx.facts.property(property).as_map().into_iter().flatten();
    entries.map(|(key, value)| (format!("{property}-{key}"), kiln_value::text::str(value))).collect()
}

/// The entries of a map property in the headers of an answer. Names of headers have no case, and dashes for underscores.
fn shown(given: &Value, property: &str, headers: &Map) -> Value {
    let keys = given.as_map().into_iter().flatten().map(|(key, _)| key);
    let entry = |key: &String| Some((key.clone(), object::header(headers, &format!("{property}-{key}"))?.clone()));
    Value::Map(keys.filter_map(entry).collect())
}

/// The elements of an access control list. Swift removes spaces, and shortens `.referrer` to `.r`.
fn elements(list: &str) -> Vec<String> {
    let element = |text: &str| {
        let text: String = text.split_whitespace().collect();
        let domain = [".referrer:", ".referer:", ".ref:"].iter().find_map(|front| text.strip_prefix(front));
        domain.map_or_else(|| text.clone(), |domain| format!(".r:{domain}"))
    };
    list.split(',').map(element).filter(|element| !element.is_empty()).collect()
}

/// An access control list in the headers of an answer, as it is given if it means the same.
fn access(given: &Value, name: &str, headers: &Map) -> Value {
    let shown = object::header(headers, name).cloned().unwrap_or_default();
    let means = |value: &Value| elements(value.as_str().unwrap_or_default());
    if means(given) == means(&shown) { given.clone() } else { shown }
}

/// The names of the first objects; `None` if there is no container.
async fn objects(cx: &Context<'_>, name: &str) -> Result<Option<Vec<String>>, Failure> {
    let request = request(Method::Get, object::container_path(name), Vec::new()).query("format", "json");
    match cx.cloud.call(request).await {
        Ok(response) => {
            let objects = response.body.as_list().unwrap_or_default().iter();
            Ok(Some(objects.filter_map(|object| object.str_at("name").map(str::to_owned)).collect()))
        }
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn remove(cx: &Context<'_>) -> Result<Step, Failure> {
    let Some(name) = cx.facts.physical_id.as_deref() else { return Ok(Step::done()) };
    let Some(objects) = objects(cx, name).await? else { return Ok(Step::done()) };
    if objects.is_empty() {
        absent_is_fine(cx.cloud.call(request(Method::Delete, object::container_path(name), Vec::new())).await)?;
        return Ok(Step::done());
    }
    if !cx.facts.property("PurgeOnDelete").is_truthy() {
        let text =
            format!("Deleting non-empty container ({name}) when PurgeOnDelete is False is not supported for resource.");
        return Err(Failure::other(Class::ResourceActionNotSupported, text));
    }
    for object in objects.iter().take(AT_ONCE) {
        object::delete(cx, name, object).await?;
    }
    Ok(Step::wait(value!({"stage": "purge"}), Duration::ZERO))
}

impl TypeRules for Container {}

#[async_trait]
impl Driver for Container {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, which is idempotent.
            Operation::Create => {
                let given = cx.facts.property("name").as_str().filter(|name| !name.is_empty());
                Ok(queue::now("put").id(given.unwrap_or(&cx.facts.physical_name)))
            }
            Operation::Update { changed, .. } if !changed.is_empty() => Ok(Step::replace()),
            Operation::Delete => remove(cx).await,
            Operation::Check => {
                let path = object::container_path(cx.facts.require_id()?);
                cx.cloud.call(request(Method::Head, path, Vec::new())).await.map(|_| Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        if *operation == Operation::Delete {
            return remove(cx).await;
        }
        let mut headers = metadata(cx, "X-Container-Meta");
        for key in ["X-Container-Read", "X-Container-Write"] {
            let value = cx.facts.property(key);
            if !value.is_null() {
                headers.push((key.to_owned(), kiln_value::text::str(value)));
            }
        }
        cx.cloud.call(request(Method::Put, object::container_path(cx.facts.require_id()?), headers)).await?;
        let account = metadata(cx, "X-Account-Meta");
        if !account.is_empty() {
            cx.cloud.call(request(Method::Post, String::new(), account)).await?;
        }
        Ok(Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let name = cx.facts.require_id()?;
        let container = cx.cloud.call(request(Method::Head, object::container_path(name), Vec::new())).await?.headers;
        let given = |property: &str| cx.facts.property(property);
        let mut live = Map::from([("name".to_owned(), name.into())]);
        for property in ["X-Container-Read", "X-Container-Write"] {
            live.insert(property.to_owned(), access(given(property), property, &container));
        }
        let metadata = "X-Container-Meta";
        live.insert(metadata.to_owned(), shown(given(metadata), metadata, &container));
        let metadata = "X-Account-Meta";
        if given(metadata).is_truthy() {
            let account = cx.cloud.call(request(Method::Head, String::new(), Vec::new())).await?.headers;
            live.insert(metadata.to_owned(), shown(given(metadata), metadata, &account));
        }
        Ok(live)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let url = cx.cloud.endpoint(SWIFT.0).await?.unwrap_or_default();
        let id = cx.facts.physical_id.as_deref();
        let needs_head = names.iter().any(|name| !matches!(*name, "DomainName" | "WebsiteURL" | "RootURL"));
        let headers = match id {
            Some(id) if needs_head => {
                match cx.cloud.call(request(Method::Head, object::container_path(id), Vec::new())).await {
                    Ok(response) => Value::Map(response.headers),
                    Err(failure) if failure.is_passing() => return Err(failure),
                    Err(_) => Value::Null,
                }
            }
            _ => Value::Null,
        };
        let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
        let value = |name: &str| match name {
            "DomainName" => host.into(),
            "RootURL" => url.as_str().into(),
            "WebsiteURL" => format!("{url}/{}", id.unwrap_or_default()).into(),
            "ObjectCount" => headers.get("x-container-object-count").cloned().unwrap_or_default(),
            "BytesUsed" => headers.get("x-container-bytes-used").cloned().unwrap_or_default(),
            "HeadContainer" | "show" => headers.clone(),
            _ => Value::Null,
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }
}
