//! `GET /services`: the engines.

use axum::response::Response;
use http::Method;
use kiln_store::EngineInfo;
use kiln_value::{Value, value};

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
    let is_up = engine.is_up(now);
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kiln_store::{EngineId, EngineInfo};

    use crate::support::App;

    #[tokio::test]
    async fn an_engine_is_up_or_down() {
        let app = App::new().await.with_rules(&[("service:index", "role:member")]);
        assert_eq!(app.get("/v1/tenant1/services").await.json(), serde_json::json!({"services": []}));
        let engine = EngineInfo {
            id: EngineId(uuid::Uuid::from_u128(1)),
            hostname: "node-1".to_owned(),
            pid: 1,
            started: Timestamp::UNIX_EPOCH,
            seen: Timestamp::UNIX_EPOCH,
            interval: 10,
            schema: kiln_store::SCHEMA,
        };
        app.store.report(&engine).await.unwrap();
        let service = app.get("/v1/tenant1/services").await.json()["services"][0].clone();
        assert_eq!((&service["host"], &service["binary"]), (&"node-1".into(), &"kiln-engine".into()));
        assert!(["up", "down"].contains(&service["status"].as_str().unwrap()), "{service}");
    }
}
