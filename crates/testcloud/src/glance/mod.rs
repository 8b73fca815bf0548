//! Glance v2.

mod data;
mod images;
mod members;
mod schemas;

use serde_json::json;

use crate::keystone::{Caller, authenticate};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, Table};

pub(crate) use data::activate;
pub(crate) use images::{new_image, snapshot_of};

/// The images of the cloud.
#[derive(Clone, Debug)]
pub(crate) struct Glance {
    pub(crate) images: Table,
}

impl Glance {
    pub(crate) fn new() -> Self {
        Glance { images: Table::new(&["name", "owner"]) }
    }
}

pub(crate) fn serve(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let Some(path) = &request.path else { return Ok(versions(world, 300)) };
    if path.is_empty() {
        return Ok(versions(world, 300));
    }
    let caller = &authenticate(world, request)?;
    let segments = request.segments();
    match segments.as_slice() {
        ["images", id, "file"] => data::route(world, request, caller, id),
        ["images", id, "import"] => data::import(world, request, caller, id),
        ["images", id, "actions", action @ ("deactivate" | "reactivate")] => {
            data::activation(world, caller, id, action)
        }
        ["images", id, "tags", tag] => images::tag(world, request, caller, id, tag),
        ["images", id, "members", rest @ ..] => members::route(world, request, caller, id, rest),
        ["images", rest @ ..] => images::route(world, request, caller, rest),
        ["schemas", name] => schemas::schema(name),
        ["info", "import"] => {
            let value = ["glance-direct", "web-download", "copy-image"];
            let methods = json!({"description": "Import methods available.", "type": "array", "value": value});
            Ok(Reply::ok(json!({"import-methods": methods})))
        }
        ["info", "stores"] => Ok(Reply::ok(json!({"stores": [{"id": "file", "default": "true"}]}))),
        _ => Err(Refusal::no_route()),
    }
}

fn versions(world: &CloudState, status: u16) -> Reply {
    let link = format!("{}/image/v2/", world.base);
    let version =
        |(id, status): (&str, &str)| json!({"id": id, "status": status, "links": [{"rel": "self", "href": link}]});
    let list = [
        ("v2.15", "CURRENT"),
        ("v2.13", "SUPPORTED"),
        ("v2.9", "SUPPORTED"),
        ("v2.7", "SUPPORTED"),
        ("v2.0", "SUPPORTED"),
    ];
    Reply::json(status, json!({"versions": list.map(version)}))
}

/// Whether the caller may see and use an image.
pub(crate) fn sees(caller: &Caller, row: &Row) -> bool {
    let accepted = || {
        row.list("_members")
            .iter()
            .any(|member| member.get("member_id").and_then(serde_json::Value::as_str) == Some(caller.project.as_str()))
    };
    caller.owns(row.text("owner")) || matches!(row.text("visibility"), "public" | "community") || accepted()
}

/// The image, if the caller can see it.
fn find<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.glance.images.get(id).filter(|row| sees(caller, row));
    row.ok_or_else(|| Refusal::missing(format!("No image found with ID {id}")))
}

/// The image, if the caller may update it.
fn owned<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    let row = find(world, caller, id)?;
    if caller.owns(row.text("owner")) { Ok(row) } else { Err(Refusal::forbidden("You do not own this image")) }
}

/// Glance's errors are plain text.
pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    let title = match refusal.status {
        400 => "Bad ServiceCall",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "ServiceCall Entity Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let text = if refusal.status == 401 {
        "This server could not verify that you are authorized to access the document you requested. Either you supplied \
         the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials \
         required."
            .to_owned()
    } else {
        refusal.message.clone()
    };
    Reply::text(refusal.status, format!("{} {title}\n\n{text}\n\n   ", refusal.status))
}
