//! `GET /services`: the engines.

use axum::response::Response;
use http::Method;
use kiln_store::EngineInfo;
use kiln_value::{Value, value};
use kiln_web::is_up;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::instant::instant;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListServices",
    method: Method::GET,
    path: "/{tenant_id}/services",
    rule: Rule::Of("service:index"),
    tag: "service",
    summary: "List the engines",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let now = call.backends().clock.now();
    let engines = call.store().engines().await?;
    let services: Value = engines.iter().map(|engine| service(engine, now)).collect();
    Ok(reply::json(&value!({ "services": services })))
}

fn service(engine: &EngineInfo, now: jiff::Timestamp) -> Value {
    let is_up = is_up(engine, now);
    value!({
        "id": (engine.id.to_string()),
        "engine_id": (engine.id.to_string()),
        "hostname": (&engine.hostname),
        "host": (&engine.hostname),
        "binary": "kiln-engine",
        "topic": "engine",
        "report_interval": (engine.interval),
        "created_at": (instant(engine.started)),
        "updated_at": (instant(engine.seen)),
        "deleted_at": null,
        "status": (if is_up { "up" } else { "down" }),
    })
}
