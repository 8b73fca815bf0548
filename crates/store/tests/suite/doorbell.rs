//! Rings and their receivers.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{Action, Status};
use kiln_store::{Batch, Doorbell, StackId, StackRequest, Store};

use crate::bed::beds;
use crate::make::{at, child, claim, claimed, engine, quiet_bell, resource, settle, settling, stack};
use crate::proxy::{Proxy, Stalled};

/// The rings up to that of the given stack; fails after a timeout.
async fn until(bell: &Arc<dyn Doorbell>, stack: StackId) {
    let heard = async { while !bell.wait().await.contains(&stack) {} };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("a ring");
}

#[tokio::test]
async fn requests_and_ends_ring() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let first = quiet_bell(&*bed.store).await;
        let bell = bed.store.doorbell();
        let (made, lease) = claimed(&*bed.store, "web").await;
        until(&bell, made.id).await;
        bed.store.request(made.id, StackRequest::new(Action::Check, at(1))).await.unwrap();
        until(&bell, made.id).await;

        let row = resource(made.id, "a");
        let nested = child(&made, &row);
        let batch = Batch { save: vec![row].into(), children: vec![nested.clone()], ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();
        until(&bell, nested.id).await;
        let inner = claim(&*bed.store, engine(), nested.id).await;
        let (here, parent) = (bed.store.doorbell(), bed.store.doorbell());
        bed.store.commit(inner, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        until(&here, nested.id).await;
        until(&parent, made.id).await;

        let bell = bed.store.doorbell();
        let requests = vec![(nested.id, StackRequest::new(Action::Delete, at(2)))];
        bed.store.commit(lease, Batch { requests, ..Batch::default() }).await.unwrap();
        until(&bell, nested.id).await;
        drop(first);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_lease_given_back_with_work_to_do_rings() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let bell = quiet_bell(&*bed.store).await;
        bed.store.release(&[lease]).await.unwrap();
        until(&bell, made.id).await;
        bed.end().await;
    }
}

#[tokio::test]
async fn a_refused_write_does_not_ring() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        bed.store.release(&[lease]).await.unwrap();
        let bell = bed.store.doorbell();
        bed.store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap_err();
        bed.store.create_stack(stack("web")).await.unwrap_err();
        let heard = tokio::time::timeout(Duration::from_millis(100), bell.wait()).await;
        assert!(heard.is_err() || heard == Ok(Vec::new()), "{heard:?} of {}", made.id);
        bed.end().await;
    }
}

/// Waits until a bell receives the rings of another process.
async fn heard(bell: &Arc<dyn Doorbell>, other: &Arc<dyn Store>, name: &str) {
    let heard = async {
        let mut number = 0;
        loop {
            number += 1;
            let made = other.create_stack(stack(&format!("{name}{number}"))).await.unwrap();
            let rung = async { while !bell.wait().await.contains(&made.id) {} };
            if tokio::time::timeout(Duration::from_millis(700), rung).await.is_ok() {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("a ring of another process");
}

#[tokio::test]
async fn another_process_is_heard() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let other = bed.another().await;
            // It starts to listen with a delay.
            heard(&other.doorbell(), &bed.store, "here").await;
            heard(&bed.store.doorbell(), &other, "there").await;
        }
        bed.end().await;
    }
}

/// Waits until a bell rings for events of another process, or of this one.
async fn told(bell: &Arc<dyn Doorbell>, writer: &Arc<dyn Store>, name: &str) {
    let told = async {
        let mut number = 0;
        loop {
            number += 1;
            let made = writer.create_stack(stack(&format!("{name}{number}"))).await.unwrap();
            let rung = async { while !bell.wait().await.contains(&made.id) {} };
            if tokio::time::timeout(Duration::from_millis(1500), rung).await.is_ok() {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("events of another process");
}

/// Those who wait for events hear of events only, with the root of their stack.
#[tokio::test]
async fn events_ring_for_watchers() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let news = bed.store.news();
        if bed.is_shared() {
            // Until the events of others are read, everything rings at once, without the name of a stack.
            let other = bed.another().await;
            told(&news, &other, "there").await;
            told(&other.news(), &bed.store, "here").await;
        }
        told(&news, &bed.store, "mine").await;
        let (made, lease) = claimed(&*bed.store, "web").await;
        until(&news, made.id).await;
        let nested = child(&made, &resource(made.id, "a"));
        let batch =
            Batch { save: vec![resource(made.id, "a")].into(), children: vec![nested.clone()], ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();
        until(&news, made.id).await;
        // The events of a nested stack ring with its root.
        let inner = claim(&*bed.store, engine(), nested.id).await;
        bed.store.request(nested.id, StackRequest::new(Action::Check, at(1))).await.unwrap();
        until(&news, made.id).await;
        // A write without events does not ring. (On a slow server, the look at everything may be due.)
        while tokio::time::timeout(Duration::from_millis(1500), news.wait()).await.is_ok() {}
        bed.store.renew(inner.owner, Duration::from_secs(9), &[inner]).await.unwrap();
        let quiet = tokio::time::timeout(Duration::from_millis(1500), news.wait()).await;
        assert!(quiet.is_err() || bed.is_shared() && quiet == Ok(Vec::new()), "{quiet:?}");
        bed.end().await;
    }
}

/// Nobody is woken by time or by writes without a ring, such as leases.
#[tokio::test]
async fn a_quiet_database_rings_nobody() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let other = bed.another().await;
            let bell = bed.store.doorbell();
            heard(&bell, &other, "there").await;
            let (_, lease) = claimed(&*bed.store, "mine").await;
            let quiet = tokio::time::timeout(Duration::from_secs(20), quiet_bell(&*bed.store));
            let bell = quiet.await.expect("quiet");
            for _ in 0..3 {
                other.renew(lease.owner, Duration::from_secs(9), &[lease]).await.unwrap();
                let woken = tokio::time::timeout(Duration::from_millis(700), bell.wait()).await;
                assert!(woken.is_err(), "{woken:?}");
            }
        }
        bed.end().await;
    }
}

/// Rings are heard again after the database was silent: those of the doorbell, and not only what a poll finds.
#[tokio::test]
async fn rings_are_heard_after_a_silence() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            for stalled in [Stalled::Open, Stalled::All] {
                let proxy = Proxy::start(&bed).await;
                let store = proxy.store().await;
                let (bell, name) = (store.doorbell(), format!("{}", usize::from(stalled == Stalled::All)));
                heard(&bell, &bed.store, &format!("before{name}-")).await;
                let quiet = quiet_bell(&*store).await;
                proxy.stall(stalled);
                // It is noticed: until rings are heard again, the waiter is told to look at everything.
                let noticed = async { while !quiet.wait().await.is_empty() {} };
                tokio::time::timeout(Duration::from_mins(1), noticed).await.expect("the silence is noticed");
                proxy.stall(Stalled::None);
                tokio::time::timeout(Duration::from_mins(1), async {
                    while tokio::time::timeout(Duration::from_secs(3), quiet.wait()).await.is_ok() {}
                })
                .await
                .expect("it listens again, and does not poll");
                heard(&bell, &bed.store, &format!("after{name}-")).await;
                heard(&bed.store.doorbell(), &(Arc::clone(&store) as Arc<dyn Store>), &format!("back{name}-")).await;
            }
        }
        bed.end().await;
    }
}
