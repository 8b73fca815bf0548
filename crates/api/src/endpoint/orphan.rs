//! `/orphans`: the objects whose resources were forgotten.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::Error;
use kiln_store::{Orphan, OrphanQuery};
use kiln_value::{Value, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::{Formats, LONGEST_LIST};
use crate::http::reply;
use crate::link::Link;
use crate::view::instant::instant;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListOrphans",
    method: Method::GET,
    path: "/{tenant_id}/orphans",
    rule: Rule::Kiln(&[
        DefaultRule { name: "orphans:index", check: DefaultCheck::READER },
        DefaultRule { name: ALL_PROJECTS, check: DefaultCheck::NOBODY },
    ]),
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
    rule: Rule::Kiln(&[DefaultRule { name: "orphans:delete", check: DefaultCheck::MEMBER }]),
    tag: "orphans",
    summary: "Remove an entry from the list; the object is not deleted",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(delete(call)),
};

/// The rule of lists with `global_tenant`.
const ALL_PROJECTS: &str = "orphans:global_index";

/// `GET`: newest first, in pages.
async fn list(call: &Call) -> Result<Response, ApiError> {
    let everywhere = call.query.boolean("global_tenant")?.unwrap_or(false);
    if everywhere {
        call.enforce(ALL_PROJECTS, &call.caller.project_id)?;
    }
    let limit = call.query.limit(LONGEST_LIST)?;
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

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use kiln_resource::ResourceId;
    use kiln_store::{Batch, Orphan};
    use serde_json::{Value, json};

    use crate::support::{App, PROJECT, random_string, stack_of};

    #[tokio::test]
    async fn orphans_are_listed_in_pages_and_removed() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let stack = app.store.stack(stack_of(&path)).await.expect("the store").expect("there");
        let orphan = |number: u128, project: &str| Orphan {
            id: ResourceId(uuid::Uuid::from_u128(number)),
            project: project.to_owned(),
            stack: stack.id,
            stack_name: "s".to_owned(),
            path: format!("group/{number}"),
            resource_type: "OS::Nova::Server".to_owned(),
            physical_id: Some("p".to_owned()),
            region: None,
            user_id: "alice-id".to_owned(),
            username: "alice".to_owned(),
            reason: "host lost".to_owned(),
            time: jiff::Timestamp::from_second(1_800_000_000 + i64::try_from(number).expect("small")).expect("a time"),
        };
        let orphans = vec![orphan(1, PROJECT), orphan(2, PROJECT), orphan(3, "other")];
        app.commit(stack.id, Batch { orphans, ..Batch::default() }).await;
        let paths = |body: &Value| -> Vec<String> {
            let of = |one: &Value| one["resource_path"].as_str().expect("a path").to_owned();
            body["orphans"].as_array().expect("a list").iter().map(of).collect()
        };
        let all = app.get("/v1/tenant1/orphans").await.json();
        assert_eq!(paths(&all), ["group/2", "group/1"]);
        assert_eq!(
            all["orphans"][1],
            json!({
                "id": "00000000-0000-0000-0000-000000000001", "project": PROJECT, "stack_id": stack.id.to_string(),
                "stack_name": "s", "resource_path": "group/1", "resource_type": "OS::Nova::Server",
                "physical_resource_id": "p", "region": null, "user_id": "alice-id", "user_name": "alice",
                "reason": "host lost", "forgotten_at": "2027-01-15T08:00:01Z",
            })
        );
        let first = app.get("/v1/tenant1/orphans?limit=1").await.json();
        assert_eq!(paths(&first), ["group/2"]);
        let next = first["links"][0]["href"].as_str().expect("a link").trim_start_matches("http://localhost");
        assert_eq!(paths(&app.get(next).await.json()), ["group/1"]);
        let of_none = format!("/v1/tenant1/orphans?stack_id={}", uuid::Uuid::nil());
        assert_eq!(paths(&app.get(&of_none).await.json()), Vec::<String>::new());
        assert_eq!(app.get("/v1/tenant1/orphans?stack_id=x").await.status, StatusCode::BAD_REQUEST);
        assert_eq!(app.get("/v1/tenant1/orphans?global_tenant=true").await.status, StatusCode::FORBIDDEN);
        assert_eq!(app.get("/v1/other/orphans").await.status, StatusCode::FORBIDDEN);

        let delete = async |id: u128| {
            let path = format!("/v1/tenant1/orphans/{}", uuid::Uuid::from_u128(id));
            app.send(Method::DELETE, &path, None, None).await.status
        };
        assert_eq!(delete(2).await, StatusCode::NO_CONTENT);
        assert_eq!((delete(2).await, delete(3).await), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
        assert_eq!(paths(&app.get("/v1/tenant1/orphans").await.json()), ["group/1"]);
    }
}
