//! Resources that wait at a hook.

use kiln_resource::{Action, ResourceId};

use super::{Model, Stage};
use crate::event::{Command, Note};
use crate::graph::Index;
use crate::hook::{Hook, Reached};

impl Model {
    /// Stops a node at a hook of its resource, unless there is none or it is already cleared in this request. Returns
    /// whether the node waits.
    pub(super) fn hold(&mut self, id: ResourceId, node: Index, hook: Hook, out: &mut Vec<Command>) -> bool {
        let (action, generation) = (self.request.action, self.request.generation);
        let Some(row) = self.rows.get_mut(&id) else { return false };
        let has = hook.applies_to(action) && self.request.hooks.get(&row.name).is_some_and(|own| own.contains(&hook));
        let reached = Reached::of(row).filter(|reached| reached.generation == generation);
        // After the operation there are only the hooks after it.
        let passed = reached.is_some_and(|reached| {
            if reached.hook == hook { !reached.waits } else { hook.is_before() && !reached.hook.is_before() }
        });
        if !has || passed {
            return false;
        }
        Reached { hook, generation, waits: true }.store(row);
        let reason = format!("{} paused until Hook {hook} is cleared", hook.operation());
        out.extend([Command::Save(id), Command::Note(Box::new(Note::of(row, row.state, reason)))]);
        self.held.insert(id, (hook, node));
        true
    }

    /// A previous engine has stopped the node of this row at a hook: it still waits.
    pub(super) fn still_held(&mut self, id: ResourceId, node: Index) -> bool {
        let waits = self.rows.get(&id).and_then(Reached::of);
        let Some(reached) = waits.filter(|one| one.waits && one.generation == self.request.generation) else {
            return false;
        };
        self.held.insert(id, (reached.hook, node));
        true
    }

    /// A user has cleared a hook of a resource: of all its rows that wait there.
    pub(super) fn clear_hook(&mut self, name: &str, hook: Hook, out: &mut Vec<Command>) {
        let waiting: Vec<ResourceId> =
            self.rows_of(name).filter(|row| crate::hook::waits_at(row) == Some(hook)).map(|row| row.id).collect();
        for id in waiting {
            self.leave_hook(id, format!("Hook {hook} is cleared"), out);
            let Some((_, node)) = self.held.remove(&id) else { continue };
            if self.stage != Stage::Going {
                continue;
            }
            if hook == Hook::PostDelete {
                self.forget(id, out);
                let next = self.traversal.graph.done(node);
                self.visit_all(next, out);
                continue;
            }
            // Also after the operation, the node decides again: the operation may have been that of an earlier engine, which
            // read other values than there are now.
            self.visit_all(vec![node], out);
        }
    }

    /// The request has failed, or another one begins: nobody waits at a hook any more. A request that another engine
    /// continues is still the same.
    pub(super) fn drop_holds(&mut self, out: &mut Vec<Command>) {
        self.held.clear();
        let is_left = |reached: Reached| {
            reached.waits && (reached.generation != self.request.generation || self.stage != Stage::Going)
        };
        let left: Vec<ResourceId> =
            self.rows.values().filter(|row| Reached::of(row).is_some_and(is_left)).map(|row| row.id).collect();
        for id in left {
            self.leave_hook(id, "Failure occurred while waiting.".to_owned(), out);
        }
    }

    fn leave_hook(&mut self, id: ResourceId, reason: String, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if let Some(reached) = Reached::of(row) {
            Reached { waits: false, ..reached }.store(row);
        }
        out.extend([Command::Save(id), Command::Note(Box::new(Note::of(row, row.state, reason)))]);
    }

    /// The hook after an operation that has ended.
    pub(super) fn hook_after(action: Action) -> Option<Hook> {
        match action {
            Action::Create => Some(Hook::PostCreate),
            Action::Update => Some(Hook::PostUpdate),
            Action::Delete => Some(Hook::PostDelete),
            _ => None,
        }
    }
}
