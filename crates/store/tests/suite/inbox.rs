//! Messages: sent once, due in time, handled once.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kiln_resource::{Action, Status};
use kiln_store::{
    Backlog, Batch, Cancel, Error, HealthMark, Lease, Message, MessageBody, MessageId, Stack, StackId, StackRequest,
    Timer,
};
use kiln_value::value;
use uuid::Uuid;

use crate::bed::{Bed, beds};
use crate::make::{TTL, at, claim, claimed, deleting, engine, quiet_bell, settle, settling, stack};

/// Half an hour in the past or future: due by every clock, or by none.
const FAR: SignedDuration = SignedDuration::from_mins(30);

fn now() -> Timestamp {
    Timestamp::now().round(jiff::Unit::Microsecond).unwrap()
}

pub(crate) fn signal(stack: StackId, number: i64) -> Message {
    let sent = now() - FAR + SignedDuration::from_secs(number);
    Message {
        id: MessageId(Uuid::new_v4()),
        stack,
        resource: Some("alärm".into()),
        body: MessageBody::Signal(value!({"z": number, "a": [1.0, null]})),
        due: sent,
        sent,
    }
}

fn timer(stack: StackId, due: Timestamp) -> Message {
    Message { resource: None, body: MessageBody::Timer(Timer::default()), due, ..signal(stack, 0) }
}

/// A settled stack without a lease.
async fn settled(bed: &Bed, name: &str) -> Stack {
    let (_, lease) = claimed(&*bed.store, name).await;
    let done = bed.store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
    bed.store.release(&[lease]).await.unwrap();
    done
}

async fn claimable(bed: &Bed) -> Vec<StackId> {
    let leases = bed.store.claim(engine(), TTL, &[], 10).await.unwrap();
    bed.store.release(&leases).await.unwrap();
    leases.iter().map(|lease| lease.stack).collect()
}

async fn handle(bed: &Bed, lease: Lease, messages: &[&Message]) -> Stack {
    let handled = messages.iter().map(|message| message.id).collect();
    bed.store.commit(lease, Batch { handled, ..Batch::default() }).await.unwrap()
}

#[tokio::test]
async fn what_is_not_handled_is_counted_and_measured() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (stack, lease) = claimed(&*bed.store, "web").await;
        let backlog = |sizes| bed.store.backlog(stack.id, sizes);
        assert_eq!(backlog(true).await.unwrap(), Backlog::default());
        let large =
            Message { body: MessageBody::Signal(value!({"data": ("x".repeat(100_000))})), ..signal(stack.id, 1) };
        let small = signal(stack.id, 2);
        for message in [&large, &small] {
            bed.store.send(message).await.unwrap();
        }
        let both = backlog(true).await.unwrap();
        assert!(both.messages == 2 && (100_000..200_000).contains(&both.bytes), "{both:?}");
        assert_eq!(backlog(false).await.unwrap(), Backlog { messages: 2, bytes: 0 });
        handle(&bed, lease, &[&large]).await;
        let left = backlog(true).await.unwrap();
        assert!(left.messages == 1 && left.bytes < 1000, "{left:?}");
    }
}

#[tokio::test]
async fn a_message_wakes_a_settled_stack_until_it_is_handled() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let done = settled(&bed, "web").await;
        settled(&bed, "other").await;
        assert!(claimable(&bed).await.is_empty());
        let message = signal(done.id, 1);
        bed.store.send(&message).await.unwrap();
        assert_eq!(claimable(&bed).await, [done.id]);
        assert_eq!(bed.store.stack(done.id).await.unwrap().unwrap().messages, done.messages + 1);
        assert_eq!(bed.store.inbox(done.id, at(0)).await.unwrap(), std::slice::from_ref(&message));

        let lease = claim(&*bed.store, engine(), done.id).await;
        let forged = Lease { epoch: lease.epoch - 1, ..lease };
        let late = bed.store.commit(forged, Batch { handled: vec![message.id], ..Batch::default() }).await;
        assert!(matches!(late, Err(Error::Stale(_))));
        assert_eq!(bed.store.inbox(done.id, at(0)).await.unwrap().len(), 1, "the fence holds here too");
        handle(&bed, lease, &[&message]).await;
        bed.store.release(&[lease]).await.unwrap();
        assert!(bed.store.inbox(done.id, at(0)).await.unwrap().is_empty());
        assert!(claimable(&bed).await.is_empty());
        bed.end().await;
    }
}

#[tokio::test]
async fn messages_come_in_order_and_are_stored_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let (other, second) = claimed(&*bed.store, "other").await;
        let mut messages: Vec<Message> = [3, 1, 2, 2].map(|number| signal(made.id, number)).to_vec();
        messages.push(Message {
            body: MessageBody::Cancel(Cancel::default()),
            sent: messages[0].sent - FAR,
            ..messages[0].clone()
        });
        messages[4].id = MessageId(Uuid::new_v4());
        messages.push(Message { body: MessageBody::MarkUnhealthy(HealthMark::default()), ..signal(made.id, 4) });
        for message in &messages {
            bed.store.send(message).await.unwrap();
        }
        bed.store.send(&signal(other.id, 1)).await.unwrap();
        messages.sort_by_key(|message| (message.due, message.sent, message.id));
        assert_eq!(bed.store.inbox(made.id, at(0)).await.unwrap(), messages);

        bed.store.send(&messages[0]).await.unwrap();
        assert_eq!(bed.store.inbox(made.id, at(0)).await.unwrap(), messages, "sent again, stored once");
        handle(&bed, lease, &[&messages[0]]).await;
        bed.store.send(&messages[0]).await.unwrap();
        assert_eq!(bed.store.inbox(made.id, at(0)).await.unwrap(), messages[1..], "nor when it was handled meanwhile");

        handle(&bed, second, &[&messages[1]]).await;
        assert_eq!(bed.store.inbox(made.id, at(0)).await.unwrap(), messages[1..], "of its own stack only");
        bed.end().await;
    }
}

#[tokio::test]
async fn a_timer_wakes_its_stack_when_it_is_due() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let (soon, far) = (timer(made.id, now() + SignedDuration::from_secs(3)), timer(made.id, now() + FAR));
        let batch =
            Batch { timers: vec![soon.clone(), far.clone()], ..settling(settle(1, Action::Create, Status::Complete)) };
        let after = bed.store.commit(lease, batch).await.unwrap();
        assert!(!after.is_pending());
        bed.store.release(&[lease]).await.unwrap();
        assert!(claimable(&bed).await.is_empty(), "not before its time");
        assert!(bed.store.inbox(made.id, at(-1_000_000_000)).await.unwrap().is_empty());
        assert_eq!(
            bed.store.inbox(made.id, far.due).await.unwrap(),
            [soon.clone(), far.clone()],
            "by the caller's clock"
        );
        while bed.store.now().await.unwrap() <= soon.due {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(claimable(&bed).await, [made.id]);
        let found = bed.store.inbox(made.id, at(-1_000_000_000)).await.unwrap();
        assert_eq!(found, std::slice::from_ref(&soon), "by the database's clock");
        let lease = claim(&*bed.store, engine(), made.id).await;
        handle(&bed, lease, &[&soon, &far]).await;
        bed.store.release(&[lease]).await.unwrap();
        assert!(bed.store.inbox(made.id, far.due).await.unwrap().is_empty(), "one that is not due can be taken back");
        bed.end().await;
    }
}

#[tokio::test]
async fn a_stack_that_is_gone_takes_no_messages_and_keeps_none() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let nobody = bed.store.send(&signal(stack("x").id, 1)).await;
        assert!(matches!(nobody, Err(Error::NotFound(_))));
        let (gone, lease) = claimed(&*bed.store, "gone").await;
        let (live, other) = claimed(&*bed.store, "live").await;
        bed.store.send(&signal(gone.id, 1)).await.unwrap();
        let batch = Batch { timers: vec![timer(gone.id, now() - FAR)], ..deleting(1) };
        bed.store.commit(lease, batch).await.unwrap();
        bed.store.commit(lease, Batch { timers: vec![timer(gone.id, now() - FAR)], ..Batch::default() }).await.unwrap();
        bed.store.release(&[lease]).await.unwrap();
        assert!(bed.store.inbox(gone.id, now()).await.unwrap().is_empty());
        assert!(claimable(&bed).await.is_empty());
        let late = bed.store.send(&signal(gone.id, 2)).await;
        assert!(matches!(late, Err(Error::NotFound(_))));

        let send = vec![signal(gone.id, 3), signal(live.id, 3)];
        bed.store.commit(other, Batch { send: send.clone(), ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.inbox(live.id, now()).await.unwrap(), send[1..]);
        bed.end().await;
    }
}

#[tokio::test]
async fn work_of_both_kinds_is_claimed_by_age() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (old, young) = (settled(&bed, "old").await, settled(&bed, "young").await);
        let asked = settled(&bed, "asked").await;
        bed.store.send(&signal(young.id, 30)).await.unwrap();
        bed.store.send(&signal(old.id, 10)).await.unwrap();
        bed.store.send(&signal(old.id, 40)).await.unwrap();
        let request = StackRequest::new(Action::Check, now() - FAR + SignedDuration::from_secs(20));
        bed.store.request(asked.id, request).await.unwrap();
        let leases = bed.store.claim(engine(), TTL, &[], 10).await.unwrap();
        assert_eq!(leases.iter().map(|lease| lease.stack).collect::<Vec<_>>(), [old.id, asked.id, young.id]);
        bed.store.release(&leases).await.unwrap();
        let only = bed.store.claim(engine(), TTL, &[young.id], 10).await.unwrap();
        assert_eq!(only.len(), 1);
        bed.end().await;
    }
}

#[tokio::test]
async fn messages_ring_when_they_are_due_at_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let done = settled(&bed, "web").await;
        let (made, lease) = claimed(&*bed.store, "sender").await;
        let rung = async |bell: &std::sync::Arc<dyn kiln_store::Doorbell>, stack| {
            let heard = async { while !bell.wait().await.contains(&stack) {} };
            tokio::time::timeout(Duration::from_secs(1), heard).await.is_ok()
        };
        let first = quiet_bell(&*bed.store).await;
        let bell = bed.store.doorbell();
        bed.store.send(&signal(done.id, 1)).await.unwrap();
        assert!(rung(&bell, done.id).await);
        let send = vec![signal(done.id, 2)];
        bed.store.commit(lease, Batch { send, ..Batch::default() }).await.unwrap();
        assert!(rung(&bell, done.id).await);

        let batch = Batch {
            timers: vec![timer(made.id, now() - FAR)],
            ..settling(settle(1, Action::Create, Status::Complete))
        };
        bed.store.commit(lease, batch).await.unwrap();
        let bell = bed.store.doorbell();
        bed.store.release(&[lease]).await.unwrap();
        assert!(rung(&bell, made.id).await, "a lease given back while a message is due");
        let later = Message { due: now() + FAR, ..timer(done.id, now()) };
        let bell = bed.store.doorbell();
        bed.store.send(&later).await.unwrap();
        assert!(!rung(&bell, done.id).await, "not yet");
        drop(first);
        bed.end().await;
    }
}

#[tokio::test]
async fn handled_messages_are_forgotten_after_a_while() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let (made, lease) = claimed(&*bed.store, "web").await;
            let (one, two) = (signal(made.id, 1), signal(made.id, 2));
            bed.store.send(&one).await.unwrap();
            bed.store.send(&two).await.unwrap();
            handle(&bed, lease, &[&one]).await;
            let retention = kiln_store::Retention { deleted_before: at(-1_000_000_000), operations: 0 };
            assert_eq!(bed.store.forget(&retention).await.unwrap(), 0);
            bed.execute("UPDATE kiln_message SET handled = 0 WHERE handled IS NOT NULL").await;
            assert_eq!(bed.store.forget(&retention).await.unwrap(), 1);
            assert_eq!(bed.store.inbox(made.id, now()).await.unwrap(), [two]);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn what_a_version_cannot_read_is_kept_and_makes_no_stack_claimable() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_shared() {
            continue;
        }
        let stack = settled(&bed, "web").await;
        let (first, second) = (signal(stack.id, 1), signal(stack.id, 2));
        bed.store.send(&first).await.unwrap();
        let change = |column: &str, value: &str| {
            format!("UPDATE kiln_message SET {column} = '{value}' WHERE id = '{}'", first.id)
        };
        bed.execute(&change("kind", "OF_TOMORROW")).await;
        assert_eq!(claimable(&bed).await, []);
        assert_eq!(bed.store.inbox(stack.id, now()).await.unwrap(), []);
        // It hides nothing, and it is there for the version that knows it.
        bed.store.send(&second).await.unwrap();
        assert_eq!(claimable(&bed).await, [stack.id]);
        assert_eq!(bed.store.inbox(stack.id, now()).await.unwrap(), std::slice::from_ref(&second));
        bed.execute(&change("kind", "SIGNAL")).await;
        assert_eq!(bed.store.inbox(stack.id, now()).await.unwrap(), [first.clone(), second.clone()]);

        bed.execute(&change("body", "{")).await;
        assert_eq!(bed.store.inbox(stack.id, now()).await.unwrap(), std::slice::from_ref(&second));
        let lease = claim(&*bed.store, engine(), stack.id).await;
        handle(&bed, lease, &[&second]).await;
        bed.store.release(&[lease]).await.unwrap();
        assert_eq!(claimable(&bed).await, []);
        assert_eq!(bed.store.backlog(stack.id, false).await.unwrap().messages, 1);
        bed.end().await;
    }
}
