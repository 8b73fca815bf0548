//! One step of an operation on a resource: one call of its driver and the processing of its result.
//!
//! A step never sleeps: it returns an event to store, or the delay after which the same step is repeated. So all
//! waiting is done in the slots of the actor, where it can be interrupted and does not count against the concurrency
//! limit.

use std::sync::Arc;
use std::time::Duration;

use kiln_plan::{Blame, Event, Outcome};
use kiln_resource::{
    Cloud, Context, Driver, Facts, Failure, FailureKind, LOST_CREATE, Operation, Phase, Progress, Received, ResourceId,
    Running, SoftwareChange, Step,
};
use kiln_stack::Backends;
use kiln_stack::call_retry::{self, RetryLimits};
use kiln_stack::stored_software::StoredSoftware;
use kiln_store::Stack;
use kiln_value::{Class, Map, Value};

use crate::actor::take_over::is_believed;
use crate::imported_object::ImportedObject;
use crate::planned_object::PlannedObject;
use crate::unmarked::{self, Creating, UNMARKED, Verdict};

/// The entry of a resource's data that says that its object was adopted: it existed before the stack.
pub(crate) const ADOPTED: &str = "kiln_adopted";

/// Minimum polling interval for drivers that request immediate polling.
const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// State of an operation in addition to its row. It is not stored: after a take-over it starts with safe assumptions.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Memory {
    /// The create may have been called: its object is looked for before the call is repeated, and is not considered
    /// missing before this time of the monotonic clock.
    pub(crate) lost: Option<Duration>,
    /// Consecutive steps without a response.
    pub(crate) unanswered: u32,
    /// Consecutive polls with the same state.
    pub(crate) polls: u32,
    /// Number of deletes that were refused because of a conflict.
    pub(crate) conflicts: u32,
    /// The operation will be interrupted as soon as that is safe.
    pub(crate) interrupted: bool,
    /// A copy for a snapshot may have been made: its ID must be known before the operation ends.
    pub(crate) may_have_saved: bool,
    /// It is interrupted because its time has run out.
    pub(crate) out_of_time: bool,
    /// What it waits for, if its last step has said so.
    pub(crate) waits_for: Option<String>,
    /// How long it waits without anything new, with the pause to come.
    pub(crate) waited: Duration,
    /// The failure after which the step is repeated.
    pub(crate) repeats_after: Option<String>,
    /// The object is as the plan of the request has seen it.
    pub(crate) is_as_planned: bool,
}

impl Memory {
    /// Whether nothing was called yet.
    pub(crate) fn is_fresh(&self) -> bool {
        let Self { lost, unanswered, polls, conflicts, repeats_after, waited, .. } = self;
        lost.is_none() && (*unanswered, *polls, *conflicts) == (0, 0, 0) && repeats_after.is_none() && waited.is_zero()
    }
}

/// How long an operation waits for its object before its row says so.
const LONG: Duration = Duration::from_secs(30);
/// How long an operation waits after a failure before its row says so: the first pause costs no write.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What a row says while its operation is repeated after a failure.
pub(crate) fn repeats_after(failure: &str) -> String {
    format!("trying again after {failure}")
}

impl Memory {
    /// Whether an interrupt ends the operation without another call.
    pub(crate) fn ends_at_once(&self) -> bool {
        self.lost.is_none() && !self.may_have_saved
    }

    /// The operation waits until a call succeeds.
    fn after(&mut self, failure: &Failure) {
        self.waits_for = Some(format!("another answer than {failure}"));
        if self.repeats_after.replace(failure.to_string()).is_none() {
            self.waited = Duration::ZERO;
        }
    }

    /// What the user should know about the wait.
    pub(crate) fn notice(&self) -> Option<String> {
        match (&self.repeats_after, &self.waits_for) {
            (Some(failure), _) if self.waited > FIRST_PAUSE => Some(repeats_after(failure)),
            (None, Some(what)) if self.waited >= LONG => Some(format!("waiting for {what}")),
            _ => None,
        }
    }
}

/// An operation with a step to execute.
pub(crate) struct Job {
    pub(crate) row: ResourceId,
    pub(crate) name: String,
    pub(crate) running: Running,
    pub(crate) memory: Memory,
    pub(crate) facts: Facts,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) backends: Backends,
    /// The software configs and deployments of the project.
    pub(crate) software: StoredSoftware,
    /// The root stack of the tree, which has the credentials.
    pub(crate) root: Arc<Stack>,
    /// The attributes that other resources read.
    pub(crate) wanted: Vec<String>,
    /// The resource is deleted but its object is kept (`deletion_policy: Retain`).
    pub(crate) retain: bool,
    /// The object that must be as the plan of the request has seen it.
    pub(crate) planned: Option<PlannedObject>,
    /// The data to adopt.
    pub(crate) adopted: Option<Value>,
    /// The object that must be as the template says.
    pub(crate) imported: Option<ImportedObject>,
    /// Other objects of the resource that hold what this one needs.
    pub(crate) holders: Vec<Facts>,
    /// The creates without a mark that are in progress in this engine.
    pub(crate) creating: Arc<Creating>,
    pub(crate) limits: RetryLimits,
    /// Maximum time until the effect of a call is visible.
    pub(crate) call_limit: Duration,
    /// Maximum time until an object is listed after the call has ended.
    pub(crate) list_delay: Duration,
}

/// The event of a step, and what else is stored together with it.
pub(crate) struct Report {
    /// The event.
    pub(crate) event: Event,
    /// What the driver has reported beside it.
    pub(crate) learned: Learned,
}

impl Report {
    /// The next step is due after a delay.
    fn next_after(self, after: Duration) -> Advance {
        Advance::Report { report: Box::new(self), after }
    }
}

impl From<Event> for Report {
    fn from(event: Event) -> Self {
        Self { event, learned: Learned::default() }
    }
}

/// What a driver has reported beside the event of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    /// The project of the stack's users.
    pub(crate) user_project: Option<String>,
    /// What observed resources have received, by row.
    pub(crate) received: Vec<(String, Received)>,
    /// Changes of software configs and deployments.
    pub(crate) software: Vec<SoftwareChange>,
    /// The failure after which the operation begins again.
    pub(crate) repeats_after: Option<String>,
}

impl Learned {
    /// Takes what a step says beside its progress.
    fn of(step: &mut Step) -> Self {
        Self {
            user_project: step.user_project.take(),
            received: std::mem::take(&mut step.received),
            software: std::mem::take(&mut step.software),
            repeats_after: None,
        }
    }
}

/// The result of a step.
pub(crate) enum Advance {
    /// A report to store; the next step, if any, is due after a delay.
    Report {
        /// The report.
        report: Box<Report>,
        /// Delay before the next step.
        after: Duration,
    },
    /// Nothing to store: repeat the step after a delay.
    Again {
        /// The delay.
        after: Duration,
        /// The state to keep.
        memory: Memory,
    },
}

impl<R: Into<Report>> From<R> for Advance {
    fn from(report: R) -> Self {
        report.into().next_after(Duration::ZERO)
    }
}

impl Job {
    /// Executes the next step.
    pub(crate) async fn advance(mut self) -> Advance {
        if self.retain {
            return self.ended(Step::done(), None).into();
        }
        let cloud = match self.cloud().await {
            Ok(cloud) => cloud,
            Err(failure) if self.memory.lost.is_some() => return self.still_lost(&failure),
            Err(failure) => return self.unanswered_or_failed(&failure),
        };
        if let Some(planned) = self.planned.as_ref().filter(|_| !self.memory.is_as_planned && !self.memory.interrupted)
        {
            if let Err(failure) = planned.check(&*cloud, &self.software).await {
                return self.unanswered_or_failed(&failure);
            }
            self.memory.is_as_planned = true;
        }
        match (self.running.operation.clone(), self.running.phase.clone()) {
            (Operation::Create, Phase::Intent | Phase::Lost(_)) => self.create(&*cloud).await,
            (Operation::Create, Phase::Undo(state)) => self.undo(&*cloud, state).await,
            (Operation::Delete, Phase::Snapshot(state)) => self.save_before_delete(&*cloud, state).await,
            (Operation::Delete, _) => self.delete(&*cloud).await,
            (Operation::Adopt, Phase::Intent) => self.adopt(&*cloud).await,
            (_, Phase::Read) => self.read(&*cloud, Step::done()).await,
            (_, Phase::Wait(state)) => self.poll(&*cloud, state).await,
            (_, Phase::Intent | Phase::Lost(_) | Phase::Undo(_) | Phase::Snapshot(_)) => self.begin(&*cloud).await,
        }
    }

    async fn cloud(&self) -> Result<Arc<dyn Cloud>, Failure> {
        self.backends.cloud(&self.root, self.driver.needs_cloud()).await
    }

    pub(crate) fn context<'a>(&'a self, cloud: &'a dyn Cloud) -> Context<'a> {
        Context { polls: self.memory.polls, ..self.backends.context(cloud, &self.software, &self.facts) }
    }

    /// A create that may already have been called.
    async fn create(&mut self, cloud: &dyn Cloud) -> Advance {
        if let Some(believed_from) = self.memory.lost {
            match self.look_for_lost(cloud, believed_from).await {
                Some(advance) => return advance,
                None => self.memory.lost = None,
            }
        }
        if self.memory.interrupted {
            return self.aborted();
        }
        if matches!(self.running.phase, Phase::Lost(_)) {
            // Stored before the call, for the next engine that takes over.
            let (attempt, token) = (self.running.attempt, self.running.token.clone());
            return self.stepped(Step::done(), Phase::Intent, attempt, token).into();
        }
        if let Some(advance) = self.release_held(cloud).await {
            return advance;
        }
        if let Some(advance) = self.leave_unmarked(cloud).await {
            return advance;
        }
        if let Err(failure) = self.take_scheduler_hints(cloud).await {
            return self.unanswered_or_failed(&failure);
        }
        let called = self.backends.clock.monotonic();
        let started = self.driver.start(&self.context(cloud), &Operation::Create).await;
        if started.as_ref().err().is_none_or(|failure| !failure.may_have_acted()) {
            self.creating.leave(self.row);
        }
        let failure = match started {
            Ok(step) => return self.report(cloud, step).await,
            Err(failure) => failure,
        };
        match failure.kind {
            FailureKind::Busy => return self.unanswered_or_failed(&failure),
            FailureKind::Unavailable => self.memory.lost = Some(called + self.call_limit),
            FailureKind::ServerError => self.memory.lost = Some(self.backends.clock.monotonic() + self.list_delay),
            FailureKind::BrokenOff => {
                self.memory.lost = Some(called + self.call_limit);
                return self.lost(&failure);
            }
            FailureKind::NotSent | FailureKind::OverLimit => {}
            _ => return self.retry_create(&failure),
        }
        if self.memory.lost.is_none() && self.memory.unanswered >= self.limits.calls {
            return self.failed(&failure).into();
        }
        tracing::info!(resource = self.name, %failure, "no response to a create");
        self.again(Some(&failure))
    }

    /// The hints for the scheduler as the operator's plug-ins change them.
    async fn take_scheduler_hints(&mut self, cloud: &dyn Cloud) -> Result<(), Failure> {
        let resource_types = Arc::clone(&self.backends.resource_types);
        if resource_types.scheduler_hints.is_empty() {
            return Ok(());
        }
        let Some(mut hints) = self.driver.scheduler_hints(&self.facts) else { return Ok(()) };
        for plugin in &resource_types.scheduler_hints {
            hints = plugin.changed(&self.context(cloud), hints).await?;
        }
        self.facts.scheduler_hints = Some(hints);
        Ok(())
    }

    /// Looks for the object of a lost call; `None`: it certainly created nothing.
    async fn look_for_lost(&mut self, cloud: &dyn Cloud, believed_from: Duration) -> Option<Advance> {
        // The result applies to the time of the request, even if it arrives late.
        let asked = self.backends.clock.monotonic();
        let is_believed = is_believed(asked, believed_from);
        match self.find(cloud, !is_believed).await {
            Ok(Verdict::Made(step)) => {
                tracing::info!(resource = self.name, "found the object of a lost create");
                Some(self.report(cloud, step).await)
            }
            Ok(Verdict::NotMade) => {
                if !is_believed {
                    let left = believed_from.saturating_sub(self.backends.clock.monotonic());
                    let wait = call_retry::wait(self.memory.polls, None, &self.backends.chance).min(left);
                    self.memory.polls += 1;
                    return Some(self.pause(wait));
                }
                self.memory.polls = 0;
                if !self.memory.interrupted && self.memory.unanswered > self.limits.calls {
                    let failure = Failure::new(
                        FailureKind::Unavailable,
                        Class::ServiceUnavailable,
                        "The service did not respond, and nothing was created.",
                    );
                    return Some(self.failed(&failure).into());
                }
                None
            }
            Ok(Verdict::CannotTell(why)) => {
                let text = format!("It is unknown whether the service created the object: {why}.");
                Some(self.lost(&Failure::other(Class::CreateLost, text)))
            }
            Err(failure) => Some(self.still_lost(&failure)),
        }
    }

    /// The search failed. Without a search the object might be created twice, so it is retried until the timeout of the
    /// stack.
    fn still_lost(&mut self, failure: &Failure) -> Advance {
        let patience = if self.memory.interrupted { self.limits.calls } else { u32::MAX };
        if failure.is_passing() && self.memory.unanswered < patience {
            return self.again(Some(failure));
        }
        self.lost(failure)
    }

    /// Fails with an unknown outcome: a later delete looks for the object again.
    fn lost(&self, failure: &Failure) -> Advance {
        let mut step = Step { physical_id: self.facts.physical_id.clone(), ..Step::done() };
        if self.running.operation == Operation::Create {
            let left = self.memory.lost.unwrap_or_default().saturating_sub(self.backends.clock.monotonic());
            let until = (self.backends.clock.now() + left).as_microsecond();
            let lost = unmarked::lost(&self.facts.data, &self.running.token, until);
            step = step.data(LOST_CREATE, lost);
        }
        self.finished(step, None, Outcome::Failed(Blame::of(&self.name, failure))).into()
    }

    /// A create failed: decides whether to delete its remains and to retry.
    fn retry_create(&self, failure: &Failure) -> Advance {
        let worth = matches!(failure.kind, FailureKind::Conflict | FailureKind::InError);
        if !worth || self.running.attempt >= self.limits.actions || self.memory.interrupted {
            return self.failed(failure).into();
        }
        tracing::info!(resource = self.name, attempt = self.running.attempt, %failure, "create failed, retrying");
        // The first failure is the one that is reported in the end (docs/heat-behaviour.md §7.1).
        let undo = Phase::Undo(Value::Null);
        let mut report = self.stepped(Step::done(), undo, self.running.attempt + 1, self.running.token.clone());
        report.learned.repeats_after = Some(failure.to_string());
        report.into()
    }

    /// Deletes the remains of a failed attempt; then the next attempt starts.
    async fn undo(&mut self, cloud: &dyn Cloud, state: Value) -> Advance {
        if self.facts.physical_id.is_some() {
            if self.memory.interrupted {
                return self.aborted();
            }
            let cx = self.context(cloud);
            let step = if state.is_null() {
                self.driver.start(&cx, &Operation::Delete).await
            } else {
                self.driver.poll(&cx, &Operation::Delete, &state).await
            };
            match step {
                Ok(step) if is_the_same(&step, &state) => return self.poll_again(&step),
                Ok(Step { progress: Progress::Wait { state: next, after }, data, .. }) => {
                    let (attempt, token) = (self.running.attempt, self.running.token.clone());
                    let step = Step { data, ..Step::done() };
                    return self.stepped(step, Phase::Undo(next), attempt, token).next_after(after);
                }
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return self.conflict_or_failed(&failure),
                Ok(_) => {}
            }
        }
        let token = self.backends.chance.uuid().to_string();
        let mut step = Step::done().data(UNMARKED, Value::Null);
        step.physical_id = Some(String::new());
        let after = call_retry::wait(self.running.attempt, None, &self.backends.chance);
        self.stepped(step, Phase::Intent, self.running.attempt, token).next_after(after)
    }

    /// The first call of an idempotent operation.
    async fn begin(&mut self, cloud: &dyn Cloud) -> Advance {
        if self.memory.interrupted && self.memory.ends_at_once() {
            return self.aborted();
        }
        if matches!(self.running.operation, Operation::Update { .. })
            && let Some(advance) = self.release_held(cloud).await
        {
            return advance;
        }
        if self.running.operation == Operation::Check && self.facts.physical_id.is_none() && self.driver.has_object() {
            return self.failed(&Failure::other(Class::NotFound, "The resource was not created.")).into();
        }
        match self.driver.start(&self.context(cloud), &self.running.operation).await {
            Ok(step) => self.report(cloud, step).await,
            Err(failure) => {
                self.memory.may_have_saved |= self.running.operation == Operation::Snapshot && failure.may_have_acted();
                self.unanswered_or_failed(&failure)
            }
        }
    }

    /// Takes over an object: its ID and the data of its driver are given.
    async fn adopt(&mut self, cloud: &dyn Cloud) -> Advance {
        let part = |key: &str| self.adopted.as_ref().and_then(|adopted| adopted.get(key));
        let Some(id) = part("resource_id").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
            return self.failed(&Failure::other(Class::Exception, "Resource ID was not provided.")).into();
        };
        let data = part("resource_data").and_then(Value::as_map).cloned().unwrap_or_default();
        if let Some(imported) = &self.imported
            && let Err(failure) = imported.check(cloud, &self.software).await
        {
            return self.unanswered_or_failed(&failure);
        }
        let step = Step { data, ..Step::done().id(id) }.data(ADOPTED, true);
        self.report(cloud, step).await
    }

    /// Before the first call: the resource's other objects release what this one needs. `None`: nothing is held.
    async fn release_held(&mut self, cloud: &dyn Cloud) -> Option<Advance> {
        for holder in &self.holders {
            let cx = Context { facts: holder, ..self.context(cloud) };
            match self.driver.release(&cx, &self.facts.properties).await {
                Ok(None) => {}
                Ok(Some(after)) => {
                    let object = holder.physical_id.as_deref().unwrap_or_default();
                    self.memory.waits_for = Some(format!("{object} to release what its replacement needs"));
                    self.memory.polls = self.memory.polls.saturating_add(1);
                    return Some(Advance::Again { after: after.max(SHORTEST_POLL), memory: self.memory.clone() });
                }
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Some(self.unanswered_or_failed(&failure)),
            }
        }
        None
    }

    /// Before a delete: makes a snapshot. If that fails, nothing is deleted.
    async fn save_before_delete(&mut self, cloud: &dyn Cloud, state: Value) -> Advance {
        if self.memory.interrupted {
            return self.aborted();
        }
        let cx = self.context(cloud);
        let step = if state.is_null() {
            self.driver.start(&cx, &Operation::Snapshot).await
        } else {
            self.driver.poll(&cx, &Operation::Snapshot, &state).await
        };
        let (attempt, token) = (self.running.attempt, self.running.token.clone());
        match step {
            Ok(step) if is_the_same(&step, &state) => self.poll_again(&step),
            Ok(Step { progress: Progress::Wait { state: next, after }, data, .. }) => {
                let step = Step { data, ..Step::done() };
                self.stepped(step, Phase::Snapshot(next), attempt, token).next_after(after)
            }
            Ok(step) => self.stepped(Step { data: step.data, ..Step::done() }, Phase::Intent, attempt, token).into(),
            // The object is gone: there is nothing to save.
            Err(failure) if state.is_null() && failure.is_not_found() => {
                self.stepped(Step::done(), Phase::Intent, attempt, token).into()
            }
            Err(failure) => self.unanswered_or_failed(&failure),
        }
    }

    async fn delete(&mut self, cloud: &dyn Cloud) -> Advance {
        if self.memory.interrupted {
            return self.aborted();
        }
        if let Some(advance) = self.find_before_delete(cloud).await {
            return advance;
        }
        let cx = self.context(cloud);
        let (step, state) = match &self.running.phase {
            Phase::Wait(state) => (self.driver.poll(&cx, &Operation::Delete, state).await, Some(state.clone())),
            _ => (self.driver.start(&cx, &Operation::Delete).await, None),
        };
        match step {
            Ok(step) if state.is_some_and(|state| is_the_same(&step, &state)) => self.poll_again(&step),
            Ok(step) => self.report(cloud, step).await,
            Err(failure) if failure.is_not_found() => self.ended(Step::done(), None).into(),
            Err(failure) if failure.kind == FailureKind::Conflict && matches!(self.running.phase, Phase::Wait(_)) => {
                // Somebody has reverted the requested state: request it again.
                let attempt = self.running.attempt;
                if attempt >= self.limits.actions {
                    return self.failed(&failure).into();
                }
                let after = call_retry::wait(attempt, Some(&failure), &self.backends.chance);
                self.stepped(Step::done(), Phase::Intent, attempt + 1, self.running.token.clone()).next_after(after)
            }
            Err(failure) => self.conflict_or_failed(&failure),
        }
    }

    /// Before the delete of a resource with a lost create: looks for its object.
    async fn find_before_delete(&mut self, cloud: &dyn Cloud) -> Option<Advance> {
        let lost = self.facts.data.get(LOST_CREATE)?;
        let number = |key| lost.get(key).and_then(Value::as_i64);
        let (lost, until, since) = (lost.str_at("token")?.to_owned(), number("until")?, number("since"));
        if self.facts.physical_id.is_some() || self.driver.is_repeatable() {
            return None;
        }
        // By the wall clock, possibly of another engine: never longer than a call can take.
        let left = until.saturating_sub(self.backends.clock.now().as_microsecond());
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0)).min(self.call_limit);
        let now = self.backends.clock.monotonic();
        let believed_from = *self.memory.lost.get_or_insert(now + left);
        let token = std::mem::replace(&mut self.facts.attempt.token, lost);
        self.facts.attempt.unmarked_since = since;
        let is_believed = is_believed(now, believed_from);
        let found = self.find(cloud, !is_believed).await;
        (self.facts.attempt.token, self.facts.attempt.unmarked_since) = (token, None);
        match found {
            Ok(Verdict::Made(step)) => {
                let id = step.physical_id.clone().unwrap_or_default();
                let step = Step { physical_id: Some(id), progress: Progress::Done, ..step };
                let step = step.data(LOST_CREATE, Value::Null);
                let (attempt, token) = (self.running.attempt, self.running.token.clone());
                Some(self.stepped(step, Phase::Intent, attempt, token).into())
            }
            Ok(Verdict::NotMade) if !is_believed => {
                let after = call_retry::wait(self.memory.polls, None, &self.backends.chance)
                    .min(believed_from.saturating_sub(now));
                self.memory.polls += 1;
                Some(self.pause(after))
            }
            Ok(Verdict::NotMade) => None,
            Ok(Verdict::CannotTell(why)) => {
                let text = format!("It is unknown whether the create left an object behind: {why}.");
                tracing::warn!(resource = self.name, text, "an object may be left behind");
                Some(self.finished(Step::done(), None, Outcome::Done(Some(text))).into())
            }
            Err(failure) => Some(self.unanswered_or_failed(&failure)),
        }
    }

    async fn poll(&mut self, cloud: &dyn Cloud, state: Value) -> Advance {
        if self.memory.interrupted {
            return self.aborted();
        }
        match self.driver.poll(&self.context(cloud), &self.running.operation, &state).await {
            Ok(step) if is_the_same(&step, &state) => self.poll_again(&step),
            Ok(step) => self.report(cloud, step).await,
            Err(failure) if failure.is_passing() => self.unanswered_or_failed(&failure),
            Err(failure) if self.running.operation == Operation::Create => self.retry_create(&failure),
            Err(failure) => self.failed(&failure).into(),
        }
    }

    /// The event for a driver's step.
    async fn report(&mut self, cloud: &dyn Cloud, step: Step) -> Advance {
        match &step.progress {
            Progress::Wait { .. } | Progress::Prepared if self.memory.interrupted => {
                let step = Step { progress: Progress::Done, ..step };
                self.aborted_with(step).into()
            }
            Progress::Wait { state, after } => {
                let (phase, after) = (Phase::Wait(state.clone()), *after);
                let (attempt, token) = (self.running.attempt, self.running.token.clone());
                self.stepped(step, phase, attempt, token).next_after(after)
            }
            Progress::Prepared => {
                let (attempt, token) = (self.running.attempt, self.running.token.clone());
                self.stepped(step, Phase::Intent, attempt, token).into()
            }
            Progress::Replace => {
                let text = format!("The Resource {} requires replacement.", self.name);
                self.finished(step, None, Outcome::Replace(text)).into()
            }
            Progress::Done if self.changes_attributes() => {
                let step = self.with_baseline(step).await;
                self.read(cloud, step).await
            }
            Progress::Done => self.ended(step, None).into(),
        }
    }

    /// Whether the attributes that others read may have changed; those of an adopted object are read for the first
    /// time.
    fn changes_attributes(&self) -> bool {
        match self.running.operation {
            Operation::Create | Operation::Adopt | Operation::Update { .. } => true,
            Operation::Check => !self.wanted.is_empty(),
            _ => false,
        }
    }

    /// The end of a create or update: reads the attributes that others use, and adds the results of the last step.
    async fn read(&mut self, cloud: &dyn Cloud, step: Step) -> Advance {
        if let Some(id) = &step.physical_id {
            self.facts.physical_id = Some(id.clone());
        }
        for (key, value) in &step.data {
            if value.is_null() {
                self.facts.data.shift_remove(key);
            } else {
                self.facts.data.insert(key.clone(), value.clone());
            }
        }
        let names: Vec<&str> = self.wanted.iter().map(String::as_str).collect();
        if names.is_empty() {
            return self.ended(step, Some(Map::new())).into();
        }
        match self.driver.attributes(&self.context(cloud), &names).await {
            Ok(attributes) => self.ended(step, Some(attributes)).into(),
            // The operation is done: store that before the attributes are requested again.
            Err(failure) if failure.is_passing() && self.running.phase != Phase::Read && !self.memory.interrupted => {
                let (attempt, token) = (self.running.attempt, self.running.token.clone());
                let after = call_retry::wait(0, Some(&failure), &self.backends.chance);
                self.stepped(step, Phase::Read, attempt, token).next_after(after)
            }
            Err(failure) => self.unanswered_or_failed(&failure),
        }
    }

    /// The state is unchanged: nothing is stored.
    fn poll_again(&mut self, step: &Step) -> Advance {
        self.memory.waits_for.clone_from(&step.waits_for);
        let after = match step.progress {
            Progress::Wait { after, .. } => after.max(SHORTEST_POLL),
            _ => SHORTEST_POLL,
        };
        self.memory.polls = self.memory.polls.saturating_add(1);
        self.memory.unanswered = 0;
        if self.memory.repeats_after.take().is_some() {
            self.memory.waited = Duration::ZERO;
        }
        self.pause(after)
    }

    fn pause(&mut self, after: Duration) -> Advance {
        self.memory.waited += after;
        Advance::Again { after, memory: self.memory.clone() }
    }

    /// Repeats the step later.
    fn again(&mut self, failure: Option<&Failure>) -> Advance {
        if let Some(failure) = failure {
            self.memory.after(failure);
        }
        let after = call_retry::wait(self.memory.unanswered, failure, &self.backends.chance);
        self.memory.unanswered = self.memory.unanswered.saturating_add(1);
        self.pause(after)
    }

    /// A failed step that is idempotent.
    fn unanswered_or_failed(&mut self, failure: &Failure) -> Advance {
        if failure.kind == FailureKind::Busy && !self.memory.interrupted {
            return self.wait_while_busy(failure);
        }
        let ends = self.memory.interrupted && !self.memory.may_have_saved;
        let patient = self.memory.unanswered < self.limits.calls && !ends;
        if failure.is_passing() && patient {
            tracing::info!(resource = self.name, %failure, "no response to a step, retrying");
            return self.again(Some(failure));
        }
        // An object that may have been created is looked for before the row is deleted.
        if self.memory.lost.is_some() { self.lost(failure) } else { self.failed(failure).into() }
    }

    /// Repeats the step of a busy object after a short delay, without counting: only the timeout of the stack ends it.
    fn wait_while_busy(&mut self, failure: &Failure) -> Advance {
        const DOUBLINGS: u32 = 2;
        self.memory.after(failure);
        let after = call_retry::wait(self.memory.polls.min(DOUBLINGS), Some(failure), &self.backends.chance);
        self.memory.polls = self.memory.polls.saturating_add(1);
        self.memory.unanswered = 0;
        self.pause(after)
    }

    fn conflict_or_failed(&mut self, failure: &Failure) -> Advance {
        if failure.kind != FailureKind::Conflict {
            return self.unanswered_or_failed(failure);
        }
        if self.memory.conflicts >= self.limits.actions || self.memory.interrupted {
            return self.failed(failure).into();
        }
        let after = call_retry::wait(self.memory.conflicts, Some(failure), &self.backends.chance);
        self.memory.after(failure);
        self.memory.conflicts += 1;
        self.pause(after)
    }

    pub(crate) fn stepped(&self, mut step: Step, phase: Phase, attempt: u32, token: String) -> Report {
        let learned = Learned::of(&mut step);
        let (row, physical_id, data) = (self.row, step.physical_id, step.data);
        Report { event: Event::Stepped { row, physical_id, child: None, data, phase, attempt, token }, learned }
    }

    fn ended(&self, step: Step, attributes: Option<Map>) -> Report {
        self.finished(step, attributes, Outcome::Done(None))
    }

    fn failed(&self, failure: &Failure) -> Report {
        let step = Step { physical_id: self.facts.physical_id.clone(), ..Step::done() };
        self.finished(step, None, Outcome::Failed(Blame::of(&self.name, failure)))
    }

    fn aborted(&self) -> Advance {
        let step = Step { physical_id: self.facts.physical_id.clone(), ..Step::done() };
        self.aborted_with(step).into()
    }

    /// The end of a cancelled operation with the results of its last step.
    fn aborted_with(&self, mut step: Step) -> Report {
        step.software.extend(self.driver.cancelled(&self.facts));
        self.finished(step, None, Outcome::Failed(Blame::of(&self.name, &self.abort_failure())))
    }

    fn abort_failure(&self) -> Failure {
        abort_failure(&self.running, &self.memory)
    }

    fn finished(&self, mut step: Step, attributes: Option<Map>, outcome: Outcome) -> Report {
        if self.facts.data.contains_key(UNMARKED) {
            step.data.insert(UNMARKED.to_owned(), Value::Null);
        }
        let learned = Learned::of(&mut step);
        let (row, physical_id, data) = (self.row, step.physical_id, step.data);
        Report { event: Event::Finished { row, physical_id, data, attributes, outcome }, learned }
    }
}

/// The failure of a canceled operation, with Heat's text. When its time has run out, also what it was waiting for.
pub(crate) fn abort_failure(running: &Running, memory: &Memory) -> Failure {
    let mut text = format!("{} aborted (user triggered cancel)", running.operation.action());
    if memory.out_of_time
        && let Some(what) = memory.waits_for.clone().or_else(|| stage(&running.phase))
    {
        text = format!("{text}; it was waiting for {what}");
    }
    Failure::other(Class::ResourceFailure, text)
}

/// The stage of an operation that waits.
fn stage(phase: &Phase) -> Option<String> {
    let (Phase::Wait(state) | Phase::Undo(state) | Phase::Snapshot(state)) = phase else { return None };
    let task = state.get("tasks").and_then(|tasks| tasks.at(0)?.str_at("do"));
    let name = task.or_else(|| state.str_at("stage")).or_else(|| state.as_str())?;
    Some(format!("the end of its stage {name:?}"))
}

/// Whether a poll returned the same state.
fn is_the_same(step: &Step, state: &Value) -> bool {
    step.physical_id.is_none()
        && step.data.is_empty()
        && step.software.is_empty()
        && step.received.is_empty()
        && matches!(&step.progress, Progress::Wait { state: next, .. } if next == state)
}
