//! Runs a resource by the rules of the engine: an intent is stored before a create is called, each step before the next
//! one, and the engine looks for the object of a lost call before it repeats the call.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kiln_resource::change::Comparison;
use kiln_resource::object_drift::Shown;
use kiln_resource::translation::{self, Answers};
use kiln_resource::{
    Cloud, Context, Driver, Facts, Failure, FailureKind, Found, NoSoftware, Operation, Progress, ResourceType,
    StackFacts, Step, change, properties, shipped,
};
use kiln_value::{Class, Diagnostic, Map, Path, Value};

use crate::sweep::stage::Stage;

/// A resource with its stored data.
#[derive(Clone)]
pub(crate) struct Player {
    kind: ResourceType,
    pub(crate) facts: Facts,
    attempt: u32,
    /// Discards the step with this number (from 1) before it is stored, like a crash in between.
    pub(crate) discards: Option<usize>,
    /// Stops when the engine fails, instead of continuing with another one.
    pub(crate) ends_with_engine: bool,
    /// Stops before the step after this number of stored ones.
    pub(crate) stops_after: Option<usize>,
    /// The number of stored steps, and of all steps.
    pub(crate) stored: usize,
    pub(crate) steps: usize,
}

/// The outcome of an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    Done,
    Replace,
    Stopped,
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

fn uuid(name: &str) -> String {
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}

/// More steps than any operation requires.
const TOO_MANY: usize = 300;

impl Player {
    pub(crate) fn new(type_name: &str, name: &str) -> Self {
        let kind = types().iter().find(|t| t.name == type_name).unwrap().clone();
        let facts = Facts {
            id: uuid(name),
            physical_name: format!("sweep-{name}-abc"),
            name: name.to_owned(),
            resource_type: type_name.to_owned(),
            token: uuid(&format!("{name} 0")),
            stack: StackFacts {
                id: uuid("sweep"),
                project_id: "sweep".to_owned(),
                root_id: uuid("sweep"),
                ..StackFacts::default()
            },
            ..Facts::default()
        };
        Self {
            kind,
            facts,
            attempt: 0,
            discards: None,
            ends_with_engine: false,
            stops_after: None,
            stored: 0,
            steps: 0,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.facts.physical_id.as_deref().unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> &ResourceType {
        &self.kind
    }

    /// A new driver for every call: each call may be made by another engine.
    pub(crate) fn driver(&self) -> Arc<dyn Driver> {
        kiln_drivers::driver_for(&self.kind).unwrap()
    }

    /// Sets the properties like the engine: resolves names to IDs, converts values, adds defaults.
    pub(crate) async fn give(&mut self, stage: &Stage, given: &Value) {
        let Value::Map(given) = stage.filled(given) else { panic!("properties are a map") };
        let mut answers = Answers::new();
        for lookup in translation::lookups(&self.kind.translation, &given).into_keys() {
            let id = stage.cloud.find(&lookup.finder, &lookup.value).await.unwrap();
            answers.insert(lookup, id);
        }
        self.assume(given, &answers).unwrap();
    }

    /// Sets the properties; names without an answer are IDs.
    pub(crate) fn assume(&mut self, given: Map, answers: &Answers) -> Result<(), Diagnostic> {
        self.facts.given = given.keys().cloned().collect();
        let translated = translation::apply(&self.kind.translation, given, answers, &Path::root())?;
        self.facts.properties = properties::resolve(&self.kind.properties, &translated)?;
        self.driver().validate(&self.facts)
    }

    pub(crate) async fn create(&mut self, stage: &Stage) -> Result<Ending, Failure> {
        self.carry(stage, &Operation::Create).await
    }

    pub(crate) async fn delete(&mut self, stage: &Stage) -> Result<Ending, Failure> {
        let ending = self.carry(stage, &Operation::Delete).await;
        self.delete_user_project(stage).await;
        ending
    }

    /// The update in place to these properties.
    pub(crate) async fn change(&mut self, stage: &Stage, given: &Value) -> Operation {
        let before = self.facts.properties.clone();
        self.give(stage, given).await;
        let comparison = change::compare_resolved(&self.kind, &self.facts.name, &before, &self.facts.properties);
        let Comparison::Update { changed } = comparison else { panic!("no update: {comparison:?}") };
        Operation::Update { before, changed }
    }

    /// Deletes the project of the stack users, as with the stack.
    pub(crate) async fn delete_user_project(&mut self, stage: &Stage) {
        if let Some(project) = self.facts.stack.user_project_id.take() {
            stage.cloud.delete_user_project(&project).await;
        }
    }

    pub(crate) fn keep(&mut self, step: &Step) {
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
    }

    /// Runs an operation to its end.
    pub(crate) async fn carry(&mut self, stage: &Stage, operation: &Operation) -> Result<Ending, Failure> {
        (self.stored, self.steps) = (0, 0);
        self.carry_on(stage, operation).await
    }

    async fn carry_on(&mut self, stage: &Stage, operation: &Operation) -> Result<Ending, Failure> {
        let (mut phase, mut is_resumed, mut polls, mut unanswered, mut conflicts) = (Phase::Intent, false, 0, 0, 0);
        for _ in 0..TOO_MANY {
            let step = match self.call(stage, operation, &phase, is_resumed, polls).await {
                Called::Died if self.ends_with_engine => return Ok(Ending::Stopped),
                Called::Died => {
                    (is_resumed, polls) = (true, 0);
                    continue;
                }
                Called::Unknown(text) => return Err(Failure::other(Class::of("Unknown"), text)),
                Called::Step(Ok(step)) => step,
                Called::Step(Err(failure)) if failure.is_passing() && unanswered < 8 => {
                    let is_unmade = [FailureKind::NotSent, FailureKind::OverLimit, FailureKind::Busy];
                    unanswered += usize::from(failure.kind != FailureKind::Busy);
                    is_resumed |= !is_unmade.contains(&failure.kind);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
                Called::Step(Err(failure)) if *operation == Operation::Delete => {
                    if failure.is_not_found() {
                        return Ok(Ending::Done);
                    }
                    conflicts += 1;
                    if failure.kind != FailureKind::Conflict || conflicts > 20 {
                        return Err(failure);
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    phase = Phase::Intent;
                    continue;
                }
                Called::Step(Err(failure)) if *operation == Operation::Create && self.is_worth_undoing(&failure) => {
                    self.undo(stage).await?;
                    (phase, is_resumed) = (Phase::Intent, false);
                    continue;
                }
                Called::Step(Err(failure)) => return Err(failure),
            };
            let is_same =
                matches!((&step.progress, &phase), (Progress::Wait { state, .. }, Phase::Wait(old)) if state == old);
            let is_new = !is_same || step.physical_id.is_some() || !step.data.is_empty() || step.user_project.is_some();
            if is_new {
                self.steps += 1;
                if self.discards == Some(self.steps) {
                    (is_resumed, polls) = (true, 0);
                    continue;
                }
                self.keep(&step);
                self.stored += 1;
            }
            match step.progress {
                Progress::Done => return Ok(Ending::Done),
                Progress::Replace => return Ok(Ending::Replace),
                Progress::Prepared => (phase, polls) = (Phase::Intent, 0),
                Progress::Wait { state, after } => {
                    polls = if is_new { 0 } else { polls + 1 };
                    phase = Phase::Wait(state);
                    if self.stops_after == Some(self.stored) {
                        return Ok(Ending::Stopped);
                    }
                    tokio::time::sleep(after).await;
                }
            }
        }
        panic!("{} {operation:?} does not end: {:?}", self.facts.name, stage.wire.calls().last());
    }

    fn is_worth_undoing(&self, failure: &Failure) -> bool {
        matches!(failure.kind, FailureKind::Conflict | FailureKind::InError) && self.attempt < 2
    }

    /// Deletes the remains of a failed attempt, and starts another one.
    async fn undo(&mut self, stage: &Stage) -> Result<(), Failure> {
        if self.facts.physical_id.is_some() {
            Box::pin(self.carry_on(stage, &Operation::Delete)).await?;
        }
        self.attempt += 1;
        self.facts.physical_id = None;
        self.facts.token = uuid(&format!("{} {}", self.facts.name, self.attempt));
        Ok(())
    }

    /// Calls the driver once, unless the engine fails.
    async fn call(&self, stage: &Stage, operation: &Operation, phase: &Phase, is_resumed: bool, polls: u32) -> Called {
        tokio::select! {
            biased;
            called = self.drive(stage, operation, phase, is_resumed, polls) => called,
            () = stage.wire.death() => Called::Died,
        }
    }

    async fn drive(&self, stage: &Stage, operation: &Operation, phase: &Phase, is_resumed: bool, polls: u32) -> Called {
        let driver = self.driver();
        let facts = &self.as_created(operation);
        let cx = Context { cloud: &stage.cloud, software: &NoSoftware, facts, now: 0.0, seed: [1; 32], polls };
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
        let is_unmarked = *operation == Operation::Create && self.driver().unmarked(&facts).is_some();
        facts.unmarked_since = is_unmarked.then_some(0);
        facts
    }

    /// Like an engine with an intent that is no longer wanted: looks for the created object, to delete it.
    pub(crate) async fn take_stock(&mut self, stage: &Stage) {
        if self.facts.physical_id.is_some() {
            return;
        }
        let driver = self.driver();
        let (software, facts) = (&NoSoftware, &self.as_created(&Operation::Create));
        let cx = Context { cloud: &stage.cloud, software, facts, now: 0.0, seed: [1; 32], polls: 0 };
        match driver.find(&cx).await.unwrap() {
            Found::Made(step) => self.keep(&step),
            Found::Alike(alike) => {
                if let Some(one) = alike.first() {
                    self.keep(&one.step);
                }
            }
            Found::NotMade | Found::CannotTell(_) => {}
        }
    }

    /// The properties of the object that differ from those of the resource.
    pub(crate) async fn drift(&self, stage: &Stage) -> Map {
        let software = &NoSoftware;
        let cx = Context { cloud: &stage.cloud, software, facts: &self.facts, now: 0.0, seed: [1; 32], polls: 0 };
        let shown = Shown::read(&*self.driver(), &cx).await.unwrap();
        let mut drift = shown.drift(&self.kind, &self.facts.properties);
        drift.extend(shown.lasting_drift(&self.kind, &self.facts.properties));
        drift
    }

    /// The data that are stored with the resource.
    pub(crate) fn data(&self) -> &Map {
        &self.facts.data
    }
}
