//! The rows of a stack: selection of the current row, and changes of rows.

use std::collections::{BTreeMap, BTreeSet};

use kiln_resource::{Action, OperationState, Resource, ResourceId, State};
use kiln_value::{Map, Value};

use super::Model;
use crate::event::{Command, Note};

impl Model {
    /// The row of each name that is shown to users: that of the newest request, in a rollback of the oldest.
    pub fn shown(&self, back: bool) -> BTreeMap<&str, &Resource> {
        let mut shown: BTreeMap<&str, &Resource> = BTreeMap::new();
        let age = |row: &Resource| {
            let age = if back { -row.generation } else { row.generation };
            (!(back && self.replaces_another(row)), age, row.created, row.id)
        };
        for row in self.rows.values() {
            let newer = shown.get(row.name.as_str()).is_none_or(|other| age(row) > age(other));
            if newer {
                shown.insert(&row.name, row);
            }
        }
        shown
    }

    /// The rows that are shown to users, by name.
    pub fn into_shown(mut self, back: bool) -> Vec<Resource> {
        let ids: Vec<ResourceId> = self.shown(back).into_values().map(|row| row.id).collect();
        ids.into_iter().filter_map(|id| self.rows.remove(&id)).collect()
    }

    /// Sets the stack and the time of change of a row.
    pub fn stamp(&mut self, id: ResourceId, stack: kiln_resource::StackId, now: jiff::Timestamp) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.stack = stack;
            row.updated = now;
            if row.created == jiff::Timestamp::UNIX_EPOCH {
                row.created = now;
            }
        }
    }

    /// Sets the metadata of a row.
    pub fn set_metadata(&mut self, id: ResourceId, metadata: Value) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.metadata = metadata;
        }
    }

    /// Sets the phase of the running operation of a row.
    pub fn set_phase(&mut self, id: ResourceId, phase: kiln_resource::Phase) {
        if let Some(row) = self.rows.get_mut(&id)
            && let kiln_resource::OperationState::Running(running) = &mut row.operation
        {
            running.phase = phase;
        }
    }

    /// Sets the nested stack of a row.
    pub fn set_child(&mut self, id: ResourceId, child: kiln_resource::StackId) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.child = Some(child);
        }
    }

    /// Whether a row was created as a replacement of one that still exists. A rollback does not return to it, even
    /// after it has set the other one to the same generation.
    fn replaces_another(&self, row: &Resource) -> bool {
        row.replaces.is_some_and(|other| self.rows.contains_key(&other))
    }

    /// Selects the current row of each name. Failed, replaced and partly deleted rows come last; then in a rollback the
    /// oldest, else the newest is preferred (as in Heat, docs/heat-behaviour.md §2).
    pub(super) fn choose_current(&mut self) {
        let back = self.request.action == Action::Rollback;
        let score = |row: &Resource| {
            let failed = if row.state.failed() { -30 } else { 0 };
            let deleting = if row.state.action == Action::Delete { -50 } else { 0 };
            let age = if back { -row.generation } else { row.generation };
            let later = if back { self.replaces_another(row) } else { row.replaced_by.is_some() };
            (failed + deleting - i32::from(later), age, row.updated, row.id)
        };
        let mut current: BTreeMap<String, ResourceId> = BTreeMap::new();
        for row in self.rows.values() {
            let better = match current.get(&row.name).and_then(|id| self.rows.get(id)) {
                Some(other) => score(row) > score(other),
                None => true,
            };
            if better {
                current.insert(row.name.clone(), row.id);
            }
        }
        self.current = current;
    }

    /// Whether a row is only waiting to be created.
    pub(super) fn is_unmade(&self, id: ResourceId) -> bool {
        self.rows.get(&id).is_some_and(|row| row.state == State::INIT)
    }

    pub(super) fn insert(
        &mut self,
        name: &str,
        old: Option<ResourceId>,
        id: ResourceId,
        (resource_type, implementation): (String, String),
        out: &mut Vec<Command>,
    ) {
        // The engine sets stack and times.
        let (stack, created) = (kiln_resource::StackId(uuid::Uuid::nil()), jiff::Timestamp::UNIX_EPOCH);
        let mut row = Resource::new(stack, id, name, &resource_type, created);
        row.implementation = implementation;
        row.replaces = old;
        row.generation = self.request.generation;
        self.rows.insert(id, row);
        self.named.entry(name.to_owned()).or_default().push(id);
        self.current.insert(name.to_owned(), id);
        if let Some(old) = old.and_then(|old| self.rows.get_mut(&old)) {
            old.replaced_by = Some(id);
            if old.operation == OperationState::MustReplace {
                old.operation = OperationState::Idle;
            }
            self.traversal.clean_up_later(name, old.id);
            out.push(Command::Save(old.id));
        }
    }

    pub(super) fn required_rows(&self, id: ResourceId) -> Vec<ResourceId> {
        let names = self.rows.get(&id).and_then(|row| self.wanted.get(&row.name));
        let rows: BTreeSet<ResourceId> =
            names.into_iter().flatten().filter_map(|name| self.current.get(name)).copied().collect();
        rows.into_iter().collect()
    }

    pub(super) fn learn(&mut self, id: ResourceId, physical_id: Option<String>, data: Map) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if physical_id.is_some() {
            // An empty ID means that the object no longer exists.
            row.physical_id = physical_id.filter(|id| !id.is_empty());
        }
        for (key, value) in data {
            if value.is_null() {
                row.data.shift_remove(&key);
            } else {
                row.data.insert(key, value);
            }
        }
    }

    /// Stores attributes of an unchanged resource.
    pub(super) fn know(&mut self, name: &str, attributes: Map, out: &mut Vec<Command>) {
        let Some(row) = self.current.get(name).and_then(|id| self.rows.get_mut(id)) else { return };
        if !attributes.is_empty() {
            row.attributes.extend(attributes);
            out.push(Command::Save(row.id));
        }
    }

    pub(super) fn set_state(&mut self, id: ResourceId, state: State, reason: String, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.state = state;
        row.reason.clone_from(&reason);
        out.push(Command::Save(id));
        out.push(Command::Note(Box::new(Note::of(row, state, reason))));
    }

    pub(super) fn forget(&mut self, id: ResourceId, out: &mut Vec<Command>) {
        let Some(row) = self.rows.remove(&id) else { return };
        if let Some(rows) = self.named.get_mut(&row.name) {
            rows.retain(|other| *other != id);
        }
        if self.current.get(&row.name) == Some(&id) {
            self.current.remove(&row.name);
        }
        out.push(Command::Remove(id));
    }
}
