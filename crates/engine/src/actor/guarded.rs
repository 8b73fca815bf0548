//! The guards that a request heeds.
//!
//! An operation is stored before its call, and each commit returns the row of the stack, which says whether the guards have changed.
//! So a guard that was stored before an operation is known before its call.

use std::sync::Arc;

use kiln_plan::{Event, Guards};
use kiln_resource::{Phase, ResourceId};
use kiln_stack::guards::guards_of;
use kiln_store::Error;

use super::Work;

impl Work {
    /// The guards of the stack.
    pub(super) async fn read_guards(&mut self) -> Result<Option<Arc<Guards>>, Error> {
        self.request.guards = self.stack.guards;
        let backends = &self.actor.backends;
        let guards = guards_of(&*backends.store, &self.stack, backends.clock.now()).await?;
        Ok(guards.map(Arc::new))
    }

    /// Reads the guards again if they have changed while the request is in progress.
    pub(super) async fn heed_new_guards(&mut self) -> Result<(), Error> {
        if self.request.active && self.stack.guards != self.request.guards {
            let guards = self.read_guards().await?;
            self.decide(Event::Guarded(guards));
        }
        Ok(())
    }

    /// What a guard makes of an operation whose first call would be made now.
    pub(super) fn guarded(&self, id: ResourceId) -> Option<Event> {
        let running = self.model.row(id)?.running()?;
        let is_first = running.attempt == 0 && matches!(running.phase, Phase::Intent | Phase::Snapshot(_));
        let failure = self.model.guarded(id).filter(|_| is_first)?;
        Some(self.failed(id, &failure))
    }
}
