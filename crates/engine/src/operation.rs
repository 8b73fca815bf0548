//! Carries one operation on one resource as far as its next step that must be remembered.

use std::sync::Arc;
use std::time::Duration;

use kiln_plan::{Blame, Event, Outcome, Phase, Running};
use kiln_resource::{
    Cloud, Context, Driver, Facts, Failure, FailureKind, Found, Operation, Progress, ResourceId, Step,
};
use kiln_store::Stack;
use kiln_value::{Map, Value};
use tokio::sync::watch;

use crate::clock::{Chance, Clock};
use crate::clouds::{Clouds, NoCloud};

/// How often an operation is tried again after the first attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    /// Creates that end in error or conflict, and deletes that conflict (Heat's `action_retry_limit`).
    pub(crate) action_retries: u32,
    /// Calls that were not answered.
    pub(crate) call_retries: u32,
}

/// An operation to carry on.
pub(crate) struct Job {
    pub(crate) row: ResourceId,
    pub(crate) name: String,
    pub(crate) running: Running,
    /// Another engine may have made the call already.
    pub(crate) resumed: bool,
    pub(crate) facts: Facts,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) clouds: Arc<dyn Clouds>,
    pub(crate) stack: Arc<Stack>,
    /// The attributes that other resources read.
    pub(crate) wanted: Vec<String>,
    /// The resource goes and its object stays (`deletion_policy: Retain`).
    pub(crate) retain: bool,
    pub(crate) interrupt: watch::Receiver<bool>,
    /// How long to wait first; then, how long to wait before the next step.
    pub(crate) after: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<Chance>,
    pub(crate) patience: RetryLimits,
}

/// What came of carrying a job on.
pub(crate) struct Advance {
    pub(crate) event: Event,
    /// How long to wait before carrying it on again.
    pub(crate) after: Duration,
}

impl Job {
    /// Works until there is something to store: the id of a made object, a new state to poll, the end.
    pub(crate) async fn advance(mut self) -> Advance {
        let after = std::mem::take(&mut self.after);
        self.pause(after).await;
        let event = match self.cloud().await {
            Ok(cloud) => self.carry_on(&*cloud).await,
            Err(failure) => self.failed(&failure),
        };
        Advance { event, after: self.after }
    }

    async fn cloud(&mut self) -> Result<Arc<dyn Cloud>, Failure> {
        if self.driver.is_pure() || self.retain {
            return Ok(Arc::new(NoCloud));
        }
        let mut attempt = 0;
        loop {
            match self.clouds.cloud(&self.stack).await {
                Err(failure) if failure.kind == FailureKind::Unavailable && attempt < self.patience.call_retries => {
                    self.back_off(attempt).await;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    async fn carry_on(&mut self, cloud: &dyn Cloud) -> Event {
        match self.running.operation.clone() {
            _ if self.retain => self.ended(Step::done(), None),
            Operation::Create => match self.running.phase.clone() {
                Phase::Intent => self.create(cloud).await,
                Phase::Wait(state) => self.poll(cloud, state).await,
                Phase::Undo(state) => self.undo(cloud, state).await,
            },
            Operation::Delete => self.delete(cloud).await,
            _ => match self.running.phase.clone() {
                Phase::Wait(state) => self.poll(cloud, state).await,
                Phase::Intent | Phase::Undo(_) => self.begin(cloud).await,
            },
        }
    }

    fn context<'a>(&'a self, cloud: &'a dyn Cloud) -> Context<'a> {
        #[expect(clippy::cast_precision_loss, reason = "microseconds of this century fit 53 bits")]
        let now = self.clock.now().as_microsecond() as f64 / 1e6;
        Context { cloud, facts: &self.facts, now, seed: self.chance.seed(), polls: 0 }
    }

    /// A create whose call may or may not have been made.
    async fn create(&mut self, cloud: &dyn Cloud) -> Event {
        if self.resumed && !self.driver.is_pure() {
            match self.find(cloud).await {
                Ok(Some(step)) => return self.report(cloud, step).await,
                Ok(None) if self.is_interrupted() => return self.aborted(),
                Ok(None) => {}
                Err(failure) => return self.failed(&failure),
            }
        }
        for attempt in 0.. {
            let failure = match self.driver.start(&self.context(cloud), &Operation::Create).await {
                Ok(step) => return self.report(cloud, step).await,
                Err(failure) => failure,
            };
            if failure.kind != FailureKind::Unavailable {
                return self.retry_create(&failure);
            }
            // Nobody knows whether the call was heard.
            tracing::info!(resource = self.name, attempt, %failure, "create not answered, looking for what it made");
            match self.find(cloud).await {
                Ok(Some(step)) => return self.report(cloud, step).await,
                Ok(None) if attempt < self.patience.call_retries && !self.is_interrupted() => {
                    self.back_off(attempt).await;
                }
                Ok(None) => return self.failed(&failure),
                Err(second) => return self.failed(&second),
            }
        }
        self.aborted()
    }

    /// Looks for what a lost call made, more patiently than for anything else: not to look is to make it twice.
    async fn find(&mut self, cloud: &dyn Cloud) -> Result<Option<Step>, Failure> {
        let mut attempt = 0;
        loop {
            match self.driver.find(&self.context(cloud)).await {
                Err(failure)
                    if failure.kind == FailureKind::Unavailable && attempt < 2 * self.patience.call_retries =>
                {
                    self.back_off(attempt).await;
                    attempt += 1;
                }
                Err(failure) => return Err(failure),
                Ok(Found::Made(step)) => return Ok(Some(step)),
                Ok(Found::NotMade | Found::CannotTell(_)) => return Ok(None),
            }
        }
    }

    /// A create that failed: is what it left to be deleted and all tried again?
    fn retry_create(&self, failure: &Failure) -> Event {
        let worth = matches!(failure.kind, FailureKind::Conflict | FailureKind::InError);
        if !worth || self.running.attempt >= self.patience.action_retries || self.is_interrupted() {
            return self.failed(failure);
        }
        tracing::info!(resource = self.name, attempt = self.running.attempt, %failure, "create failed, trying again");
        // The first failure is the one reported in the end (semantics.md §7.1).
        let state = Value::Null;
        self.stepped(Step::done(), Phase::Undo(state), self.running.attempt + 1, self.running.token.clone())
    }

    /// Deletes what a failed attempt left; then the next attempt begins.
    async fn undo(&mut self, cloud: &dyn Cloud, state: Value) -> Event {
        if self.facts.physical_id.is_some() {
            let cx = self.context(cloud);
            let step = if state.is_null() {
                self.driver.start(&cx, &Operation::Delete).await
            } else {
                self.driver.poll(&cx, &Operation::Delete, &state).await
            };
            match step {
                Ok(Step { progress: Progress::Wait { state: next, after }, .. }) => {
                    self.after = after;
                    let (attempt, token) = (self.running.attempt, self.running.token.clone());
                    return self.stepped(Step::done(), Phase::Undo(next), attempt, token);
                }
                Err(failure) if !failure.is_not_found() => return self.failed(&failure),
                _ => {}
            }
        }
        self.back_off(self.running.attempt).await;
        let token = self.chance.uuid().to_string();
        let mut step = Step::done();
        step.physical_id = Some(String::new());
        self.stepped(step, Phase::Intent, self.running.attempt, token)
    }

    /// The first call of an operation that may be repeated.
    async fn begin(&mut self, cloud: &dyn Cloud) -> Event {
        for attempt in 0.. {
            match self.driver.start(&self.context(cloud), &self.running.operation).await {
                Ok(step) => return self.report(cloud, step).await,
                Err(failure)
                    if failure.kind == FailureKind::Unavailable
                        && attempt < self.patience.call_retries
                        && !self.is_interrupted() =>
                {
                    self.back_off(attempt).await;
                }
                Err(failure) => return self.failed(&failure),
            }
        }
        self.aborted()
    }

    async fn delete(&mut self, cloud: &dyn Cloud) -> Event {
        let mut attempt = 0;
        loop {
            let cx = self.context(cloud);
            let step = match &self.running.phase {
                Phase::Wait(state) => self.driver.poll(&cx, &Operation::Delete, state).await,
                Phase::Intent | Phase::Undo(_) => self.driver.start(&cx, &Operation::Delete).await,
            };
            match step {
                Ok(step) => return self.report(cloud, step).await,
                Err(failure) if failure.is_not_found() => return self.ended(Step::done(), None),
                Err(failure) => {
                    let limit = match failure.kind {
                        FailureKind::Conflict => self.patience.action_retries,
                        FailureKind::Unavailable | FailureKind::OverLimit => self.patience.call_retries,
                        _ => 0,
                    };
                    if attempt >= limit {
                        return self.failed(&failure);
                    }
                    self.back_off(attempt).await;
                    attempt += 1;
                    self.running.phase = Phase::Intent;
                }
            }
        }
    }

    /// Polls until the state changes.
    async fn poll(&mut self, cloud: &dyn Cloud, mut state: Value) -> Event {
        let mut unanswered = 0;
        loop {
            if self.is_interrupted() {
                return self.aborted();
            }
            match self.driver.poll(&self.context(cloud), &self.running.operation, &state).await {
                Ok(Step { physical_id: None, data, progress: Progress::Wait { state: next, after } })
                    if data.is_empty() && next == state =>
                {
                    unanswered = 0;
                    self.pause(after).await;
                    state = next;
                }
                Ok(step) => return self.report(cloud, step).await,
                Err(failure) if failure.kind == FailureKind::Unavailable && unanswered < self.patience.call_retries => {
                    self.back_off(unanswered).await;
                    unanswered += 1;
                }
                Err(failure) if self.running.operation == Operation::Create => return self.retry_create(&failure),
                Err(failure) => return self.failed(&failure),
            }
        }
    }

    /// What is to be stored of a driver's step.
    async fn report(&mut self, cloud: &dyn Cloud, step: Step) -> Event {
        match &step.progress {
            Progress::Wait { state, after } => {
                self.after = *after;
                let phase = Phase::Wait(state.clone());
                let (attempt, token) = (self.running.attempt, self.running.token.clone());
                self.stepped(step, phase, attempt, token)
            }
            Progress::Replace => {
                let text = format!("The Resource {} requires replacement.", self.name);
                self.finished(step, None, Outcome::Replace(text))
            }
            Progress::Done if self.changes_attributes() => {
                // Attributes are read with what the step has told.
                if step.physical_id.is_some() {
                    self.facts.physical_id.clone_from(&step.physical_id);
                }
                self.facts.data.extend(step.data);
                self.finish(cloud).await
            }
            Progress::Done => self.ended(step, None),
        }
    }

    /// Whether the attributes that others read may be others now; an adopted object is looked at for the first time.
    fn changes_attributes(&self) -> bool {
        match self.running.operation {
            Operation::Create | Operation::Update { .. } => true,
            Operation::Check => !self.wanted.is_empty(),
            _ => false,
        }
    }

    /// The end of a create or update: the attributes that others read.
    async fn finish(&mut self, cloud: &dyn Cloud) -> Event {
        let wanted = std::mem::take(&mut self.wanted);
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let mut attempt = 0;
        let attributes = loop {
            if names.is_empty() {
                break Map::new();
            }
            match self.driver.attributes(&self.context(cloud), &names).await {
                Ok(attributes) => break attributes,
                Err(failure) if failure.kind == FailureKind::Unavailable && attempt < self.patience.call_retries => {
                    self.back_off(attempt).await;
                    attempt += 1;
                }
                Err(failure) => return self.failed(&failure),
            }
        };
        let step = Step {
            physical_id: self.facts.physical_id.clone(),
            data: self.facts.data.clone(),
            progress: Progress::Done,
        };
        self.ended(step, Some(attributes))
    }

    fn stepped(&self, step: Step, phase: Phase, attempt: u32, token: String) -> Event {
        Event::Stepped { row: self.row, physical_id: step.physical_id, data: step.data, phase, attempt, token }
    }

    fn ended(&self, step: Step, attributes: Option<Map>) -> Event {
        self.finished(step, attributes, Outcome::Done(None))
    }

    fn failed(&self, failure: &Failure) -> Event {
        let step = Step { physical_id: self.facts.physical_id.clone(), ..Step::done() };
        self.finished(step, None, Outcome::Failed(Blame::of(&self.name, failure)))
    }

    /// Ended from outside, with the text that Heat gives a cancelled resource.
    fn aborted(&self) -> Event {
        let action = self.running.operation.action();
        self.failed(&Failure::other("ResourceFailure", format!("{action} aborted (user triggered cancel)")))
    }

    fn finished(&self, step: Step, attributes: Option<Map>, outcome: Outcome) -> Event {
        Event::Finished { row: self.row, physical_id: step.physical_id, data: step.data, attributes, outcome }
    }

    /// 1 s, 2 s, 4 s … up to half a minute, less a random part.
    async fn back_off(&mut self, attempt: u32) {
        let time = Duration::from_secs(1 << attempt.min(5)).min(Duration::from_secs(30));
        let time = self.chance.jitter(time);
        self.pause(time).await;
    }

    /// Asked to end; an actor that is gone does not want the result either.
    fn is_interrupted(&self) -> bool {
        *self.interrupt.borrow() || self.interrupt.has_changed().is_err()
    }

    /// Waits, unless interrupted.
    async fn pause(&mut self, time: Duration) {
        let clock = Arc::clone(&self.clock);
        if time.is_zero() || self.is_interrupted() {
            return;
        }
        tokio::select! {
            biased;
            _ = self.interrupt.changed() => {}
            () = clock.sleep(time) => {}
        }
    }
}
