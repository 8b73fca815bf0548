//! The answer with the document of a plan.

use axum::response::Response;
use kiln_plan_document::PlanDocument;
use kiln_value::Map;
use kiln_view::plan_document::Plan;
use serde::Serialize;

use crate::http::reply;

#[derive(Serialize)]
struct Answer {
    plan: PlanDocument,
    #[serde(flatten)]
    preview: Map,
}

/// A plan, and what it was computed from, which the request can name (`if_version`); beside it the preview, if that is asked
/// for too.
pub(crate) fn response(Plan(plan): Plan, version: Option<String>, preview: Map) -> Response {
    reply::json(&Answer { plan: PlanDocument { version, ..plan }, preview })
}

/// A plan for which the objects were read: it has its version.
pub(crate) fn refreshed(plan: PlanDocument) -> Response {
    reply::json(&Answer { plan, preview: Map::new() })
}
