//! The outbox: an entry for each event and destination, sent in order, by one courier at a time.

use std::time::Duration;

use kiln_resource::{Action, Status};
use kiln_store::{
    Announcement, Batch, Delivery, DesiredText, Destination, MemoryStore, NewStack, Notice, Retention, Settle,
    SqlStore, StackRequest, Store,
};
use kiln_value::{Map, Secret, Value, value};
use uuid::Uuid;

use crate::bed::{beds, options};
use crate::make::{TTL, at, child, claim, claimed, engine, event, resource, settle, settling, stack, text};

fn with_sinks(name: &str, sinks: &str) -> NewStack {
    let environment = format!("{{\"parameters\":{{}},\"event_sinks\":[{sinks}]}}");
    NewStack { desired: DesiredText { environment, ..text(name) }, ..stack(name) }
}

const QUEUE: &str = r#"{"type":"zaqar-queue","target":"q","ttl":60}"#;
const OTHER: &str = r#"{"type":"zaqar-queue","target":"other"}"#;

async fn lanes(store: &dyn Store) -> Vec<String> {
    let (mut lanes, mut after) = (Vec::new(), String::new());
    while let Some(lane) = store.next_lane(&after).await.unwrap() {
        after.clone_from(&lane.name);
        lanes.push(lane.name);
    }
    lanes
}

/// Longer than some statements take on a database with much to do.
const SOON: Duration = Duration::from_secs(3);

async fn take(store: &dyn Store, lane: &str, ttl: Duration) -> Option<(Uuid, Delivery)> {
    let mark = Uuid::new_v4();
    store.claim_lane(lane, mark, ttl, 50).await.unwrap().map(|delivery| (mark, delivery))
}

/// Actions, statuses and names of the entries of a delivery.
fn told(delivery: &Delivery) -> Vec<String> {
    let text = |entry: &kiln_store::OutboxEntry| {
        let payload = entry.body.get("payload").unwrap();
        let at = |key: &str| payload.str_at(key).unwrap_or_default().to_owned();
        format!("{} {} {}", at("resource_name"), at("resource_action"), at("resource_status"))
    };
    delivery.entries.iter().map(text).collect()
}

fn numbers(delivery: &Delivery) -> Vec<i64> {
    delivery.entries.iter().map(|entry| entry.number).collect()
}

#[tokio::test]
async fn events_of_a_tree_with_sinks_are_posted_in_order_and_others_are_not() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (_, lease) = claimed(store, "plain").await;
        store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        assert_eq!(store.next_lane("").await.unwrap(), None);

        let mut news = store.outbox_news();
        let root = store.create_stack(with_sinks("web", QUEUE)).await.unwrap();
        assert!(news.has_changed().unwrap());
        news.mark_unchanged();
        assert!(root.desired.sinks);
        let lease = claim(store, engine(), root.id).await;
        let row = resource(root.id, "a");
        let nested = NewStack { desired: with_sinks("web-a", QUEUE).desired, ..child(&root, &row) };
        let batch = Batch {
            events: vec![event(&root, "a", 1), event(&root, "b", 2)],
            children: vec![nested.clone()],
            ..Batch::default()
        };
        store.commit(lease, batch).await.unwrap();
        let request = StackRequest::new(Action::Update, at(5));
        let batch = Batch { requests: vec![(nested.id, request)], ..Batch::default() };
        store.commit(lease, batch).await.unwrap();
        assert!(news.has_changed().unwrap());

        let lanes = lanes(store).await;
        assert_eq!(lanes.len(), 1, "one lane for the whole tree: {lanes:?}");
        let (mark, delivery) = take(store, &lanes[0], TTL).await.unwrap();
        assert_eq!(delivery.root, root.id);
        assert_eq!(delivery.destination, Destination::ZaqarQueue { target: "q".to_owned(), ttl: 60 });
        let mut told = told(&delivery);
        assert_eq!(told.remove(0), "web CREATE IN_PROGRESS");
        assert_eq!(told.pop().unwrap(), "web-a UPDATE IN_PROGRESS");
        told.sort();
        assert_eq!(told, ["a CREATE COMPLETE", "b CREATE COMPLETE", "web-a CREATE IN_PROGRESS"]);
        let first = &delivery.entries[0].body;
        assert_eq!(first.str_at("type"), Some("os.heat.event"));
        assert_eq!(first.str_at("timestamp"), Some("2027-01-15T08:00:00+00:00"));
        assert_eq!(first.get("payload").unwrap().get("resource_properties"), Some(&value!({})));

        // Nobody else gets them until they are removed.
        assert_eq!(take(store, &lanes[0], TTL).await, None);
        store.remove_entries(Uuid::new_v4(), &numbers(&delivery)).await.unwrap();
        assert!(store.next_lane("").await.unwrap().is_some(), "they belong to another claim");
        store.remove_entries(mark, &numbers(&delivery)).await.unwrap();
        assert_eq!(store.next_lane("").await.unwrap(), None);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_claim_expires_and_a_failure_holds_back_what_comes_after_it() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let root = store.create_stack(with_sinks("web", QUEUE)).await.unwrap();
        let lane = lanes(store).await.remove(0);
        let (killed, _) = take(store, &lane, SOON).await.unwrap();
        assert_eq!(take(store, &lane, TTL).await, None);
        tokio::time::sleep(SOON).await;
        let (mark, delivery) = take(store, &lane, TTL).await.unwrap();
        // The courier that was too slow changes nothing any more.
        store.postpone_entries(killed, &numbers(&delivery), TTL).await.unwrap();
        store.postpone_entries(mark, &numbers(&delivery), SOON).await.unwrap();
        let lease = claim(store, engine(), root.id).await;
        let batch = Batch { events: vec![event(&root, "a", 1)], ..Batch::default() };
        store.commit(lease, batch).await.unwrap();
        let waiting = store.next_lane("").await.unwrap().unwrap();
        assert!(waiting.wait > Duration::ZERO && waiting.wait <= SOON, "{waiting:?}");
        assert_eq!(waiting.attempts, 1);
        assert_eq!(take(store, &lane, TTL).await, None, "in order");
        tokio::time::sleep(SOON).await;
        let (_, delivery) = take(store, &lane, TTL).await.unwrap();
        assert_eq!(delivery.entries.len(), 2);
        assert_eq!((delivery.entries[0].attempts, delivery.entries[1].attempts), (1, 0));
        assert!(delivery.entries[0].age >= Duration::from_millis(500), "{:?}", delivery.entries[0].age);
        bed.end().await;
    }
}

#[tokio::test]
async fn sinks_follow_the_environment() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let root = store.create_stack(with_sinks("web", &format!("{QUEUE},{OTHER},{QUEUE}"))).await.unwrap();
        let lease = claim(store, engine(), root.id).await;
        store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        assert_eq!(lanes(store).await.len(), 2);
        let mut request = StackRequest::new(Action::Update, at(5));
        request.desired = Some(with_sinks("new", OTHER).desired);
        store.request(root.id, request).await.unwrap();
        let mut sent = Vec::new();
        for lane in lanes(store).await {
            let (mark, delivery) = take(store, &lane, TTL).await.unwrap();
            sent.push((delivery.destination.clone(), told(&delivery).len()));
            store.remove_entries(mark, &numbers(&delivery)).await.unwrap();
        }
        let queue = |target: &str, ttl| Destination::ZaqarQueue { target: target.to_owned(), ttl };
        sent.sort_by_key(|(_, count)| *count);
        assert_eq!(sent, [(queue("q", 60), 1), (queue("other", 3600), 2)]);
        // The rollback returns to both.
        let rollback = Some(StackRequest::rollback(2, false, at(5)));
        let batch = Batch { rollback, events: vec![event(&root, "a", 1)], ..Batch::default() };
        assert!(store.commit(lease, batch).await.unwrap().desired.sinks);
        assert_eq!(lanes(store).await.len(), 2);
        let mut request = StackRequest::new(Action::Update, at(6));
        request.desired = Some(text("none"));
        assert!(!store.request(root.id, request).await.unwrap().desired.sinks);
        bed.end().await;
    }
}

#[tokio::test]
async fn what_the_last_events_need_is_kept_until_they_are_sent() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let credentials = store.plan_credentials(&Secret::new("{}".to_owned())).await.unwrap();
        let new = NewStack { credentials: Some(credentials), ..with_sinks("web", QUEUE) };
        let root = store.create_stack(new).await.unwrap();
        store.request(root.id, StackRequest::new(Action::Delete, at(1))).await.unwrap();
        let lease = claim(store, engine(), root.id).await;
        let deleted = Settle { deleted: true, ..settle(2, Action::Delete, Status::Complete) };
        store.commit(lease, settling(deleted)).await.unwrap();
        let retention = Retention { deleted_before: at(1_000), operations: 0 };
        assert_eq!(store.forget(&retention).await.unwrap(), 0);
        assert!(store.unused_credentials(Duration::ZERO, 10).await.unwrap().is_empty());
        let lane = lanes(store).await.remove(0);
        let (mark, delivery) = take(store, &lane, TTL).await.unwrap();
        store.remove_entries(mark, &numbers(&delivery)).await.unwrap();
        assert_eq!(store.unused_credentials(Duration::ZERO, 10).await.unwrap().len(), 1);
        assert!(store.forget(&retention).await.unwrap() > 0);
        bed.end().await;
    }
}

#[tokio::test]
async fn stacks_are_announced_on_the_message_bus_if_there_is_one() {
    let sql = SqlStore::open(kiln_store::Options { notifications: true, ..options("sqlite::memory:") }).await.unwrap();
    let memory = MemoryStore::new(std::sync::Arc::new(jiff::Timestamp::now)).with_notifications();
    let stores: [&dyn Store; 2] = [&sql, &memory];
    for store in stores {
        store.migrate().await.unwrap();
        let root = store.create_stack(NewStack { tags: vec!["t".to_owned()], ..stack("web") }).await.unwrap();
        let lease = claim(store, engine(), root.id).await;
        let failed = kiln_store::Event {
            resource_name: "web".to_owned(),
            resource_type: "OS::Heat::Stack".to_owned(),
            physical_id: Some(root.id.to_string()),
            status: Status::Failed,
            reason: "broken".to_owned(),
            ..event(&root, "web", 3)
        };
        let mut details = Map::new();
        details.insert("groupname".to_owned(), "g".into());
        let announcement = Announcement {
            id: Uuid::new_v4(),
            event_type: "autoscaling.start".to_owned(),
            error: false,
            time: at(2),
            details,
        };
        let events = vec![event(&root, "a", 1), failed];
        let batch = Batch { events, announcements: vec![announcement], ..Batch::default() };
        store.commit(lease, batch).await.unwrap();
        let lane = lanes(store).await.remove(0);
        let (_, delivery) = take(store, &lane, TTL).await.unwrap();
        assert_eq!(delivery.destination, Destination::Notifications);
        let notice = |entry: &kiln_store::OutboxEntry| {
            serde_json::from_str::<Notice>(&serde_json::to_string(&entry.body).unwrap()).unwrap()
        };
        let notices: Vec<Notice> = delivery.entries.iter().map(notice).collect();
        let types: Vec<(&str, bool)> = notices.iter().map(|one| (one.event_type.as_str(), one.error)).collect();
        assert_eq!(types, [("stack.create.start", false), ("stack.create.error", true), ("autoscaling.start", false)]);
        let payload = Value::Map(notices[1].payload.clone());
        let id = root.id.to_string();
        let expected = value!({
            "tenant_id": (root.project.clone()), "user_id": "demo", "user_identity": "u1", "username": "demo",
            "stack_identity": id, "stack_name": "web", "state": "CREATE_FAILED", "state_reason": "broken",
            "create_at": "2027-01-15T08:00:00Z", "tags": ["t"], "updated_at": null,
        });
        assert_eq!(payload, expected);
        assert_eq!(notices[2].payload.get("groupname"), Some(&"g".into()));
    }
}
