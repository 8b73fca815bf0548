//! Updates of a volume in place.

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Failure, Method, PropertyChange, Step};
use kiln_value::{Class, Map, Value, value};

use super::{act, description, metadata, name, set_read_only};
use crate::call::CINDER;
use crate::cinder::{attach, attachment_of, detach, is_attached, is_detached, is_refusal, show, status, volume_path};
use crate::path;
use crate::queue::{self, Effect, Tasks};

/// Starts an update. Tasks that require a detached volume run between a detach and an attach, except for a change of
/// the size: Cinder can extend attached volumes if the backend supports it.
pub(super) async fn start(cx: &Context<'_>, changed: &Map) -> Result<Step, Failure> {
    let id = cx.facts.require_id()?;
    let volume = show(cx, id).await?;
    let size = volume.get("size").and_then(Value::as_i64).unwrap_or(0);
    if changed.get("size").and_then(Value::as_i64).is_some_and(|wanted| wanted < size) {
        return Err(shrinks());
    }
    if changed.contains_key("name") || changed.contains_key("description") {
        let body = value!({"volume": {"name": name(cx.facts), "description": description(cx.facts)}});
        CINDER.put(cx, volume_path(id), body).await?;
    }
    if changed.contains_key("metadata") {
        let path = format!("{}/metadata", volume_path(id));
        CINDER.put(cx, path, value!({"metadata": metadata(cx.facts)})).await?;
    }
    let mut tasks = Vec::new();
    if let Some(backup) = changed.get("backup_id").filter(|backup| !backup.is_null()) {
        tasks.push(value!({"do": "restore", "backup": backup}));
    }
    let mut extended = None;
    match changed.get("size").and_then(Value::as_i64) {
        Some(wanted) if wanted > size => {
            if tasks.is_empty() && status(&volume) == "in-use" && extend_in_use(cx, id, wanted).await? {
                extended = Some(value!({"do": "extend", "size": wanted, "called": true}));
            } else {
                tasks.push(value!({"do": "extend", "size": wanted}));
            }
        }
        _ => {}
    }
    if let Some(flag) = changed.get("read_only") {
        tasks.push(value!({"do": "read_only", "flag": flag}));
    }
    let attachments = volume.get("attachments").and_then(Value::as_list).unwrap_or_default();
    if let (Some(attachment), false) = (attachments.first(), tasks.is_empty()) {
        let entry = |key: &str| attachment.get(key).cloned().unwrap_or_default();
        let (server, device) = (entry("server_id"), entry("device"));
        // Nova's ID of an attachment is that of the volume.
        tasks.insert(0, value!({"do": "detach", "server": server.clone(), "attachment": entry("id")}));
        tasks.push(value!({"do": "attach", "server": server, "device": device}));
    }
    tasks.splice(0..0, extended);
    if let Some(volume_type) = changed.get("volume_type") {
        tasks.insert(0, value!({"do": "retype", "type": volume_type}));
    }
    Ok(queue::start(tasks))
}

/// Why an update is refused before anything is changed.
pub(super) fn refusal(change: &PropertyChange) -> Option<Failure> {
    let size = |properties: &Map| properties.get("size").and_then(Value::as_i64);
    (size(&change.after)? < size(&change.before)?).then(shrinks)
}

fn shrinks() -> Failure {
    Failure::other(Class::NotSupported, "Shrinking volume is not supported.")
}

/// Extends an attached volume; false if the service refuses it.
async fn extend_in_use(cx: &Context<'_>, id: &str, size: i64) -> Result<bool, Failure> {
    let request = CloudRequest::new(CINDER.0, Method::Post, format!("{}/action", volume_path(id)));
    let request = request.body(value!({"os-extend": {"new_size": size}})).microversion("3.42");
    match cx.cloud.call(request).await {
        Ok(_) => Ok(true),
        Err(failure) if is_refusal(&failure) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// The tasks of a volume: `retype`, `detach`, `restore`, `extend`, `read_only`, `attach`.
pub(super) struct VolumeTasks;

#[async_trait]
impl Tasks for VolumeTasks {
    async fn call(&self, cx: &Context<'_>, task: &Value) -> Result<Effect, Failure> {
        let id = cx.facts.require_id()?;
        let text = |key: &str| task.str_at(key).unwrap_or_default();
        match text("do") {
            "detach" => detach(cx, text("server"), text("attachment")).await?,
            "attach" => {
                if attachment_of(cx, text("server"), id).await?.is_none() {
                    attach(cx, text("server"), id, task.str_at("device")).await?;
                }
            }
            "retype" => retype(cx, id, task).await?,
            "restore" => restore(cx, id, text("backup")).await?,
            "extend" => extend(cx, id, task).await?,
            "read_only" => set_read_only(cx, id, task.get("flag").unwrap_or(&Value::Null)).await?,
            other => return Err(Failure::other(Class::Error, format!("unknown task of a volume: {other}"))),
        }
        Ok(Effect::default())
    }

    async fn is_complete(&self, cx: &Context<'_>, task: &Value) -> Result<bool, Failure> {
        let id = cx.facts.require_id()?;
        let text = |key: &str| task.str_at(key).unwrap_or_default();
        match text("do") {
            "detach" => is_detached(cx, text("server"), id, text("attachment")).await,
            "attach" => is_attached(cx, text("server"), id).await,
            "retype" => is_settled(cx, id, "retyping", "Volume retype failed").await,
            "restore" => is_settled(cx, id, "restoring-backup", "Volume backup restore failed").await,
            "extend" => is_settled(cx, id, "extending", "Volume resize failed").await,
            _ => Ok(true),
        }
    }
}

async fn retype(cx: &Context<'_>, id: &str, task: &Value) -> Result<(), Failure> {
    let wanted = task.get("type").cloned().unwrap_or_default();
    let volume = show(cx, id).await?;
    // The engine may have failed between the call and the storing of its result.
    if status(&volume) == "retyping" || volume.get("volume_type") == Some(&wanted) {
        return Ok(());
    }
    act(cx, id, value!({"os-retype": {"new_type": wanted, "migration_policy": "never"}})).await
}

async fn restore(cx: &Context<'_>, id: &str, backup: &str) -> Result<(), Failure> {
    if status(&show(cx, id).await?) == "restoring-backup" {
        return Ok(());
    }
    let path = format!("/v3/backups/{}/restore", path::segment(backup));
    match CINDER.post(cx, path, value!({"restore": {"volume_id": id}})).await {
        Err(failure) if is_refusal(&failure) => {
            let message = format!("Failed to restore volume {id} from backup {backup} - {}", failure.message);
            Err(Failure::new(failure.kind, Class::Error, message))
        }
        outcome => outcome.map(|_| ()),
    }
}

async fn extend(cx: &Context<'_>, id: &str, task: &Value) -> Result<(), Failure> {
    let size = task.get("size").cloned().unwrap_or_default();
    let volume = show(cx, id).await?;
    if status(&volume) == "extending" || volume.get("size") == Some(&size) {
        return Ok(());
    }
    match act(cx, id, value!({"os-extend": {"new_size": size}})).await {
        Err(failure) if is_refusal(&failure) => {
            let message = format!("Failed to extend volume {id} - {}", failure.message);
            Err(Failure::new(failure.kind, Class::Error, message))
        }
        outcome => outcome,
    }
}

/// Whether the volume has left a transient state; an error if it is not in the expected state then.
async fn is_settled(cx: &Context<'_>, id: &str, on_the_way: &str, what: &str) -> Result<bool, Failure> {
    let volume = show(cx, id).await?;
    match status(&volume) {
        "available" | "in-use" => Ok(true),
        status if status == on_the_way => Ok(false),
        status => Err(Failure::unknown_status(what, status, "Unknown")),
    }
}
