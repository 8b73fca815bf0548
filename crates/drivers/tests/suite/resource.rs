//! Runs a resource by the rules of the engine: an intent is stored before a create is called, each step before the next
//! one, and the engine looks for the object of a lost call before it repeats the call.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kiln_resource::change::Comparison;
use kiln_resource::object_drift::Shown;
use kiln_resource::translation::{self, Answers};
use kiln_resource::{
    Cloud, CloudRequest, Context, Driver, Facts, Failure, FailureKind, Found, Method, NoSoftware, Operation, Progress,
    PropertyChange, ResourceType, Step, change, properties, shipped,
};
use kiln_value::{Class, Diagnostic, Map, Path, Value};
use tokio::sync::Notify;

/// The polls of a resource that waits for nothing that comes.
const MOST_CALLS: usize = 300;
/// Failures without a response that an operation survives.
const UNANSWERED: usize = 8;
/// Conflicts that a delete survives.
const CONFLICTS: usize = 20;
const A_WHILE: Duration = Duration::from_secs(1);

/// A resource with all data that the engine would store.
#[derive(Clone)]
pub(crate) struct Resource {
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) kind: ResourceType,
    pub(crate) facts: Facts,
    /// The clock of the engine in Unix seconds. It advances while the resource waits.
    pub(crate) now: f64,
    /// What random numbers are made from.
    pub(crate) seed: [u8; 32],
    /// The steps that were stored by the last operation.
    pub(crate) stored: Vec<Step>,
    /// The number of steps of the last operation that were to be stored.
    pub(crate) steps: usize,
    pub(crate) engine: Engine,
    attempt: u32,
}

/// What an engine does with a resource, and what happens to it.
#[derive(Clone)]
pub(crate) struct Engine {
    /// Creates objects without a mark where that is possible.
    pub(crate) is_unmarked: bool,
    /// How often a create that ends with an object in error, or with a conflict, is undone and repeated.
    pub(crate) further_attempts: u32,
    /// The longest pause: shorter than a driver asks for, with a cloud that is simulated in real time.
    pub(crate) longest_pause: Duration,
    /// Discards the step with this number (from 1) before it is stored, like a crash in between.
    pub(crate) discards: Option<usize>,
    /// Stops before the step after this number of stored ones.
    pub(crate) stops_after: Option<usize>,
    /// Notifies that the engine fails. Another one continues, or nobody.
    pub(crate) death: Arc<Notify>,
    pub(crate) is_replaced: bool,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            is_unmarked: false,
            further_attempts: 0,
            longest_pause: Duration::MAX,
            discards: None,
            stops_after: None,
            death: Arc::default(),
            is_replaced: true,
        }
    }
}

/// The outcome of an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    Done,
    Replace,
    Stopped,
}

/// The outcome of an update.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Unchanged,
    Updated,
    Replaced,
}

enum Phase {
    Intent,
    Wait(Value),
}

/// The outcome of one call of the driver.
enum Called {
    Step(Result<Step, Failure>),
    Unknown(String),
    Died,
}

pub(crate) fn types() -> &'static [ResourceType] {
    static TYPES: OnceLock<Vec<ResourceType>> = OnceLock::new();
    TYPES.get_or_init(|| shipped::types().unwrap())
}

pub(crate) fn type_of(name: &str) -> &'static ResourceType {
    types().iter().find(|one| one.name == name).unwrap()
}

/// A UUID made from a name.
pub(crate) fn uuid(name: &str) -> String {
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}

/// The IDs that names in properties mean.
pub(crate) async fn answers(cloud: &dyn Cloud, kind: &ResourceType, given: &Map) -> Result<Answers, Failure> {
    let mut answers = Answers::new();
    for lookup in translation::lookups(&kind.translation, given).into_keys() {
        let id = cloud.find(&lookup.finder, &lookup.value).await?;
        answers.insert(lookup, id);
    }
    Ok(answers)
}

impl Resource {
    /// A resource that is not created yet. Its own IDs are made from `run` and its name.
    pub(crate) fn new(cloud: Arc<dyn Cloud>, run: &str, type_name: &str, name: &str) -> Self {
        let id = uuid(&format!("{run} {name}"));
        let facts = Facts {
            physical_name: format!("kilntest-{name}-{}", &id[..8]),
            id,
            name: name.to_owned(),
            resource_type: type_name.to_owned(),
            attempt: kiln_resource::Attempt { token: uuid(&format!("{run} {name} 0")), unmarked_since: None },
            ..Facts::default()
        };
        Self {
            cloud,
            kind: type_of(type_name).clone(),
            facts,
            now: 0.0,
            seed: [1; 32],
            stored: Vec::new(),
            steps: 0,
            engine: Engine::default(),
            attempt: 0,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.facts.physical_id.as_deref().unwrap_or_default()
    }

    /// A new driver for every call: each call may be made by another engine.
    pub(crate) fn driver(&self) -> Arc<dyn Driver> {
        kiln_drivers::driver_for(&self.kind).unwrap()
    }

    pub(crate) fn context(&self) -> Context<'_> {
        self.context_of(&self.facts, 0)
    }

    fn context_of<'c>(&'c self, facts: &'c Facts, polls: u32) -> Context<'c> {
        Context { cloud: &*self.cloud, software: &NoSoftware, facts, now: self.now, seed: self.seed, polls }
    }

    /// Sets the properties like the engine: resolves names to IDs, converts values, adds defaults.
    pub(crate) async fn give(&mut self, given: Value) -> Result<(), Failure> {
        let Value::Map(given) = given else { panic!("properties are a map") };
        let answers = answers(&*self.cloud, &self.kind, &given).await?;
        self.assume(given, &answers).unwrap();
        Ok(())
    }

    /// Sets the properties; names without an answer are IDs.
    pub(crate) fn assume(&mut self, given: Map, answers: &Answers) -> Result<(), Diagnostic> {
        self.facts.given = given.keys().cloned().collect();
        let translated = translation::apply(&self.kind.translation, given, answers, &Path::root())?;
        self.facts.properties = properties::resolve(&self.kind.properties, &translated)?;
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<(), Diagnostic> {
        self.driver().validate(&self.facts)
    }

    /// Creates it with properties.
    pub(crate) async fn create(&mut self, given: Value) -> Result<(), Failure> {
        self.give(given).await?;
        self.act(Operation::Create).await
    }

    /// Runs an operation that must end.
    pub(crate) async fn act(&mut self, operation: Operation) -> Result<(), Failure> {
        let ending = self.carry(&operation).await?;
        assert_eq!(ending, Ending::Done, "{} {operation:?}", self.facts.name);
        Ok(())
    }

    pub(crate) async fn check(&mut self) -> Result<(), Failure> {
        self.act(Operation::Check).await
    }

    pub(crate) async fn delete(&mut self) {
        self.act(Operation::Delete).await.unwrap_or_else(|failure| panic!("{}: {failure}", self.facts.name));
        self.delete_user_project().await;
    }

    /// Updates it, if that is possible in place.
    pub(crate) async fn update(&mut self, given: Value) -> Result<Outcome, Failure> {
        let before = self.facts.properties.clone();
        self.give(given).await?;
        let after = self.facts.properties.clone();
        let ending = match self.difference(&before, &after) {
            Comparison::Unchanged => return Ok(Outcome::Unchanged),
            Comparison::Replace { .. } => Ending::Replace,
            Comparison::Error(error) => panic!("{error}"),
            Comparison::Update { changed } => {
                self.carry(&Operation::Update { before: before.clone(), changed }).await?
            }
        };
        match ending {
            Ending::Done => Ok(Outcome::Updated),
            Ending::Replace => {
                self.facts.properties = before;
                Ok(Outcome::Replaced)
            }
            Ending::Stopped => panic!("an update of {} does not end", self.facts.name),
        }
    }

    /// What an update from properties to others means.
    pub(crate) fn difference(&self, before: &Map, after: &Map) -> Comparison {
        let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
        let changed = changed.map(|(name, _)| name.clone()).collect();
        if self.driver().needs_replace(&PropertyChange { before: before.clone(), after: after.clone(), changed }) {
            return Comparison::Replace { reasons: Vec::new() };
        }
        change::compare_resolved(&self.kind, &self.facts.name, before, after)
    }

    fn keep(&mut self, step: Step) {
        if step.user_project.is_some() {
            self.facts.stack.user_project_id.clone_from(&step.user_project);
        }
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
        self.stored.push(step);
    }

    /// Runs an operation to its end.
    pub(crate) async fn carry(&mut self, operation: &Operation) -> Result<Ending, Failure> {
        (self.stored, self.steps) = (Vec::new(), 0);
        self.carry_on(operation).await
    }

    async fn carry_on(&mut self, operation: &Operation) -> Result<Ending, Failure> {
        let (mut phase, mut is_resumed, mut polls, mut unanswered, mut conflicts) = (Phase::Intent, false, 0, 0, 0);
        for _ in 0..MOST_CALLS {
            let step = match self.call(operation, &phase, is_resumed, polls).await {
                Called::Died if !self.engine.is_replaced => return Ok(Ending::Stopped),
                Called::Died => {
                    (is_resumed, polls) = (true, 0);
                    continue;
                }
                Called::Unknown(text) => return Err(Failure::other(Class::of("Unknown"), text)),
                Called::Step(Ok(step)) => step,
                Called::Step(Err(failure)) if failure.is_passing() && unanswered < UNANSWERED => {
                    let is_unmade = [FailureKind::NotSent, FailureKind::OverLimit, FailureKind::Busy];
                    unanswered += usize::from(failure.kind != FailureKind::Busy);
                    is_resumed |= !is_unmade.contains(&failure.kind);
                    self.pause(A_WHILE).await;
                    continue;
                }
                Called::Step(Err(failure)) if *operation == Operation::Delete => {
                    if failure.is_not_found() {
                        return Ok(Ending::Done);
                    }
                    conflicts += 1;
                    if failure.kind != FailureKind::Conflict || conflicts > CONFLICTS {
                        return Err(failure);
                    }
                    self.pause(A_WHILE).await;
                    phase = Phase::Intent;
                    continue;
                }
                Called::Step(Err(failure)) if *operation == Operation::Create && self.is_worth_undoing(&failure) => {
                    self.undo().await?;
                    (phase, is_resumed) = (Phase::Intent, false);
                    continue;
                }
                Called::Step(Err(failure)) => return Err(failure),
            };
            let is_same =
                matches!((&step.progress, &phase), (Progress::Wait { state, .. }, Phase::Wait(old)) if state == old);
            let is_new = !is_same || step.physical_id.is_some() || !step.data.is_empty() || step.user_project.is_some();
            let progress = step.progress.clone();
            if is_new {
                self.steps += 1;
                if self.engine.discards == Some(self.steps) {
                    (is_resumed, polls) = (true, 0);
                    continue;
                }
                self.keep(step);
            }
            match progress {
                Progress::Done => return Ok(Ending::Done),
                Progress::Replace => return Ok(Ending::Replace),
                Progress::Prepared => (phase, polls) = (Phase::Intent, 0),
                Progress::Wait { state, after } => {
                    polls = if is_new { 0 } else { polls + 1 };
                    phase = Phase::Wait(state);
                    if self.engine.stops_after == Some(self.stored.len()) {
                        return Ok(Ending::Stopped);
                    }
                    self.pause(after).await;
                }
            }
        }
        Ok(Ending::Stopped)
    }

    async fn pause(&mut self, pause: Duration) {
        self.now += pause.as_secs_f64();
        tokio::time::sleep(pause.min(self.engine.longest_pause)).await;
    }

    fn is_worth_undoing(&self, failure: &Failure) -> bool {
        matches!(failure.kind, FailureKind::Conflict | FailureKind::InError)
            && self.attempt < self.engine.further_attempts
    }

    /// Deletes the remains of a failed attempt, and starts another one.
    async fn undo(&mut self) -> Result<(), Failure> {
        if self.facts.physical_id.is_some() {
            Box::pin(self.carry_on(&Operation::Delete)).await?;
        }
        self.attempt += 1;
        self.facts.physical_id = None;
        self.facts.attempt.token = uuid(&format!("{} {}", self.facts.id, self.attempt));
        Ok(())
    }

    /// Calls the driver once, unless the engine fails.
    async fn call(&self, operation: &Operation, phase: &Phase, is_resumed: bool, polls: u32) -> Called {
        tokio::select! {
            biased;
            called = self.drive(operation, phase, is_resumed, polls) => called,
            () = self.engine.death.notified() => Called::Died,
        }
    }

    async fn drive(&self, operation: &Operation, phase: &Phase, is_resumed: bool, polls: u32) -> Called {
        let driver = self.driver();
        let facts = &self.as_created(operation);
        let cx = self.context_of(facts, polls);
        let is_listed = driver.unmarked(facts).is_some_and(|unmarked| unmarked.listed);
        match phase {
            Phase::Wait(told) => Called::Step(driver.poll(&cx, operation, told).await),
            Phase::Intent if *operation == Operation::Create && is_resumed && !driver.is_repeatable() => {
                match driver.find(&cx).await {
                    Ok(Found::Made(step)) => Called::Step(Ok(step)),
                    Ok(Found::NotMade) => Called::Step(driver.start(&cx, operation).await),
                    Ok(Found::CannotTell(text)) => Called::Unknown(text),
                    Ok(Found::Alike(mut alike)) => match alike.pop() {
                        None => Called::Step(driver.start(&cx, operation).await),
                        Some(one) if one.fits && alike.is_empty() && (one.created.is_some() || is_listed) => {
                            Called::Step(Ok(one.step))
                        }
                        other => panic!("{} is not found: {other:?}, {alike:?}", self.facts.name),
                    },
                    Err(failure) => Called::Step(Err(failure)),
                }
            }
            Phase::Intent => Called::Step(driver.start(&cx, operation).await),
        }
    }

    /// The facts for an operation: a create has no mark if it can do without.
    fn as_created(&self, operation: &Operation) -> Facts {
        let mut facts = self.facts.clone();
        let is_create = self.engine.is_unmarked && *operation == Operation::Create;
        let is_unmarked = is_create && self.driver().unmarked(&facts).is_some();
        facts.attempt.unmarked_since = is_unmarked.then_some(0);
        facts
    }

    /// Looks for the object of a create of this attempt, as if its ID had been lost.
    pub(crate) async fn found(&self) -> Result<Found, Failure> {
        let facts = Facts { physical_id: None, ..self.as_created(&Operation::Create) };
        self.driver().find(&self.context_of(&facts, 0)).await
    }

    /// Like an engine with an intent that is no longer wanted: looks for the created object, to delete it.
    pub(crate) async fn take_stock(&mut self) {
        if self.facts.physical_id.is_some() {
            return;
        }
        match self.found().await.unwrap() {
            Found::Made(step) => self.keep(step),
            Found::Alike(alike) => {
                if let Some(one) = alike.into_iter().next() {
                    self.keep(one.step);
                }
            }
            Found::NotMade | Found::CannotTell(_) => {}
        }
    }

    /// Deletes the project of the stack users, as with the stack.
    pub(crate) async fn delete_user_project(&mut self) {
        if let Some(project) = self.facts.stack.user_project_id.take() {
            let domain = self.cloud.user_domain().await.unwrap().unwrap();
            let path = format!("/v3/projects/{project}");
            domain.cloud.call(CloudRequest::new("identity", Method::Delete, path)).await.unwrap();
        }
    }

    pub(crate) async fn attributes(&self, names: &[&str]) -> Map {
        let found = self.driver().attributes(&self.context(), names).await;
        found.unwrap_or_else(|failure| panic!("{}: {failure}", self.facts.name))
    }

    pub(crate) async fn attribute(&self, name: &str) -> Value {
        self.attributes(&[name]).await.get(name).cloned().unwrap_or_default()
    }

    pub(crate) fn reference(&self) -> Value {
        self.driver().reference(&self.facts)
    }

    /// The properties of the object.
    pub(crate) async fn live(&self) -> Map {
        self.driver().live(&self.context()).await.unwrap()
    }

    /// What the object shows.
    pub(crate) async fn shown(&self) -> Result<Shown, Failure> {
        Shown::read(&*self.driver(), &self.context()).await
    }

    /// The properties of the object that differ from those of the resource.
    pub(crate) async fn drift(&self) -> Map {
        self.shown().await.unwrap().whole_drift(&self.facts.properties)
    }

    /// What the last answer of the operation shows otherwise than a read does now.
    pub(crate) async fn misread(&self) -> Option<String> {
        let answer = self.stored.last()?.answer.as_ref()?;
        let cx = Context { cloud: &kiln_resource::NoCloud, ..self.context() };
        let told = Shown::in_answer(&*self.driver(), &cx, answer).await.ok()?.unlike(&self.facts.properties);
        let live = self.live().await;
        let differs = |(name, value): &(&String, &Value)| live.get(*name) != Some(*value);
        let differing: Vec<_> = told.iter().filter(differs).collect();
        (!differing.is_empty()).then(|| format!("the answer shows {differing:?}, a read {live:?}"))
    }

    pub(crate) async fn needs_replace_failed(&self) -> bool {
        self.driver().needs_replace_failed(&self.context()).await.unwrap()
    }

    /// Deletes the snapshot with the data of the resource.
    pub(crate) async fn delete_snapshot(&mut self) {
        for _ in 0..MOST_CALLS {
            let Some(after) = self.driver().delete_snapshot(&self.context()).await.unwrap() else { return };
            self.pause(after).await;
        }
        panic!("the snapshot of {} cannot be deleted", self.facts.name);
    }
}
