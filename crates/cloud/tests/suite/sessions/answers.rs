//! Successful responses that cannot be read: the operation may have been executed.

use kiln_resource::{Cloud, CloudRequest, FailureKind, Method};

use crate::sessions::wire::{answer, answer_with, credentials, get, post, wire};

const JSON: (&str, &str) = ("content-type", "application/json; charset=UTF-8");

#[tokio::test(start_paused = true)]
async fn a_json_content_type_requires_json() {
    for body in ["<html>busy</html>", "{\"network\": {\"id\": \"5"] {
        let (wire, connector) = wire(move |_, _| Ok(answer_with(201, JSON, body)));
        let failure = connector.cloud(&credentials()).await.call(post()).await.expect_err("not JSON");
        assert_eq!((failure.kind, failure.class.name()), (FailureKind::Unavailable, "MalformedResponseBody"));
        assert_eq!(wire.called(), 1, "it may have been executed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_must_be_json() {
    let (_, connector) = wire(|_, _| Ok(answer_with(200, ("content-type", "text/html"), "<html>Log in</html>")));
    let failure = connector.cloud(&credentials()).await.call(get()).await.expect_err("not JSON");
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

/// Nova's actions return 202 with an empty body or with text.
#[tokio::test(start_paused = true)]
async fn actions_may_return_anything() {
    for response in [answer(202, ""), answer(202, "accepted"), answer_with(202, JSON, ""), answer_with(204, JSON, "")] {
        let (_, connector) = wire(move |_, _| Ok(response.clone()));
        let cloud = connector.cloud(&credentials()).await;
        for method in [Method::Post, Method::Delete] {
            let request = CloudRequest::new("network", method, "/v2.0/networks/n");
            assert!(cloud.call(request).await.expect("done").body.is_null());
        }
    }
}
