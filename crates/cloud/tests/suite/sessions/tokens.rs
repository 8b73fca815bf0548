//! Tokens: number and time of requests, and the calls that wait for them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kiln_cloud::{Credentials, TransportError};
use kiln_resource::{Cloud, CloudRequest, FailureKind, Method};
use kiln_value::Class;
use tokio::time::Instant;

use crate::sessions::wire::{answer, credentials, get, post, token_of, wire};

#[tokio::test(start_paused = true)]
async fn a_token_is_used_for_many_calls_and_renewed_before_it_expires() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    for _ in 0..5 {
        cloud.call(get()).await.expect("an answer");
    }
    assert_eq!(wire.asked(), 1);
    tokio::time::advance(Duration::from_mins(56)).await;
    cloud.call(get()).await.expect("an answer");
    assert_eq!(wire.asked(), 2);
    assert_eq!(wire.calls.lock().expect("no panic")[0], "GET http://n:9696/v2.0/networks?name=a+b%26c");
    // Equal credentials share it.
    connector.cloud(&credentials()).await.call(get()).await.expect("an answer");
    assert_eq!(wire.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_once() {
    let (wire, connector) = wire(|request, _| Ok(answer(if token_of(request) == "t1" { 401 } else { 200 }, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    cloud.call(get()).await.expect("an answer with the second token");
    assert_eq!(wire.asked(), 2);

    let (wire, connector) = crate::sessions::wire::wire(|_, _| Ok(answer(401, "")));
    let failure = connector.cloud(&credentials()).await.call(get()).await.expect_err("refused twice");
    assert_eq!((failure.class.name(), failure.kind), ("Unauthorized", FailureKind::Refused));
    assert_eq!(wire.called(), 2);
}

#[tokio::test(start_paused = true)]
async fn programs_get_the_token_and_the_catalog_and_another_token_after_a_refusal() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    let first = cloud.access(None).await.expect("a token");
    assert_eq!((first.token.expose().as_str(), first.auth_url.as_str()), ("t1", "http://k:5000/v3"));
    assert!(first.catalog.as_list().is_some_and(|services| !services.is_empty()), "{:?}", first.catalog);
    assert_eq!(cloud.access(None).await.expect("a token").token.expose(), "t1");
    assert_eq!(cloud.access(Some(&first.token)).await.expect("a token").token.expose(), "t2");
    // It is renewed already.
    assert_eq!(cloud.access(Some(&first.token)).await.expect("a token").token.expose(), "t2");
    assert_eq!(wire.asked(), 2);
    let given = connector.cloud(&Credentials::token("given")).await;
    let token = given.access(None).await.expect("a token").token;
    assert_eq!(given.access(Some(&token)).await.expect("a token").token.expose(), "given");
}

#[tokio::test(start_paused = true)]
async fn a_given_token_cannot_be_renewed() {
    let (wire, connector) = wire(|_, _| Ok(answer(401, "")));
    let failure = connector.cloud(&Credentials::token("given")).await.call(get()).await.expect_err("refused");
    assert_eq!(failure.class, Class::Unauthorized);
    assert_eq!(wire.called(), 1);
}

#[tokio::test(start_paused = true)]
async fn reads_are_retried_and_writes_are_sent_once() {
    let (_, connector) = wire(|_, number| match number {
        1 => Err(TransportError::Broken("reset".into())),
        2 => Ok(answer(503, "")),
        _ => Ok(answer(200, r#"{"networks": []}"#)),
    });
    let cloud = connector.cloud(&credentials()).await.patient();
    assert!(cloud.call(get()).await.expect("the third answer").body.get("networks").is_some());

    let (wire, connector) = crate::sessions::wire::wire(|_, _| Err(TransportError::Broken("reset".into())));
    let cloud = connector.cloud(&credentials()).await.patient();
    let failure = cloud.call(post()).await.expect_err("lost");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    let text = "ConnectFailure: Unable to establish connection to http://n:9696/v2.0/networks: reset";
    assert_eq!(failure.to_string(), text);
    assert_eq!(wire.called(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_request_is_retried_after_a_lost_response() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    wire.lost_tokens.store(2, Ordering::SeqCst);
    connector.cloud(&credentials()).await.patient().call(get()).await.expect("the third token");
    assert_eq!(wire.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_to_a_service_are_limited() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    let calls = (0..10).map(|_| {
        let cloud = cloud.clone();
        tokio::spawn(async move { cloud.call(get()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic").expect("an answer");
    }
    assert_eq!(wire.busiest.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn missing_endpoints_are_reported() {
    let (_, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    let failure = cloud.call(CloudRequest::new("compute", Method::Get, "/servers")).await.expect_err("no Nova");
    assert_eq!(failure.to_string(), "EndpointNotFound: public endpoint for compute service not found");
    assert!(!cloud.has_service("compute").await.expect("an answer"));
    assert_eq!(cloud.project_id().await.expect("a project"), "p");
    assert_eq!(cloud.endpoint("network").await.expect("an answer").as_deref(), Some("http://n:9696"));
}

/// A token of one hour is renewed in its last six minutes; the old one stays in use while Keystone hangs.
#[tokio::test(start_paused = true)]
async fn a_valid_token_is_used_while_keystone_hangs() {
    let (wire, connector) = wire(|request, _| Ok(answer(200, &format!("{{\"token\": \"{}\"}}", token_of(request)))));
    let cloud = connector.cloud(&credentials()).await;
    cloud.call(get()).await.expect("the first");
    tokio::time::advance(Duration::from_mins(56)).await;
    wire.hangs.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let began = Instant::now();
        let answer = cloud.call(get()).await.expect("with the old token");
        assert_eq!(answer.body.str_at("token"), Some("t1"));
        assert!(began.elapsed() < Duration::from_millis(20), "callers do not wait");
    }
    assert_eq!(wire.asked(), 2, "one request at a time");
    wire.hangs.store(false, Ordering::SeqCst);
    // The hanging request ends at its timeout; the next one follows later.
    tokio::time::sleep(Duration::from_secs(90)).await;
    cloud.call(get()).await.expect("with the old one still");
    let answer = cloud.call(get()).await.expect("with the new one");
    assert_eq!((answer.body.str_at("token"), wire.asked()), (Some("t3"), 3));
}

#[tokio::test(start_paused = true)]
async fn all_callers_wait_for_one_request_within_their_own_timeouts() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    wire.hangs.store(true, Ordering::SeqCst);
    let cloud = connector.cloud(&credentials()).await;
    let began = Instant::now();
    let mut waiters = Vec::new();
    for _ in 0..5 {
        let cloud = cloud.clone();
        waiters.push(tokio::spawn(async move { cloud.call(get()).await }));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    for waiter in waiters {
        let failure = waiter.await.expect("no panic").expect_err("no token");
        assert_eq!((failure.kind, failure.class.name()), (FailureKind::NotSent, "ConnectTimeout"));
    }
    assert_eq!((wire.asked(), wire.called()), (1, 0));
    assert!(began.elapsed() <= Duration::from_mins(1), "{:?}", began.elapsed());
}

/// A token request whose first caller gave up continues for the others.
#[tokio::test(start_paused = true)]
async fn a_canceled_caller_does_not_affect_others() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    tokio::select! {
        biased;
        _ = cloud.call(get()) => panic!("too fast"),
        () = tokio::task::yield_now() => {}
    }
    cloud.call(get()).await.expect("an answer");
    assert_eq!(wire.asked(), 1);
}

/// Keystone's response about a credential does not apply to the object of the request.
#[tokio::test(start_paused = true)]
async fn a_missing_credential_is_not_a_missing_object() {
    for status in [400, 401, 403, 404] {
        let (wire, connector) = wire(|_, _| Ok(answer(204, "")));
        wire.refuses.store(status, Ordering::SeqCst);
        let cloud = connector.cloud(&credentials().with_trust("t")).await;
        let delete = CloudRequest::new("network", Method::Delete, "/v2.0/networks/n");
        let failure = cloud.call(delete).await.expect_err("no token");
        assert_eq!((failure.kind, failure.class.name()), (FailureKind::Refused, "AuthorizationFailure"));
        let text = "Keystone refuses the credential of user demo by trust t: Could not find trust: t.";
        assert!(failure.message.starts_with(text), "{failure}");
        assert_eq!(wire.called(), 0);
    }
    for status in [429, 500, 503] {
        let (wire, connector) = wire(|_, _| Ok(answer(204, "")));
        wire.refuses.store(status, Ordering::SeqCst);
        let failure = connector.cloud(&credentials()).await.call(post()).await.expect_err("no token");
        assert_eq!(failure.kind, FailureKind::NotSent, "the network was not requested");
    }
}

/// The expiry of a trust comes from Keystone's data about it, not from its user.
#[tokio::test(start_paused = true)]
async fn only_keystone_determines_whether_a_trust_exists() {
    let (wire, connector) = wire(|_, _| Ok(answer(204, "")));
    let session = connector.session(credentials().with_trust("t"));
    wire.refuses.store(404, Ordering::SeqCst);
    kiln_cloud::delete_trust(&session, "t").await.expect("it is already deleted");
    wire.refuses.store(401, Ordering::SeqCst);
    kiln_cloud::delete_trust(&session, "t").await.expect_err("nobody knows");
}
