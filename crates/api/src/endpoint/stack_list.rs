//! `GET /stacks`: filters, sorting, paging.

use axum::response::Response;
use http::Method;
use kiln_resource::Status;
use kiln_store::{Sort, SortKey, StackId, StackQuery, StackSummary};
use kiln_value::Class;
use serde::Serialize;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::link::Link;
use crate::view::stack::ListEntry;

/// The query parameters.
pub(super) const STACKS: &[(&str, &str)] = &[
    ("id", "list"),
    ("name", "list"),
    ("status", "list"),
    ("action", "list"),
    ("tenant", "list"),
    ("username", "list"),
    ("owner_id", "list"),
    ("parent", "list"),
    ("stack_name", "list"),
    ("stack_action", "list"),
    ("stack_status", "list"),
    ("stack_status_reason", "list"),
    ("stack_owner", "list"),
    ("stack_user_project_id", "list"),
    ("disable_rollback", "list"),
    ("timeout_mins", "list"),
    ("tags", "text"),
    ("tags_any", "text"),
    ("not_tags", "text"),
    ("not_tags_any", "text"),
    ("global_tenant", "bool"),
    ("show_deleted", "bool"),
    ("show_nested", "bool"),
    ("show_hidden", "bool"),
    ("with_count", "bool"),
    ("limit", "integer"),
    ("marker", "text"),
    ("sort_keys", "list"),
    ("sort_dir", "text"),
];

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListStacks",
    method: Method::GET,
    path: "/{tenant_id}/stacks",
    rule: Rule::Of("stacks:index"),
    tag: "stacks",
    summary: "List stacks",
    query: STACKS,
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

#[derive(Serialize)]
struct Page<'a> {
    stacks: Vec<ListEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<[Link; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// Filters that the store does not support, with the values that they match.
type Look = fn(&StackSummary) -> String;
const RARE: &[(&str, Look)] = &[
    ("stack_status_reason", |stack| stack.reason.clone()),
    ("disable_rollback", |stack| stack.disable_rollback.to_string()),
    ("timeout_mins", |stack| stack.timeout_mins.map(|mins| mins.to_string()).unwrap_or_default()),
    ("stack_user_project_id", |stack| stack.user_project.clone().unwrap_or_default()),
    ("tenant", |stack| stack.project.clone()),
];

async fn run(call: &Call) -> Result<Response, ApiError> {
    let everywhere = call.query.boolean("global_tenant")?.unwrap_or(false);
    if everywhere {
        call.enforce("stacks:global_index", &call.caller.project_id)?;
    }
    let limit = call.query.integer("limit")?;
    let with_count = call.query.boolean("with_count")?.unwrap_or(false);
    let rare: Vec<_> =
        RARE.iter().map(|(name, look)| (look, call.query.all(name))).filter(|(_, wanted)| !wanted.is_empty()).collect();
    let query = query(call, everywhere)?;
    let (mut stacks, mut count) = (Vec::new(), 0);
    if let Some(query) = query {
        // The store cannot page results that are filtered here.
        let page = if rare.is_empty() { limit.and_then(|limit| u64::try_from(limit).ok()) } else { None };
        stacks = call.store().stack_summaries(&StackQuery { limit: page, ..query.clone() }).await?;
        stacks.retain(|stack| rare.iter().all(|(look, wanted)| wanted.contains(&look(stack))));
        if with_count {
            let here = stacks.len() as u64;
            count = if rare.is_empty() { call.store().count_stacks(&query).await? } else { here };
        }
        if let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) {
            stacks.truncate(limit);
        }
    }
    let with_project = everywhere || call.caller.is_admin;
    let is_full =
        limit.is_some_and(|limit| limit > 0 && usize::try_from(limit).is_ok_and(|limit| limit == stacks.len()));
    let next = stacks.last().filter(|_| is_full).map(|last| {
        let href = format!("{}?{}", call.url, call.query.encode_with("marker", &last.id.to_string()));
        [Link { href, rel: "next" }]
    });
    let entries = stacks.iter().map(|stack| ListEntry::new(stack, &call.links, with_project)).collect();
    Ok(reply::json(&Page { stacks: entries, links: next, count: with_count.then_some(count) }))
}

/// The query for the store; `None` if nothing can match.
fn query(call: &Call, everywhere: bool) -> Result<Option<StackQuery>, ApiError> {
    let asked = &call.query;
    let all_of = |names: &[&str]| -> Vec<String> { names.iter().flat_map(|name| asked.all(name)).collect() };
    let mut query = StackQuery {
        project: (!everywhere).then(|| call.caller.project_id.clone()),
        names: all_of(&["name", "stack_name"]),
        actions: all_of(&["action", "stack_action"]),
        usernames: all_of(&["username", "stack_owner"]),
        tags: asked.tags("tags")?,
        tags_any: asked.tags("tags_any")?,
        not_tags: asked.tags("not_tags")?,
        not_tags_any: asked.tags("not_tags_any")?,
        nested: asked.boolean("show_nested")?.unwrap_or(false),
        deleted: asked.boolean("show_deleted")?.unwrap_or(false),
        sort: Some(sort(call)?),
        // Like Heat, ignore a marker of an unknown stack.
        marker: asked.get("marker").and_then(|marker| marker.parse().ok()),
        ..StackQuery::default()
    };
    if !asked.boolean("show_hidden")?.unwrap_or(false) {
        query.not_tags_any.extend(call.api.options.hidden_stack_tags.iter().cloned());
    }
    let ids = asked.all("id");
    query.ids = ids.iter().filter_map(|id| id.parse().ok()).collect();
    let statuses = all_of(&["status", "stack_status"]);
    for status in &statuses {
        let (action, status) = split_status(status);
        query.statuses.extend(status.map(|status| status.as_str().to_owned()));
        query.actions.extend(action.map(str::to_owned));
    }
    let parents: Vec<StackId> = all_of(&["parent", "owner_id"]).iter().filter_map(|id| id.parse().ok()).collect();
    query.parent = parents.first().copied();
    let impossible = (!ids.is_empty() && query.ids.is_empty())
        || (!statuses.is_empty() && query.statuses.is_empty())
        || (query.parent.is_some() && !query.nested);
    Ok((!impossible).then_some(query))
}

/// Splits `CREATE_FAILED` into action and status; `FAILED` has no action; other words have no status.
fn split_status(text: &str) -> (Option<&str>, Option<Status>) {
    for status in [Status::Complete, Status::Failed, Status::InProgress] {
        if let Some(rest) = text.strip_suffix(status.as_str()) {
            return (rest.strip_suffix('_').filter(|action| !action.is_empty()), Some(status));
        }
    }
    (None, None)
}

/// Unknown keys are ignored; without keys the newest stack comes first.
fn sort(call: &Call) -> Result<Sort, ApiError> {
    let keys: Vec<SortKey> = call.query.all("sort_keys").iter().filter_map(|key| sort_key(key)).collect();
    let descending = match call.query.get("sort_dir") {
        Some("asc") => false,
        Some("desc") => true,
        None => keys.is_empty(),
        Some(_) => return Err(ApiError::new(Class::ValueError, "unknown sort direction")),
    };
    let keys = if keys.is_empty() { vec![SortKey::Created] } else { keys };
    Ok(Sort { keys, descending })
}

fn sort_key(name: &str) -> Option<SortKey> {
    Some(match name {
        "stack_name" => SortKey::Name,
        "stack_status" => SortKey::Status,
        "creation_time" => SortKey::Created,
        "updated_time" => SortKey::Updated,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_page_links_to_the_next_one_and_other_projects_need_a_rule() {
        let app = App::new().await;
        app.create("one", random_string()).await;
        app.create("two", random_string()).await;
        let page = app.get("/v1/tenant1/stacks?limit=1&with_count=true&sort_keys=stack_name").await.json();
        assert_eq!((page["stacks"].as_array().unwrap().len(), &page["count"]), (1, &2.into()), "{page}");
        let next = page["links"][0]["href"].as_str().unwrap().trim_start_matches("http://localhost").to_owned();
        let rest = app.get(&next).await.json();
        assert_ne!(rest["stacks"][0]["id"], page["stacks"][0]["id"]);
        assert_eq!(app.get("/v1/tenant1/stacks?global_tenant=true").await.status.as_u16(), 403);
        let app = app.with_rules(&[("stacks:global_index", "role:member")]);
        let everywhere = app.get("/v1/tenant1/stacks?global_tenant=true").await.json();
        assert_eq!(everywhere["stacks"][0]["project"], "tenant1", "{everywhere}");
    }
}
