//! Events reach their sinks: in order, whatever engine fails, without delaying stacks or each other. With paused time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_engine::{Engine, Message, MessageBus, Options};
use kiln_plan::ResourceTypes;
use kiln_resource::{Action, Cloud, CloudRequest, CloudResponse, Failure, FailureKind, Registry, StackId, Status};
use kiln_stack::{Backends, Chance, Clock, Clouds};
use kiln_store::{
    DesiredText, EventQuery, MemoryStore, NewStack, OutboxStore, Stack, StackRequest, Store, UnusedCredentials,
};
use kiln_value::{Class, Secret, Value, text, value};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

/// Tokio's time, which is paused while there is work.
struct Paused(Instant);

#[async_trait]
impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// What a queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Hangs,
    Fails(FailureKind),
    /// Refuses calls with more than one message, and messages about this resource.
    Picky(&'static str),
}

/// Zaqar: the messages of each queue, with the time of each call.
#[derive(Default)]
struct Zaqar {
    moods: Mutex<BTreeMap<String, Mood>>,
    queues: Mutex<BTreeMap<String, Vec<Value>>>,
    calls: Mutex<Vec<String>>,
    /// When credentials were revoked.
    revoked: Mutex<Vec<Instant>>,
}

impl Zaqar {
    fn mood(&self, queue: &str, mood: Option<Mood>) {
        let mut moods = self.moods.lock().expect("whole");
        match mood {
            Some(mood) => drop(moods.insert(queue.to_owned(), mood)),
            None => drop(moods.remove(queue)),
        }
    }

    /// The events in a queue: stack, name, action and status. An event that came twice counts where it came first.
    fn told(&self, queue: &str) -> Vec<String> {
        let queues = self.queues.lock().expect("whole");
        let mut seen = BTreeSet::new();
        let mut told = Vec::new();
        for message in queues.get(queue).into_iter().flatten() {
            let body = message.get("body").expect("a body");
            if !seen.insert(body.str_at("id").expect("an ID").to_owned()) {
                continue;
            }
            let at = |key: &str| body.get("payload").and_then(|payload| payload.str_at(key)).unwrap_or_default();
            told.push([at("resource_name"), at("resource_action"), at("resource_status")].join(" "));
        }
        told
    }

    fn calls_of(&self, queue: &str) -> usize {
        self.calls.lock().expect("whole").iter().filter(|called| *called == queue).count()
    }
}

struct TheCloud(Arc<Zaqar>);

#[async_trait]
impl Clouds for TheCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(Self(Arc::clone(&self.0))))
    }

    async fn revoke(&self, _: &UnusedCredentials) -> Result<(), Failure> {
        self.0.revoked.lock().expect("whole").push(Instant::now());
        Ok(())
    }
}

#[async_trait]
impl Cloud for TheCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        // Time passes before and after the effect, so that a kill can come between.
        tokio::time::sleep(Duration::from_millis(3)).await;
        assert_eq!(request.service, "messaging");
        let queue = request.path.strip_prefix("/v2/queues/").and_then(|path| path.strip_suffix("/messages"));
        let queue = queue.expect("a queue").to_owned();
        self.0.calls.lock().expect("whole").push(queue.clone());
        let body = request.body.expect("a body");
        let messages = body.get("messages").and_then(Value::as_list).expect("messages").to_vec();
        let mood = self.0.moods.lock().expect("whole").get(&queue).copied();
        match mood {
            Some(Mood::Hangs) => std::future::pending::<()>().await,
            Some(Mood::Fails(kind)) => return Err(Failure::new(kind, Class::of("Unavailable"), "away")),
            Some(Mood::Picky(name)) => {
                let is_bad = |one: &Value| {
                    one.get("body").and_then(|body| body.get("payload")?.str_at("resource_name")) == Some(name)
                };
                if messages.len() > 1 || messages.iter().any(is_bad) {
                    return Err(Failure::new(FailureKind::Refused, Class::BadRequest, "no"));
                }
            }
            None => {}
        }
        self.0.queues.lock().expect("whole").entry(queue).or_default().extend(messages);
        tokio::time::sleep(Duration::from_millis(3)).await;
        Ok(CloudResponse { status: 201, ..CloudResponse::default() })
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Err(Failure::other(Class::NotSupported, "nothing to find"))
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("demo".to_owned())
    }
}

fn sinks(queue: &str) -> Value {
    value!([{"type": "zaqar-queue", "target": queue}])
}

pub(crate) struct Fixture {
    zaqar: Arc<Zaqar>,
    pub(crate) store: MemoryStore,
    pub(crate) backends: Backends,
    pub(crate) start: Instant,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let start = Instant::now();
        let clock = Paused(start);
        let store = MemoryStore::new(Arc::new(move || clock.now()));
        let zaqar = Arc::<Zaqar>::default();
        let types = kiln_resource::shipped::types().expect("sound definitions");
        let backends = Backends {
            store: Arc::new(store.clone()),
            resource_types: Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for))),
            clouds: Arc::new(TheCloud(Arc::clone(&zaqar))),
            clock: Arc::new(Paused(start)),
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        };
        Self { zaqar, store, backends, start }
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::new(Options { lease: Duration::from_secs(3), ..Options::default() }, self.backends.clone())
    }

    pub(crate) fn run(engine: Engine) -> JoinHandle<()> {
        tokio::spawn(async move {
            let (_keep, stop) = tokio::sync::watch::channel(false);
            engine.run(stop).await.expect("the engine runs");
        })
    }

    async fn create(&self, name: &str, queue: &str) -> StackId {
        let template = value!({
            "heat_template_version": "2018-08-31",
            "description": "A test.",
            "resources": {
                "a": {"type": "OS::Heat::TestResource", "properties": {"value": "x"}},
                "b": {"type": "OS::Heat::TestResource", "depends_on": "a"},
            },
        });
        self.create_with(name, &template, &value!({"parameters": {}, "event_sinks": (sinks(queue))}), &value!({})).await
    }

    pub(crate) async fn create_with(
        &self,
        name: &str,
        template: &Value,
        environment: &Value,
        files: &Value,
    ) -> StackId {
        let json = |value: &Value| serde_json::to_string(value).expect("JSON");
        let id = StackId(self.backends.chance.uuid());
        let credentials = self.store.save_credentials(&Secret::new("{}".to_owned())).await.expect("stored");
        let stack = NewStack {
            username: "demo".to_owned(),
            user_id: "demo".to_owned(),
            credentials: Some(credentials),
            ..NewStack::new(
                id,
                name.to_owned(),
                "demo".to_owned(),
                DesiredText { template: json(template), environment: json(environment), files: json(files) },
                self.backends.clock.now(),
            )
        };
        self.store.create_stack(stack).await.expect("stored");
        id
    }

    pub(crate) async fn settled(&self, id: StackId) -> Stack {
        loop {
            let stack = self.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                return stack;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the outbox is empty.
    async fn sent(&self) {
        while self.store.next_lane("").await.expect("read").is_some() {
            assert!(self.start.elapsed() < Duration::from_hours(10), "entries stay in the outbox");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The stored events as [`Zaqar::told`] shows them.
    async fn stored(&self, id: StackId) -> Vec<String> {
        let query = EventQuery { stacks: vec![id], ..EventQuery::default() };
        let mut events = self.store.events(&query).await.expect("read");
        events.sort_by_key(|event| event.time);
        events.iter().map(|event| format!("{} {} {}", event.resource_name, event.action, event.status)).collect()
    }
}

const WHOLE_LIFE: [&str; 12] = [
    "s CREATE IN_PROGRESS",
    "a CREATE IN_PROGRESS",
    "a CREATE COMPLETE",
    "b CREATE IN_PROGRESS",
    "b CREATE COMPLETE",
    "s CREATE COMPLETE",
    "s DELETE IN_PROGRESS",
    "b DELETE IN_PROGRESS",
    "b DELETE COMPLETE",
    "a DELETE IN_PROGRESS",
    "a DELETE COMPLETE",
    "s DELETE COMPLETE",
];

#[tokio::test(start_paused = true)]
async fn every_event_is_sent_from_the_first_to_the_last() {
    let fixture = Fixture::new();
    let _engine = Fixture::run(fixture.engine());
    let id = fixture.create("s", "q").await;
    fixture.settled(id).await;
    fixture.store.request(id, StackRequest::new(Action::Delete, fixture.backends.clock.now())).await.expect("asked");
    fixture.settled(id).await;
    fixture.sent().await;
    assert_eq!(fixture.zaqar.told("q"), WHOLE_LIFE);
    assert_eq!(fixture.zaqar.queues.lock().expect("whole")["q"].len(), WHOLE_LIFE.len(), "each once");
    let first = fixture.zaqar.queues.lock().expect("whole")["q"][0].clone();
    assert_eq!(first.get("ttl"), Some(&3600.into()));
}

/// The nested stack does not know that the value is hidden.
#[tokio::test(start_paused = true)]
async fn values_that_only_a_stack_above_hides_are_not_sent() {
    let fixture = Fixture::new();
    let _engine = Fixture::run(fixture.engine());
    let template = value!({
        "heat_template_version": "2018-08-31",
        "parameters": {"key": {"type": "string", "hidden": true}},
        "resources": {"part": {"type": "part.yaml", "properties": {"word": {"get_param": "key"}}}},
    });
    let part = value!({
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string"}},
        "resources": {
            "a": {"type": "OS::Heat::TestResource", "properties": {
                "value": {"list_join": ["", ["<", {"get_param": "word"}, ">"]]},
            }},
        },
    });
    let environment = value!({"parameters": {"key": "swordfish"}, "event_sinks": (sinks("q"))});
    let files = value!({"part.yaml": (text::json(&part))});
    let id = fixture.create_with("s", &template, &environment, &files).await;
    assert_eq!(fixture.settled(id).await.state.status, Status::Complete);
    fixture.sent().await;
    let sent = text::json(&Value::List(fixture.zaqar.queues.lock().expect("whole")["q"].clone()));
    assert!(sent.contains(r#""value": "******""#), "{sent}");
    assert!(!sent.contains("swordfish"), "{sent}");
}

/// Events are sent with the credentials of their stack. These are revoked soon after the last one was sent, also if the
/// queue did not answer for a while after the delete, or if the engine failed then.
#[tokio::test(start_paused = true)]
async fn credentials_are_revoked_soon_after_the_last_event() {
    for fails in [false, true] {
        let fixture = Fixture::new();
        let engine = Fixture::run(fixture.engine());
        let id = fixture.create("s", "q").await;
        fixture.settled(id).await;
        fixture.sent().await;
        fixture.zaqar.mood("q", Some(Mood::Fails(FailureKind::Unavailable)));
        let now = fixture.backends.clock.now();
        fixture.store.request(id, StackRequest::new(Action::Delete, now)).await.expect("asked");
        fixture.settled(id).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let _next = fails.then(|| {
            engine.abort();
            Fixture::run(fixture.engine())
        });
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(fixture.zaqar.revoked.lock().expect("whole").is_empty(), "they are needed for the events");
        fixture.zaqar.mood("q", None);
        fixture.sent().await;
        let sent = Instant::now();
        assert_eq!(fixture.zaqar.told("q"), WHOLE_LIFE);
        tokio::time::sleep(Duration::from_mins(1)).await;
        let revoked = fixture.zaqar.revoked.lock().expect("whole").clone();
        assert!(matches!(revoked[..], [at] if at >= sent), "failed engine: {fails}, {revoked:?}");
    }
}

/// The engine is killed again and again, after delays that fall into every step.
#[tokio::test(start_paused = true)]
async fn none_is_lost_although_engines_are_killed() {
    for delay in (1..60_u64).step_by(2) {
        let fixture = Fixture::new();
        let id = fixture.create("s", "q").await;
        let mut deleted = false;
        let kill = |after: u64| {
            let engine = Fixture::run(fixture.engine());
            async move {
                tokio::time::sleep(Duration::from_millis(after)).await;
                engine.abort();
                let _ = engine.await;
            }
        };
        for number in 0..6 {
            kill(delay + number).await;
            let stack = fixture.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() && !deleted {
                let request = StackRequest::new(Action::Delete, fixture.backends.clock.now());
                fixture.store.request(id, request).await.expect("asked");
                deleted = true;
            }
        }
        let last = Fixture::run(fixture.engine());
        fixture.settled(id).await;
        if !deleted {
            let request = StackRequest::new(Action::Delete, fixture.backends.clock.now());
            fixture.store.request(id, request).await.expect("asked");
            fixture.settled(id).await;
        }
        fixture.sent().await;
        assert_eq!(fixture.zaqar.told("q"), fixture.stored(id).await, "killed every {delay} ms");
        assert_eq!(fixture.zaqar.told("q").last().map(String::as_str), Some("s DELETE COMPLETE"));
        last.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_hangs_delays_nobody_and_gets_its_events_when_it_is_back() {
    let fixture = Fixture::new();
    let _engines = [Fixture::run(fixture.engine()), Fixture::run(fixture.engine())];
    fixture.zaqar.mood("stuck", Some(Mood::Hangs));
    let mut stuck = Vec::new();
    for number in 0..100 {
        stuck.push(fixture.create(&format!("stuck-{number}"), "stuck").await);
    }
    for id in &stuck {
        assert_eq!(fixture.settled(*id).await.state.status, Status::Complete);
    }
    assert!(fixture.start.elapsed() < Duration::from_secs(10), "{:?}", fixture.start.elapsed());
    // All of them have failed once: they cannot take all slots any more.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = fixture.start.elapsed();
    let id = fixture.create("s", "q").await;
    fixture.settled(id).await;
    while fixture.zaqar.told("q").len() < 6 {
        assert!(fixture.start.elapsed() < before + Duration::from_secs(6), "delayed by other sinks");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The pauses grow: a hundred stacks, 1 + 2 + 4 … seconds.
    assert!(fixture.zaqar.calls_of("stuck") < 1_000);
    fixture.zaqar.mood("stuck", None);
    fixture.sent().await;
    assert_eq!(fixture.zaqar.told("stuck").len(), 600);
    assert!(fixture.start.elapsed() < Duration::from_mins(15), "{:?}", fixture.start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn after_an_hour_events_are_given_up() {
    let fixture = Fixture::new();
    let _engine = Fixture::run(fixture.engine());
    fixture.zaqar.mood("q", Some(Mood::Fails(FailureKind::Unavailable)));
    let id = fixture.create("s", "q").await;
    fixture.settled(id).await;
    fixture.sent().await;
    let elapsed = fixture.start.elapsed();
    assert!(elapsed > Duration::from_mins(59) && elapsed < Duration::from_mins(63), "{elapsed:?}");
    assert!((20..80).contains(&fixture.zaqar.calls_of("q")), "{}", fixture.zaqar.calls_of("q"));
    // Later events are sent again.
    fixture.zaqar.mood("q", None);
    fixture.store.request(id, StackRequest::new(Action::Check, fixture.backends.clock.now())).await.expect("asked");
    fixture.settled(id).await;
    fixture.sent().await;
    assert_eq!(fixture.zaqar.told("q").first().map(String::as_str), Some("s CHECK IN_PROGRESS"));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_rejected_does_not_hold_back_the_others() {
    let fixture = Fixture::new();
    let _engine = Fixture::run(fixture.engine());
    fixture.zaqar.mood("q", Some(Mood::Picky("a")));
    let id = fixture.create("s", "q").await;
    fixture.settled(id).await;
    fixture.sent().await;
    let expected: Vec<&str> = WHOLE_LIFE[..6].iter().copied().filter(|event| !event.starts_with("a ")).collect();
    assert_eq!(fixture.zaqar.told("q"), expected);
    assert!(fixture.start.elapsed() < Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_sends_its_last_events() {
    let fixture = Fixture::new();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let engine = tokio::spawn(fixture.engine().run(stopped));
    let id = fixture.create("s", "q").await;
    fixture.settled(id).await;
    stop.send_replace(true);
    engine.await.expect("no panic").expect("stopped");
    assert_eq!(fixture.zaqar.told("q"), WHOLE_LIFE[..6]);
}

/// Records messages; away while told so.
#[derive(Default)]
struct Bus {
    away: Mutex<bool>,
    messages: Mutex<Vec<Message>>,
}

#[async_trait]
impl MessageBus for Bus {
    async fn send(&self, messages: &[Message]) -> Result<(), Failure> {
        if *self.away.lock().expect("whole") {
            return Err(Failure::new(FailureKind::Unavailable, Class::of("Unreachable"), "away"));
        }
        self.messages.lock().expect("whole").extend_from_slice(messages);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn stacks_are_announced_on_the_bus() {
    let fixture = Fixture::new();
    let store = fixture.store.clone().with_notifications();
    let bus = Arc::new(Bus::default());
    *bus.away.lock().expect("whole") = true;
    let _engine = Fixture::run(fixture.engine().with_bus(Arc::clone(&bus) as Arc<dyn MessageBus>));
    let id = fixture.create("s", "q").await;
    fixture.settled(id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    *bus.away.lock().expect("whole") = false;
    fixture.sent().await;
    let messages = bus.messages.lock().expect("whole");
    let types: Vec<&str> = messages.iter().map(|message| message.event_type.as_str()).collect();
    assert_eq!(types, ["orchestration.stack.create.start", "orchestration.stack.create.end"]);
    assert_eq!(messages[1].payload.get("description"), Some(&"A test.".into()));
    assert_eq!(messages[1].payload.get("state"), Some(&"CREATE_COMPLETE".into()));
    assert_eq!(messages[1].payload.get("stack_identity"), Some(&id.to_string().into()));
    assert_ne!(messages[0].id, Uuid::nil());
    drop(store);
}
