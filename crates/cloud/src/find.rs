//! Resolves names to IDs by the finders of definition files (docs/resource-types.md), with the errors of Heat's client
//! plug-ins.

mod errors;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use kiln_resource::finder::{Ids, Missing, Several};
use kiln_resource::{Cloud, CloudRequest, Failure, Finder, FinderClient, Finders, Method};
use kiln_value::{Class, Value, text};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use errors::{ambiguous, entity_not_found, missing};

/// Most further pages of a list that are searched.
const MOST_PAGES: usize = 1_000;

/// The ID of the object with this name or ID.
pub(crate) async fn find(cloud: &dyn Cloud, finders: &Finders, finder: &str, given: &str) -> Result<String, Failure> {
    let Some(finder) = finders.get(finder) else {
        return Err(Failure::other(Class::ClientNotFound, format!("unknown finder {finder}")));
    };
    if finder.ids == Ids::Taken && is_uuid_like(given) {
        return Ok(given.to_owned());
    }
    if let Some(alias) = &finder.extension
        && !cloud.has_extension(&finder.service, alias).await?
    {
        return Err(entity_not_found("neutron extension", alias));
    }
    if finder.client == FinderClient::Neutron {
        return in_lists(cloud, finder, given).await;
    }
    let (name, scope) = match finder.within.as_ref().zip(scoped(given)) {
        Some(((key, of_scope), (name, scope))) => {
            let found = Box::pin(find(cloud, finders, of_scope, scope)).await;
            (name, Some((key, found.map_err(|_| missing(finder, given, &[]))?)))
        }
        None => (given, None),
    };
    if let Some(id) = by_id(cloud, finder, name).await? {
        return Ok(id);
    }
    let Some(by) = &finder.by else { return Err(missing(finder, name, &[])) };
    let mut request = list_request(cloud, finder).await?;
    if finder.filter {
        request = request.query(by, name);
    }
    if let Some((key, scope)) = &scope {
        request = request.query(key.as_str(), scope);
    }
    in_list(cloud, finder, request, by, name).await
}

/// The parts of `name{scope}`.
fn scoped(given: &str) -> Option<(&str, &str)> {
    given.strip_suffix('}')?.split_once('{')
}

fn is_uuid_like(text: &str) -> bool {
    let digits = text.bytes().filter(|b| *b != b'-');
    digits.clone().count() == 32 && digits.clone().all(|b| b.is_ascii_hexdigit())
}

/// The ID of the object that is read with the value; `None` if there is none.
async fn by_id(cloud: &dyn Cloud, finder: &Finder, value: &str) -> Result<Option<String>, Failure> {
    let id = match finder.ids {
        Ids::Read => value,
        Ids::Uuid if is_uuid_like(value) => value,
        Ids::Url => value.trim_end_matches('/').rsplit('/').next().unwrap_or_default(),
        Ids::Uuid | Ids::Taken | Ids::List | Ids::Never => return Ok(None),
    };
    if id.is_empty() {
        return Ok(None);
    }
    let path = finder.item.replace("{id}", &utf8_percent_encode(id, NON_ALPHANUMERIC).to_string());
    match cloud.call(CloudRequest::new(finder.service.as_str(), Method::Get, path)).await {
        Ok(response) => Ok(match &finder.id {
            Some(key) => id_of(key, &response.body),
            None => Some(value.to_owned()),
        }),
        Err(failure) if failure.is_not_found() && finder.missing != Missing::Response => Ok(None),
        // Some services reject a value that is not an ID. octaviaclient has one class for all errors.
        Err(failure)
            if finder.by.is_some() && matches!(failure.class, Class::BadRequest | Class::OctaviaClientException) =>
        {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// The ID of an object, which may be under a key.
fn id_of(key: &str, body: &Value) -> Option<String> {
    let inner = body.as_map().and_then(|map| map.values().next()).and_then(|first| first.get(key));
    body.get(key).or(inner).map(text::str)
}

/// The request of the list, with the query parameters that it always has.
async fn list_request(cloud: &dyn Cloud, finder: &Finder) -> Result<CloudRequest, Failure> {
    let mut request = CloudRequest::new(finder.service.as_str(), Method::Get, finder.collection.as_str());
    for (key, value) in &finder.query {
        request = match value.as_str() {
            "{project}" => request.query(key, cloud.project_id().await?),
            value => request.query(key, value),
        };
    }
    Ok(request)
}

/// The objects of a list, under any key.
async fn list(cloud: &dyn Cloud, request: CloudRequest) -> Result<Vec<Value>, Failure> {
    let response = cloud.call(request).await?;
    let Value::Map(entries) = response.body else { return Ok(Vec::new()) };
    let mut lists = entries.into_iter().filter(|(key, _)| !key.ends_with("links"));
    let first = lists.find_map(|(_, value)| match value {
        Value::List(items) => Some(items),
        _ => None,
    });
    Ok(first.unwrap_or_default())
}

/// Searches a list, and its further pages, by ID if the finder says so, and by name.
async fn in_list(
    cloud: &dyn Cloud,
    finder: &Finder,
    mut request: CloudRequest,
    by: &str,
    name: &str,
) -> Result<String, Failure> {
    let key = finder.id.as_deref().unwrap_or("id");
    let mut named = Vec::new();
    let mut known = Vec::new();
    let mut markers = HashSet::new();
    while markers.len() <= MOST_PAGES {
        let page = list(cloud, request.clone()).await?;
        if finder.ids == Ids::List
            && let [id, ..] = ids(&page, key, key, name).as_slice()
        {
            return Ok(id.clone());
        }
        named.extend(ids(&page, by, key, name));
        known.extend(page.iter().filter_map(|object| object.str_at(by).map(str::to_owned)));
        let is_decided = finder.several == Several::First && !named.is_empty();
        let last = page.last().and_then(|object| object.str_at(key)).filter(|_| finder.pages && !is_decided);
        // A service that ignores the marker has no further pages.
        let Some(last) = last.filter(|last| markers.insert((*last).to_owned())) else { break };
        request.query.retain(|(key, _)| key != "marker");
        request = request.query("marker", last);
    }
    one_of(finder, &named, &known, name)
}

/// The IDs of the objects whose value of `by` is `wanted`.
fn ids(objects: &[Value], by: &str, key: &str, wanted: &str) -> Vec<String> {
    let found = objects.iter().filter(|object| object.str_at(by) == Some(wanted));
    found.filter_map(|object| object.str_at(key).map(str::to_owned)).collect()
}

/// The only object, or what the finder says about none or several.
fn one_of(finder: &Finder, named: &[String], known: &[String], name: &str) -> Result<String, Failure> {
    let is_first = finder.several == Several::First;
    match named {
        [id] => Ok(id.clone()),
        [id, ..] if is_first => Ok(id.clone()),
        [] => Err(missing(finder, name, known)),
        _ => Err(ambiguous(finder, name, known)),
    }
}

/// Neutron's requests: lists of the fields that count.
async fn in_lists(cloud: &dyn Cloud, finder: &Finder, name: &str) -> Result<String, Failure> {
    let select =
        |request: CloudRequest, key: &str| request.query("fields", "id").query("fields", "name").query(key, name);
    let plain = CloudRequest::new(finder.service.as_str(), Method::Get, finder.collection.as_str());
    if is_uuid_like(name)
        && let [id] = ids(&list(cloud, select(plain.clone(), "id")).await?, "id", "id", name).as_slice()
    {
        return Ok(id.clone());
    }
    let mut request = select(plain, "name");
    request.query.extend(list_request(cloud, finder).await?.query);
    one_of(finder, &ids(&list(cloud, request).await?, "name", "id", name), &[], name)
}
