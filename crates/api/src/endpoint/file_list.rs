//! `GET …/files`: the original files, with masked values of hidden parameters in environment files.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use kiln_service::Door;
use kiln_stack::load;
use kiln_template::Files;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListFiles",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/files",
    rule: Rule::Of("stacks:files"),
    tag: "stacks",
    summary: "Show the files of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// The files are stored as one JSON map, which is sent unchanged if nothing must be masked.
async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let texts = call.store().desired(&stack.desired).await?;
    let sources = load::sources(&texts)?;
    let hidden = call.service().hidden(&stack, &sources).await?;
    let mut files = Files::clone(&sources.files);
    hidden.mask_files(Door::Files, &mut files);
    if files == *sources.files {
        return Ok(reply::json_bytes(StatusCode::OK, texts.files.into()));
    }
    Ok(reply::json_with(StatusCode::OK, &files.0))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn files_are_listed_with_their_texts() {
        let app = App::new().await;
        let files = json!({"a.sh": "echo a"});
        let body = json!({"stack_name": "s", "template": random_string(), "files": files});
        let made = app.json(Method::POST, "/v1/tenant1/stacks", &body).await.json();
        let id = made["stack"]["id"].as_str().expect("an ID");
        assert_eq!(app.get(&format!("/v1/tenant1/stacks/s/{id}/files")).await.json(), files);
    }
}
