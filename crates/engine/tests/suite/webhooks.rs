//! Receivers of webhooks: each event at least once and in order for its stack, whatever engine fails; a receiver that hangs or
//! refuses delays nobody; what cannot be delivered is given up in time. With paused time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Engine, ReceiverAnswer, SignedEvent, WebhookSender, Webhooks};
use kiln_resource::{Action, StackId, Status};
use kiln_store::webhook::{DeliveryQuery, EventPattern, Receiver, WebhookKey};
use kiln_store::{
    Author, OutboxStore as _, Outcome, StackRequest, Store as _, Webhook, WebhookDelivery, WebhookId, WebhookMessage,
    WebhookStore as _, WebhookTerms,
};
use kiln_value::{Secret, Value, value};
use tokio::time::Instant;

use crate::couriers::Fixture;

/// What a receiver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Hangs,
    /// There is no connection.
    Away,
    /// This status.
    Says(u16),
    /// This time later.
    Busy(u64),
    /// Refuses what has this subject.
    Refuses(&'static str),
}

/// A request that a receiver has got.
#[derive(Clone, Debug)]
struct Got {
    at: Instant,
    id: String,
    event: Value,
    keys: usize,
}

/// All receivers by their URL.
#[derive(Default)]
struct Receivers {
    moods: Mutex<BTreeMap<String, Mood>>,
    got: Mutex<Vec<(String, Got)>>,
    asked: Mutex<Vec<Instant>>,
    /// The answer to the handshake.
    allowed: Mutex<Option<Result<Option<u32>, String>>>,
}

impl Receivers {
    fn mood(&self, url: &str, mood: Option<Mood>) {
        let mut moods = self.moods.lock().expect("whole");
        match mood {
            Some(mood) => drop(moods.insert(url.to_owned(), mood)),
            None => drop(moods.remove(url)),
        }
    }

    fn got(&self, url: &str) -> Vec<Got> {
        self.got.lock().expect("whole").iter().filter(|(to, _)| to == url).map(|(_, got)| got.clone()).collect()
    }

    /// Types and subjects of what a receiver has got, each where it came first.
    fn told(&self, url: &str) -> Vec<String> {
        let mut seen = Vec::new();
        for got in self.got(url) {
            let one =
                [got.id.as_str(), got.event.str_at("type").expect("a type"), got.event.str_at("subject").expect("one")]
                    .join(" ");
            if !seen.contains(&one) {
                seen.push(one);
            }
        }
        seen.iter().map(|one| one.split_once("orchestration.").expect("a prefix").1.to_owned()).collect()
    }
}

struct TheSender(Arc<Receivers>);

#[async_trait]
impl WebhookSender for TheSender {
    async fn ask(&self, _: &Secret<String>) -> Result<Option<u32>, String> {
        self.0.asked.lock().expect("whole").push(Instant::now());
        tokio::time::sleep(Duration::from_millis(3)).await;
        self.0.allowed.lock().expect("whole").clone().unwrap_or(Ok(None))
    }

    async fn send(&self, event: SignedEvent<'_>) -> Result<ReceiverAnswer, String> {
        // Time passes before and after the effect, so that a kill can come between.
        tokio::time::sleep(Duration::from_millis(3)).await;
        let url = event.url.expose().clone();
        let body: Value = serde_json::from_str(event.body).expect("JSON");
        let mood = self.0.moods.lock().expect("whole").get(&url).copied();
        let status = match mood {
            Some(Mood::Hangs) => std::future::pending().await,
            Some(Mood::Away) => return Err("connection refused".to_owned()),
            Some(Mood::Busy(_)) => 429,
            Some(Mood::Says(status)) => status,
            Some(Mood::Refuses(subject)) if body.str_at("subject") == Some(subject) => 422,
            _ => 204,
        };
        let got = Got { at: Instant::now(), id: event.id.to_string(), event: body, keys: event.keys.len() };
        self.0.got.lock().expect("whole").push((url, got));
        tokio::time::sleep(Duration::from_millis(3)).await;
        let retry_after = match mood {
            Some(Mood::Busy(seconds)) => Some(Duration::from_secs(seconds)),
            _ => None,
        };
        Ok(ReceiverAnswer { status, retry_after })
    }
}

struct World {
    fixture: Fixture,
    receivers: Arc<Receivers>,
}

impl World {
    fn new() -> Self {
        Self { fixture: Fixture::new(), receivers: Arc::default() }
    }

    fn engine(&self) -> Engine {
        let sender = Arc::new(TheSender(Arc::clone(&self.receivers)));
        self.fixture.engine().with_webhooks(Webhooks { store: Arc::new(self.fixture.store.clone()), sender })
    }

    async fn webhook(&self, url: &str) -> Webhook {
        let webhook = Webhook {
            id: WebhookId(self.fixture.backends.chance.uuid()),
            project: "demo".to_owned(),
            terms: WebhookTerms {
                url: Secret::new(url.to_owned()),
                keys: vec![WebhookKey { secret: Secret::new("whsec_bmV3".to_owned()), until: None }],
                events: vec![EventPattern::new("*").expect("a pattern")],
                stack: None,
                description: String::new(),
                handshake: false,
                disabled: None,
            },
            receiver: Receiver::default(),
            author: Author { user_id: "demo".to_owned(), username: "demo".to_owned() },
            created: self.fixture.backends.clock.now(),
            version: 1,
        };
        self.fixture.store.add_webhook(&webhook).await.expect("added");
        webhook
    }

    async fn create(&self, name: &str) -> StackId {
        let template = value!({
            "heat_template_version": "2018-08-31",
            "resources": {
                "a": {"type": "OS::Heat::TestResource", "properties": {"value": "x"}},
                "b": {"type": "OS::Heat::TestResource", "depends_on": "a"},
            },
        });
        self.fixture.create_with(name, &template, &value!({"parameters": {}}), &value!({})).await
    }

    async fn check(&self, id: StackId) {
        let request = StackRequest::new(Action::Check, self.fixture.backends.clock.now());
        self.fixture.store.request(id, request).await.expect("asked");
        self.fixture.settled(id).await;
    }

    /// Waits until the outbox is empty.
    async fn sent(&self) {
        let begun = Instant::now();
        while self.fixture.store.next_lane("").await.expect("read").is_some() {
            assert!(begun.elapsed() < Duration::from_hours(10), "entries stay in the outbox");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn deliveries(&self, webhook: &Webhook) -> Vec<WebhookDelivery> {
        let mut all = self.fixture.store.deliveries(webhook.id, &DeliveryQuery::default()).await.expect("read");
        all.reverse();
        all
    }

    async fn shown(&self, webhook: &Webhook) -> Webhook {
        self.fixture.store.webhook(webhook.id).await.expect("read").expect("there")
    }
}

const CREATED: [&str; 6] = [
    "stack.create.start s",
    "resource.create.start a",
    "resource.create.end a",
    "resource.create.start b",
    "resource.create.end b",
    "stack.create.end s",
];

#[tokio::test(start_paused = true)]
async fn each_event_arrives_once_and_in_order_as_a_cloud_event() {
    let world = World::new();
    let _engines = [Fixture::run(world.engine()), Fixture::run(world.engine())];
    let webhook = world.webhook("one").await;
    let id = world.create("s").await;
    world.fixture.settled(id).await;
    world.sent().await;
    assert_eq!(world.receivers.told("one"), CREATED);
    let got = world.receivers.got("one");
    assert_eq!(got.len(), 6);
    for (place, one) in (1..).zip(&got) {
        let attribute = |key: &str| one.event.str_at(key).expect("a word").to_owned();
        assert_eq!((attribute("specversion"), attribute("id")), ("1.0".to_owned(), one.id.clone()));
        assert_eq!(
            (attribute("source"), attribute("sequence")),
            (format!("/v1/demo/stacks/s/{id}"), format!("{place:019}"))
        );
    }
    let data = got[5].event.get("data").expect("data");
    let about = |key: &str| data.str_at(key).expect("a word");
    assert_eq!((about("stack_name"), about("action"), about("status")), ("s", "CREATE", "COMPLETE"));
    assert!(data.get("resource_name").is_none());
    let known = world.deliveries(&webhook).await;
    assert!(known.iter().all(|one| one.outcome == Outcome::Delivered && one.attempts == 1), "{known:?}");
}

#[tokio::test(start_paused = true)]
async fn killed_engines_lose_no_event() {
    for delay in [3, 5, 8, 13, 21] {
        let world = World::new();
        world.webhook("one").await;
        let ids = [world.create("s").await, world.create("t").await];
        for _ in 0..12 {
            let engine = Fixture::run(world.engine());
            tokio::time::sleep(Duration::from_millis(delay)).await;
            engine.abort();
        }
        let _last = Fixture::run(world.engine());
        for id in ids {
            world.fixture.settled(id).await;
        }
        world.sent().await;
        let of = |name: &str| -> Vec<Got> {
            let source = format!("/stacks/{name}/");
            let is_its = |one: &Got| one.event.str_at("source").expect("one").contains(&source);
            world.receivers.got("one").into_iter().filter(is_its).collect()
        };
        for (name, id) in ["s", "t"].into_iter().zip(ids) {
            let got = of(name);
            let mut first = Vec::new();
            for one in &got {
                let told = (one.id.clone(), one.event.str_at("sequence").expect("one").to_owned());
                if !first.contains(&told) {
                    first.push(told);
                }
            }
            assert_eq!(first.len(), 6, "killed every {delay} ms: {id}");
            assert!(first.is_sorted_by_key(|(_, sequence)| sequence.clone()), "{first:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn receivers_that_hang_delay_nobody() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    for number in 0..40 {
        world.webhook(&format!("stuck-{number}")).await;
        world.receivers.mood(&format!("stuck-{number}"), Some(Mood::Hangs));
    }
    world.webhook("one").await;
    let before = Instant::now();
    for number in 0..20 {
        let id = world.create(&format!("s{number}")).await;
        assert_eq!(world.fixture.settled(id).await.state.status, Status::Complete);
    }
    while world.receivers.told("one").len() < 120 {
        assert!(before.elapsed() < Duration::from_secs(20), "delayed by other receivers");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_given_up_and_opens_the_way() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let webhook = world.webhook("one").await;
    world.receivers.mood("one", Some(Mood::Refuses("a")));
    let id = world.create("s").await;
    world.fixture.settled(id).await;
    world.sent().await;
    let known = world.deliveries(&webhook).await;
    let brief: Vec<_> =
        known.iter().map(|one| (one.sequence, one.outcome.as_str(), one.attempts, one.status)).collect();
    assert_eq!(
        brief,
        [
            (1, "delivered", 1, Some(204)),
            (2, "failed", 6, Some(422)),
            (3, "failed", 6, Some(422)),
            (4, "delivered", 1, Some(204)),
            (5, "delivered", 1, Some(204)),
            (6, "delivered", 1, Some(204)),
        ]
    );
    // Twice 5 s, 30 s, 2, 5 and 10 min.
    let elapsed = world.fixture.start.elapsed();
    assert!(elapsed > Duration::from_mins(20) && elapsed < Duration::from_hours(1), "{elapsed:?}");
    assert!(world.shown(&webhook).await.receiver.failing_since.is_none());
    // It is sent again on request, with its ID and its place.
    world.receivers.mood("one", None);
    assert!(world.fixture.store.redeliver(webhook.id, known[1].id).await.expect("stored"));
    world.sent().await;
    let last = world.receivers.got("one").pop().expect("one");
    assert_eq!(last.id, known[1].id.to_string());
    assert_eq!(last.event.str_at("sequence"), Some("0000000000000000002"));
    assert_eq!(world.deliveries(&webhook).await[1].outcome, Outcome::Delivered);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_away_gets_everything_when_it_is_back() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let webhook = world.webhook("one").await;
    for (mood, hours) in [(Mood::Away, 30), (Mood::Says(503), 5), (Mood::Busy(600), 2)] {
        let before = world.receivers.got("one").len();
        world.receivers.mood("one", Some(mood));
        let id = world.create("s").await;
        world.fixture.settled(id).await;
        tokio::time::sleep(Duration::from_hours(hours)).await;
        assert!(world.shown(&webhook).await.receiver.failing_since.is_some());
        let got = world.receivers.got("one");
        if let Mood::Busy(seconds) = mood {
            let times: Vec<Instant> = got[before..].iter().map(|one| one.at).collect();
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(seconds)), "{times:?}");
        }
        assert!(got.len() - before < 100, "{mood:?}: {}", got.len() - before);
        world.receivers.mood("one", None);
        world.sent().await;
        assert!(world.deliveries(&webhook).await.iter().all(|one| one.outcome == Outcome::Delivered), "{mood:?}");
        let request = StackRequest::new(Action::Delete, world.fixture.backends.clock.now());
        world.fixture.store.request(id, request).await.expect("asked");
        world.fixture.settled(id).await;
        world.sent().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_delivers_nothing_for_three_days_is_disabled() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let webhook = world.webhook("one").await;
    world.receivers.mood("one", Some(Mood::Away));
    let id = world.create("s").await;
    world.fixture.settled(id).await;
    tokio::time::sleep(Duration::from_hours(71)).await;
    assert_eq!(world.shown(&webhook).await.terms.disabled, None);
    tokio::time::sleep(Duration::from_hours(3)).await;
    world.sent().await;
    let disabled = world.shown(&webhook).await.terms.disabled;
    assert_eq!(disabled.as_deref(), Some("no event could be delivered for 3 days"));
    let known = world.deliveries(&webhook).await;
    assert!(known.iter().all(|one| one.outcome == Outcome::Failed), "{known:?}");
    // Later events are not kept.
    world.check(id).await;
    world.sent().await;
    assert_eq!(world.deliveries(&webhook).await.len(), known.len());
}

#[tokio::test(start_paused = true)]
async fn two_failures_with_days_in_between_disable_nothing() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let webhook = world.webhook("one").await;
    world.receivers.mood("one", Some(Mood::Refuses("s")));
    let id = world.create("s").await;
    world.fixture.settled(id).await;
    world.sent().await;
    tokio::time::sleep(Duration::from_hours(100)).await;
    world.receivers.mood("one", Some(Mood::Away));
    world.check(id).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    world.receivers.mood("one", None);
    world.sent().await;
    assert_eq!(world.shown(&webhook).await.terms.disabled, None);
    assert_eq!(world.deliveries(&webhook).await.last().map(|last| last.outcome), Some(Outcome::Delivered));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_gone_disables_its_webhook_at_once() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let webhook = world.webhook("one").await;
    world.receivers.mood("one", Some(Mood::Says(410)));
    let id = world.create("s").await;
    world.fixture.settled(id).await;
    world.sent().await;
    assert!(world.shown(&webhook).await.terms.disabled.expect("disabled").contains("410"));
    assert!(world.receivers.got("one").len() <= 6, "what was claimed already");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_is_asked_before_the_first_event_and_its_rate_is_kept() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let mut webhook = world.webhook("one").await;
    webhook.terms.handshake = true;
    assert!(world.fixture.store.change_webhook(&webhook).await.expect("changed"));
    *world.receivers.allowed.lock().expect("whole") = Some(Err("it must answer OPTIONS".to_owned()));
    let id = world.create("s").await;
    world.fixture.settled(id).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(world.receivers.got("one").len(), 0);
    let known = world.deliveries(&webhook).await;
    assert_eq!(known.len(), 6);
    assert_eq!((known[0].outcome, known[0].error.as_deref()), (Outcome::Pending, Some("it must answer OPTIONS")));
    // Now it takes 30 events in a minute.
    *world.receivers.allowed.lock().expect("whole") = Some(Ok(Some(30)));
    world.sent().await;
    assert_eq!(world.receivers.told("one"), CREATED);
    let times: Vec<Instant> = world.receivers.got("one").iter().map(|one| one.at).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(2)), "{times:?}");
    let asked = world.receivers.asked.lock().expect("whole").len();
    world.check(id).await;
    world.sent().await;
    assert_eq!(world.receivers.asked.lock().expect("whole").len(), asked, "once is enough");
}

#[tokio::test(start_paused = true)]
async fn old_keys_sign_until_their_end_and_what_waits_for_a_removed_webhook_is_dropped() {
    let world = World::new();
    let _engine = Fixture::run(world.engine());
    let mut webhook = world.webhook("one").await;
    let until = world.fixture.backends.clock.now() + Duration::from_hours(24);
    webhook.terms.keys.push(WebhookKey { secret: Secret::new("whsec_b2xk".to_owned()), until: Some(until) });
    assert!(world.fixture.store.change_webhook(&webhook).await.expect("changed"));
    let test = async || {
        let (id, now) = (world.fixture.backends.chance.uuid(), world.fixture.backends.clock.now());
        world.fixture.store.send_to_webhook(webhook.id, &WebhookMessage::test(&webhook, id, now)).await.expect("sent");
    };
    test().await;
    world.sent().await;
    tokio::time::sleep(Duration::from_hours(25)).await;
    test().await;
    world.sent().await;
    let keys: Vec<usize> = world.receivers.got("one").iter().map(|one| one.keys).collect();
    assert_eq!(keys, [2, 1]);
    world.receivers.mood("one", Some(Mood::Away));
    test().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(world.fixture.store.remove_webhook("demo", webhook.id).await.expect("removed"));
    world.sent().await;
}
