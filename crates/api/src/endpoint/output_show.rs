//! `GET …/outputs/{key}`: an output with its value.

use axum::response::Response;
use http::Method;
use kiln_value::{Class, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::output::output;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowOutput",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/outputs/{output_key}",
    rule: Rule::Of("stacks:show_output"),
    tag: "outputs",
    summary: "Show an output",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let view = call.service().view(call.stack().await?).await?;
    let key = call.params.get("output_key");
    let outputs = view.outputs(Some(key)).await;
    let found = outputs.first();
    let found =
        found.ok_or_else(|| ApiError::new(Class::NotFound, format!("Specified output key {key} not found.")))?;
    Ok(reply::json(&value!({ "output": (output(found)) })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn an_output_has_its_value() {
        let app = App::new().await;
        let outputs = json!({"text": {"value": "x", "description": "A text."}});
        let path = app.create("s", json!({"heat_template_version": "2018-08-31", "outputs": outputs})).await;
        let shown = app.get(&format!("{path}/outputs/text")).await.json();
        let expected = json!({"output_key": "text", "output_value": "x", "description": "A text."});
        assert_eq!(shown, json!({"output": expected}));
        let missing = app.get(&format!("{path}/outputs/none")).await;
        let message = &missing.json()["error"]["message"];
        assert_eq!((missing.status.as_u16(), message), (404, &json!("Specified output key none not found.")));
    }
}
