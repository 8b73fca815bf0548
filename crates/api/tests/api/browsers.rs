//! Requests of pages of other origins.

use http::StatusCode;
use kiln_web::Cors;

use crate::support::App;

const PAGE: (&str, &str) = ("origin", "https://dashboard.example");

#[tokio::test]
async fn pages_of_allowed_origins_may_call() {
    let cors = Cors { origins: vec![PAGE.1.to_owned()], ..Cors::default() };
    let app = App::new().await.with_cors(cors);
    let answer = app.open("/v1/tenant1/stacks", &[PAGE]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["access-control-allow-origin"], PAGE.1);
    // A page must be able to read why it failed.
    let answer = app.open("/v1/tenant1/stacks/none/none", &[PAGE]).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(answer.headers()["access-control-allow-origin"], PAGE.1);
    let answer = app.open("/v1/tenant1/stacks", &[("origin", "https://evil.example")]).await;
    assert!(!answer.headers().contains_key("access-control-allow-origin"));

    let asked = [PAGE, ("access-control-request-method", "POST"), ("access-control-request-headers", "X-Auth-Token")];
    let answer = app.options("/v1/tenant1/stacks", &asked).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["access-control-allow-methods"], "POST");
    // Without an origin it is a request like others, with Heat's response.
    assert_eq!(app.options("/v1/tenant1/stacks", &[]).await.status(), StatusCode::NO_CONTENT);
    let off = App::new().await.options("/v1/tenant1/stacks", &asked).await;
    assert_eq!(off.status(), StatusCode::NO_CONTENT);
}
