//! Snapshots of volumes, which are backups in Cinder.

use std::time::Duration;

use kiln_resource::{Context, Failure, Step};
use kiln_value::{Map, Value, value};

use super::super::status;
use crate::call::{CINDER, made_id};
use crate::path;
use crate::queue::again;

/// The stage of an operation that waits for the backup.
pub(super) const STAGE: &str = "backup";
/// Entry of the resource data with the ID of the backup, as in Heat.
const BACKUP: &str = "backup_id";
/// The polling interval of a backup.
const PACE: Duration = Duration::from_secs(2);

fn backup_path(id: &str) -> String {
    format!("/v3/backups/{}", path::segment(id))
}

/// Creates a backup unless an earlier call has created it: its name is the token of the operation.
pub(super) async fn start(cx: &Context<'_>) -> Result<Step, Failure> {
    let (volume, name) = (cx.facts.require_id()?, cx.facts.attempt.token.as_str());
    let known = CINDER.list(cx, "/v3/backups/detail", &[("name", name)], "backups").await?;
    let is_ours = |backup: &&Value| backup.str_at("name") == Some(name) && backup.str_at("volume_id") == Some(volume);
    let id = if let Some(id) = known.iter().find(is_ours).and_then(|backup| backup.str_at("id")) {
        id.to_owned()
    } else {
        // Volumes in use can be backed up too.
        let body = value!({"backup": {"volume_id": volume, "name": name, "force": true}});
        let made = CINDER.post(cx, "/v3/backups", body).await?;
        made_id(made.get("backup").and_then(|backup| backup.str_at("id")), "a backup")?.to_owned()
    };
    // Also of a snapshot that is not completed, the backup is known.
    Ok(Step::wait(value!({"stage": STAGE, "backup": (id.as_str())}), PACE).data(BACKUP, id))
}

pub(super) async fn poll(cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let id = state.str_at("backup").unwrap_or_default();
    let backup = CINDER.show(cx, backup_path(id), "backup").await?;
    match status(&backup) {
        "creating" => Ok(again(cx, state, format!("the backup {id}"))),
        "available" => Ok(Step::done().data(BACKUP, id)),
        _ => Err(Failure::in_error("error", backup.str_at("fail_reason").unwrap_or("Unknown"))),
    }
}

/// Deletes the backup of a snapshot.
pub(super) async fn delete(cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
    let Some(id) = cx.facts.data.get(BACKUP).and_then(Value::as_str) else { return Ok(None) };
    let Some(backup) = CINDER.seek(cx, backup_path(id), "backup").await? else { return Ok(None) };
    match status(&backup) {
        "creating" | "deleting" | "restoring" => {}
        "error_deleting" => return Err(Failure::in_error("error_deleting", "delete of a backup")),
        _ => CINDER.delete(cx, backup_path(id)).await?,
    }
    Ok(Some(PACE))
}

/// The properties that restore the volume: the backup is its only source.
pub(super) fn restored(data: &Map) -> Option<Map> {
    let id = data.get(BACKUP).filter(|id| id.is_truthy())?.clone();
    let sources = ["image", "imageRef", "source_volid", "snapshot_id"].map(|name| (name.to_owned(), Value::Null));
    Some([(BACKUP.to_owned(), id)].into_iter().chain(sources).collect())
}
