//! A dashboard that its user runs alone.
#![expect(clippy::unwrap_used, reason = "tests")]

mod echo;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use http::header::{COOKIE, HOST, LOCATION, SET_COOKIE};
use http::{Request, StatusCode};
use kiln_dashboard::{Dashboard, Owner, OwnerAccess, Parts, Router};
use kiln_value::Secret;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use echo::Echo;

const AT: &str = "127.0.0.1:8080";

/// A dashboard, and the query that opens its session.
fn dashboard() -> (Router, String) {
    let api = Router::new().fallback(|request: Request<Body>| async move {
        let token = request.headers().get("x-auth-token").map(|token| token.to_str().unwrap().to_owned());
        axum::Json(json!({ "uri": request.uri().to_string(), "token": token }))
    });
    let access = OwnerAccess::Local { project: "local".to_owned() };
    let owner = Owner::new(AT.parse().unwrap(), &access).unwrap();
    let address = owner.address().expose().clone();
    let secret = Secret::new("secret".to_owned());
    let parts = Parts {
        api,
        connector: None,
        secret,
        proxy_headers: false,
        owner: Some(owner),
        language: Arc::new(Echo),
        regions: Vec::new(),
        lists: None,
    };
    let dashboard = Dashboard::new(parts);
    (dashboard.router(), address.strip_prefix("http://127.0.0.1:8080").unwrap().to_owned())
}

async fn get(router: &Router, host: &str, path: &str, cookie: &str) -> (StatusCode, http::HeaderMap, Value) {
    let request = Request::get(path).header(HOST, host).header(COOKIE, cookie).header("x-kiln-dashboard", "local");
    let request = request.extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 40_000))));
    let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    (head.status, head.headers, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn the_key_opens_the_session_once_at_one_address() {
    let (router, open) = dashboard();
    // A web site whose name means this machine, with the right key.
    for host in ["evil.example:8080", "localhost:8080", "127.0.0.1:8081", "127.0.0.1"] {
        let (status, headers, body) = get(&router, host, &open, "").await;
        assert_eq!((status.as_u16(), body["error"]["type"].as_str()), (421, Some("Host")), "{host}");
        assert!(!headers.contains_key(SET_COOKIE));
    }
    let (status, _, body) = get(&router, AT, "/dashboard/?key=guessed", "").await;
    assert_eq!((status.as_u16(), body["error"]["type"].as_str()), (403, Some("Key")));
    let (status, _, body) = get(&router, AT, "/dashboard/api/stacks", "").await;
    assert_eq!((status.as_u16(), body["error"]["type"].as_str()), (401, Some("SignedOut")));

    let (status, headers, _) = get(&router, AT, &open, "").await;
    assert_eq!((status.as_u16(), headers[LOCATION].to_str().unwrap()), (302, "./"));
    let cookie = headers[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let (status, _, body) = get(&router, AT, "/dashboard/api/stacks?limit=1", cookie).await;
    assert_eq!((status.as_u16(), body), (200, json!({ "uri": "/v1/local/stacks?limit=1", "token": null })));
    let (_, _, body) = get(&router, AT, "/dashboard/projects", cookie).await;
    assert_eq!(body["projects"], json!([{ "id": "local", "name": "local" }]));
    let (status, ..) = get(&router, "evil.example:8080", "/dashboard/api/stacks", cookie).await;
    assert_eq!(status.as_u16(), 421);

    let (status, headers, body) = get(&router, AT, &open, "").await;
    assert_eq!((status.as_u16(), body["error"]["type"].as_str()), (403, Some("Key")), "a second time");
    assert!(!headers.contains_key(SET_COOKIE));
}
