//! `DELETE …/abandon`: deletes a stack and keeps its objects.

use axum::response::Response;
use http::Method;
use kiln_service::Door;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "AbandonStack",
    method: Method::DELETE,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/abandon",
    rule: Rule::Of("stacks:abandon"),
    tag: "stacks",
    summary: "Delete a stack and keep its objects",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    call.service().refuse_abandon()?;
    let stack = call.stack().await?;
    let data = call.service().abandon_stack(&call.caller, &stack).await?;
    Ok(reply::json(&data.into_shown(Door::Export)))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_stack_is_abandoned_if_the_operator_allows_it() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let abandon = async |app: &App| app.send(Method::DELETE, &format!("{path}/abandon"), None, None).await;
        assert_eq!(abandon(&app).await.status.as_u16(), 400);
        let app = app.with_adoption();
        let data = abandon(&app).await.json();
        assert_eq!(
            (&data["name"], &data["status"], &data["action"]),
            (&"s".into(), &"COMPLETE".into(), &"CREATE".into())
        );
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "DELETE_IN_PROGRESS");
    }
}
