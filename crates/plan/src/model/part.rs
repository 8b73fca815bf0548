//! Resources that are forgotten because their objects cannot be deleted.

use kiln_resource::{Action, Operation, Parting, Resource, ResourceId, State, Status};

use super::{Model, Stage};
use crate::event::{Command, Note};

impl Model {
    /// The rows of a name that may be forgotten: their delete failed or is in progress. The row of a nested stack is
    /// kept, because it leads to the resources of that stack.
    pub fn forgettable(&self, name: &str) -> Vec<ResourceId> {
        let deletes = |row: &&Resource| row.state.action == Action::Delete && row.state.status != Status::Complete;
        self.rows_of(name).filter(deletes).filter(|row| row.child.is_none()).map(|row| row.id).collect()
    }

    /// Forgets a resource: at once, or when its delete, which is interrupted, has not succeeded. The current row of a
    /// resource that the running request wants is kept.
    pub(super) fn part_with(&mut self, id: ResourceId, parting: Box<Parting>, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get(&id) else { return };
        if self.busy.contains_key(&id) {
            let deletes = row.running().is_some_and(|running| running.operation == Operation::Delete);
            if deletes && self.parting.insert(id, parting).is_none() {
                out.push(Command::Interrupt(id));
            }
            return;
        }
        if self.stage == Stage::Idle || !self.stays(id) {
            self.orphan(id, parting, out);
        }
    }

    /// Removes the row and records its object as an orphan.
    pub(super) fn orphan(&mut self, id: ResourceId, parting: Box<Parting>, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get(&id) else { return };
        let failed = Note::of(row, row.state, row.reason.clone());
        let object = row.physical_id.as_deref().unwrap_or("that may exist");
        let reason = format!("Forgotten by {}: the object {object} is left in the cloud", parting.username);
        let gone = Note::of(row, State::new(Action::Delete, Status::Complete), reason);
        out.push(Command::Note(Box::new(gone)));
        out.push(Command::Orphan(Box::new(failed), parting));
        if let Some((_, node)) = self.held.remove(&id) {
            let next = self.traversal.graph.done(node);
            self.forget(id, out);
            return self.visit_all(next, out);
        }
        self.forget(id, out);
    }
}
