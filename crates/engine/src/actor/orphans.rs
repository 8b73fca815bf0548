//! Resources that are forgotten because their objects cannot be deleted.

use kiln_plan::{Event, Note};
use kiln_resource::Parting;
use kiln_store::{Message, Orphan};

use super::Work;

impl Work {
    /// Forgets a resource, if its delete failed or is in progress; returns whether that is settled. A delete in progress
    /// is interrupted first: then the message waits for its end.
    pub(super) fn forget_resource(&mut self, message: &Message, parting: &Parting) -> bool {
        let name = message.resource.clone().unwrap_or_default();
        for row in self.model.forgettable(&name) {
            self.decide(Event::Forgotten { row, parting: Box::new(parting.clone()) });
        }
        if self.model.forgettable(&name).is_empty() {
            self.writes.handled(message.id);
            return true;
        }
        false
    }

    /// The entry of a forgotten resource in the list of orphans.
    pub(super) fn orphan(&self, note: Note, parting: Parting) -> Orphan {
        let reason = [parting.reason, note.reason].into_iter().filter(|part| !part.is_empty());
        Orphan {
            id: note.row,
            project: self.root.project.clone(),
            stack: self.root.id,
            stack_name: self.root.name.clone(),
            path: parting.path,
            resource_type: note.kind.0,
            physical_id: note.physical_id,
            region: parting.region,
            user_id: parting.user_id,
            username: parting.username,
            reason: reason.collect::<Vec<_>>().join(": "),
            time: self.actor.backends.clock.now(),
        }
    }
}
