//! OS::Cinder::Volume

mod backup;
mod update;
mod validation;

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    Alike, CloudRequest, Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation, Progress,
    PropertyChange, Step, TypeRules, Unmarked,
};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use super::{show, status, volume_path};
use crate::call::{CINDER, is_uuid_like, items, made_id};
use crate::queue::{self, again, wait};
use crate::{alike, path, scheduler_hints};

/// A volume.
pub(crate) struct Volume;

/// Key in the metadata of the volume for the token of the attempt, if neither name nor description can contain it.
const MARK: &str = "kiln_token";

/// The properties that a volume shows with the same name.
const SHOWN: [&str; 7] =
    ["name", "description", "metadata", "size", "availability_zone", "snapshot_id", "source_volid"];

/// What distinguishes a volume from others with the same name.
enum Mark {
    /// Its unique name.
    Name,
    /// Its description, if the template has none; the description is cleared when the volume is created.
    Description,
    /// Its metadata.
    Metadata,
    /// Nothing: what it is and when it was created.
    Nothing,
}

fn mark(facts: &Facts) -> Mark {
    match (facts.property("name").is_truthy(), facts.property("description").is_truthy()) {
        _ if is_restored(facts) => Mark::Name,
        (false, _) => Mark::Name,
        _ if facts.attempt.unmarked_since.is_some() => Mark::Nothing,
        (true, false) => Mark::Description,
        (true, true) => Mark::Metadata,
    }
}

/// Whether it is restored from a backup. Cinder accepts only a name then: the unique name is sent, and the specified
/// one is set when the volume is created.
fn is_restored(facts: &Facts) -> bool {
    facts.property("backup_id").is_truthy()
}

/// The name in the create request.
fn first_name(facts: &Facts) -> &str {
    if is_restored(facts) { &facts.physical_name } else { name(facts) }
}

fn name(facts: &Facts) -> &str {
    facts.property("name").as_str().filter(|name| !name.is_empty()).unwrap_or(&facts.physical_name)
}

/// The metadata as strings, as Cinder requires.
fn metadata(facts: &Facts) -> Map {
    let given = facts.property("metadata").as_map();
    let texts = given.into_iter().flatten().map(|(key, value)| (key.clone(), kiln_value::text::str(value).into()));
    let mut metadata: Map = texts.collect();
    if matches!(mark(facts), Mark::Metadata) {
        metadata.insert(MARK.into(), facts.attempt.token.as_str().into());
    }
    metadata
}

fn description(facts: &Facts) -> Value {
    match mark(facts) {
        Mark::Description => facts.attempt.token.as_str().into(),
        Mark::Name | Mark::Metadata | Mark::Nothing => facts.property("description").clone(),
    }
}

/// Executes an action on the volume.
async fn act(cx: &Context<'_>, id: &str, action: Value) -> Result<(), Failure> {
    CINDER.post(cx, format!("{}/action", volume_path(id)), action).await.map(|_| ())
}

async fn create(cx: &Context<'_>) -> Result<Step, Failure> {
    let facts = cx.facts;
    if let Some(backup) = facts.property("backup_id").as_str() {
        let body = value!({"restore": {"name": first_name(facts)}});
        let path = format!("/v3/backups/{}/restore", path::segment(backup));
        let made = CINDER.post(cx, path, body).await?;
        return made_from(made.get("restore").and_then(|restore| restore.str_at("volume_id")));
    }
    let mut body = value!({"volume": (body(cx.facts))});
    if let (Some(hints), Some(body)) = (scheduler_hints::of(facts), body.as_map_mut()) {
        body.insert("OS-SCH-HNT:scheduler_hints".into(), hints.into());
    }
    let made = CINDER.post(cx, "/v3/volumes", body).await?;
    made_from(made.get("volume").and_then(|volume| volume.str_at("id")))
}

/// The volume in the create request.
fn body(facts: &Facts) -> Map {
    let mut volume = Map::new();
    for property in ["size", "availability_zone", "snapshot_id", "volume_type", "source_volid"] {
        let value = facts.property(property);
        if value.is_truthy() {
            volume.insert(property.into(), value.clone());
        }
    }
    if facts.property("multiattach").is_truthy() {
        volume.insert("multiattach".into(), true.into());
    }
    if let Some(image) = facts.property("image").as_str().filter(|image| !image.is_empty()) {
        volume.insert("imageRef".into(), image.into());
    }
    volume.insert("name".into(), first_name(facts).into());
    volume.insert("description".into(), description(facts));
    let metadata = metadata(facts);
    if !metadata.is_empty() {
        volume.insert("metadata".into(), metadata.into());
    }
    volume
}

/// A volume that may be that of a create without a mark.
fn looks_alike(sent: &Map, volume: &Value) -> Result<Alike, Failure> {
    let shown = |key: &str| volume.get(key).filter(|value| value.is_truthy());
    let image = || volume.get("volume_image_metadata")?.get("image_id");
    let fits = sent.iter().all(|(key, sent)| match key.as_str() {
        "imageRef" => image() == Some(sent),
        "description" => shown(key) == Some(sent).filter(|sent| sent.is_truthy()),
        "metadata" => true,
        _ => alike::shows(volume, key, sent),
    });
    let created = volume.str_at("created_at").and_then(alike::seconds);
    Ok(Alike {
        step: made_from(volume.str_at("id"))?,
        created,
        fits: fits && shown("metadata") == sent.get("metadata"),
    })
}

fn made_from(id: Option<&str>) -> Result<Step, Failure> {
    Ok(wait("create").id(made_id(id, "a volume")?))
}

async fn look_after_create(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    let volume = show(cx, id).await?;
    match status(&volume) {
        "available" => {}
        now @ ("creating" | "restoring-backup" | "downloading") => {
            return Ok(again(cx, state, format!("the status available, not {now}")));
        }
        "error" => return Err(Failure::in_error("error", "Unknown")),
        status => return Err(Failure::unknown_status("Volume create failed", status, "Unknown")),
    }
    if is_restored(cx.facts) {
        let body = value!({"volume": {"name": name(cx.facts), "description": description(cx.facts)}});
        CINDER.put(cx, volume_path(id), body).await?;
    }
    if matches!(mark(cx.facts), Mark::Description) {
        CINDER.put(cx, volume_path(id), value!({"volume": {"description": null}})).await?;
    }
    set_read_only(cx, id, cx.facts.property("read_only")).await?;
    let is_changed = is_restored(cx.facts) || matches!(mark(cx.facts), Mark::Description);
    Ok(if is_changed { Step::done() } else { Step::done().answer(volume) })
}

async fn set_read_only(cx: &Context<'_>, id: &str, flag: &Value) -> Result<(), Failure> {
    if flag.is_null() {
        return Ok(());
    }
    act(cx, id, value!({"os-update_readonly_flag": {"readonly": flag}})).await
}

/// Transient states in which Cinder refuses a delete.
const ON_ITS_WAY: [&str; 7] =
    ["creating", "downloading", "restoring-backup", "extending", "retyping", "uploading", "backing-up"];

/// Starts the delete, or waits until it is possible.
async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(Step::done()) };
    let Some(volume) = CINDER.seek(cx, volume_path(id), "volume").await? else { return Ok(Step::done()) };
    match status(&volume) {
        "deleting" => {}
        // It may be in the process of being detached from a deleted server: worth a retry.
        "in-use" | "detaching" | "attaching" | "reserved" => {
            return Err(Failure::new(FailureKind::Conflict, Class::Error, "Volume in use"));
        }
        status if ON_ITS_WAY.contains(&status) => return Ok(wait(BUSY)),
        _ => CINDER.delete(cx, volume_path(id)).await?,
    }
    Ok(wait("gone"))
}

/// Stage of a delete that waits for a stable state.
const BUSY: &str = "busy";

/// Deletes the volume when it is in a stable state.
async fn delete_when_still(cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let step = delete(cx).await?;
    let is_busy = matches!(&step.progress, Progress::Wait { state: next, .. } if next == state);
    Ok(if is_busy { again(cx, state, "a status in which it can be deleted") } else { step })
}

async fn look_after_delete(cx: &Context<'_>, id: &str, state: &Value) -> Result<Step, Failure> {
    match CINDER.seek(cx, volume_path(id), "volume").await? {
        None => Ok(Step::done()),
        Some(volume) if status(&volume) == "error_deleting" => Err(Failure::in_error("error_deleting", "delete")),
        Some(volume) => Ok(again(cx, state, format!("the end of the delete, in the status {}", status(&volume)))),
    }
}

async fn check(cx: &Context<'_>) -> Result<Step, Failure> {
    let volume = show(cx, cx.facts.require_id()?).await?;
    match status(&volume) {
        "available" | "in-use" => Ok(Step::done()),
        status => {
            Err(Failure::other(Class::Error, format!("'status': expected '['available', 'in-use']', got '{status}'")))
        }
    }
}

impl TypeRules for Volume {
    fn scheduler_hints(&self, facts: &Facts) -> Option<Map> {
        Some(scheduler_hints::own(facts))
    }

    fn unmarked(&self, facts: &Facts) -> Option<Unmarked> {
        let is_named = facts.property("name").is_truthy() && !is_restored(facts);
        let (service, likeness) = (CINDER.0.to_owned(), name(facts).into());
        is_named.then_some(Unmarked { service, likeness, listed: false })
    }

    fn refuses(&self, change: &PropertyChange) -> Option<Failure> {
        update::refusal(change)
    }

    fn restored(&self, data: &Map) -> Option<Map> {
        backup::restored(data)
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        validation::validate(facts)
    }
}

#[async_trait]
impl Driver for Volume {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => create(cx).await,
            Operation::Update { changed, .. } => update::start(cx, changed).await,
            Operation::Delete => delete(cx).await,
            Operation::Check => check(cx).await,
            Operation::Snapshot => backup::start(cx).await,
            Operation::Suspend | Operation::Resume | Operation::Adopt => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let id = cx.facts.require_id()?;
        match state.str_at("stage") {
            Some(queue::STAGE) => queue::poll(&update::VolumeTasks, cx, state).await,
            Some(BUSY) => delete_when_still(cx, state).await,
            Some("gone") => look_after_delete(cx, id, state).await,
            Some(backup::STAGE) => backup::poll(cx, state).await,
            _ => look_after_create(cx, id, state).await,
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let facts = cx.facts;
        let request = CloudRequest::new(CINDER.0, Method::Get, "/v3/volumes/detail").query("name", first_name(facts));
        let listed = cx.cloud.call(request).await?.body;
        let volumes = items(listed, "volumes")?;
        let is_ours = |volume: &&Value| {
            volume.str_at("name") == Some(first_name(facts))
                // Left by an earlier attempt with the same name.
                && status(volume) != "deleting"
                && match mark(facts) {
                    Mark::Name | Mark::Nothing => true,
                    Mark::Description => volume.str_at("description") == Some(&facts.attempt.token),
                    Mark::Metadata => volume.get("metadata").and_then(|m| m.str_at(MARK)) == Some(facts.attempt.token.as_str()),
                }
        };
        if matches!(mark(facts), Mark::Nothing) {
            let sent = body(cx.facts);
            let alike = volumes.iter().filter(is_ours).map(|volume| looks_alike(&sent, volume));
            return alike.collect::<Result<_, Failure>>().map(Found::Alike);
        }
        match volumes.iter().find(is_ours) {
            Some(volume) => made_from(volume.str_at("id")).map(Found::Made),
            None => Ok(Found::NotMade),
        }
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let volume = match cx.facts.physical_id.as_deref() {
            Some(id) => CINDER.seek(cx, volume_path(id), "volume").await?,
            None => None,
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), attribute(volume.as_ref(), name))).collect())
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let volume = CINDER.show(cx, volume_path(cx.facts.require_id()?), "volume").await?;
        self.live_in(cx, &volume).await
    }

    async fn live_in(&self, cx: &Context<'_>, volume: &Value) -> Result<Map, Failure> {
        let read = |name: &str| Some((name.to_owned(), volume.get(name)?.clone()));
        let property = |name: &str| cx.facts.property(name);
        // A volume shows the name of its type: an ID in the template is not compared.
        let names_type = !property("volume_type").as_str().is_some_and(is_uuid_like);
        let read_only = volume.get("metadata").and_then(|metadata| metadata.str_at("readonly"));
        let others = [
            ("volume_type", volume.get("volume_type").filter(|_| names_type).cloned()),
            ("image", volume.get("volume_image_metadata").and_then(|image| image.get("image_id")).cloned()),
            // A volume type may allow it too.
            ("multiattach", volume.get("multiattach").filter(|_| property("multiattach").is_truthy()).cloned()),
            ("read_only", read_only.map(|text| text.eq_ignore_ascii_case("true").into())),
        ];
        let others = others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(SHOWN.into_iter().filter_map(read).chain(others).collect())
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(true) };
        let volume = CINDER.seek(cx, volume_path(id), "volume").await?;
        Ok(volume.is_none_or(|volume| matches!(status(&volume), "error" | "deleting")))
    }

    fn snapshots(&self) -> bool {
        true
    }

    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        backup::delete(cx).await
    }
}

/// In Heat, almost all attributes are strings.
fn attribute(volume: Option<&Value>, name: &str) -> Value {
    let Some(volume) = volume else { return Value::Null };
    let entry = |key: &str| volume.get(key).cloned().unwrap_or_default();
    let metadata = || {
        let mut metadata = entry("metadata");
        if let Some(entries) = metadata.as_map_mut() {
            entries.shift_remove(MARK);
        }
        metadata
    };
    match name {
        "show" => volume.clone(),
        "metadata" => kiln_value::text::json(&metadata()).into(),
        "metadata_values" => metadata(),
        "display_name" => entry("name"),
        "display_description" => entry("description"),
        "attachments_list" => entry("attachments"),
        name => kiln_value::text::str(&entry(name)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_attributes_are_strings() {
        let volume = value!({
            "size": 1, "encrypted": false, "name": "n", "attachments": [], "snapshot_id": null,
            "metadata": {"a": "b", MARK: "t"},
        });
        let get = |name| attribute(Some(&volume), name);
        assert_eq!(get("size"), "1".into());
        assert_eq!(get("encrypted"), "False".into());
        assert_eq!(get("snapshot_id"), "None".into());
        assert_eq!(get("attachments"), "[]".into());
        assert_eq!(get("attachments_list"), value!([]));
        assert_eq!(get("metadata"), "{\"a\": \"b\"}".into());
        assert_eq!(get("metadata_values"), value!({"a": "b"}));
        assert_eq!(get("display_name"), "n".into());
    }
}
