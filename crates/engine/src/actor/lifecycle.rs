//! Lets a request begin: checks it in the cloud if that is asked for, and runs lifecycle plug-ins before an operation. Requests
//! their run after it.
//!
//! Before: the plug-ins run until one fails; then it is stored that the operation may begin. If the engine fails or stops
//! before that, the next one runs them again. After: the run is an entry of the outbox, stored in one commit with the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kiln_plan_document::{Check, Verdict};
use kiln_resource::{Action, State};
use kiln_stack::gather::bug;
use kiln_store::{Batch, Error, Event};

use super::{CurrentRequest, Work};
use crate::lifecycle::{Plugins, before};
use crate::preflight::Preflight;

/// The failures of a pre-flight that a reason names at most.
const NAMED: usize = 5;
/// The events of a pre-flight at most.
const MOST_EVENTS: usize = 20;

/// Whether a request may begin.
pub(super) enum Admission {
    Given,
    /// Why it may not.
    Refused(String),
    /// There is a newer request.
    Superseded,
    /// The engine stops: the next one asks again.
    Postponed,
}

impl Work {
    /// Checks the current request and runs the plug-ins before it, unless that is done. They may take long: the time of the
    /// request, a cancel, a newer request and the stop of the engine end them.
    pub(super) async fn admit(&mut self, request: &mut CurrentRequest, deadline: Duration) -> Result<Admission, Error> {
        let plugins = self.actor.plugins.clone();
        let preflight = self.preflight();
        request.plugins_passed = plugins.count();
        if (plugins.count() == 0 && preflight.is_none()) || self.stack.details.admitted {
            return Ok(Admission::Given);
        }
        if *self.actor.drain.borrow() {
            return Ok(Admission::Postponed);
        }
        self.starting = None;
        let _waiting = self.actor.room.leave();
        request.plugins_passed = 0;
        let mut events = Vec::new();
        if let Some(preflight) = preflight {
            let stack = self.stack.clone();
            let run = async { preflight.check(&stack).await.map_err(|error| error.to_string()) };
            let checks = match self.unless_ended(run, request.generation, deadline).await? {
                Ok(checks) => checks,
                Err(end) => return Ok(end),
            };
            match self.preflight_events(checks) {
                Ok(passed) => events = passed,
                Err(_) if self.stack.generation > request.generation => return Ok(Admission::Superseded),
                Err(reason) => return Ok(Admission::Refused(reason)),
            }
        }
        let document = before(&self.stack);
        // Another engine may have the lease by now: plug-ins are not fenced, the commit is.
        for plugin in plugins.iter() {
            match self.unless_ended(plugin.run(&document), request.generation, deadline).await? {
                Ok(Ok(())) => request.plugins_passed += 1,
                Ok(Err(_)) if self.stack.generation > request.generation => return Ok(Admission::Superseded),
                Ok(Err(error)) => {
                    let (stack, action) = (self.stack.id, self.stack.state.action);
                    let reason = format!("Lifecycle plug-in {} failed: {error}", plugin.name());
                    tracing::warn!(%stack, %action, reason, "an operation may not begin");
                    return Ok(Admission::Refused(reason));
                }
                Err(end) => return Ok(end),
            }
        }
        let batch = Batch { admit: Some(request.generation), events, ..Batch::default() };
        self.stack = self.actor.backends.store.commit(self.actor.lease, batch).await?;
        let is_current = self.stack.generation == request.generation;
        Ok(if is_current { Admission::Given } else { Admission::Superseded })
    }

    /// Waits for the result of something before the request; the outer error says what came first.
    async fn unless_ended<T>(
        &mut self,
        run: impl Future<Output = Result<T, String>> + Send,
        generation: i64,
        deadline: Duration,
    ) -> Result<Result<Result<T, String>, Admission>, Error> {
        let run = AssertUnwindSafe(run).catch_unwind();
        let ended = tokio::select! {
            // The run begins before the first look at what ends it, also if the request is cancelled already.
            biased;
            result = run => Ok(result.unwrap_or_else(|_| Err(bug().message))),
            end = self.end_of_admission(generation, deadline) => Err(end?),
        };
        // Nobody else has looked at nested stacks meanwhile, and the look at the stack may have been interrupted.
        self.actor.wake.notify_one();
        Ok(ended)
    }

    /// The checks of the current request, if it is to be checked. A request with a plan was checked with it, and objects
    /// that are adopted exist.
    fn preflight(&self) -> Option<Arc<dyn Preflight>> {
        let (stack, details) = (&self.stack, &self.stack.details);
        let is_change = matches!(stack.state.action, Action::Create | Action::Update);
        let preflight = self.actor.preflight.clone().filter(|_| is_change && stack.parent.is_none())?;
        let is_wanted = details.preflight || preflight.is_for_all();
        (is_wanted && details.planned.is_none() && !stack.adopts()).then_some(preflight)
    }

    /// The events of what the pre-flight has found; the error is why the request must not begin.
    fn preflight_events(&self, checks: Result<Vec<Check>, String>) -> Result<Vec<Event>, String> {
        let checks = checks.unwrap_or_else(|message| vec![Check::skipped("store", message)]);
        let failures: Vec<String> =
            checks.iter().filter(|one| one.verdict == Verdict::Fail).map(Check::text).take(NAMED).collect();
        if !failures.is_empty() {
            return Err(format!("The pre-flight failed, and nothing was changed: {}", failures.join("; ")));
        }
        let found = checks.iter().filter(|one| one.verdict != Verdict::Passed).take(MOST_EVENTS);
        let event = |one: &Check| {
            self.stack_event(self.stack.state, format!("Pre-flight {} {}", one.verdict.word(), one.text()))
        };
        Ok(found.map(event).collect())
    }

    /// Waits for what ends a plug-in before its end.
    async fn end_of_admission(&mut self, generation: i64, deadline: Duration) -> Result<Admission, Error> {
        let (clock, wake) = (Arc::clone(&self.actor.backends.clock), Arc::clone(&self.actor.wake));
        let mut drain = self.actor.drain.clone();
        loop {
            if self.stack.generation > generation {
                return Ok(Admission::Superseded);
            }
            if self.inbox.is_cancelled(generation) {
                return Ok(Admission::Refused(format!("Stack {} cancelled", self.stack.state.action)));
            }
            let left = deadline.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return Ok(Admission::Refused("Timed out".to_owned()));
            }
            tokio::select! {
                biased;
                _ = drain.wait_for(|stops| *stops) => return Ok(Admission::Postponed),
                () = wake.notified() => {}
                () = clock.sleep(left.min(self.actor.options.look)) => {}
            }
            self.read_stack().await?;
        }
    }

    /// The operation ends in this state.
    pub(super) fn run_plugins_after(&mut self, state: State, reason: &str) {
        let run = Plugins::run_after(self.request.plugins_passed, &self.stack, state, reason);
        self.writes.plugin_runs.extend(run);
    }
}
