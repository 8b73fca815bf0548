//! A simulated or real cloud, and resources that are run as by the engine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kiln_cloud::{Connector, Credentials, Options, RetryPolicy, SharedClient, StackCloud, TlsOptions};
use kiln_resource::change::Comparison;
use kiln_resource::translation::{self, Answers};
use kiln_resource::{
    Cloud, Context, Driver, Facts, Failure, FailureKind, Found, NoSoftware, Operation, Progress, PropertyChange,
    ResourceType, Step, change, properties, shipped,
};
use kiln_testcloud::{Snapshot, Testcloud};
use kiln_value::{Map, Path, Value};

/// The environment of a scenario.
pub(crate) struct Ground {
    /// The cloud of an ordinary user.
    pub(crate) cloud: Arc<StackCloud>,
    /// The cloud of an administrator.
    pub(crate) admin: Arc<StackCloud>,
    /// The simulated cloud, if it is one.
    pub(crate) testcloud: Option<Testcloud>,
    before: Option<Snapshot>,
}

fn connector(auth_url: &str) -> Connector {
    let client = SharedClient::new(&TlsOptions::default()).unwrap();
    let mut options = Options::new(auth_url.parse().unwrap());
    options.retry = RetryPolicy { base: Duration::from_millis(5), ..RetryPolicy::default() };
    // The service to compare with, if the catalog contains another one.
    if let Ok(peer) = std::env::var("KILN_TEST_PEER") {
        options.endpoint_overrides.insert("orchestration".into(), peer.parse().unwrap());
    }
    Connector::new(Arc::new(client), options)
}

impl Ground {
    /// A new simulated cloud.
    pub(crate) async fn simulated() -> Self {
        let testcloud = Testcloud::builder().seed(7).start().await.unwrap();
        let connector = connector(&testcloud.auth_url());
        let users = testcloud.users();
        let credentials = |account: kiln_testcloud::Account| {
            Credentials::password(account.user, account.password, account.project, "Default")
        };
        let before = testcloud.snapshot();
        Self {
            cloud: connector.cloud(&credentials(users.demo)).await,
            admin: connector.cloud(&credentials(users.admin)).await,
            testcloud: Some(testcloud),
            before: Some(before),
        }
    }

    /// The real cloud of the `OS_*` variables; its administrator is `KILN_TEST_ADMIN` (user:password:project).
    pub(crate) async fn real() -> Self {
        let get = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let connector = connector(&get("OS_AUTH_URL"));
        let domain = get("OS_USER_DOMAIN_NAME");
        let own = Credentials::password(&get("OS_USERNAME"), &get("OS_PASSWORD"), &get("OS_PROJECT_NAME"), &domain);
        let admin = get("KILN_TEST_ADMIN");
        let mut parts = admin.split(':');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let admin = Credentials::password(&next(), &next(), &next(), &domain);
        Self { cloud: connector.cloud(&own).await, admin: connector.cloud(&admin).await, testcloud: None, before: None }
    }

    /// A resource that is not created yet.
    pub(crate) fn resource(&self, type_name: &str, name: &str) -> Resource {
        Resource::new(self.cloud.clone(), self.testcloud.is_some(), type_name, name)
    }

    /// The same, as an administrator.
    pub(crate) fn admin_resource(&self, type_name: &str, name: &str) -> Resource {
        Resource::new(self.admin.clone(), self.testcloud.is_some(), type_name, name)
    }

    /// A created resource.
    pub(crate) async fn made(&self, type_name: &str, name: &str, given: Value) -> Resource {
        let mut resource = self.resource(type_name, name);
        resource.create(given).await.unwrap_or_else(|failure| panic!("{type_name} {name}: {failure}"));
        resource
    }

    /// Fails if anything is left; only the simulated cloud can be checked.
    pub(crate) fn assert_clean(&self) {
        if let (Some(testcloud), Some(before)) = (&self.testcloud, &self.before) {
            assert_eq!(before.added_in(&testcloud.snapshot()), Vec::<String>::new());
        }
    }
}

/// The outcome of an update.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Unchanged,
    Updated,
    Replaced,
}

/// A resource with all data that the engine would store.
pub(crate) struct Resource {
    pub(crate) cloud: Arc<StackCloud>,
    is_simulated: bool,
    kind: ResourceType,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) facts: Facts,
    /// Number of steps of its operations that the engine would have stored.
    pub(crate) stored: usize,
}

fn types() -> &'static [ResourceType] {
    static TYPES: OnceLock<Vec<ResourceType>> = OnceLock::new();
    TYPES.get_or_init(|| shipped::types().unwrap())
}

/// A new UUID for each call.
fn token() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}

impl Resource {
    pub(crate) fn new(cloud: Arc<StackCloud>, is_simulated: bool, type_name: &str, name: &str) -> Self {
        let kind = types().iter().find(|t| t.name == type_name).unwrap().clone();
        let driver = kiln_drivers::driver_for(&kind).unwrap();
        let id = token();
        let facts = Facts {
            physical_name: format!("kilntest-{name}-{}", id.split('-').next().unwrap()),
            id,
            name: name.to_owned(),
            resource_type: type_name.to_owned(),
            token: token(),
            ..Facts::default()
        };
        Self { cloud, is_simulated, kind, driver, facts, stored: 0 }
    }

    pub(crate) fn id(&self) -> &str {
        self.facts.physical_id.as_deref().unwrap_or_default()
    }

    /// Sets the properties like the engine: resolves names to IDs, converts values, adds defaults.
    pub(crate) async fn give(&mut self, given: Value) -> Result<(), Failure> {
        let Value::Map(given) = given else { panic!("properties are a map") };
        let rules = &self.kind.translation;
        let mut answers = Answers::new();
        for lookup in translation::lookups(rules, &given).into_keys() {
            let id = self.cloud.find(&lookup.finder, &lookup.value).await?;
            answers.insert(lookup, id);
        }
        self.facts.given = given.keys().cloned().collect();
        let translated = translation::apply(rules, given, &answers, &Path::root()).unwrap();
        self.facts.properties = properties::resolve(&self.kind.properties, &translated).unwrap();
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<(), kiln_value::Diagnostic> {
        self.driver.validate(&self.facts)
    }

    fn keep(&mut self, step: &Step) {
        if let Some(id) = &step.physical_id {
            self.facts.physical_id = Some(id.clone()).filter(|id| !id.is_empty());
        }
        for (key, value) in &step.data {
            if value.is_null() {
                self.facts.data.shift_remove(key);
            } else {
                self.facts.data.insert(key.clone(), value.clone());
            }
        }
    }

    /// Continues until the operation ends; false if it requests a replacement.
    async fn finish(&mut self, operation: &Operation, mut step: Step) -> Result<bool, Failure> {
        let (mut known, mut polls, mut unanswered) = (None, 0, 0);
        loop {
            self.keep(&step);
            let is_new = step.physical_id.is_some() || !step.data.is_empty();
            let (state, after) = match step.progress {
                Progress::Done => return Ok(true),
                Progress::Replace => return Ok(false),
                Progress::Prepared => {
                    let cx = Context {
                        cloud: &*self.cloud,
                        software: &NoSoftware,
                        facts: &self.facts,
                        now: 0.0,
                        seed: [1; 32],
                        polls: 0,
                    };
                    step = self.driver.start(&cx, operation).await?;
                    continue;
                }
                Progress::Wait { state, after } => (state, after),
            };
            polls = if !is_new && known.as_ref() == Some(&state) { polls + 1 } else { 0 };
            self.stored += usize::from(polls == 0);
            known = Some(state.clone());
            let after = if self.is_simulated { after.min(Duration::from_millis(20)) } else { after };
            tokio::time::sleep(after).await;
            let cx = Context {
                cloud: &*self.cloud,
                software: &NoSoftware,
                facts: &self.facts,
                now: 0.0,
                seed: [1; 32],
                polls,
            };
            step = match self.driver.poll(&cx, operation, &state).await {
                // Like the engine: a poll without a response is repeated a few times.
                Err(failure) if failure.is_passing() && unanswered < 3 => {
                    unanswered += 1;
                    Step::wait(state, Duration::ZERO)
                }
                outcome => outcome?,
            };
        }
    }

    async fn run(&mut self, operation: Operation) -> Result<bool, Failure> {
        let cx = Context {
            cloud: &*self.cloud,
            software: &NoSoftware,
            facts: &self.facts,
            now: 0.0,
            seed: [1; 32],
            polls: 0,
        };
        let step = self.driver.start(&cx, &operation).await?;
        self.finish(&operation, step).await
    }

    /// Creates it. After a failure with an unknown outcome, looks for the object, as after a crash.
    pub(crate) async fn create(&mut self, given: Value) -> Result<(), Failure> {
        self.give(given).await?;
        self.create_given().await
    }

    pub(crate) async fn create_given(&mut self) -> Result<(), Failure> {
        match self.run(Operation::Create).await {
            Err(failure) if failure.kind == FailureKind::Unavailable && self.facts.physical_id.is_none() => {
                let cx = Context {
                    cloud: &*self.cloud,
                    software: &NoSoftware,
                    facts: &self.facts,
                    now: 0.0,
                    seed: [1; 32],
                    polls: 0,
                };
                let found = self.driver.find(&cx).await?;
                match found {
                    Found::Made(step) => self.finish(&Operation::Create, step).await.map(|_| ()),
                    Found::NotMade => self.run(Operation::Create).await.map(|_| ()),
                    Found::CannotTell(_) | Found::Alike(_) => Err(failure),
                }
            }
            outcome => outcome.map(|_| ()),
        }
    }

    /// Updates it, if that is possible in place.
    pub(crate) async fn update(&mut self, given: Value) -> Result<Outcome, Failure> {
        let before = self.facts.properties.clone();
        self.give(given).await?;
        let after = self.facts.properties.clone();
        let changed: Vec<String> =
            after.iter().filter(|(k, v)| before.get(*k) != Some(v)).map(|(k, _)| k.clone()).collect();
        let difference = PropertyChange { before: before.clone(), after: after.clone(), changed };
        let replaced = |resource: &mut Self| {
            resource.facts.properties.clone_from(&before);
            Ok(Outcome::Replaced)
        };
        if self.driver.needs_replace(&difference) {
            return replaced(self);
        }
        match change::compare_resolved(&self.kind, &self.facts.name, &before, &after) {
            Comparison::Unchanged => Ok(Outcome::Unchanged),
            Comparison::Replace { .. } => replaced(self),
            Comparison::Error(error) => panic!("{error}"),
            Comparison::Update { changed } => {
                let operation = Operation::Update { before: before.clone(), changed };
                if self.run(operation).await? { Ok(Outcome::Updated) } else { replaced(self) }
            }
        }
    }

    pub(crate) async fn attributes(&self, names: &[&str]) -> Map {
        let cx = Context {
            cloud: &*self.cloud,
            software: &NoSoftware,
            facts: &self.facts,
            now: 0.0,
            seed: [1; 32],
            polls: 0,
        };
        self.driver.attributes(&cx, names).await.unwrap_or_else(|failure| panic!("{}: {failure}", self.facts.name))
    }

    /// The properties of the object.
    pub(crate) async fn live(&self) -> Map {
        let cx = Context {
            cloud: &*self.cloud,
            software: &NoSoftware,
            facts: &self.facts,
            now: 0.0,
            seed: [1; 32],
            polls: 0,
        };
        self.driver.live(&cx).await.unwrap()
    }

    pub(crate) async fn attribute(&self, name: &str) -> Value {
        self.attributes(&[name]).await.get(name).cloned().unwrap_or_default()
    }

    pub(crate) async fn check(&mut self) -> Result<(), Failure> {
        self.run(Operation::Check).await.map(|_| ())
    }

    pub(crate) async fn act(&mut self, operation: Operation) -> Result<(), Failure> {
        self.run(operation).await.map(|_| ())
    }

    pub(crate) async fn needs_replace_failed(&self) -> bool {
        let cx = Context {
            cloud: &*self.cloud,
            software: &NoSoftware,
            facts: &self.facts,
            now: 0.0,
            seed: [1; 32],
            polls: 0,
        };
        self.driver.needs_replace_failed(&cx).await.unwrap()
    }

    /// Deletes the snapshot with the data of the resource.
    pub(crate) async fn delete_snapshot(&self) {
        for _ in 0..200 {
            let cx = Context {
                cloud: &*self.cloud,
                software: &NoSoftware,
                facts: &self.facts,
                now: 0.0,
                seed: [1; 32],
                polls: 0,
            };
            let Some(after) = self.driver.delete_snapshot(&cx).await.unwrap() else { return };
            let after = if self.is_simulated { after.min(Duration::from_millis(20)) } else { after };
            tokio::time::sleep(after).await;
        }
        panic!("the snapshot of {} cannot be deleted", self.facts.name);
    }

    /// Deletes it, with the engine's retries after conflicts.
    pub(crate) async fn delete(&mut self) {
        for _ in 0..20 {
            match self.run(Operation::Delete).await {
                Ok(_) => return,
                Err(failure) if failure.kind == FailureKind::Conflict => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                Err(failure) => panic!("{}: {failure}", self.facts.name),
            }
        }
        panic!("{} cannot be deleted", self.facts.name);
    }
}
