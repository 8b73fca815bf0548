//! OS::Glance::WebImage

use async_trait::async_trait;
use kiln_resource::{
    CloudRequest, Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation, Step, TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use crate::call::{GLANCE, made_id};
use crate::path;
use crate::queue::{again, give_up, given_up, now, wait};
use crate::validation::failed;

/// An image that Glance downloads from a URL.
///
/// Clients of Glance can choose the ID of an image. It is that of the template or the token of the attempt, so that no
/// image is created twice. An ID from the template may belong to another image, so it is claimed first: a stored step
/// records that it is unused.
pub(super) struct WebImage;

fn given_id(facts: &Facts) -> Option<&str> {
    facts.property("id").as_str().filter(|id| !id.is_empty())
}

fn chosen_id(facts: &Facts) -> &str {
    given_id(facts).unwrap_or(&facts.attempt.token)
}

async fn seek(cx: &Context<'_>, id: &str) -> Result<Option<Value>, Failure> {
    match GLANCE.get(cx, image_path(id)).await {
        Ok(image) => Ok(Some(image)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn image_path(id: &str) -> String {
    format!("/v2/images/{}", path::segment(id))
}

/// Properties that are not attributes of the image itself.
const APART: [&str; 5] = ["id", "active", "location", "members", "extra_properties"];

async fn create(cx: &Context<'_>) -> Result<Step, Failure> {
    match given_id(cx.facts) {
        Some(id) if seek(cx, id).await?.is_none() => Ok(now("claim").id(id)),
        _ => post(cx).await,
    }
}

/// The create after the claim: an image with the ID was created by an earlier call. Idempotent.
async fn create_claimed(cx: &Context<'_>, id: &str) -> Result<Step, Failure> {
    match post(cx).await {
        Err(failure) if failure.kind == FailureKind::Conflict && seek(cx, id).await?.is_some() => Ok(now("import")),
        Err(failure) if !failure.is_passing() => Ok(give_up(&failure)),
        outcome => outcome,
    }
}

async fn post(cx: &Context<'_>) -> Result<Step, Failure> {
    let facts = cx.facts;
    let mut image: Map = facts
        .properties
        .iter()
        .filter(|(name, value)| !value.is_null() && !APART.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    image.insert("id".into(), chosen_id(facts).into());
    image.extend(facts.property("extra_properties").as_map().cloned().unwrap_or_default());
    let made = GLANCE.post(cx, "/v2/images", image.into()).await?;
    let id = made_id(made.str_at("id"), "an image")?;
    Ok(now("import").id(id))
}

/// Requests the download, and sets members. Idempotent.
async fn import(cx: &Context<'_>, id: &str) -> Result<Step, Failure> {
    let image = GLANCE.get(cx, image_path(id)).await?;
    if image.str_at("status") == Some("queued") {
        let uri = cx.facts.property("location");
        let body = value!({"method": {"name": "web-download", "uri": uri}});
        match GLANCE.post(cx, format!("{}/import", image_path(id)), body).await {
            // It is already in progress.
            Err(failure) if failure.kind == FailureKind::Conflict => {}
            outcome => drop(outcome?),
        }
    }
    for member in texts(cx.facts.property("members")) {
        share(cx, id, member).await?;
    }
    Ok(wait("active"))
}

async fn look(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    let image = GLANCE.get(cx, image_path(id)).await?;
    let wants_active = cx.facts.property("active").is_truthy();
    let status = image.str_at("status").unwrap_or_default();
    // An image remains queued after a failed import; Glance reports the failure only here.
    let has_failed = image.str_at("os_glance_failed_import").is_some_and(|stores| !stores.is_empty());
    match status {
        "killed" => Err(Failure::in_error("killed", "Unknown")),
        "queued" if has_failed => Err(Failure::in_error(status, "The import of the image has failed.")),
        "active" if wants_active => Ok(Step::done()),
        "active" => {
            turn(cx, id, "deactivate").await?;
            Ok(Step::done())
        }
        "deactivated" if !wants_active => Ok(Step::done()),
        status => Ok(again(cx, state, format!("the status active, not {status}"))),
    }
}

async fn turn(cx: &Context<'_>, id: &str, action: &str) -> Result<(), Failure> {
    let path = format!("{}/actions/{action}", image_path(id));
    cx.cloud.call(CloudRequest::new(GLANCE.0, Method::Post, path)).await.map(|_| ())
}

async fn share(cx: &Context<'_>, id: &str, member: &str) -> Result<(), Failure> {
    match GLANCE.post(cx, format!("{}/members", image_path(id)), value!({"member": member})).await {
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_list().unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

/// The items of one list that are not in the other.
fn without<'a>(list: &'a Value, other: &Value) -> Vec<&'a str> {
    let other = texts(other);
    texts(list).into_iter().filter(|text| !other.contains(text)).collect()
}

async fn update(cx: &Context<'_>, id: &str, before: &Map, changed: &Map) -> Result<Step, Failure> {
    const NULL: &Value = &Value::Null;
    let former = |name: &str| before.get(name).unwrap_or(NULL);
    if changed.get("active").and_then(Value::as_bool) == Some(false) {
        turn(cx, id, "deactivate").await?;
    }
    if let Some(tags) = changed.get("tags") {
        for tag in without(tags, former("tags")) {
            let path = format!("{}/tags/{}", image_path(id), path::segment(tag));
            cx.cloud.call(CloudRequest::new(GLANCE.0, Method::Put, path)).await?;
        }
        for tag in without(former("tags"), tags) {
            GLANCE.delete(cx, format!("{}/tags/{}", image_path(id), path::segment(tag))).await?;
        }
    }
    let patch = patch(before, changed);
    if !patch.is_empty() {
        send(cx, id, patch).await?;
    }
    if let Some(members) = changed.get("members") {
        for member in without(members, former("members")) {
            share(cx, id, member).await?;
        }
        for member in without(former("members"), members) {
            GLANCE.delete(cx, format!("{}/members/{}", image_path(id), path::segment(member))).await?;
        }
    }
    if changed.get("active").is_some_and(Value::is_truthy) {
        turn(cx, id, "reactivate").await?;
    }
    Ok(Step::done())
}

/// Changes the image by a JSON patch.
async fn send(cx: &Context<'_>, id: &str, patch: Vec<Value>) -> Result<(), Failure> {
    let mut request = CloudRequest::new(GLANCE.0, Method::Patch, image_path(id)).body(patch.into());
    request.headers.push(("content-type".into(), "application/openstack-images-v2.1-json-patch".into()));
    cx.cloud.call(request).await.map(drop)
}

/// The changes of the image as JSON patch.
fn patch(before: &Map, changed: &Map) -> Vec<Value> {
    let mut operations = Vec::new();
    let mut set = |key: &str, value: &Value, was: bool| {
        let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        if !value.is_null() {
            operations.push(value!({"op": "add", "path": path, "value": value}));
        } else if was {
            operations.push(value!({"op": "remove", "path": path}));
        }
    };
    let had = |name: &str| before.get(name).is_some_and(|value| !value.is_null());
    for (name, value) in changed.iter().filter(|(name, _)| !APART.contains(&name.as_str()) && *name != "tags") {
        set(name, value, had(name));
    }
    if let Some(extra) = changed.get("extra_properties") {
        for (key, value) in extra.as_map().into_iter().flatten() {
            set(key, value, true);
        }
        let old = before.get("extra_properties").and_then(Value::as_map);
        for key in old.into_iter().flat_map(Map::keys).filter(|key| extra.get(key).is_none()) {
            set(key, &Value::Null, true);
        }
    }
    operations
}

impl TypeRules for WebImage {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let container = facts.property("container_format");
        let is_amazon = matches!(container.as_str(), Some("ami" | "ari" | "aki"));
        if is_amazon && facts.property("disk_format") != container {
            return Err(failed(
                "Invalid mix of disk and container formats. When setting a disk or container format to one of 'aki', \
                 'ari', or 'ami', the container and disk formats must match.",
            ));
        }
        if facts.property("members").is_truthy() && facts.property("visibility").as_str() != Some("shared") {
            let message = "members property should only be specified for visibility with value shared.";
            return Err(Diagnostic::new(Class::ResourcePropertyValueDependency, message));
        }
        Ok(())
    }
}

#[async_trait]
impl Driver for WebImage {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => create(cx).await,
            Operation::Update { before, changed } => update(cx, cx.facts.require_id()?, before, changed).await,
            Operation::Delete => {
                if let Some(id) = cx.facts.physical_id.as_deref() {
                    GLANCE.delete(cx, image_path(id)).await?;
                }
                Ok(Step::done())
            }
            Operation::Check => GLANCE.get(cx, image_path(cx.facts.require_id()?)).await.map(|_| Step::done()),
            Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if let Some(failure) = given_up(state) {
            return Err(failure);
        }
        let id = cx.facts.require_id()?;
        match state.str_at("stage") {
            Some("claim") => create_claimed(cx, id).await,
            Some("import") => import(cx, id).await,
            _ => look(cx, id, state).await,
        }
    }

    /// By ID: the token, or a specified ID with which nothing is created before the claim is stored.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        if given_id(cx.facts).is_some() || seek(cx, &cx.facts.attempt.token).await?.is_none() {
            return Ok(Found::NotMade);
        }
        Ok(Found::Made(now("import").id(&cx.facts.attempt.token)))
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let id = cx.facts.require_id()?;
        let mut live = self.live_in(cx, &GLANCE.get(cx, image_path(id)).await?).await?;
        if cx.facts.property("members").is_truthy() {
            let members = GLANCE.list(cx, format!("{}/members", image_path(id)), &[], "members").await?;
            let members = members.iter().filter_map(|member| member.get("member_id").cloned());
            live.insert("members".to_owned(), members.collect());
        }
        Ok(live)
    }

    async fn live_in(&self, cx: &Context<'_>, image: &Value) -> Result<Map, Failure> {
        let is_shown = |name: &&String| !APART.contains(&name.as_str());
        // Glance omits what an image does not have.
        let value = |name: &String| (name.clone(), image.get(name).cloned().unwrap_or_default());
        let mut live: Map = cx.facts.properties.keys().filter(is_shown).map(value).collect();
        // An image without data is neither.
        if let Some(status @ ("active" | "deactivated")) = image.str_at("status") {
            live.insert("active".to_owned(), (status == "active").into());
        }
        // An image has further properties of its service: only those of the template are compared.
        let given = cx.facts.property("extra_properties").as_map().into_iter().flat_map(Map::keys);
        live.extend(image.get("id").map(|id| ("id".to_owned(), id.clone())));
        live.insert("extra_properties".to_owned(), Value::Map(given.map(value).collect()));
        Ok(live)
    }

    fn has_lock(&self) -> bool {
        true
    }

    /// An image that the template protects stays protected.
    async fn lock(&self, cx: &Context<'_>, locked: bool) -> Result<(), Failure> {
        let protected = locked || cx.facts.property("protected").is_truthy();
        let patch = vec![value!({"op": "replace", "path": "/protected", "value": protected})];
        send(cx, cx.facts.require_id()?, patch).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let image = match cx.facts.physical_id.as_deref() {
            Some(id) => seek(cx, id).await?.unwrap_or_default(),
            None => Value::Null,
        };
        let value = |name: &str| match name {
            "show" => image.clone(),
            name => image.get(name).cloned().unwrap_or_default(),
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_become_a_json_patch() {
        let before = value!({"os_distro": "a", "extra_properties": {"x": "1", "gone": "2"}});
        let changed = value!({
            "os_distro": null, "os_version": null, "protected": true, "tags": ["t"],
            "extra_properties": {"x": "3", "a/b": "4"},
        });
        let got: Value = patch(before.as_map().unwrap(), changed.as_map().unwrap()).into();
        let expected = value!([
            {"op": "remove", "path": "/os_distro"},
            {"op": "add", "path": "/protected", "value": true},
            {"op": "add", "path": "/x", "value": "3"},
            {"op": "add", "path": "/a~1b", "value": "4"},
            {"op": "remove", "path": "/gone"},
        ]);
        assert_eq!(got, expected);
    }
}
