//! Successful responses that cannot be read: the operation may have been executed.

use kiln_cloud::Credentials;
use kiln_resource::{Cloud, CloudRequest, FailureKind, Method};

use crate::sessions::wire::{answer, answer_with, credentials, get, post, wire};

const JSON: (&str, &str) = ("content-type", "application/json; charset=UTF-8");

#[tokio::test(start_paused = true)]
async fn a_json_content_type_requires_json() {
    for body in ["<html>busy</html>", "{\"network\": {\"id\": \"5"] {
        let (wire, connector) = wire(move |_, _| Ok(answer_with(201, JSON, body)));
        let failure = connector.cloud(&credentials()).await.call(post()).await.expect_err("not JSON");
        assert_eq!((failure.kind, failure.class.as_str()), (FailureKind::Unavailable, "MalformedResponseBody"));
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

/// An object that Kiln has just created is not looked for by its ID; its name is, because another object may have it too.
#[tokio::test(start_paused = true)]
async fn created_objects_are_known_by_their_ids() {
    const ID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    let (wire, connector) = wire(|request, _| {
        let is_post = request.method == http::Method::POST;
        let one = format!(r#"{{"id": "{ID}", "name": "web"}}"#);
        Ok(answer(
            if is_post { 201 } else { 200 },
            &if is_post { format!(r#"{{"network": {one}}}"#) } else { format!(r#"{{"networks": [{one}]}}"#) },
        ))
    });
    let cloud = connector.cloud(&credentials()).await;
    assert_eq!(cloud.find("neutron.network", ID).await.as_deref(), Ok(ID));
    assert_eq!(wire.called(), 1, "it is not known before");
    let (made, other) =
        (connector.cloud(&Credentials::token("one")).await, connector.cloud(&Credentials::token("two")).await);
    made.call(post()).await.expect("created");
    assert_eq!(made.find("neutron.network", ID).await.as_deref(), Ok(ID));
    assert_eq!(wire.called(), 2);
    // A name, another kind of object, and another user, who may not see it.
    for (number, (cloud, finder, given)) in
        [(&made, "neutron.network", "web"), (&made, "neutron.subnet", ID), (&other, "neutron.network", ID)]
            .into_iter()
            .enumerate()
    {
        assert_eq!(cloud.find(finder, given).await.as_deref(), Ok(ID));
        assert_eq!(wire.called(), number + 3, "it is looked for");
    }
}
