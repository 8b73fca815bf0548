//! Snapshots of servers, which are images in Glance.

use std::time::Duration;

use kiln_resource::{Context, Failure, Step};
use kiln_value::{Map, Value, value};

use super::act;
use crate::call::GLANCE;
use crate::path;
use crate::queue::{again, wait};

/// The stage of an operation that waits for the image.
pub(super) const STAGE: &str = "image";
/// Entry of the resource data with the ID of the image, as in Heat.
const IMAGE: &str = "snapshot_image_id";
/// The property of the image with the token of the operation: Nova does not always return the ID.
const MARK: &str = "kiln_token";

/// The image of this operation, if it exists.
async fn ours(cx: &Context<'_>) -> Result<Option<Value>, Failure> {
    let images = GLANCE.list(cx, "/v2/images", &[(MARK, &cx.facts.attempt.token)], "images").await?;
    Ok(images.into_iter().find(|image| image.str_at(MARK) == Some(&cx.facts.attempt.token)))
}

/// Creates an image unless an earlier call has created it.
pub(super) async fn start(cx: &Context<'_>) -> Result<Step, Failure> {
    let id = cx.facts.require_id()?;
    if ours(cx).await?.is_none() {
        let metadata = value!({MARK: (cx.facts.attempt.token.as_str())});
        let image = value!({"name": (cx.facts.physical_name.as_str()), "metadata": metadata});
        act(cx, id, value!({"createImage": image})).await?;
    }
    // Also of a snapshot that is not completed, the image is known.
    let image = ours(cx).await?.and_then(|image| image.get("id").cloned());
    let step = wait(STAGE);
    Ok(if let Some(image) = image { step.data(IMAGE, image) } else { step })
}

pub(super) async fn poll(cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let Some(image) = ours(cx).await? else {
        return Err(Failure::in_error("ERROR", "the image of the server is gone"));
    };
    match image.str_at("status").unwrap_or_default() {
        "active" => Ok(Step::done().data(IMAGE, image.get("id").cloned().unwrap_or_default())),
        "queued" | "saving" | "uploading" | "importing" => Ok(again(cx, state, "the status active of the image")),
        status => Err(Failure::in_error(&status.to_uppercase(), "image of the server")),
    }
}

/// Deletes the image of a snapshot.
pub(super) async fn delete(cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
    if let Some(id) = cx.facts.data.get(IMAGE).and_then(Value::as_str) {
        GLANCE.delete(cx, format!("/v2/images/{}", path::segment(id))).await?;
    }
    Ok(None)
}

/// The properties that restore the server from the image.
pub(super) fn restored(data: &Map) -> Option<Map> {
    let id = data.get(IMAGE).filter(|id| id.is_truthy())?.clone();
    Some([("image".to_owned(), id)].into_iter().collect())
}
