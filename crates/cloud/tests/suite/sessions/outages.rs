//! Failing services: retries and circuit breakers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln_cloud::TransportError;
use kiln_resource::{Cloud, FailureKind};
use tokio::time::Instant;

use crate::sessions::wire::{answer, answer_with, credentials, get, post, wide_wire, wire};

/// Engines retry steps themselves.
#[tokio::test(start_paused = true)]
async fn a_cloud_for_engines_does_not_retry() {
    let (wire, connector) = wire(|_, _| Ok(answer_with(503, ("retry-after", "7"), "")));
    let cloud = connector.cloud(&credentials()).await;
    let began = Instant::now();
    let failure = cloud.call(get()).await.expect_err("refused");
    assert_eq!((failure.kind, failure.retry_after), (FailureKind::Unavailable, Some(Duration::from_secs(7))));
    assert_eq!(wire.called(), 1);
    assert!(began.elapsed() < Duration::from_millis(50));
    cloud.patient().call(get()).await.expect_err("refused");
    assert_eq!(wire.called(), 5);
}

#[tokio::test(start_paused = true)]
async fn rate_limits_contain_the_retry_time() {
    for (status, kind) in [(413, FailureKind::Refused), (429, FailureKind::OverLimit)] {
        let (_, connector) = wire(move |_, _| Ok(answer_with(status, ("retry-after", "3"), "")));
        let failure = connector.cloud(&credentials()).await.call(post()).await.expect_err("refused");
        assert_eq!((failure.kind, failure.retry_after), (kind, Some(Duration::from_secs(3))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_connection_means_not_sent() {
    let (_, connector) = wire(|_, _| Err(TransportError::Connect("refused".into())));
    let failure = connector.cloud(&credentials()).await.call(post()).await.expect_err("no connection");
    assert_eq!((failure.kind, failure.class.name()), (FailureKind::NotSent, "ConnectFailure"));
}

/// After five consecutive failures of any stacks, calls are suspended until a probe succeeds.
#[tokio::test(start_paused = true)]
async fn calls_to_a_failing_service_are_suspended() {
    let is_well = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_well);
    let (wire, connector) = wire(move |_, _| Ok(answer(if seen.load(Ordering::SeqCst) { 200 } else { 503 }, "{}")));
    let one = connector.cloud(&credentials()).await;
    let other = connector.cloud(&credentials().with_trust("t")).await;
    for cloud in [&one, &other, &one, &other, &one] {
        assert_eq!(cloud.call(get()).await.expect_err("sick").kind, FailureKind::Unavailable);
    }
    let failure = other.call(post()).await.expect_err("held back");
    assert_eq!((failure.kind, wire.called()), (FailureKind::NotSent, 5));
    assert!(failure.retry_after.is_some_and(|wait| wait <= Duration::from_secs(1)), "{failure:?}");
    let text = "the network service was not called: it has not responded several times in a row";
    assert_eq!(failure.message, text);
    // One probe per back-off, which grows to half a minute.
    let began = Instant::now();
    while began.elapsed() < Duration::from_mins(10) {
        one.call(get()).await.expect_err("sick");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let probes = wire.called() - 5;
    assert!((20..=50).contains(&probes), "{probes} probes in ten minutes");
    is_well.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(30)).await;
    for cloud in [&one, &other] {
        cloud.call(get()).await.expect("well again");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_do_not_open_the_breaker() {
    for status in [400, 404, 409, 429, 501] {
        let (wire, connector) = wire(move |_, _| Ok(answer(status, "")));
        let cloud = connector.cloud(&credentials()).await;
        for _ in 0..20 {
            cloud.call(get()).await.expect_err("refused");
        }
        assert_eq!(wire.called(), 20, "{status}");
    }
}

/// A name of a template may be in the query of a request, and nobody else must wait because it is too long.
#[tokio::test(start_paused = true)]
async fn a_url_that_is_too_long_is_no_failure_of_the_service() {
    let (wire, connector) = wire(|request, _| match request.url.as_str().len() {
        // As the HTTP library does.
        65_535.. => Err(TransportError::Broken("Parsed Url is not a valid Uri".into())),
        _ => Ok(answer(200, "{}")),
    });
    let cloud = connector.cloud(&credentials()).await;
    for _ in 0..20 {
        let failure = cloud.call(get().query("name", "x".repeat(70_000))).await.expect_err("too long");
        assert_eq!((failure.kind, failure.class.name()), (FailureKind::Other, "BadRequest"), "{failure:?}");
        assert!(failure.message.contains("at most 65534"), "{failure:?}");
    }
    cloud.call(get()).await.expect("the service is called");
    assert_eq!(wire.called(), 1);
}

/// A transport without responses blocks callers only up to the timeout, and timeouts count as failures.
#[tokio::test(start_paused = true)]
async fn hanging_calls_time_out() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    wire.hangs_at_service.store(true, Ordering::SeqCst);
    let began = Instant::now();
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let cloud = Arc::clone(&cloud);
            tokio::spawn(async move { cloud.call(get()).await.expect_err("no answer").kind })
        })
        .collect();
    let mut kinds = Vec::new();
    for call in calls {
        kinds.push(call.await.expect("no panic"));
    }
    assert!(began.elapsed() <= Duration::from_mins(2), "{:?}", began.elapsed());
    let sent = kinds.iter().filter(|kind| **kind == FailureKind::Unavailable).count();
    assert_eq!(sent, wire.called());
    assert!(kinds.contains(&FailureKind::NotSent), "only two calls are allowed at a time: {kinds:?}");
}

/// A kind of request that hangs takes most of the room of a service; the others still get through.
#[tokio::test(start_paused = true)]
async fn requests_of_a_kind_that_hangs_leave_room_for_others() {
    let (wire, connector) = wide_wire(64, |_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    cloud.call(get()).await.expect("an answer");
    wire.hangs_at_writes.store(true, Ordering::SeqCst);
    for _ in 0..40 {
        let cloud = Arc::clone(&cloud);
        tokio::spawn(async move { cloud.call(post()).await });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = Instant::now();
    for _ in 0..100 {
        cloud.call(get()).await.expect("an answer");
    }
    // The service is quiet for a second, two times, before it gets more than 8, and more than 16, requests at once.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
