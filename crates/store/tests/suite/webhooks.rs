//! Webhooks: what happens in a project is posted to those that want it; deliveries have their places and are kept.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::{Action, Status};
use kiln_store::webhook::{Attempt, DeliveryQuery, EventPattern, Receiver, WebhookKey};
use kiln_store::{
    Approval, Batch, Delivery, Destination, MemoryStore, NewPlan, Options, Outcome, Plan, PlanId, PlanState, Retention,
    SqlStore, StackId, Store, Webhook, WebhookDelivery, WebhookId, WebhookMessage, WebhookStore, WebhookTerms,
};
use kiln_value::{Secret, Value};
use uuid::Uuid;

use crate::bed::{Bed, beds, options};
use crate::guards::{author, guard};
use crate::make::{PROJECT, TTL, at, claimed, engine, event, settle, settling, stack};

/// A store with stacks and webhooks.
trait Both: Store + WebhookStore {}
impl<S: Store + WebhookStore> Both for S {}

/// The store of a bed, opened by a service with webhooks.
async fn with_webhooks(bed: &Bed) -> Arc<dyn Both> {
    if !bed.is_sql() {
        return Arc::new(MemoryStore::new(Arc::new(Timestamp::now)));
    }
    let store = SqlStore::open(Options { webhooks: true, ..options(bed.url()) }).await.unwrap();
    store.migrate().await.unwrap();
    Arc::new(store)
}

fn webhook(events: &[&str], stack: Option<StackId>) -> Webhook {
    let key = |secret: &str, until| WebhookKey { secret: Secret::new(secret.to_owned()), until };
    Webhook {
        id: WebhookId(Uuid::new_v4()),
        project: PROJECT.to_owned(),
        terms: WebhookTerms {
            url: Secret::new("https://user:pässword@example.com/?token=x".to_owned()),
            keys: vec![key("whsec_bmV3", None), key("whsec_b2xk", Some(at(9)))],
            events: events.iter().map(|pattern| EventPattern::new(pattern).unwrap()).collect(),
            stack,
            description: "für uns".to_owned(),
            handshake: true,
            disabled: None,
        },
        receiver: Receiver::default(),
        author: author(),
        created: at(1),
        version: 1,
    }
}

/// What waits for a webhook: types and subjects.
async fn waiting(store: &dyn Both, id: WebhookId) -> Vec<String> {
    let Some((_, delivery)) = take(store, id).await else { return Vec::new() };
    let told = delivery.entries.iter().map(|entry| {
        let word = |key: &str| entry.body.str_at(key).unwrap_or_default().to_owned();
        let subject = word("subject");
        let subject = if subject.parse::<Uuid>().is_ok() { String::new() } else { format!(" {subject}") };
        format!("{}{subject}", word("type").strip_prefix("orchestration.").unwrap())
    });
    told.collect()
}

async fn take(store: &dyn Both, id: WebhookId) -> Option<(Uuid, Delivery)> {
    let mark = Uuid::new_v4();
    let delivery = store.claim_lane(&format!("webhook {id}"), mark, TTL, 50).await.unwrap()?;
    assert_eq!(delivery.destination, Destination::Webhook { id });
    Some((mark, delivery))
}

fn attempt(mark: Uuid, entry: &kiln_store::OutboxEntry, outcome: Outcome, status: Option<u16>) -> Attempt {
    Attempt {
        mark,
        number: entry.number,
        id: entry.id,
        outcome,
        was_sent: true,
        was_refused: status.is_some_and(|status| status != 200),
        status,
        error: status.filter(|status| *status != 200).map(|status| format!("status {status}")),
        took: Duration::from_millis(7),
    }
}

fn brief(deliveries: &[WebhookDelivery]) -> Vec<(i64, &'static str, u32, Option<u16>)> {
    deliveries.iter().map(|one| (one.sequence, one.outcome.as_str(), one.attempts, one.status)).collect()
}

#[tokio::test]
async fn a_webhook_is_stored_changed_and_removed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*with_webhooks(&bed).await;
        let (mut first, second) =
            (webhook(&["*"], None), webhook(&["stack.*.error", "plan.*"], Some(StackId(Uuid::nil()))));
        store.add_webhook(&first).await.unwrap();
        store.add_webhook(&second).await.unwrap();
        // The lost answer of an add.
        store.add_webhook(&first).await.unwrap();
        assert_eq!(store.webhooks(PROJECT).await.unwrap(), [first.clone(), second.clone()]);
        assert_eq!(store.webhooks("another").await.unwrap(), []);
        store.allow_webhook(first.id, Some(60)).await.unwrap();
        store.note_failure(first.id).await.unwrap();
        let known = store.webhook(first.id).await.unwrap().unwrap().receiver;
        assert!(known.allowed.is_some() && known.rate == Some(60) && known.failing_since.is_some(), "{known:?}");
        store.note_failure(first.id).await.unwrap();
        assert_eq!(store.webhook(first.id).await.unwrap().unwrap().receiver, known, "since the first failure");

        first.terms.url = Secret::new("https://example.com/other".to_owned());
        assert!(store.change_webhook(&first).await.unwrap());
        let changed = store.webhook(first.id).await.unwrap().unwrap();
        assert_eq!(changed, Webhook { version: 2, ..first.clone() }, "the other receiver is asked again");
        assert!(!store.change_webhook(&first).await.unwrap(), "it was changed meanwhile");
        store.disable_webhook(first.id, "gone").await.unwrap();
        store.disable_webhook(first.id, "again").await.unwrap();
        let disabled = store.webhook(first.id).await.unwrap().unwrap();
        assert_eq!((disabled.terms.disabled.as_deref(), disabled.version), (Some("gone"), 3));

        assert!(!store.remove_webhook("another", first.id).await.unwrap());
        assert!(store.remove_webhook(PROJECT, first.id).await.unwrap());
        assert!(!store.remove_webhook(PROJECT, first.id).await.unwrap());
        assert_eq!(store.webhook(first.id).await.unwrap(), None);
        bed.end().await;
    }
}

#[tokio::test]
async fn webhooks_get_what_they_want_in_order() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*with_webhooks(&bed).await;
        let (web, lease) = claimed(store, "web").await;
        let all = webhook(&["*"], None);
        let errors = webhook(&["*.error", "guard.*"], None);
        let other = webhook(&["*"], Some(StackId(Uuid::new_v4())));
        let of_web = webhook(&["resource.*", "stack.*"], Some(web.id));
        let mut off = webhook(&["*"], None);
        off.terms.disabled = Some("a user has disabled it".to_owned());
        let foreign = Webhook { project: "another".to_owned(), ..webhook(&["*"], None) };
        for one in [&all, &errors, &other, &of_web, &off, &foreign] {
            store.add_webhook(one).await.unwrap();
        }
        let failed = kiln_store::Event { status: Status::Failed, ..event(&web, "b", 2) };
        let end = kiln_store::Event {
            resource_name: "web".to_owned(),
            resource_type: "OS::Heat::Stack".to_owned(),
            physical_id: Some(web.id.to_string()),
            ..event(&web, "web", 3)
        };
        let batch = Batch { events: vec![event(&web, "a", 1), failed, end], ..Batch::default() };
        store.commit(lease, batch).await.unwrap();
        let held = guard(Some(web.id));
        store.add_guard(&held).await.unwrap();
        store.add_guard(&held).await.unwrap();
        assert!(store.lift_guard(PROJECT, held.id, &author()).await.unwrap());
        let saved = plan(web.id);
        store.save_plan(&saved).await.unwrap();
        let approval = Approval { plan: saved.plan.id, author: author(), time: at(5) };
        store.approve_plan(&approval).await.unwrap();
        store.approve_plan(&approval).await.unwrap();
        assert!(store.reject_plan(saved.plan.id).await.unwrap());
        assert!(!store.reject_plan(saved.plan.id).await.unwrap());

        // Receivers of users are not counted among the destinations of the operator.
        let census = store.census().await.unwrap();
        assert_eq!((census.outbox, census.outbox_oldest, census.webhook_entries), (0, None, 8 + 3 + 3));

        let told = ["resource.create.end a", "resource.create.error b", "stack.create.end web"];
        let rest = ["guard.added", "guard.lifted", "plan.saved", "plan.approved", "plan.rejected"];
        assert_eq!(waiting(store, all.id).await, [&told[..], &rest].concat());
        assert_eq!(waiting(store, errors.id).await, [told[1], rest[0], rest[1]]);
        assert_eq!(waiting(store, of_web.id).await, told);
        for nothing in [&other, &off, &foreign] {
            assert_eq!(waiting(store, nothing.id).await, [""; 0]);
        }
        bed.end().await;
    }
}

fn plan(stack: StackId) -> NewPlan {
    let plan = Plan {
        id: PlanId(Uuid::new_v4()),
        project: PROJECT.to_owned(),
        stack,
        stack_name: "web".to_owned(),
        name: None,
        action: Action::Update,
        generation: 1,
        author: Some(author()),
        desired: None,
        digest: String::new(),
        state: PlanState::Ready,
        body: Value::Null,
        created: at(4),
        expires: None,
    };
    NewPlan { plan, desired: None, parts: Vec::new() }
}

#[tokio::test]
async fn deliveries_have_places_and_are_sent_again() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*with_webhooks(&bed).await;
        let hook = webhook(&["stack.*"], None);
        let id = hook.id;
        store.add_webhook(&hook).await.unwrap();
        for number in 0..3 {
            store.send_to_webhook(id, &WebhookMessage::test(&hook, Uuid::new_v4(), at(number))).await.unwrap();
        }
        let (mark, delivery) = take(store, id).await.unwrap();
        let [first, second, third] = delivery.entries.as_slice() else { panic!("{delivery:?}") };
        assert_eq!(store.begin_deliveries(id, &delivery.entries[..2]).await.unwrap(), [(1, 0), (2, 0)]);
        // After a crash they are claimed again, with what has come since.
        assert_eq!(store.begin_deliveries(id, &delivery.entries).await.unwrap(), [(1, 0), (2, 0), (3, 0)]);
        store.end_attempt(id, &attempt(mark, first, Outcome::Pending, Some(500))).await.unwrap();
        assert!(store.webhook(id).await.unwrap().unwrap().receiver.failing_since.is_some());
        assert_eq!(store.begin_deliveries(id, &delivery.entries[..1]).await.unwrap(), [(1, 1)], "it was refused once");
        store.end_attempt(id, &attempt(mark, first, Outcome::Failed, Some(500))).await.unwrap();
        store.end_attempt(id, &attempt(mark, second, Outcome::Delivered, Some(200))).await.unwrap();
        assert_eq!(store.webhook(id).await.unwrap().unwrap().receiver.failing_since, None);
        // A courier whose claim has expired changes nothing.
        store.end_attempt(id, &attempt(Uuid::new_v4(), third, Outcome::Failed, None)).await.unwrap();
        // Above all, what another one has delivered is not pending again: nothing would send it.
        store.end_attempt(id, &attempt(mark, second, Outcome::Pending, None)).await.unwrap();
        assert_eq!(store.webhook(id).await.unwrap().unwrap().receiver.failing_since, None);

        let listed = store.deliveries(id, &DeliveryQuery::default()).await.unwrap();
        let known = [(3, "pending", 0, None), (2, "delivered", 1, Some(200)), (1, "failed", 2, Some(500))];
        assert_eq!(brief(&listed), known);
        assert_eq!(
            (listed[1].event_type.as_str(), listed[1].took),
            ("orchestration.webhook.test", Some(Duration::from_millis(7)))
        );
        assert_eq!(listed[2].error.as_deref(), Some("status 500"));
        let query = DeliveryQuery { outcome: Some(Outcome::Failed), ..DeliveryQuery::default() };
        assert_eq!(brief(&store.deliveries(id, &query).await.unwrap()), known[2..]);
        let query = DeliveryQuery { marker: Some(second.id), limit: Some(1), outcome: None };
        assert_eq!(brief(&store.deliveries(id, &query).await.unwrap()), known[2..]);
        let query = DeliveryQuery { marker: Some(Uuid::new_v4()), ..DeliveryQuery::default() };
        assert!(matches!(store.deliveries(id, &query).await, Err(kiln_store::Error::NotFound(_))));

        assert!(!store.redeliver(id, Uuid::new_v4()).await.unwrap());
        assert!(!store.redeliver(WebhookId(Uuid::new_v4()), first.id).await.unwrap(), "of another webhook");
        assert!(store.redeliver(id, first.id).await.unwrap());
        assert!(store.redeliver(id, first.id).await.unwrap());
        store.postpone_entries(mark, &[third.number], Duration::ZERO).await.unwrap();
        let (renewed, again) = take(store, id).await.unwrap();
        let ids: Vec<Uuid> = again.entries.iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [third.id, first.id], "once");
        assert_eq!(again.entries[1].body, first.body);
        assert_eq!(store.begin_deliveries(id, &again.entries).await.unwrap(), [(3, 0), (1, 0)]);

        // A change sends what waits, with what is set now.
        let numbers: Vec<i64> = again.entries.iter().map(|entry| entry.number).collect();
        store.postpone_entries(renewed, &numbers, TTL).await.unwrap();
        assert_eq!(take(store, id).await, None);
        assert!(store.change_webhook(&store.webhook(id).await.unwrap().unwrap()).await.unwrap());
        assert_eq!(take(store, id).await.unwrap().1.entries.len(), 2);

        // What is delivered or failed is forgotten with time, but nothing that is still sent.
        let retention = Retention { deleted_before: at(0), operations: 0 };
        store.forget(&retention).await.unwrap();
        assert_eq!(store.deliveries(id, &DeliveryQuery::default()).await.unwrap().len(), 3);
        store.remove_webhook(PROJECT, id).await.unwrap();
        assert_eq!(store.begin_deliveries(id, &again.entries).await.unwrap().len(), 2, "they are known");
        bed.end().await;
    }
}

#[tokio::test]
async fn old_deliveries_are_purged() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_sql() || !bed.is_shared() {
            continue;
        }
        let store = &*with_webhooks(&bed).await;
        let hook = webhook(&["*"], None);
        store.add_webhook(&hook).await.unwrap();
        for number in 0..2 {
            store.send_to_webhook(hook.id, &WebhookMessage::test(&hook, Uuid::new_v4(), at(number))).await.unwrap();
        }
        let (mark, delivery) = take(store, hook.id).await.unwrap();
        store.begin_deliveries(hook.id, &delivery.entries).await.unwrap();
        store.end_attempt(hook.id, &attempt(mark, &delivery.entries[0], Outcome::Delivered, Some(200))).await.unwrap();
        let retention = Retention { deleted_before: at(0), operations: 0 };
        while store.forget(&retention).await.unwrap() > 0 {}
        assert_eq!(store.deliveries(hook.id, &DeliveryQuery::default()).await.unwrap().len(), 2);
        bed.execute("UPDATE kiln_webhook_delivery SET created = created - 3 * 86400000000").await;
        while store.forget(&retention).await.unwrap() > 0 {}
        let left = store.deliveries(hook.id, &DeliveryQuery::default()).await.unwrap();
        assert_eq!(brief(&left), [(2, "pending", 0, None)]);
        store.remove_webhook(PROJECT, hook.id).await.unwrap();
        while store.forget(&retention).await.unwrap() > 0 {}
        assert_eq!(store.deliveries(hook.id, &DeliveryQuery::default()).await.unwrap(), []);
        bed.end().await;
    }
}

/// Without the option, commits do not look for webhooks.
#[tokio::test]
async fn a_service_without_webhooks_posts_nothing() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_sql() || !bed.is_shared() {
            continue;
        }
        let hook = webhook(&["*"], None);
        let with = with_webhooks(&bed).await;
        with.add_webhook(&hook).await.unwrap();
        let made = bed.store.create_stack(stack("web")).await.unwrap();
        let lease = crate::make::claim(&*bed.store, engine(), made.id).await;
        bed.store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        assert_eq!(waiting(&*with, hook.id).await, [""; 0]);
        drop(with);
        bed.end().await;
    }
}
