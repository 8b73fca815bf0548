//! `GET /stacks/detail`: the list without filters.

use axum::response::Response;
use kiln_store::StackQuery;
use serde::Serialize;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::stack::ListEntry;

#[derive(Serialize)]
struct All<'a> {
    stacks: Vec<ListEntry<'a>>,
}

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:detail")?;
    let query = StackQuery {
        project: Some(call.caller.project_id.clone()),
        not_tags_any: call.api.options.hidden_stack_tags.clone(),
        ..StackQuery::default()
    };
    let stacks = call.store().stack_summaries(&query).await?;
    Ok(reply::json(&All { stacks: stacks.iter().map(|stack| ListEntry::new(stack, &call.links, false)).collect() }))
}
