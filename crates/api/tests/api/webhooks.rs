//! Webhooks belong to the members of their project.

use http::{Method, StatusCode};
use kiln_identity::Caller;
use kiln_store::MemoryStore;
use serde_json::json;

use crate::support::{App, user};

#[tokio::test]
async fn others_neither_see_nor_change_a_webhook() {
    let (app, store) = (App::new().await, MemoryStore::new(std::sync::Arc::new(|| jiff::Timestamp::UNIX_EPOCH)));
    let made = app.clone().with_webhooks(&store);
    let made = made.json(Method::POST, "/v1/tenant1/webhooks", &json!({"url": "https://example.com/?token=t"})).await;
    let id = made.json()["webhook"]["id"].as_str().expect("an ID").to_owned();
    let stranger = Caller { project_id: "tenant2".into(), ..user(&["member"]) };
    let callers = [
        ("tenant2", stranger.clone(), StatusCode::NOT_FOUND),
        ("tenant1", stranger, StatusCode::FORBIDDEN),
        // The URL may contain a token.
        ("tenant1", user(&["reader"]), StatusCode::FORBIDDEN),
    ];
    for (project, caller, status) in callers {
        let app = app.clone().used_by(caller).with_webhooks(&store);
        let one = format!("/v1/{project}/webhooks/{id}");
        for (method, path) in [
            (Method::GET, one.clone()),
            (Method::DELETE, one.clone()),
            (Method::POST, format!("{one}/rotate")),
            (Method::POST, format!("{one}/test")),
            (Method::GET, format!("{one}/deliveries")),
            (Method::POST, format!("{one}/deliveries/{id}/redeliver")),
        ] {
            let answer = app.send(method.clone(), &path, None, None).await;
            assert!(answer.status == status && !answer.text.contains("token"), "{method} {path}: {}", answer.text);
        }
        let changed = app.json(Method::PATCH, &one, &json!({"enabled": false})).await;
        assert_eq!(changed.status, status);
    }
}
