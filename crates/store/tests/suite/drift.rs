//! Watched drift: who is compared and when, and who is told what was found.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::{Action, Status};
use kiln_store::drift::{DriftCheck, WatchedQuery};
use kiln_store::webhook::{EventPattern, Receiver, WebhookKey};
use kiln_store::{
    DriftRepair, DriftReport, DriftSchedule, DriftStatus, DriftStore, DriftedResource, Lease, MemoryStore, Options,
    Retention, SqlStore, Stack, StackId, StackRequest, Store, WatchedStack, Webhook, WebhookId, WebhookStore,
    WebhookTerms,
};
use kiln_value::{Secret, text};
use uuid::Uuid;

use crate::bed::{Bed, beds, options};
use crate::guards::author;
use crate::make::{PROJECT, TTL, at, child, claimed, deleting, resource, settle, settling, stack};

/// All that is needed of a store.
trait Stores: Store + DriftStore + WebhookStore {}
impl<S: Store + DriftStore + WebhookStore> Stores for S {}

/// The store of a bed, opened by a service with webhooks and a message bus.
async fn stores(bed: &Bed) -> Arc<dyn Stores> {
    if !bed.is_sql() {
        return Arc::new(MemoryStore::new(Arc::new(Timestamp::now)).with_notifications());
    }
    let options = Options { webhooks: true, notifications: true, ..options(bed.url()) };
    let store = SqlStore::open(options).await.unwrap();
    store.migrate().await.unwrap();
    Arc::new(store)
}

fn schedule(stack: Option<StackId>, every: Option<Duration>) -> DriftSchedule {
    DriftSchedule { project: PROJECT.to_owned(), stack, every, repair: false, author: author(), created: at(1) }
}

async fn decide(store: &dyn Stores, usual: Option<Duration>) {
    while store.plan_drift_checks(usual).await.unwrap() {}
}

async fn claim(store: &dyn Stores, usual: Option<Duration>) -> Option<DriftCheck> {
    store.claim_drift_check(Uuid::new_v4(), TTL, usual).await.unwrap()
}

async fn watched(store: &dyn Stores) -> Vec<WatchedStack> {
    store.watched_stacks(&WatchedQuery { limit: 100, ..WatchedQuery::default() }).await.unwrap()
}

fn report(status: DriftStatus, paths: &[&str]) -> DriftReport {
    let resource = |path: &&str| DriftedResource { path: (*path).to_owned(), properties: vec!["größe".to_owned()] };
    let resources: Vec<DriftedResource> = paths.iter().map(resource).collect();
    let reason = (status == DriftStatus::NotChecked).then(|| "no answer: größe".to_owned());
    DriftReport { status, drifted: resources.len() as u64, resources, reason, repairs: Vec::new(), stopped: Vec::new() }
}

/// A stack that is settled, made at a time.
async fn settled(store: &dyn Stores, name: &str) -> (Stack, Lease) {
    let (made, lease) = claimed(store, name).await;
    store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
    (store.stack(made.id).await.unwrap().unwrap(), lease)
}

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_schedule_of_a_stack_comes_before_that_of_its_project_and_of_the_service() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*stores(&bed).await;
        let ((web, _), (db, _)) = (settled(store, "web").await, settled(store, "db").await);
        let row = resource(web.id, "nested");
        let nested = child(&web, &row);
        store.create_stack(nested).await.unwrap();
        decide(store, None).await;
        assert_eq!(watched(store).await, [], "nobody wants it");

        store.schedule_drift(&schedule(Some(web.id), Some(HOUR))).await.unwrap();
        decide(store, None).await;
        let found = watched(store).await;
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.stack, one.name.as_str(), one.project.as_str()), (web.id, "web", PROJECT));
        assert!(one.report.is_none() && one.checked.is_none() && one.due.is_some());
        let check = claim(store, None).await.unwrap();
        assert_eq!((check.stack, check.every), (web.id, HOUR));
        assert_eq!(claim(store, None).await, None, "it is claimed");

        // For the whole service, except this stack, which has a schedule of its own.
        decide(store, Some(HOUR * 24)).await;
        assert_eq!(watched(store).await.len(), 2);
        store.schedule_drift(&schedule(None, None)).await.unwrap();
        decide(store, Some(HOUR * 24)).await;
        let left: Vec<StackId> = watched(store).await.into_iter().map(|one| one.stack).collect();
        assert_eq!(left, [web.id], "its project wants no comparisons");
        let began = at(10);
        assert!(
            !store.end_drift_check(&check, &web, &report(DriftStatus::InSync, &[]), began).await.unwrap(),
            "the schedule has changed since: it is compared again"
        );

        let schedules = store.drift_schedules(PROJECT).await.unwrap();
        assert_eq!(schedules, [schedule(None, None), schedule(Some(web.id), Some(HOUR))]);
        assert_eq!(store.drift_schedules("other").await.unwrap(), []);
        store.schedule_drift(&schedule(Some(web.id), None)).await.unwrap();
        assert_eq!(store.drift_schedules(PROJECT).await.unwrap().len(), 2, "one for each stack");
        decide(store, None).await;
        assert_eq!(watched(store).await, []);
        assert!(!store.unschedule_drift("other", Some(web.id)).await.unwrap());
        assert!(store.unschedule_drift(PROJECT, Some(web.id)).await.unwrap());
        assert!(!store.unschedule_drift(PROJECT, Some(web.id)).await.unwrap());
        assert!(store.unschedule_drift(PROJECT, None).await.unwrap());
        decide(store, Some(Duration::from_micros(1))).await;
        let mut found: Vec<StackId> = watched(store).await.into_iter().map(|one| one.stack).collect();
        let mut both = [web.id, db.id];
        found.sort();
        both.sort();
        assert_eq!(found, both);
        bed.end().await;
    }
}

#[tokio::test]
async fn who_compares_has_a_claim_that_ends_by_itself() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*stores(&bed).await;
        let (web, lease) = settled(store, "web").await;
        store.schedule_drift(&schedule(Some(web.id), Some(HOUR))).await.unwrap();
        decide(store, None).await;
        let short = Duration::from_micros(1);
        let late = store.claim_drift_check(Uuid::new_v4(), short, None).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        let check = claim(store, None).await.expect("the first one has died");
        let found = report(DriftStatus::Drifted, &["server"]);
        assert!(!store.end_drift_check(&late, &web, &found, at(1)).await.unwrap());
        store.postpone_drift_check(&late, Duration::ZERO).await.unwrap();
        assert_eq!((watched(store).await[0].report.clone(), claim(store, None).await), (None, None));
        store.postpone_drift_check(&check, Duration::ZERO).await.unwrap();
        let check = claim(store, None).await.expect("it is due again");
        assert!(store.end_drift_check(&check, &web, &found, at(2)).await.unwrap());
        assert!(!store.end_drift_check(&check, &web, &found, at(2)).await.unwrap(), "once");
        assert_eq!(store.census().await.unwrap().drifted, 1);
        let one = &watched(store).await[0];
        assert_eq!((one.report.as_ref(), one.checked, one.since), (Some(&found), Some(at(2)), Some(at(2))));
        assert!(one.due.unwrap() > Timestamp::now() + HOUR / 2);
        assert_eq!(claim(store, None).await, None);

        // An update may have repaired it.
        store.request(web.id, StackRequest::new(Action::Update, at(9))).await.unwrap();
        decide(store, None).await;
        assert_eq!(claim(store, None).await, None, "it is not done");
        store.commit(lease, settling(settle(2, Action::Update, Status::Complete))).await.unwrap();
        decide(store, None).await;
        let check = claim(store, None).await.expect("it is compared at once");
        store.end_drift_check(&check, &web, &report(DriftStatus::InSync, &[]), at(10)).await.unwrap();
        decide(store, None).await;
        assert_eq!((claim(store, None).await, store.census().await.unwrap().drifted), (None, 0));
        bed.end().await;
    }
}

#[tokio::test]
async fn deleted_stacks_are_no_longer_watched() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*stores(&bed).await;
        let (web, lease) = claimed(store, "web").await;
        store.schedule_drift(&schedule(Some(web.id), Some(HOUR))).await.unwrap();
        decide(store, None).await;
        store.request(web.id, StackRequest::delete(&web, at(2))).await.unwrap();
        store.commit(lease, deleting(2)).await.unwrap();
        assert_eq!(watched(store).await, []);
        assert_eq!(claim(store, None).await, None);
        assert_eq!(store.drift_schedules(PROJECT).await.unwrap().len(), 1);
        // What its events wait for is not sent here.
        while let Some(lane) = store.next_lane("").await.unwrap() {
            let mark = Uuid::new_v4();
            let delivery = store.claim_lane(&lane.name, mark, TTL, 100).await.unwrap().unwrap();
            let numbers: Vec<i64> = delivery.entries.iter().map(|entry| entry.number).collect();
            store.remove_entries(mark, &numbers).await.unwrap();
        }
        let all = Retention { deleted_before: at(1_000_000_000), operations: 0 };
        while store.forget(&all).await.unwrap() > 0 {}
        assert_eq!(store.drift_schedules(PROJECT).await.unwrap(), []);
        bed.end().await;
    }
}

#[tokio::test]
async fn webhooks_and_the_message_bus_are_told_what_has_changed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*stores(&bed).await;
        let hook = webhook();
        store.add_webhook(&hook).await.unwrap();
        let (web, _) = settled(store, "web").await;
        store.schedule_drift(&schedule(Some(web.id), Some(Duration::from_micros(1)))).await.unwrap();
        for (second, status, paths) in [
            (1, DriftStatus::InSync, &[][..]),
            (2, DriftStatus::Drifted, &["server"]),
            (3, DriftStatus::Drifted, &["server"]),
            (4, DriftStatus::NotChecked, &[]),
            (5, DriftStatus::Drifted, &["server", "group/0/port"]),
            (6, DriftStatus::Drifted, &["server"]),
            (7, DriftStatus::NotChecked, &[]),
            (8, DriftStatus::NotChecked, &[]),
            (9, DriftStatus::InSync, &[]),
        ] {
            decide(store, None).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            let check = claim(store, None).await.unwrap();
            assert!(store.end_drift_check(&check, &web, &report(status, paths), at(second)).await.unwrap());
        }
        let since: Vec<_> = watched(store).await.into_iter().map(|one| (one.since, one.checked)).collect();
        assert_eq!(since, [(Some(at(9)), Some(at(9)))]);
        let told = ["drift.found", "drift.changed", "drift.changed", "drift.resolved"];
        let lane = store.claim_lane(&format!("webhook {}", hook.id), Uuid::new_v4(), TTL, 50).await.unwrap().unwrap();
        let types: Vec<&str> = lane.entries.iter().filter_map(|entry| entry.body.str_at("type")).collect();
        assert_eq!(types, told.map(|word| format!("orchestration.{word}")));
        let data = lane.entries[1].body.get("data").map(text::json).unwrap();
        assert!(
            data.contains("group/0/port") && data.contains("gr\\u00f6\\u00dfe") && data.contains("DRIFTED"),
            "{data}"
        );

        let mut announced = Vec::new();
        let mut after = String::new();
        while let Some(lane) = store.next_lane(&after).await.unwrap() {
            after.clone_from(&lane.name);
            let Some(delivery) = store.claim_lane(&lane.name, Uuid::new_v4(), TTL, 50).await.unwrap() else { continue };
            let types = delivery.entries.iter().filter_map(|entry| entry.body.str_at("event_type").map(str::to_owned));
            announced.extend(types.filter(|word| word.starts_with("drift.")));
        }
        assert_eq!(announced, told);
        bed.end().await;
    }
}

fn webhook() -> Webhook {
    Webhook {
        id: WebhookId(Uuid::new_v4()),
        project: PROJECT.to_owned(),
        terms: WebhookTerms {
            url: Secret::new("https://example.com".to_owned()),
            keys: vec![WebhookKey { secret: Secret::new("whsec_bmV3".to_owned()), until: None }],
            events: vec![EventPattern::new("drift.*").unwrap()],
            stack: None,
            description: String::new(),
            handshake: false,
            disabled: None,
        },
        receiver: Receiver::default(),
        author: author(),
        created: at(1),
        version: 1,
    }
}

#[tokio::test]
async fn a_repair_is_wished_by_the_schedule_in_force_and_kept_with_the_report() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*stores(&bed).await;
        let (web, _) = settled(store, "web").await;
        let every = Some(Duration::from_micros(1));
        let repairs = vec![DriftRepair { path: "größe".to_owned(), property: "name".to_owned(), time: at(5) }];
        let mut kept = Vec::new();
        for (of_project, own, wished) in [
            (None, None, false),
            (Some(true), None, true),
            (Some(true), Some(false), false),
            (Some(false), Some(true), true),
        ] {
            for (stack, repair) in [(None, of_project), (Some(web.id), own)] {
                store.unschedule_drift(PROJECT, stack).await.unwrap();
                if let Some(repair) = repair {
                    store.schedule_drift(&DriftSchedule { repair, ..schedule(stack, every) }).await.unwrap();
                }
            }
            decide(store, every).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            let check = claim(store, every).await.unwrap();
            assert_eq!((check.repair, &check.repairs), (wished, &kept), "{of_project:?} {own:?}");
            kept.clone_from(&repairs);
            // Also if the stack could not be compared meanwhile.
            let unknown = report(DriftStatus::NotChecked, &[]);
            let stopped = report(DriftStatus::Drifted, &["größe"]).resources;
            let report = DriftReport { repairs: repairs.clone(), stopped, ..unknown };
            assert!(store.end_drift_check(&check, &web, &report, at(6)).await.unwrap());
            assert_eq!(watched(store).await[0].report.as_ref(), Some(&report));
        }
        let listed: Vec<bool> = store.drift_schedules(PROJECT).await.unwrap().iter().map(|one| one.repair).collect();
        assert_eq!(listed, [false, true]);
        bed.end().await;
    }
}

#[tokio::test]
async fn lists_have_pages_and_filters() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*stores(&bed).await;
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(store.create_stack(stack(name)).await.unwrap().id);
        }
        ids.sort();
        decide(store, Some(Duration::from_micros(1))).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        for _ in 0..3 {
            let check = claim(store, Some(HOUR)).await.unwrap();
            let of_it = store.stack(check.stack).await.unwrap().unwrap();
            let status = if check.stack == ids[1] { DriftStatus::NotChecked } else { DriftStatus::InSync };
            store.end_drift_check(&check, &of_it, &report(status, &[]), at(1)).await.unwrap();
        }
        let list = async |query: WatchedQuery| {
            let found = store.watched_stacks(&query).await.unwrap();
            found.into_iter().map(|one| one.stack).collect::<Vec<_>>()
        };
        let query = || WatchedQuery { project: Some(PROJECT.to_owned()), limit: 2, ..WatchedQuery::default() };
        assert_eq!(list(query()).await, ids[..2]);
        assert_eq!(list(WatchedQuery { marker: Some(ids[1]), ..query() }).await, ids[2..]);
        let status = Some(DriftStatus::NotChecked);
        assert_eq!(list(WatchedQuery { status, ..query() }).await, ids[1..2]);
        assert_eq!(list(WatchedQuery { project: Some("other".to_owned()), ..query() }).await, []);
        bed.end().await;
    }
}
