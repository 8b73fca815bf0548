//! `PUT` and `PATCH /stacks/{name}/{id}`.

use axum::response::Response;
use http::Method;
use kiln_value::value;

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;
use crate::openapi::schema;

pub(super) static PUT: Endpoint = Endpoint {
    name: "UpdateStack",
    method: Method::PUT,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}",
    rule: Rule::Of("stacks:update"),
    tag: "stacks",
    summary: "Update a stack",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Page,
    run: |call| Box::pin(put(call)),
};

pub(super) static PATCH: Endpoint = Endpoint {
    name: "PatchStack",
    method: Method::PATCH,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}",
    rule: Rule::Own,
    tag: "stacks",
    summary: "Update parts of a stack",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Page,
    run: |call| Box::pin(patch(call)),
};

/// What a stack should become.
pub(super) static BODY: Body = Body {
    name: "UpdateStack",
    required: true,
    is_template: true,
    schema: || {
        let mut properties = schema::template();
        properties.extend(schema::settings());
        let names = value!({ "type": "array", "items": { "type": "string" } });
        properties.insert("existing".to_owned(), value!({ "type": "boolean" }));
        let converge = value!({ "anyOf": [{ "type": "boolean" }, (names.clone())] });
        properties.insert("clear_parameters".to_owned(), names);
        properties.insert("converge".to_owned(), converge);
        properties.insert("revision".to_owned(), schema::text());
        properties.insert("if_version".to_owned(), schema::text());
        value!({ "type": "object", "properties": properties })
    },
};

/// Replaces the desired state.
async fn put(call: &Call) -> Result<Response, ApiError> {
    update(call, false).await
}

/// Changes a part of the desired state. The policy is that of the caller's own project, as in Heat.
async fn patch(call: &Call) -> Result<Response, ApiError> {
    call.same_project()?;
    call.body()?;
    call.enforce("stacks:update_patch", &call.caller.project_id)?;
    update(call, true).await
}

async fn update(call: &Call, patch: bool) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let update = body.update(patch)?;
    let stack = call.stack().await?;
    call.service().update_stack(&call.caller, &stack, update).await.map_err(|error| body.placed(error))?;
    Ok(page::accepted(&call.headers))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_put_needs_a_template_and_a_patch_keeps_it() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let template = json!({"heat_template_version": "2018-08-31"});
        let refused = app.json(Method::PUT, &path, &json!({})).await;
        assert!(refused.status.as_u16() == 400 && refused.text.contains("No template specified"), "{refused:?}");
        assert_eq!(app.json(Method::PUT, &path, &json!({"template": template})).await.status.as_u16(), 202);
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "UPDATE_IN_PROGRESS");
        app.settle("s").await;
        assert_eq!(app.json(Method::PATCH, &path, &json!({"timeout_mins": 5})).await.status.as_u16(), 202);
        assert_eq!(app.get(&path).await.json()["stack"]["timeout_mins"], 5);
    }
}
