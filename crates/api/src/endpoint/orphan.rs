//! `/orphans`: the objects whose resources were forgotten.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use kiln_service::Error;
use kiln_store::{Orphan, OrphanQuery};
use kiln_value::{Value, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::link::Link;
use crate::view::instant::instant;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListOrphans",
    method: Method::GET,
    path: "/{tenant_id}/orphans",
    rule: Rule::Of("orphans:index"),
    tag: "orphans",
    summary: "List the objects whose resources were forgotten",
    query: &[
        ("global_tenant", "bool"),
        ("tenant", "text"),
        ("stack_id", "text"),
        ("limit", "integer"),
        ("marker", "text"),
    ],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static DELETE: Endpoint = Endpoint {
    name: "DeleteOrphan",
    method: Method::DELETE,
    path: "/{tenant_id}/orphans/{orphan_id}",
    rule: Rule::Of("orphans:delete"),
    tag: "orphans",
    summary: "Remove an entry from the list; the object is not deleted",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(delete(call)),
};

/// The longest list.
const LISTED: u64 = 1_000;

/// `GET`: newest first, in pages.
async fn list(call: &Call) -> Result<Response, ApiError> {
    let everywhere = call.query.boolean("global_tenant")?.unwrap_or(false);
    if everywhere {
        call.enforce("orphans:global_index", &call.caller.project_id)?;
    }
    let limit = call.query.integer("limit")?.and_then(|limit| u64::try_from(limit).ok());
    let limit = limit.map_or(LISTED, |limit| limit.min(LISTED));
    let id = |name: &str| {
        let invalid = || ApiError::bad_request(format!("Value of '{name}' is not an ID."));
        call.query.get(name).map(|id| id.parse::<uuid::Uuid>().map_err(|_| invalid())).transpose()
    };
    let query = OrphanQuery {
        project: if everywhere { call.query.get("tenant") } else { Some(call.project()) }.map(str::to_owned),
        stack: id("stack_id")?.map(kiln_store::StackId),
        marker: id("marker")?.map(kiln_store::ResourceId),
        limit: Some(limit),
    };
    let orphans = call.store().orphans(&query).await.map_err(Error::from)?;
    let is_full = u64::try_from(orphans.len()).is_ok_and(|count| count == limit && limit > 0);
    let next = orphans.last().filter(|_| is_full).map(|last| {
        let href = format!("{}?{}", call.url, call.query.encode_with("marker", &last.id.to_string()));
        [Link { href, rel: "next" }]
    });
    let mut body = value!({ "orphans": (orphans.iter().map(view).collect::<Value>()) });
    if let (Some([link]), Some(body)) = (next, body.as_map_mut()) {
        body.insert("links".to_owned(), value!([{ "href": (link.href), "rel": (link.rel) }]));
    }
    Ok(reply::json(&body))
}

/// `DELETE`: removes an entry, not the object.
async fn delete(call: &Call) -> Result<Response, ApiError> {
    let given = call.params.get("orphan_id");
    let missing = || Error::NotFound(format!("Orphan {given}"));
    let id = given.parse().map_err(|_| missing())?;
    let deleted = call.store().delete_orphan(call.project(), id).await.map_err(Error::from)?;
    if deleted { Ok(reply::empty(StatusCode::NO_CONTENT)) } else { Err(missing().into()) }
}

fn view(orphan: &Orphan) -> Value {
    value!({
        "id": (orphan.id.to_string()),
        "project": (&orphan.project),
        "stack_id": (orphan.stack.to_string()),
        "stack_name": (&orphan.stack_name),
        "resource_path": (&orphan.path),
        "resource_type": (&orphan.resource_type),
        "physical_resource_id": (orphan.physical_id.clone()),
        "region": (orphan.region.clone()),
        "user_id": (&orphan.user_id),
        "user_name": (&orphan.username),
        "reason": (&orphan.reason),
        "forgotten_at": (instant(orphan.time)),
    })
}
