//! `GET …/resources/{name}/events/{id}`.

use axum::response::Response;
use http::Method;
use kiln_service::Door;
use kiln_store::EventId;
use serde::Serialize;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::event::EventView;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowEvent",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events/{event_id}",
    rule: Rule::Of("events:show"),
    tag: "events",
    summary: "Show an event",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

#[derive(Serialize)]
struct One<'a> {
    event: EventView<'a>,
}

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let (id, resource) = (call.params.get("event_id"), call.params.get("resource_name"));
    let event = match id.parse::<EventId>() {
        Ok(id) => call.store().event(stack.id, id).await?,
        Err(_) => None,
    };
    let event = event.filter(|event| event.resource_name == resource);
    let mut event = event.ok_or_else(|| ApiError::not_found(format!("No event {id} found")))?;
    call.service().hidden_values(&stack).await?.mask(Door::EventProperties, &mut event.properties);
    Ok(reply::json(&One { event: EventView::whole(&event, &stack, &call.links) }))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn an_event_is_found_by_its_id_and_the_resource_that_it_is_of() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let listed = app.get(&format!("{path}/events")).await.json()["events"][0].clone();
        let id = listed["id"].as_str().unwrap();
        let shown = app.get(&format!("{path}/resources/s/events/{id}")).await.json();
        assert_eq!((&shown["event"]["id"], &shown["event"]["resource_name"]), (&listed["id"], &"s".into()));
        for path in [format!("{path}/resources/other/events/{id}"), format!("{path}/resources/s/events/none")] {
            let missing = app.get(&path).await;
            assert_eq!(
                (missing.status.as_u16(), missing.json()["error"]["type"].clone()),
                (404, "HTTPNotFound".into())
            );
        }
    }
}
