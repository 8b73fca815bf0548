//! The events of a stack.

use jiff::Timestamp;
use kiln_plan::Note;
use kiln_plan::kind::TEMPLATE;
use kiln_resource::physical_name::physical_name;
use kiln_resource::{Action, State, Status};
use kiln_store::{Event, EventId};
use kiln_value::Value;

use super::Work;

impl Work {
    /// An event of a resource.
    pub(super) fn resource_event(&mut self, note: Note) -> Event {
        let (id, time) = self.id_of_event();
        self.time_operation(&note, time);
        // Before there is an ID, the physical resource name.
        let physical_id = note.physical_id.unwrap_or_else(|| {
            let kind = self.kind_of(&note.name, &note.kind.1);
            let limit = kind.map_or(255, |kind| kind.resource_type().physical_name_limit);
            physical_name(&self.stack.name, &note.name, note.row.0, limit)
        });
        let mut properties = note.properties;
        self.mask_properties(&note.name, &mut properties);
        Event {
            id,
            stack: self.stack.id,
            root: self.stack.root,
            resource_name: note.name,
            resource_type: note.kind.0,
            physical_id: Some(physical_id),
            action: note.action.to_owned(),
            status: note.status,
            reason: note.reason,
            properties,
            operation: self.stack.is_pending().then(|| self.stack.operation()),
            time,
        }
    }

    /// Measures creates, updates and deletes from their first event to their last one. One that another engine has begun is
    /// not measured.
    fn time_operation(&mut self, note: &Note, now: Timestamp) {
        let implementation = &note.kind.1;
        let Ok(action @ (Action::Create | Action::Update | Action::Delete)) = note.action.parse() else { return };
        if implementation == TEMPLATE {
            return;
        }
        if note.status == Status::InProgress {
            self.begun.insert(note.row, now);
        } else if let Some(begun) = self.begun.remove(&note.row)
            && note.status == Status::Complete
            && let Ok(time) = now.duration_since(begun).try_into()
        {
            self.actor.backends.caches.stopwatch.add(implementation, action, time);
        }
    }

    fn id_of_event(&self) -> (EventId, Timestamp) {
        let backends = &self.actor.backends;
        let time = backends.clock.now();
        (EventId(backends.chance.uuid_of(time)), time)
    }

    /// An event of the stack itself.
    pub(super) fn stack_event(&self, state: State, reason: String) -> Event {
        let (stack, name, project) = (self.stack.id, &self.stack.name, &self.stack.project);
        // An operation that fails is what operators search for.
        if state.status == Status::Failed {
            tracing::warn!(%stack, name, project, %state, reason, "stack");
        } else {
            tracing::info!(%stack, name, project, %state, reason, "stack");
        }
        let (id, time) = self.id_of_event();
        Event {
            id,
            stack: self.stack.id,
            root: self.stack.root,
            resource_name: self.stack.name.clone(),
            resource_type: "OS::Heat::Stack".to_owned(),
            physical_id: Some(self.stack.id.to_string()),
            action: state.action.to_string(),
            status: state.status,
            reason,
            properties: Value::Null,
            operation: self.stack.is_pending().then(|| self.stack.operation()),
            time,
        }
    }
}
