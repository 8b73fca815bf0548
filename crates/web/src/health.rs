//! `GET /healthcheck`: the status of the database and the engines, for load balancers and administrators, without a
//! token.

use std::fmt::Write as _;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use kiln_stack::Backends;

/// Timeout of the database.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer to a probe: `GET /livez` asks only if the process works, `GET /healthcheck` if requests can be processed. `None`:
/// another path.
pub async fn probe(path: &str, backends: &Backends, heat_projects: impl FnOnce() -> usize) -> Option<Response> {
    match path {
        "/livez" => Some(alive()),
        "/healthcheck" => Some(health(backends, heat_projects()).await),
        _ => None,
    }
}

/// 200: the process works.
pub fn alive() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=UTF-8")], "alive\n").into_response()
}

/// 200 while requests can be processed: without an engine they are stored and wait. 503 without a database, or if it has no
/// room.
async fn health(backends: &Backends, heat_projects: usize) -> Response {
    let now = backends.clock.now();
    let engines = tokio::time::timeout(PATIENCE, backends.store.engines()).await;
    let (status, text) = match engines {
        Ok(Ok(engines)) => {
            let up = engines.iter().filter(|engine| engine.is_up(now)).count();
            let is_full = tokio::time::timeout(PATIENCE, backends.store.is_full()).await.unwrap_or(false);
            let (status, database) =
                if is_full { (StatusCode::SERVICE_UNAVAILABLE, "full") } else { (StatusCode::OK, "up") };
            let mut text = format!("database: {database}\n");
            _ = match up {
                0 => writeln!(text, "engine: down"),
                up => writeln!(text, "engine: up ({up})"),
            };
            if heat_projects > 0 {
                _ = writeln!(text, "heat: {heat_projects} projects belong to it");
            }
            (status, text)
        }
        failed => {
            // Details are only logged, because this endpoint is public.
            let error = failed.map_or_else(
                |_| "timeout".to_owned(),
                |answer| answer.err().map(|e| e.to_string()).unwrap_or_default(),
            );
            tracing::error!(error, "healthcheck: the database is not available");
            (StatusCode::SERVICE_UNAVAILABLE, "database: down\n".to_owned())
        }
    };
    (status, [(CONTENT_TYPE, "text/plain; charset=UTF-8")], text).into_response()
}
