//! Changes of rows.

use std::collections::BTreeSet;

use kiln_resource::{OperationState, Resource, ResourceId, State};
use kiln_value::Map;

use super::Model;
use crate::event::{Command, Note};

impl Model {
    /// The rows that are shown to users, by name.
    pub fn into_shown(mut self, rollback: Option<i64>) -> Vec<Resource> {
        let ids: Vec<ResourceId> = self.shown(rollback).into_values().map(|row| row.id).collect();
        ids.into_iter().filter_map(|id| self.rows.remove(&id)).collect()
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
        let mut row = Resource::new(self.request.stack, id, name, &resource_type, self.now);
        row.implementation = implementation;
        row.replaces = old;
        if let Some(old) = old.and_then(|old| self.rows.get(&old)) {
            row.inherit_names(old);
        }
        row.generation = self.request.generation;
        self.rows.insert(row);
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
