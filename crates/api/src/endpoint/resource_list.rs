//! `GET …/resources`: filters, and nested stacks down to a depth.

use axum::response::Response;
use futures::future::join_all;
use http::Method;
use kiln_resource::Resource;
use kiln_service::Service;
use kiln_store::Stack;
use kiln_value::{Value, text};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::kept_list::KeptList;
use crate::http::query;
use crate::http::stream::{Part, Parts};
use crate::link::Links;
use crate::view::resource::StackResources;
use crate::view::resource_list::ResourceList;

/// The query parameters.
pub(super) const RESOURCES: &[(&str, &str)] = &[
    ("type", "list"),
    ("status", "list"),
    ("name", "list"),
    ("action", "list"),
    ("id", "list"),
    ("physical_resource_id", "list"),
    ("nested_depth", "integer"),
    ("with_detail", "bool"),
];

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListResources",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources",
    rule: Rule::Of("resource:index"),
    tag: "resources",
    summary: "List the resources of a stack",
    query: RESOURCES,
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// Names of the filters; other parameters, except the two below, are rejected.
const FILTERS: [&str; 6] = ["type", "status", "name", "action", "id", "physical_resource_id"];
const OTHERS: [&str; 2] = ["nested_depth", "with_detail"];
/// Resources in a part of the response.
const PART: usize = 500;
/// Resources whose attributes are read at the same time.
const DETAILED: usize = 50;

async fn run(call: &Call) -> Result<Response, ApiError> {
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
    // Neither attributes nor the resources of nested stacks belong to the stack.
    let kept = KeptList::new(call, &stack, !detail && depth == 0);
    if let Some(response) = kept.get() {
        return Ok(response);
    }
    let (service, links) = (call.service().clone(), call.links.clone());
    let lists = Lists { service, links, wanted, detail, todo: vec![(stack, depth)], current: None };
    kept.read("resources", lists).await
}

fn given<T>(call: &Call, name: &str, read: fn(&str, &Value) -> Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    call.query.given(name).map(|text| read(name, &text.into())).transpose()
}

/// The resources of a stack, then those of its nested stacks, one stack after the other.
struct Lists {
    service: Service,
    links: Links,
    wanted: Wanted,
    /// Whether the entries have the live attributes.
    detail: bool,
    /// The stacks to list, the next one last, with the depth below each.
    todo: Vec<(Stack, i64)>,
    /// The stack that is being listed, and the number of its resources that are done.
    current: Option<(Current, usize)>,
}

/// The resources of a stack.
enum Current {
    Brief(Box<ResourceList>),
    /// With what is needed to read attributes.
    Detailed(Box<StackResources>),
}

impl Current {
    fn rows(&self) -> &[Resource] {
        match self {
            Self::Brief(list) => &list.rows,
            Self::Detailed(list) => list.rows(),
        }
    }

    fn nested(&self, row: &Resource) -> Option<&Stack> {
        match self {
            Self::Brief(list) => list.nested(row),
            Self::Detailed(list) => list.nested(row),
        }
    }
}

impl Lists {
    async fn load(&mut self, stack: Stack, depth: i64) -> Result<Current, ApiError> {
        let current = if self.detail {
            let view = self.service.view(stack).await?;
            Current::Detailed(Box::new(StackResources::new(&self.service.backends, view).await?))
        } else {
            Current::Brief(Box::new(ResourceList::of(&self.service.backends, stack).await?))
        };
        if depth > 0 {
            let nested = current.rows().iter().rev().filter_map(|row| current.nested(row));
            self.todo.extend(nested.map(|stack| (stack.clone(), depth - 1)));
        }
        Ok(current)
    }
}

impl Parts for Lists {
    async fn next(&mut self) -> Result<Option<Part>, ApiError> {
        let (current, done) = match self.current.take() {
            Some(current) => current,
            None => match self.todo.pop() {
                Some((stack, depth)) => (self.load(stack, depth).await?, 0),
                None => return Ok(None),
            },
        };
        let rows = current.rows();
        let size = if self.detail { DETAILED } else { PART };
        let page: Vec<&Resource> = rows.iter().skip(done).take(size).filter(|row| self.wanted.has(row)).collect();
        let mut part = Part::default();
        match &current {
            Current::Brief(list) => page.iter().for_each(|row| part.push(&list.entry(row, &self.links))),
            Current::Detailed(list) => {
                let details = join_all(page.iter().map(|row| list.detail(row, &[]))).await;
                for (row, detail) in page.iter().zip(details) {
                    part.push(&list.entry(row, &self.links).with(Some(detail)));
                }
            }
        }
        let is_done = done + size >= rows.len();
        self.current = (!is_done).then_some((current, done + size));
        Ok(Some(part))
    }
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

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn an_unknown_filter_is_refused_by_name() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let listed = app.get(&format!("{path}/resources")).await.json()["resources"][0].clone();
        assert_eq!((&listed["resource_name"], &listed["resource_status"]), (&"one".into(), &"INIT_COMPLETE".into()));
        let refused = app.get(&format!("{path}/resources?colour=red")).await;
        assert_eq!(refused.status.as_u16(), 400);
        assert!(refused.text.contains("Invalid filter parameters ['colour']"), "{}", refused.text);
    }
}
