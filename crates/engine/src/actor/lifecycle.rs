//! Runs lifecycle plug-ins before an operation, and requests their run after it.
//!
//! Before: the plug-ins run until one fails; then it is stored that the operation may begin. If the engine fails or stops
//! before that, the next one runs them again. After: the run is an entry of the outbox, stored in one commit with the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kiln_resource::State;
use kiln_stack::gather::bug;
use kiln_store::{Batch, Error};

use super::{CurrentRequest, Work};
use crate::lifecycle::{Plugins, before};

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
    /// Runs the plug-ins before the current request, unless that is done. They may take long: the time of the request, a
    /// cancel, a newer request and the stop of the engine end a plug-in.
    pub(super) async fn admit(&mut self, request: &mut CurrentRequest, deadline: Duration) -> Result<Admission, Error> {
        let plugins = self.actor.plugins.clone();
        request.plugins_passed = plugins.count();
        if plugins.count() == 0 || self.stack.details.admitted {
            return Ok(Admission::Given);
        }
        if *self.actor.drain.borrow() {
            return Ok(Admission::Postponed);
        }
        self.starting = None;
        let _waiting = self.actor.room.leave();
        request.plugins_passed = 0;
        let document = before(&self.stack);
        // Another engine may have the lease by now: plug-ins are not fenced, the commit is.
        for plugin in plugins.iter() {
            let run = AssertUnwindSafe(plugin.run(&document)).catch_unwind();
            let ended = tokio::select! {
                // The run begins before the first look at what ends it, also if the request is cancelled already.
                biased;
                result = run => Ok(result.unwrap_or_else(|_| Err(bug().message))),
                end = self.end_of_admission(request.generation, deadline) => Err(end?),
            };
            // Nobody else has looked at nested stacks meanwhile, and the look at the stack may have been interrupted.
            self.actor.wake.notify_one();
            match ended {
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
        let batch = Batch { admit: Some(request.generation), ..Batch::default() };
        self.stack = self.actor.backends.store.commit(self.actor.lease, batch).await?;
        let is_current = self.stack.generation == request.generation;
        Ok(if is_current { Admission::Given } else { Admission::Superseded })
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
