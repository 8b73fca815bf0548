//! OS::Cinder::*: the types with code.

mod attachment;
mod encrypted_volume_type;
mod qos;
mod volume;
mod volume_type;

use std::sync::Arc;

use kiln_resource::{CloudRequest, Context, Driver, Failure, FailureKind, Listed, Method, ResourceType};
use kiln_value::{Class, Value, value};

use crate::call::{CINDER, NOVA, made_id, take};
use crate::path;
use crate::quota::Quota;
use crate::rest::shaped;

pub(crate) use attachment::VolumeAttachment;
pub(crate) use volume::Volume;

/// The driver of a Cinder type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Cinder::")? {
        "Volume" => Some(Arc::new(Volume)),
        "VolumeAttachment" => Some(Arc::new(VolumeAttachment)),
        "VolumeType" => shaped(resource_type, volume_type::VolumeType),
        "EncryptedVolumeType" => Some(Arc::new(encrypted_volume_type::EncryptedVolumeType)),
        "QoSSpecs" => shaped(resource_type, qos::QosSpecs),
        "QoSAssociation" => Some(Arc::new(qos::QosAssociation)),
        "Quota" => {
            let limits = &["gigabytes", "snapshots", "volumes", "backups", "backup_gigabytes"];
            Some(Arc::new(Quota::new(CINDER, "/v3/os-quota-sets", "quota_set", limits)))
        }
        _ => None,
    }
}

fn volume_path(id: &str) -> String {
    format!("/v3/volumes/{}", path::segment(id))
}

/// The current volume.
async fn show(cx: &Context<'_>, id: &str) -> Result<Value, Failure> {
    let listed = Listed { path: "/v3/volumes/detail", list: "volumes", member: "volume", id: id.to_owned() };
    let request = CloudRequest::new(CINDER.0, Method::Get, volume_path(id)).listed(listed);
    Ok(take(cx.cloud.call(request).await?.body, "volume"))
}

fn status(volume: &Value) -> &str {
    volume.str_at("status").unwrap_or("unknown")
}

fn attachments_path(server: &str) -> String {
    format!("/servers/{}/os-volume_attachments", path::segment(server))
}

/// Whether a failure is a refusal of the service, for which Heat has its own message.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::NotFound | FailureKind::Refused | FailureKind::OverLimit)
}

/// Attaches a volume with Nova. Returns the ID of the attachment.
pub(crate) async fn attach(
    cx: &Context<'_>,
    server: &str,
    volume: &str,
    device: Option<&str>,
) -> Result<String, Failure> {
    let mut attachment = value!({"volumeId": volume});
    if let (Some(attachment), Some(device)) = (attachment.as_map_mut(), device.filter(|d| !d.is_empty())) {
        attachment.insert("device".into(), device.into());
    }
    let body = value!({"volumeAttachment": attachment});
    match NOVA.post(cx, attachments_path(server), body).await {
        Ok(body) => {
            let id = body.get("volumeAttachment").and_then(|attachment| attachment.str_at("id"));
            made_id(id, "an attachment").map(str::to_owned)
        }
        Err(failure) if is_refusal(&failure) => {
            let message = format!("Failed to attach volume {volume} to server {server} - {}", failure.message);
            Err(Failure::new(failure.kind, Class::Error, message))
        }
        Err(failure) => Err(failure),
    }
}

/// The attachments of a server in Nova.
pub(crate) async fn attachments(cx: &Context<'_>, server: &str) -> Result<Vec<Value>, Failure> {
    NOVA.list(cx, attachments_path(server), &[], "volumeAttachments").await
}

/// The attachment of a volume to a server in Nova, if it exists.
pub(crate) async fn attachment_of(cx: &Context<'_>, server: &str, volume: &str) -> Result<Option<String>, Failure> {
    let known = match attachments(cx, server).await {
        Err(failure) if failure.is_not_found() => return Ok(None),
        other => other?,
    };
    let found = known.iter().find(|attachment| attachment.str_at("volumeId") == Some(volume));
    Ok(found.and_then(|attachment| attachment.str_at("id")).map(str::to_owned))
}

/// Detaches a volume with Nova; succeeds if it is not attached.
async fn detach(cx: &Context<'_>, server: &str, attachment: &str) -> Result<(), Failure> {
    let path = format!("{}/{}", attachments_path(server), path::segment(attachment));
    match NOVA.delete(cx, path).await {
        // 400: not attached, or never was.
        Err(failure) if failure.kind == FailureKind::Refused && failure.class == Class::BadRequest => Ok(()),
        Err(failure) if is_refusal(&failure) => {
            let message = format!("Could not detach attachment {attachment} from server {server}.");
            Err(Failure::new(failure.kind, Class::Error, message))
        }
        outcome => outcome,
    }
}

/// Whether a volume is attached; an error if the attach has failed.
pub(crate) async fn is_attached(cx: &Context<'_>, server: &str, volume: &str) -> Result<bool, Failure> {
    let seen = show(cx, volume).await?;
    match status(&seen) {
        "in-use" => Ok(true),
        // Available again: Nova has given up, or has not begun.
        "available" if attachment_of(cx, server, volume).await?.is_none() => {
            Err(Failure::unknown_status("Volume attachment failed", "available", "Unknown"))
        }
        "available" | "attaching" | "reserved" => Ok(false),
        status => Err(Failure::unknown_status("Volume attachment failed", status, "Unknown")),
    }
}

/// Whether a volume is detached in Cinder and Nova. If it is attached and no detach is in progress, because the detach
/// was requested before the attach had ended, the detach is requested again.
async fn is_detached(cx: &Context<'_>, server: &str, volume: &str, attachment: &str) -> Result<bool, Failure> {
    if let Some(volume) = CINDER.seek(cx, volume_path(volume), "volume").await? {
        let attachments = volume.get("attachments").and_then(Value::as_list).unwrap_or_default();
        let is_there = attachments.iter().any(|attachment| attachment.str_at("server_id") == Some(server));
        match status(&volume) {
            "in-use" if is_there => {
                detach(cx, server, attachment).await?;
                return Ok(false);
            }
            "detaching" | "reserved" if is_there => return Ok(false),
            "detaching" => return Ok(false),
            "available" | "deleting" | "in-use" | "reserved" => {}
            status if is_there => {
                return Err(Failure::unknown_status("Volume detachment failed", status, "Unknown"));
            }
            _ => {}
        }
    }
    let path = format!("{}/{}", attachments_path(server), path::segment(attachment));
    Ok(NOVA.seek(cx, path, "volumeAttachment").await?.is_none())
}
