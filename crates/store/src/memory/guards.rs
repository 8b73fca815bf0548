//! Guards.

use async_trait::async_trait;
use kiln_resource::GuardId;

use super::MemoryStore;
use super::state::{State, micro, time_of};
use crate::{Author, Error, Guard, GuardStore, StackId, WebhookMessage};

/// A guard, and whether it is lifted.
pub(super) struct StoredGuard {
    pub(super) guard: Guard,
    is_lifted: bool,
}

#[async_trait]
impl GuardStore for MemoryStore {
    async fn add_guard(&self, guard: &Guard) -> Result<(), Error> {
        let (mut state, now) = self.open();
        if state.guards.iter().all(|stored| stored.guard.id != guard.id) {
            let guard = Guard { created: micro(guard.created), ..guard.clone() };
            let told = WebhookMessage::of_guard(&guard, "added", &guard.author, guard.created);
            state.tell_webhooks(&guard.project, told, now);
            state.guards.push(StoredGuard { guard, is_lifted: false });
            state.count_guards();
        }
        Ok(())
    }

    async fn lift_guard(&self, project: &str, id: GuardId, by: &Author) -> Result<bool, Error> {
        let (mut state, now) = self.open();
        let mut live = state.guards.iter_mut().filter(|stored| !stored.is_lifted);
        let Some(found) = live.find(|stored| stored.guard.id == id && stored.guard.project == project) else {
            return Ok(false);
        };
        found.is_lifted = true;
        let told = WebhookMessage::of_guard(&found.guard, "lifted", by, time_of(now));
        state.tell_webhooks(project, told, now);
        state.count_guards();
        Ok(true)
    }

    async fn guards(&self, project: &str) -> Result<Vec<Guard>, Error> {
        let (state, _) = self.open();
        let live = state.guards.iter().filter(|stored| !stored.is_lifted).map(|stored| &stored.guard);
        Ok(live.filter(|guard| guard.project == project).cloned().collect())
    }
}

impl State {
    /// See [`crate::Stack::guards`].
    pub(super) fn guards_of(&self, project: &str) -> i64 {
        let of_project = self.guards.iter().filter(|stored| stored.guard.project == project);
        of_project.map(|stored| 1 + i64::from(stored.is_lifted)).sum()
    }

    /// Deletes the guards of a stack; returns the number of rows.
    pub(super) fn remove_guards_of(&mut self, stack: StackId) -> usize {
        let before = self.guards.len();
        self.guards.retain(|stored| stored.guard.stack != Some(stack));
        self.count_guards();
        before - self.guards.len()
    }

    fn count_guards(&mut self) {
        let mut stacks = std::mem::take(&mut self.stacks);
        for row in stacks.values_mut() {
            row.stack.guards = self.guards_of(&row.stack.project);
        }
        self.stacks = stacks;
    }
}
