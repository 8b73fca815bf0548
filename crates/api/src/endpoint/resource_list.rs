//! `GET …/resources`: filters, and nested stacks down to a depth.

use axum::response::Response;
use futures::future::{BoxFuture, FutureExt, join_all};
use kiln_engine::View;
use kiln_resource::Resource;
use kiln_store::Stack;
use kiln_value::{Value, text};
use serde::Serialize;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};
use crate::view::resource::{ResourceEntry, StackResources};

/// Names of the filters; other parameters, except the two below, are rejected.
const FILTERS: [&str; 6] = ["type", "status", "name", "action", "id", "physical_resource_id"];
const OTHERS: [&str; 2] = ["nested_depth", "with_detail"];

#[derive(Serialize)]
struct Resources<'a> {
    resources: Vec<ResourceEntry<'a>>,
}

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("resource:index")?;
    let unknown = call.query.names().filter(|name| !FILTERS.contains(name) && !OTHERS.contains(name));
    let unknown: Vec<&str> = unknown.collect();
    if !unknown.is_empty() {
        let names = text::repr(&unknown.into_iter().collect::<Value>());
        return Err(ApiError::bad_request(format!("Invalid filter parameters {names}")));
    }
    let depth = given(call, "nested_depth", query::integer)?.unwrap_or(0);
    let depth = depth.min(i64::from(call.service().options.limits.nested_depth));
    let detail = given(call, "with_detail", query::boolean)?.unwrap_or(false);
    let wanted = Wanted::new(call);
    let stack = call.stack_or_deleted().await?;
    let mut lists = Vec::new();
    collect(call, stack, depth, &mut lists).await?;
    let mut resources = Vec::new();
    for list in &lists {
        let rows: Vec<&Resource> = list.rows().iter().filter(|row| wanted.has(row)).collect();
        let details = if detail { join_all(rows.iter().map(|row| list.detail(row, &[]))).await } else { Vec::new() };
        let mut details = details.into_iter();
        for row in rows {
            resources.push(list.entry(row, &call.links).with(details.next()));
        }
    }
    Ok(reply::json(&Resources { resources }))
}

fn given<T>(call: &Call, name: &str, read: fn(&str, &Value) -> Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    call.query.given(name).map(|text| read(name, &text.into())).transpose()
}

/// The resources of a stack, then those of its nested stacks.
fn collect<'a>(
    call: &'a Call,
    stack: Stack,
    depth: i64,
    lists: &'a mut Vec<StackResources>,
) -> BoxFuture<'a, Result<(), ApiError>> {
    async move {
        let backends = call.backends();
        let resources = StackResources::new(&*backends.store, View::of(backends, stack).await?).await?;
        let deeper = resources.rows().iter().filter(|_| depth > 0);
        let nested: Vec<Stack> = deeper.filter_map(|row| resources.nested(row)).cloned().collect();
        lists.push(resources);
        for stack in nested {
            collect(call, stack, depth - 1, lists).await?;
        }
        Ok(())
    }
    .boxed()
}

/// The filters; each matches any of its values.
struct Wanted {
    types: Vec<String>,
    statuses: Vec<String>,
    actions: Vec<String>,
    names: Vec<String>,
    ids: Vec<String>,
    physical_ids: Vec<String>,
}

impl Wanted {
    fn new(call: &Call) -> Self {
        let all = |name| call.query.all(name);
        Self {
            types: all("type"),
            statuses: all("status"),
            actions: all("action"),
            names: all("name"),
            ids: all("id"),
            physical_ids: all("physical_resource_id"),
        }
    }

    fn has(&self, row: &Resource) -> bool {
        let any = |wanted: &[String], is: &dyn Fn(&str) -> bool| wanted.is_empty() || wanted.iter().any(|w| is(w));
        let (status, state) = (row.state.status.as_str(), row.state.to_string());
        any(&self.types, &|part| row.resource_type.contains(part))
            && any(&self.statuses, &|word| word == status || word == state)
            && any(&self.actions, &|word| word == row.state.action.as_str())
            && any(&self.names, &|name| name == row.name)
            && any(&self.ids, &|id| id == row.id.to_string())
            && any(&self.physical_ids, &|id| row.physical_id.as_deref() == Some(id))
    }
}
