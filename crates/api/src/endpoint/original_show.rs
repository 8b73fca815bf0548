//! `GET …/original`: the blueprint, plan, service template or package that the template was lowered from.

use axum::response::{IntoResponse as _, Response};
use http::Method;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use kiln_stack::load;
use kiln_topology::original::{FILE, Original};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowOriginal",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/original",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "Show the document or package that the template was made from",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let sources = load::sources(&call.store().desired(&stack.desired).await?)?;
    let entry = sources.files.0.get(FILE);
    let original = entry.and_then(|entry| Original::of_file(entry, &sources.template)).ok_or_else(|| {
        ApiError::not_found(format!("The template of the stack {} was not made from another document.", stack.name))
    })?;
    let headers = [(CONTENT_TYPE, original.content_type.as_str()), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, original.content).into_response())
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_template_that_was_written_as_one_has_no_original() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let missing = app.get(&format!("{path}/original")).await;
        assert_eq!(missing.status.as_u16(), 404);
        assert!(missing.text.contains("was not made from another document"), "{}", missing.text);
    }
}
