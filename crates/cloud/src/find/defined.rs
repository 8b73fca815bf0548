//! Finders of definition files: objects of a collection, by ID first and then by name.

use kiln_resource::{Cloud, CloudRequest, Failure, FailureKind, Finder, FinderClient, Method};
use kiln_value::Value;

use super::{entity_not_found, ids, is_uuid_like, list, show};

/// The ID of the object with this name or ID.
pub(super) async fn find(cloud: &dyn Cloud, finder: &Finder, name: &str) -> Result<String, Failure> {
    match finder.client {
        FinderClient::Neutron => in_lists(cloud, finder, name).await,
        FinderClient::Heat | FinderClient::Osc | FinderClient::Sdk | FinderClient::NeutronExtension => {
            by_id_first(cloud, finder, name).await
        }
    }
}

async fn by_id_first(cloud: &dyn Cloud, finder: &Finder, name: &str) -> Result<String, Failure> {
    let by_id = match show(cloud, &finder.service, &finder.collection, name).await {
        // Some services reject a value that is not an ID.
        Err(failure) if failure.kind == FailureKind::Refused && finder.by.is_some() => None,
        other => other?,
    };
    if let Some(id) = by_id.as_ref().and_then(|body| id_of(finder, body)) {
        return Ok(id);
    }
    let Some(by) = &finder.by else { return Err(missing(finder, name)) };
    let request = CloudRequest::new(finder.service.as_str(), Method::Get, finder.collection.as_str());
    let found = list(cloud, request.query(by, name)).await?;
    let is_named = |object: &&Value| object.str_at(by) == Some(name);
    let ids: Vec<&str> = found.iter().filter(is_named).filter_map(|object| object.str_at(&finder.id)).collect();
    match ids.as_slice() {
        [id] => Ok((*id).to_owned()),
        [] => Err(missing(finder, name)),
        _ => Err(ambiguous(finder, name)),
    }
}

/// The ID of an object, which may be under a key.
fn id_of(finder: &Finder, body: &Value) -> Option<String> {
    let inner = body.as_map().and_then(|map| map.values().next()).and_then(|first| first.get(&finder.id));
    body.get(&finder.id).or(inner).map(kiln_value::text::str)
}

async fn in_lists(cloud: &dyn Cloud, finder: &Finder, name: &str) -> Result<String, Failure> {
    if let Some(alias) = &finder.extension
        && !cloud.has_extension(&finder.service, alias).await?
    {
        return Err(entity_not_found("neutron extension", alias));
    }
    let select = |key: &str| {
        let request = CloudRequest::new(finder.service.as_str(), Method::Get, finder.collection.as_str());
        request.query("fields", "id").query("fields", "name").query(key, name)
    };
    if is_uuid_like(name)
        && let [id] = ids(&list(cloud, select("id")).await?, "id", name).as_slice()
    {
        return Ok(id.clone());
    }
    match ids(&list(cloud, select("name")).await?, "name", name).as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(missing(finder, name)),
        _ => Err(ambiguous(finder, name)),
    }
}

fn missing(finder: &Finder, name: &str) -> Failure {
    let word = &finder.word;
    let not_found = |class: &str, message: String| Failure::new(FailureKind::NotFound, class, message);
    match finder.client {
        FinderClient::Heat => entity_not_found(word, name),
        FinderClient::Osc => not_found("NotFound", format!("{name} not found (HTTP 404)")),
        FinderClient::Neutron | FinderClient::NeutronExtension => {
            not_found("NotFound", format!("Unable to find {word} with name or id '{name}'"))
        }
        FinderClient::Sdk => not_found("NotFoundException", format!("No {word} found for {name}")),
    }
}

fn ambiguous(finder: &Finder, name: &str) -> Failure {
    let word = &finder.word;
    match finder.client {
        FinderClient::Heat => Failure::other(
            "NoUniqueMatch",
            format!("Ambiguous {word} name '{name}'. Found more than one {word} for this name."),
        ),
        FinderClient::Osc => Failure::other("NotFound", format!("{name} not found (HTTP 404)")),
        FinderClient::Neutron | FinderClient::NeutronExtension => Failure::other(
            "NeutronClientNoUniqueMatch",
            format!("Multiple {word} matches found for name '{name}', use an ID to be more specific."),
        ),
        FinderClient::Sdk => {
            Failure::other("DuplicateResource", format!("More than one {word} exists with the name '{name}'."))
        }
    }
}
