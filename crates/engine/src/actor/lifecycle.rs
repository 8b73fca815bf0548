//! Runs lifecycle plug-ins before an operation, and requests their run after it.
//!
//! Before: the plug-ins run until one fails; then it is stored that the operation may begin. If the engine fails before
//! that, the next one runs them again. After: the run is an entry of the outbox, stored in one commit with the end.

use kiln_resource::State;
use kiln_store::{Batch, Error};

use super::Work;
use crate::lifecycle::{Barred, Plugins};

impl Work {
    /// Runs the plug-ins before the current request, unless that is done. Returns why it may not begin.
    pub(super) async fn bar(&mut self) -> Result<Option<String>, Error> {
        let plugins = self.actor.plugins.clone();
        self.request.plugins_passed = plugins.count();
        if plugins.count() == 0 || self.stack.details.admitted {
            return Ok(None);
        }
        // They may take long.
        self.starting = None;
        // Another engine may have the lease by now: plug-ins are not fenced, the commit is.
        if let Err(Barred { passed, reason }) = plugins.before(&self.stack).await {
            self.request.plugins_passed = passed;
            return Ok(Some(reason));
        }
        let batch = Batch { admit: Some(self.request.generation), ..Batch::default() };
        self.stack = self.actor.backends.store.commit(self.actor.lease, batch).await?;
        self.again |= self.stack.generation > self.request.generation;
        Ok(None)
    }

    /// The operation ends in this state.
    pub(super) fn run_plugins_after(&mut self, state: State, reason: &str) {
        let run = Plugins::run_after(self.request.plugins_passed, &self.stack, state, reason);
        self.writes.plugin_runs.extend(run);
    }
}
