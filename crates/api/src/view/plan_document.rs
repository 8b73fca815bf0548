//! The answer with the document of a plan.

use axum::response::Response;
use kiln_plan_document::PlanDocument;
use kiln_view::plan_document::Plan;
use serde::Serialize;

use crate::http::reply;

#[derive(Serialize)]
struct Answer {
    plan: PlanDocument,
}

/// A plan, and what it was computed from, which the request can name (`if_version`).
pub(crate) fn response(Plan(plan): Plan, version: Option<String>) -> Response {
    reply::json(&Answer { plan: PlanDocument { version, ..plan } })
}
