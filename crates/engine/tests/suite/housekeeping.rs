//! The sweep of unused credentials, with paused time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_engine::{Options, housekeeping};
use kiln_plan::ResourceTypes;
use kiln_resource::{Action, Cloud, CredentialsId, EngineId, Failure, FailureKind, Registry, StackId, State, Status};
use kiln_stack::UNUSED_AFTER;
use kiln_stack::{Backends, Chance, Clock, Clouds, NoCloud};
use kiln_store::{
    Batch, DesiredText, EngineInfo, MemoryStore, NewStack, Settle, Silent, Stack, StackRequest, Store,
    UnusedCredentials,
};
use kiln_value::{Class, Secret};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

/// The engine whose housekeeping runs.
const ENGINE: EngineId = EngineId(Uuid::from_u128(7));

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

/// Records revocations and their times; fails while it is configured to.
struct Keystone {
    clock: Paused,
    refusal: Mutex<Option<FailureKind>>,
    asked: Mutex<Vec<(CredentialsId, Duration)>>,
    /// Deleted projects.
    projects: Mutex<Vec<String>>,
    /// Deletes of projects that fail.
    stubborn: Mutex<u32>,
}

#[async_trait]
impl Clouds for Keystone {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(NoCloud))
    }

    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        self.asked.lock().expect("whole").push((unused.id, self.clock.monotonic()));
        match *self.refusal.lock().expect("whole") {
            Some(kind) => Err(Failure::new(kind, Class::AuthorizationFailure, "no")),
            None => Ok(()),
        }
    }

    async fn delete_user_project(&self, project: &str) -> Result<(), Failure> {
        let mut stubborn = self.stubborn.lock().expect("whole");
        if *stubborn > 0 {
            *stubborn -= 1;
            return Err(Failure::new(FailureKind::Refused, Class::Forbidden, "no"));
        }
        self.projects.lock().expect("whole").push(project.to_owned());
        Ok(())
    }
}

struct Fixture {
    store: MemoryStore,
    keystone: Arc<Keystone>,
    clock: Paused,
}

impl Fixture {
    /// Running housekeeping.
    fn new() -> Self {
        let start = Instant::now();
        let store = MemoryStore::new(Arc::new(move || Paused(start).now()));
        let keystone = Arc::new(Keystone {
            clock: Paused(start),
            refusal: Mutex::default(),
            asked: Mutex::default(),
            projects: Mutex::default(),
            stubborn: Mutex::default(),
        });
        let backends = Backends {
            store: Arc::new(store.clone()),
            resource_types: Arc::new(ResourceTypes::new(Registry::build([], |_| None))),
            clouds: Arc::clone(&keystone) as Arc<dyn Clouds>,
            clock: Arc::new(Paused(start)),
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        };
        tokio::spawn(housekeeping::run(backends, ENGINE, Arc::new(Options::default()), watch::channel(()).1));
        Self { store, keystone, clock: Paused(start) }
    }

    fn refuse(&self, kind: Option<FailureKind>) {
        *self.keystone.refusal.lock().expect("whole") = kind;
    }

    /// The times of revocation attempts for these credentials.
    fn asked(&self, id: CredentialsId) -> Vec<Duration> {
        let asked = self.keystone.asked.lock().expect("whole");
        asked.iter().filter(|(other, _)| *other == id).map(|(_, at)| *at).collect()
    }

    async fn credentials(&self) -> CredentialsId {
        self.store.save_credentials(&Secret::new("{}".to_owned())).await.expect("the store")
    }

    /// A stack with credentials of its own.
    async fn stack(&self, name: u128) -> (StackId, CredentialsId) {
        let credentials = self.credentials().await;
        (self.stack_with(name, credentials, None).await, credentials)
    }

    /// A stack with these credentials and the project of its users.
    async fn stack_with(&self, name: u128, credentials: CredentialsId, users: Option<&str>) -> StackId {
        let id = StackId(Uuid::from_u128(name));
        let text = || "{}".to_owned();
        let new = NewStack {
            username: "u".to_owned(),
            user_id: "u".to_owned(),
            credentials: Some(credentials),
            user_project: users.map(str::to_owned),
            ..NewStack::new(
                id,
                format!("s{name}"),
                "p".to_owned(),
                DesiredText { template: text(), environment: text(), files: text() },
                self.clock.now(),
            )
        };
        self.store.create_stack(new).await.expect("the store");
        id
    }

    async fn delete(&self, id: StackId) {
        let now = self.clock.now();
        let stack = self.store.request(id, StackRequest::new(Action::Delete, now)).await.expect("live");
        let engine = EngineId(Uuid::from_u128(1));
        let leases = self.store.claim(engine, Duration::from_mins(1), &[id], 1).await.expect("the store");
        let settle = Settle {
            generation: stack.generation,
            state: State::new(Action::Delete, Status::Complete),
            reason: String::new(),
            deleted: true,
            reached: false,
            now,
        };
        let batch = Batch { settle: Some(settle), ..Batch::default() };
        self.store.commit(leases[0], batch).await.expect("the store");
    }
}

#[tokio::test(start_paused = true)]
async fn one_engine_purges() {
    let fixture = Fixture::new();
    let report = async |id: EngineId, second: i64| {
        let started = Timestamp::from_second(second).expect("a time");
        let info = EngineInfo {
            id,
            hostname: "h".to_owned(),
            pid: 1,
            started,
            seen: started,
            interval: 60,
            schema: kiln_store::SCHEMA,
        };
        fixture.store.report(&info).await.expect("the store");
    };
    let older = EngineId(Uuid::from_u128(6));
    report(ENGINE, 2).await;
    report(older, 1).await;
    let (stack, _) = fixture.stack(1).await;
    fixture.delete(stack).await;
    tokio::time::sleep(Options::default().keep_deleted + Duration::from_hours(1)).await;
    assert!(fixture.store.stack(stack).await.expect("the store").is_some(), "the other engine purges");
    let engines = fixture.store.engines().await.expect("the store");
    let seen = engines.iter().find(|engine| engine.id == older).expect("the older engine").seen;
    fixture
        .store
        .forget_engine(&Silent { engine: older, seen, silence: Duration::ZERO, idle: Duration::ZERO })
        .await
        .expect("the store");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(fixture.store.stack(stack).await.expect("the store").is_none());
}

#[tokio::test(start_paused = true)]
async fn credentials_of_a_deleted_stack_go_soon() {
    let fixture = Fixture::new();
    let (kept, own) = fixture.stack(1).await;
    let (gone, unused) = fixture.stack(2).await;
    // Between two rounds that are not triggered by news.
    tokio::time::sleep(UNUSED_AFTER * 2 + Duration::from_mins(1)).await;
    let before = fixture.clock.monotonic();
    fixture.delete(gone).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let asked = fixture.asked(unused);
    let [at] = asked.as_slice() else { panic!("once: {asked:?}") };
    assert!(*at >= before + Duration::from_secs(5), "much is deleted together");
    assert!(matches!(fixture.store.credentials(unused).await, Err(kiln_store::Error::NotFound(_))));
    tokio::time::sleep(UNUSED_AFTER).await;
    assert_eq!((fixture.asked(own), fixture.asked(unused).len()), (Vec::new(), 1));
    fixture.delete(kept).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(fixture.asked(own).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_no_stack_came_to_use_go_after_an_hour() {
    let fixture = Fixture::new();
    let id = fixture.credentials().await;
    tokio::time::sleep(Duration::from_mins(59)).await;
    assert_eq!(fixture.asked(id), []);
    tokio::time::sleep(Duration::from_mins(11)).await;
    assert_eq!(fixture.asked(id).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_tried_again_with_pauses_that_double() {
    for kind in [FailureKind::Refused, FailureKind::Unavailable] {
        let fixture = Fixture::new();
        fixture.refuse(Some(kind));
        let (stack, id) = fixture.stack(1).await;
        fixture.delete(stack).await;
        tokio::time::sleep(Duration::from_hours(12)).await;
        let asked = fixture.asked(id);
        let pauses: Vec<f64> = asked.windows(2).map(|pair| pair[1].as_secs_f64() - pair[0].as_secs_f64()).collect();
        for (times, pause) in pauses.iter().enumerate() {
            let whole = (10.0 * f64::from(2_u32.pow(u32::try_from(times).unwrap().min(20)))).min(3_600.0);
            // A round may be slightly late.
            assert!(*pause >= whole / 2.0 && *pause <= whole + 600.0, "{kind:?}: pause {times} in {pauses:?}");
        }
        assert!(pauses.len() > 15, "{pauses:?}");
        fixture.refuse(None);
        tokio::time::sleep(Duration::from_hours(2)).await;
        assert!(fixture.store.unused_credentials(Duration::ZERO, 9).await.unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_do_not_hide_others() {
    let fixture = Fixture::new();
    fixture.refuse(Some(FailureKind::Refused));
    for name in 0..300 {
        let (stack, _) = fixture.stack(name).await;
        fixture.delete(stack).await;
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    let left = fixture.store.unused_credentials(Duration::ZERO, 1_000).await.unwrap();
    let never = left.iter().filter(|one| fixture.asked(one.id).is_empty()).count();
    assert_eq!((left.len(), never), (300, 0), "each is tried, none forgotten");
    fixture.refuse(None);
    let (stack, id) = fixture.stack(1_000).await;
    fixture.delete(stack).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(fixture.asked(id).len(), 1);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert!(fixture.store.unused_credentials(Duration::ZERO, 9).await.unwrap().is_empty());
}

/// The trust stays until the last of its stacks is deleted; the project of the users of each is deleted with it.
#[tokio::test(start_paused = true)]
async fn shared_credentials_go_with_the_last_stack() {
    let fixture = Fixture::new();
    let shared = fixture.credentials().await;
    let one = fixture.stack_with(1, shared, Some("users of one")).await;
    let two = fixture.stack_with(2, shared, Some("users of two")).await;
    let projects = || fixture.keystone.projects.lock().expect("whole").clone();
    *fixture.keystone.stubborn.lock().expect("whole") = 3;
    fixture.delete(one).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!((projects(), fixture.asked(shared)), (Vec::new(), Vec::new()), "the first deletes were refused");
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!((projects(), fixture.asked(shared)), (vec!["users of one".to_owned()], Vec::new()));
    fixture.delete(two).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!((projects().len(), fixture.asked(shared).len()), (2, 1));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((projects().len(), fixture.asked(shared).len()), (2, 1), "once");
}
