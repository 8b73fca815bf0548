//! `GET …/environment`: the effective environment, with masked values of hidden parameters.

use axum::response::Response;
use http::Method;
use kiln_service::Door;
use kiln_stack::load;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowEnvironment",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/environment",
    rule: Rule::Of("stacks:environment"),
    tag: "stacks",
    summary: "Show the environment of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let sources = load::stored(call.backends(), &stack.desired).await?;
    let hidden = call.service().hidden(&stack, &sources).await?;
    let mut environment = sources.environment.to_stored();
    hidden.mask_environment(Door::Environment, &mut environment);
    for section in ["parameters", "parameter_defaults"] {
        if let Some(values) = environment.as_map_mut().and_then(|sections| sections.get_mut(section)?.as_map_mut()) {
            call.service().mask_inherited(Door::Environment, &stack, values).await?;
        }
    }
    Ok(reply::json(&environment))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn hidden_parameters_are_masked() {
        let app = App::new().await;
        let template = json!({
            "heat_template_version": "2018-08-31",
            "parameters": {"shown": {"type": "string"}, "hidden": {"type": "string", "hidden": true}},
        });
        let parameters = json!({"shown": "word", "hidden": "abcdefgh"});
        let body = json!({"stack_name": "s", "template": template, "parameters": parameters});
        let made = app.json(Method::POST, "/v1/tenant1/stacks", &body).await.json();
        let path = format!("/v1/tenant1/stacks/s/{}/environment", made["stack"]["id"].as_str().expect("an ID"));
        let shown = app.get(&path).await.json();
        assert_eq!(shown["parameters"], json!({"shown": "word", "hidden": "******"}));
    }
}
