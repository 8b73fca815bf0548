//! `GET /report`: what the process that answers does (not in Heat). The text is that of `SIGUSR2`.

use axum::response::{IntoResponse as _, Response};
use http::Method;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use kiln_identity::{DefaultCheck, DefaultRule};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "Report",
    method: Method::GET,
    path: "/{tenant_id}/report",
    rule: Rule::Kiln(&[DefaultRule { name: "service:report", check: DefaultCheck::ADMIN }]),
    tag: "service",
    summary: "Show what the process that answers does, and what its engines hold",
    query: &[],
    body: None,
    answer: Answer::Text,
    run: |call| Box::pin(run(call)),
};

/// 404 without a reporter: a process of one user (`--local`, `demo`) has none.
async fn run(call: &Call) -> Result<Response, ApiError> {
    let Some(reporter) = &call.api.options.reporter else {
        return Err(ApiError::not_found("This service does not report on itself."));
    };
    let text = reporter.report().await;
    Ok(([(CONTENT_TYPE, "text/plain; charset=UTF-8"), (CACHE_CONTROL, "no-store")], text).into_response())
}

#[cfg(test)]
mod tests {
    use kiln_service::Limits;

    use crate::support::{App, user};

    #[tokio::test]
    async fn only_administrators_ask_for_the_report_of_a_process() {
        let app = App::new().await;
        assert_eq!(app.get("/v1/tenant1/report").await.status.as_u16(), 403);
        let admin = App::on(app.store, user(&["admin"]), Limits::default());
        let missing = admin.get("/v1/tenant1/report").await;
        assert_eq!(missing.status.as_u16(), 404);
        assert!(missing.text.contains("This service does not report on itself."), "{}", missing.text);
    }
}
