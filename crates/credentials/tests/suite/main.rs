//! Trusts from the plan to the sweep, on the simulated cloud: after any interruption, only the trusts of live stacks
//! remain.

mod cut;
mod deployments;
mod keystone_calls;
mod load_balancer;
mod many;
mod owners;
mod passwords;
mod shared_trusts;
mod transports;
mod users;
mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use jiff::Timestamp;
use kiln_cloud::{Connector, Credentials, RetryPolicy, Scope, SharedClient, TlsOptions};
use kiln_engine::housekeeping::CredentialsSweep;
use kiln_identity::{Caller, Deferred, Identity, Keystone, KeystoneOptions, Policy};
use kiln_plan::ResourceTypes;
use kiln_resource::{Action, CloudRequest, EngineId, Method, Registry, State, Status};
use kiln_service::{
    CreateStack, Limits, Service, Settings, SharedCredentials, StackContent, TemplateText, UpdateStack,
};
use kiln_stack::UNUSED_AFTER;
use kiln_stack::{Backends, Chance, Clock};
use kiln_store::{Batch, MemoryStore, Settle, Stack, StackQuery, StackRequest, Store};
use kiln_testcloud::{Account, Testcloud};
use kiln_value::{Secret, Value};

use self::cut::{Cut, CutStore, CutTransport, Steps};
use kiln_credentials::StoredClouds;

/// The time of everything except the simulated cloud; it is advanced manually.
struct Time(AtomicI64);

impl Time {
    fn advance(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_nanos()).expect("a short time"), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for Time {
    fn now(&self) -> Timestamp {
        began() + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed).unsigned_abs())
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

/// Before the tokens of the simulated cloud expire.
fn began() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

/// A service with its store and its cloud.
struct World {
    cloud: Testcloud,
    connector: Connector,
    identity: Arc<dyn Identity>,
    steps: Arc<Steps>,
    time: Arc<Time>,
    memory: MemoryStore,
    service: Service,
}

impl World {
    async fn new() -> Self {
        Self::with(Deferred::Trusts).await
    }

    async fn with(deferred: Deferred) -> Self {
        let cloud = Testcloud::builder().start().await.expect("a cloud");
        let (steps, time) = (Arc::<Steps>::default(), Arc::new(Time(AtomicI64::new(0))));
        let client = Arc::new(SharedClient::new(&TlsOptions::default()).expect("a client"));
        let mut options = kiln_cloud::Options::new(cloud.auth_url().parse().expect("a URL"));
        options.retry = RetryPolicy { retries: 0, ..options.retry };
        let connector = Connector::new(Arc::new(CutTransport(client, Arc::clone(&steps))), options);
        let heat = cloud.users().heat;
        let credentials = Credentials::password(heat.user, heat.password, heat.project, "Default");
        let identity: Arc<dyn Identity> = Arc::new(Keystone::new(
            connector.clone(),
            credentials.clone(),
            credentials,
            Arc::new(Policy::default()),
            KeystoneOptions { deferred, ..KeystoneOptions::new(cloud.auth_url(), began) },
        ));
        let clock = Arc::clone(&time);
        let memory = MemoryStore::new(Arc::new(move || clock.now()));
        let store: Arc<dyn Store> = Arc::new(CutStore(memory.clone(), Arc::clone(&steps)));
        let clouds = StoredClouds::new(Arc::clone(&store), connector.clone(), Arc::clone(&identity));
        let backends = Backends {
            store,
            resource_types: Arc::new(ResourceTypes::new(Registry::build([], |_| None))),
            clouds: Arc::new(clouds),
            clock: Arc::clone(&time) as Arc<dyn Clock>,
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        };
        let (identity_too, policy) = (Arc::clone(&identity), Arc::new(Policy::default()));
        let options = kiln_service::Options::default();
        let service = Service {
            options,
            backends,
            recent: Arc::default(),
            identity: identity_too,
            policy,
            templates: None,
            shared: SharedCredentials::default(),
            heat_projects: std::sync::Arc::default(),
        };
        Self { cloud, connector, identity, steps, time, memory, service }
    }

    /// An authenticated user in a project.
    async fn caller(&self, account: Account, project: &str) -> Arc<Caller> {
        self.caller_of(Credentials::password(account.user, account.password, project, "Default")).await
    }

    async fn caller_of(&self, credentials: Credentials) -> Arc<Caller> {
        let token = self.connector.session(credentials).token().await.expect("a token");
        let mut headers = HeaderMap::new();
        headers.insert("x-auth-token", token.secret.expose().parse().expect("a header"));
        self.identity.authenticate(&headers).await.expect("a caller")
    }

    /// Two users of one project.
    async fn alice_and_bob(&self) -> (Arc<Caller>, Arc<Caller>) {
        let users = self.cloud.users();
        (self.caller(users.demo, "demo").await, self.caller(users.admin, "demo").await)
    }

    async fn create(&self, caller: &Caller, name: &str) -> Result<Stack, kiln_service::Error> {
        self.create_of(caller, name, template()).await
    }

    async fn create_of(
        &self,
        caller: &Caller,
        name: &str,
        template: TemplateText,
    ) -> Result<Stack, kiln_service::Error> {
        let (content, settings) = (StackContent::default(), Settings::default());
        self.service
            .create_stack(caller, CreateStack { name: name.to_owned(), template, content, settings, adopt: None })
            .await
    }

    async fn update(&self, caller: &Caller, stack: &Stack) -> Result<Stack, kiln_service::Error> {
        let stack = self.memory.stack(stack.id).await.expect("the store").expect("a stack");
        let update = UpdateStack { template: Some(template()), ..UpdateStack::default() };
        self.service.update_stack(caller, &stack, update).await
    }

    /// Deletes all stacks.
    async fn delete_all(&self) {
        for stack in self.live().await {
            self.commit_delete(&stack).await;
        }
    }

    /// Deletes a stack, with the commit of an engine.
    async fn commit_delete(&self, stack: &Stack) {
        let now = self.time.now();
        let stack = self.memory.request(stack.id, StackRequest::new(Action::Delete, now)).await.expect("live");
        let engine = EngineId(self.service.backends.chance.uuid());
        let leases = self.memory.claim(engine, Duration::from_mins(1), &[stack.id], 1).await.expect("the store");
        let settle = Settle {
            generation: stack.generation,
            state: State::new(Action::Delete, Status::Complete),
            reason: String::new(),
            deleted: true,
            reached: false,
            now,
        };
        let batch = Batch { settle: Some(settle), ..Batch::default() };
        self.memory.commit(leases[0], batch).await.expect("the store");
    }

    async fn live(&self) -> Vec<Stack> {
        self.memory.stacks(&StackQuery::default()).await.expect("the store")
    }

    fn sweep(&self) -> CredentialsSweep {
        CredentialsSweep::new(self.service.backends.clone())
    }

    /// Runs the sweep an hour later, until nothing is left to do.
    async fn sweep_all(&self) {
        self.time.advance(UNUSED_AFTER + Duration::from_secs(1));
        self.sweep().round().await;
        let left = self.memory.unused_credentials(Duration::ZERO, 100).await.expect("the store");
        assert!(left.is_empty(), "{left:?}");
    }

    /// The IDs of all trusts in the cloud.
    fn trusts(&self) -> BTreeSet<String> {
        let snapshot = self.cloud.snapshot();
        let trusts = snapshot.objects.get("trusts").map(Vec::as_slice).unwrap_or_default();
        trusts.iter().map(|trust| trust["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// The IDs of the trusts of live stacks.
    async fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for stack in self.live().await {
            let id = stack.credentials.expect("every root stack has credentials");
            used.extend(trust_of(&self.memory.credentials(id).await.expect("they are known")));
        }
        used
    }
}

fn template() -> TemplateText {
    TemplateText::parse("heat_template_version: 2018-08-31", &Limits::default()).expect("a template")
}

fn trust_of(credentials: &Secret<String>) -> Option<String> {
    let exposed: Value = serde_json::from_str(credentials.expose()).expect("JSON");
    match Credentials::from_exposed(&exposed) {
        Some(Credentials::Password { scope: Scope::Trust(trust), .. }) => Some(trust),
        _ => None,
    }
}

/// Both kinds of interruptions, one or two steps long.
const CUTS: [(Cut, usize); 4] = [(Cut::Kill, 1), (Cut::Fail, 1), (Cut::Fail, 2), (Cut::Fail, 3)];

#[tokio::test]
async fn a_create_that_breaks_off_anywhere_leaves_no_trust() {
    let world = World::new().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let (mut made, mut not_made) = (0, 0);
    for (how, length) in CUTS {
        for at in 0.. {
            world.steps.arm(at..at + length, how);
            let created = world.steps.run(world.create(&alice, "s")).await;
            let steps = world.steps.disarm();
            match created {
                Some(Ok(_)) => made += 1,
                _ => not_made += 1,
            }
            world.sweep_all().await;
            assert_eq!(world.trusts(), world.used().await, "{how:?} of {length} at {at}");
            world.delete_all().await;
            world.sweep_all().await;
            assert!(world.trusts().is_empty(), "{how:?} of {length} at {at}");
            if steps <= at {
                break;
            }
        }
    }
    assert!(made > 4 && not_made > 35, "{made} made, {not_made} not: the steps are not cut any more");
}

#[tokio::test]
async fn an_update_by_another_user_that_breaks_off_anywhere_leaves_one_trust() {
    let world = World::new().await;
    let (alice, bob) = world.alice_and_bob().await;
    let mut replaced = 0;
    for (how, length) in CUTS {
        for at in 0.. {
            let stack = world.create(&alice, "s").await.unwrap();
            let before = world.used().await;
            world.steps.arm(at..at + length, how);
            world.steps.run(world.update(&bob, &stack)).await;
            let steps = world.steps.disarm();
            world.sweep_all().await;
            let used = world.used().await;
            assert_eq!((world.trusts(), used.len()), (used.clone(), 1), "{how:?} of {length} at {at}");
            replaced += usize::from(used != before);
            world.delete_all().await;
            world.sweep_all().await;
            assert!(world.trusts().is_empty(), "{how:?} of {length} at {at}");
            if steps <= at {
                break;
            }
        }
    }
    assert!(replaced >= CUTS.len(), "{replaced} replaced");
}

#[tokio::test]
async fn a_sweep_that_breaks_off_anywhere_is_done_by_the_next() {
    let world = World::new().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    for (how, length) in CUTS {
        for at in 0.. {
            for name in ["a", "b"] {
                // With a token of its own, and so a trust.
                let alice = world.caller(world.cloud.users().demo, "demo").await;
                world.create(&alice, name).await.unwrap();
            }
            // Only the plan of this one is known.
            let plan = world.identity.plan(&alice, 7_000 + at as u64).unwrap();
            world.memory.plan_credentials(&plan.to_stored()).await.unwrap();
            world.identity.delegate(&alice, &plan).await.unwrap();
            assert_eq!(world.trusts().len(), 3);
            world.delete_all().await;
            world.time.advance(UNUSED_AFTER);
            world.steps.arm(at..at + length, how);
            world.steps.run(world.sweep().round()).await;
            let steps = world.steps.disarm();
            world.sweep_all().await;
            assert!(world.trusts().is_empty(), "{how:?} of {length} at {at}");
            if steps <= at {
                break;
            }
        }
    }
}

#[tokio::test]
async fn what_keystone_does_not_take_back_is_tried_again_later() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        world.create(&alice, name).await.unwrap();
    }
    world.delete_all().await;
    let mut sweep = world.sweep();
    let mut waits = Vec::new();
    for _ in 0..12 {
        // The store responds, Keystone does not.
        world.steps.arm(6..usize::MAX, Cut::Fail);
        let wait = sweep.round().await;
        let steps = world.steps.disarm();
        assert!((4..=10).contains(&steps), "one is tried in a round, not all: {steps} steps");
        world.time.advance(wait);
        waits.push(wait);
    }
    assert_eq!(world.trusts().len(), 3);
    assert!(waits[0] >= Duration::from_secs(5) && waits[0] <= Duration::from_secs(10), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= Duration::from_mins(10)), "{waits:?}");
    // The breaker of the identity service closes again.
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(1)).await;
    tokio::time::resume();
    for _ in 0..3 {
        let wait = sweep.round().await;
        world.time.advance(wait);
    }
    assert!(world.trusts().is_empty());
    assert!(world.memory.unused_credentials(Duration::ZERO, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_damaged_hides_nothing() {
    let world = World::new().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let damaged = world.memory.plan_credentials(&Secret::new("[]".to_owned())).await.unwrap();
    world.create(&alice, "s").await.unwrap();
    world.delete_all().await;
    world.time.advance(UNUSED_AFTER * 2);
    let mut sweep = world.sweep();
    let wait = sweep.round().await;
    assert!(world.trusts().is_empty());
    let left = world.memory.unused_credentials(Duration::ZERO, 9).await.unwrap();
    assert_eq!(left.iter().map(|one| one.id).collect::<Vec<_>>(), [damaged], "it is not forgotten");
    assert!(wait >= Duration::from_secs(5), "{wait:?}");
}

#[tokio::test]
async fn users_update_in_turn() {
    let world = World::new().await;
    let (alice, bob) = world.alice_and_bob().await;
    let stack = world.create(&alice, "s").await.unwrap();
    let first = world.used().await;
    let clouds = Arc::clone(&world.service.backends.clouds);
    let before = clouds.cloud(&stack).await.unwrap();
    world.update(&alice, &stack).await.unwrap();
    assert_eq!(world.used().await, first, "who made it goes on by the same trust");
    world.update(&bob, &stack).await.unwrap();
    let second = world.used().await;
    assert!(second.is_disjoint(&first));
    let row = world.memory.stack(stack.id).await.unwrap().unwrap();
    let credentials = world.memory.credentials(row.credentials.unwrap()).await.unwrap();
    assert_eq!(world.identity.acts_for(&bob, &credentials), Some(true));
    assert_eq!(world.identity.acts_for(&alice, &credentials), Some(false));
    world.sweep().round().await;
    assert_eq!(world.trusts().len(), 2, "an engine may be at work with the first");
    world.sweep_all().await;
    assert_eq!(world.trusts(), second);
    // Stacks that still use the first credentials continue with the second ones.
    let late = clouds.cloud(&stack).await.unwrap();
    for cloud in [before, late] {
        let networks = CloudRequest::new("network", Method::Get, "/v2.0/networks");
        assert_eq!(cloud.call(networks).await.unwrap().status, 200);
    }
    world.update(&bob, &stack).await.unwrap();
    assert_eq!(world.used().await, second);
    world.update(&alice, &stack).await.unwrap();
    world.sweep_all().await;
    assert_eq!((world.trusts(), world.trusts().len()), (world.used().await, 1));
    // Updates by an administrator of another project do not change the credentials.
    let stranger = world.caller(world.cloud.users().admin, "admin").await;
    let third = world.used().await;
    world.update(&stranger, &stack).await.unwrap();
    assert_eq!(world.used().await, third);
}

#[tokio::test]
async fn of_two_stacks_of_a_name_one_has_a_trust() {
    let world = World::new().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let (one, other) = tokio::join!(world.create(&alice, "s"), world.create(&alice, "s"));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!(world.trusts().len(), 2, "both came as far as that");
    world.sweep_all().await;
    assert_eq!((world.trusts(), world.trusts().len()), (world.used().await, 1));
}
