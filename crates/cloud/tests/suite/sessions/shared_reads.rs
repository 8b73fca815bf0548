//! Many reads at the same time are one list.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kiln_cloud::{Connector, HttpRequest};
use kiln_resource::{Cloud as _, CloudRequest, Failure, Listed, Method};
use kiln_value::{Value, value};

use crate::sessions::wire::{Wire, answer, credentials, wire};

/// Objects 0 to 99 exist. The first page of the list has `listed` of them.
fn service(listed: usize) -> (Arc<Wire>, Connector) {
    wire(move |request: &HttpRequest, _| {
        let (path, query) = (request.url.path(), request.url.query().unwrap_or_default());
        if path.ends_with("/things/detail") {
            assert!(query.starts_with("limit="), "{query}");
            let things: Vec<Value> = (0..listed).map(|id| value!({"id": format!("{id}"), "from": "list"})).collect();
            return Ok(answer(200, &kiln_value::text::json(&value!({"things": things}))));
        }
        let id: usize = path.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an ID");
        match id {
            0..100 => Ok(answer(200, &format!(r#"{{"thing": {{"id": "{id}", "from": "read"}}}}"#))),
            _ => Ok(answer(404, r#"{"error": {"message": "no such thing"}}"#)),
        }
    })
}

async fn read(connector: &Connector, id: usize) -> Result<Value, Failure> {
    let listed = Listed { path: "/v2.0/things/detail", list: "things", member: "thing", id: id.to_string() };
    let request = CloudRequest::new("network", Method::Get, format!("/v2.0/things/{id}")).listed(listed);
    let cloud = connector.cloud(&credentials()).await;
    cloud
        .call(request)
        .await
        .map(|mut response| response.body.as_map_mut().and_then(|body| body.swap_remove("thing")).unwrap_or_default())
}

async fn all(connector: &Connector, ids: std::ops::Range<usize>) -> Vec<Result<Value, Failure>> {
    join_all(ids.map(|id| read(connector, id))).await
}

fn calls(wire: &Wire) -> (usize, usize) {
    let calls = std::mem::take(&mut *wire.calls.lock().expect("no panic elsewhere"));
    let lists = calls.iter().filter(|call| call.contains("detail")).count();
    (calls.len() - lists, lists)
}

#[tokio::test]
async fn few_reads_are_sent_as_they_are() {
    let (wire, connector) = service(100);
    for thing in all(&connector, 0..5).await {
        assert_eq!(thing.expect("a thing").str_at("from"), Some("read"));
    }
    assert_eq!(calls(&wire), (5, 0));
}

#[tokio::test]
async fn many_reads_are_one_list_and_each_gets_its_own_object() {
    let (wire, connector) = service(100);
    for (id, thing) in all(&connector, 0..100).await.into_iter().enumerate() {
        assert_eq!(thing.expect("a thing").str_at("id"), Some(id.to_string().as_str()));
    }
    assert_eq!(calls(&wire), (4, 1));
    // Reads that come later do not get what an earlier list contained.
    assert_eq!(read(&connector, 50).await.expect("a thing").str_at("from"), Some("read"));
    assert_eq!(calls(&wire), (1, 0));
}

#[tokio::test]
async fn what_a_list_does_not_contain_is_read_alone() {
    let (wire, connector) = service(60);
    let things = all(&connector, 20..104).await;
    for (thing, id) in things.iter().zip(20..104) {
        match thing {
            Ok(thing) => assert_eq!(thing.str_at("id"), Some(id.to_string().as_str())),
            Err(failure) => assert!(failure.is_not_found() && id >= 100, "{id}: {failure}"),
        }
    }
    // 4 alone; the list had 36 of the others.
    assert_eq!(calls(&wire), (4 + 44, 1));
}

#[tokio::test(start_paused = true)]
async fn lists_that_do_not_help_are_not_requested_again_for_a_while() {
    let (wire, connector) = service(0);
    for expected in [(50, 1), (50, 0)] {
        assert!(all(&connector, 0..50).await.iter().all(Result::is_ok));
        assert_eq!(calls(&wire), expected);
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(all(&connector, 0..50).await.iter().all(Result::is_ok));
    assert_eq!(calls(&wire), (50, 1));
}

#[tokio::test(start_paused = true)]
async fn reads_within_a_second_are_lists() {
    let (wire, connector) = service(100);
    let reads = (0..20).map(|id| {
        let connector = connector.clone();
        async move {
            // Never more than one in progress.
            tokio::time::sleep(Duration::from_millis(25 * id)).await;
            read(&connector, usize::try_from(id).expect("small")).await.expect("a thing")
        }
    });
    join_all(reads).await;
    let (alone, lists) = calls(&wire);
    assert!(alone <= 5 && (1..=3).contains(&lists), "{alone} reads, {lists} lists");
    // Later, one is sent alone again.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(read(&connector, 1).await.expect("a thing").str_at("from"), Some("read"));
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_do_not_stop_lists() {
    let (wire, connector) = service(60);
    let gone = all(&connector, 100..120).await;
    assert!(gone.iter().all(|thing| thing.as_ref().is_err_and(Failure::is_not_found)));
    assert_eq!(calls(&wire), (20, 1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(all(&connector, 0..50).await.iter().all(Result::is_ok));
    assert_eq!(calls(&wire), (4, 1));
}

#[tokio::test]
async fn a_read_that_is_given_up_harms_no_other() {
    let (wire, connector) = service(100);
    let late = async { tokio::time::timeout(Duration::from_millis(1), all(&connector, 0..20)).await.is_err() };
    let (gave_up, others) = tokio::join!(late, all(&connector, 20..40));
    assert!(gave_up && others.iter().all(Result::is_ok));
    // All slots are free again.
    assert!(all(&connector, 0..4).await.iter().all(Result::is_ok));
    let (_, lists) = calls(&wire);
    assert!(lists >= 1);
}
