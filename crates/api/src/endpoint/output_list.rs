//! `GET …/outputs`: names and descriptions.

use axum::response::Response;
use http::Method;
use kiln_value::{Value, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListOutputs",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/outputs",
    rule: Rule::Of("stacks:list_outputs"),
    tag: "outputs",
    summary: "List the outputs of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let view = call.service().view(call.stack().await?).await?;
    let outputs = view.blueprint.outputs().values();
    let outputs: Value =
        outputs.map(|output| value!({ "output_key": (&output.name), "description": (&output.description) })).collect();
    Ok(reply::json(&value!({ "outputs": outputs })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn outputs_are_listed_without_their_values() {
        let app = App::new().await;
        let outputs = json!({"text": {"value": "x", "description": "A text."}});
        let path = app.create("s", json!({"heat_template_version": "2018-08-31", "outputs": outputs})).await;
        let listed = app.get(&format!("{path}/outputs")).await.json();
        assert_eq!(listed, json!({"outputs": [{"output_key": "text", "description": "A text."}]}));
    }
}
