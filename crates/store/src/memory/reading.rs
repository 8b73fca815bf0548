//! Reads of single rows and of the rows of a stack. Lists with filters are in `listing`.

use std::collections::BTreeSet;

use kiln_resource::OperationState;
use kiln_value::{Map, Value};

use super::state::State;
use crate::{BriefResources, Digest, Error, Event, EventId, Resource, Stack, StackId, Summary};

impl State {
    pub(super) fn by_name(&self, project: &str, name: &str) -> Option<&Stack> {
        let id = self.names.get(&(project.to_owned(), name.to_owned()))?;
        self.stacks.get(id).map(|row| &row.stack)
    }

    pub(super) fn content(&self, digest: &Digest) -> Result<String, Error> {
        let found = self.contents.get(digest).map(|content| content.body.clone());
        found.ok_or_else(|| Error::NotFound(format!("content {digest}")))
    }

    pub(super) fn event(&self, id: EventId) -> Option<&Event> {
        self.events.get(self.event_places.get(&id)?)
    }

    /// In the order of creation, for all stacks together.
    pub(super) fn resources_of(&self, stacks: &[StackId]) -> Vec<Resource> {
        let stacks: BTreeSet<StackId> = stacks.iter().copied().collect();
        let mut rows: Vec<_> = stacks.into_iter().flat_map(|stack| self.rows_of(stack)).collect();
        rows.sort_by_key(|((_, seq), _)| *seq);
        let rows: Vec<Resource> = rows.into_iter().map(|(_, row)| row.clone()).collect();
        self.count_read(|read| read.resources += rows.len());
        rows
    }

    pub(super) fn resources_of_project(&self, project: &str, which: impl Fn(&Resource) -> bool) -> Vec<Resource> {
        let stacks = self.stacks.values().filter(|row| row.stack.project == project);
        let rows = stacks.flat_map(|row| self.rows_of(row.stack.id));
        let mut rows: Vec<_> = rows.filter(|(_, row)| which(row)).collect();
        rows.sort_by_key(|((_, seq), _)| *seq);
        let rows: Vec<Resource> = rows.into_iter().map(|(_, row)| row.clone()).collect();
        self.count_read(|read| read.resources += rows.len());
        rows
    }

    pub(super) fn resources_named(&self, stack: StackId, name: &str) -> Vec<Resource> {
        let named = self.rows_of(stack).filter(|(_, row)| row.name == name);
        let rows: Vec<Resource> = named.map(|(_, row)| row.clone()).collect();
        self.count_read(|read| read.resources += rows.len());
        rows
    }

    pub(super) fn resources_in_brief(&self, stack: StackId, after: Option<u64>, limit: u64) -> BriefResources {
        let from = after.map_or(0, |after| after + 1);
        let page = self.rows_of(stack).filter(|((_, seq), _)| *seq >= from);
        let mut found = BriefResources::default();
        for ((_, seq), row) in page.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            found.last = Some(*seq);
            found.rows.push(Resource {
                operation: OperationState::Idle,
                definition: None,
                metadata: Value::Null,
                data: Map::new(),
                attributes: Map::new(),
                requires: Vec::new(),
                ..row.clone()
            });
        }
        found
    }

    pub(super) fn count_resources(&self, root: StackId) -> u64 {
        // A tree is the root stack and its nested stacks.
        let mut stacks = vec![root];
        let mut count = 0;
        while let Some(stack) = stacks.pop() {
            stacks.extend(self.nested.get(&stack).into_iter().flatten());
            if self.stacks.get(&stack).is_some_and(|row| row.stack.root == root) {
                count += self.rows_of(stack).count() as u64;
            }
        }
        count
    }

    /// Includes deleted stacks while the resource that waits for them exists.
    pub(super) fn children_of(&self, parent: StackId) -> Vec<Summary> {
        let children = self.nested_stacks(parent);
        self.count_read(|read| read.children += children.len());
        children
    }

    pub(super) fn ended_children(&self, parent: StackId, also: &[StackId]) -> Vec<Summary> {
        let mut children = self.nested_stacks(parent);
        children.retain(|child| {
            let row = self.resource_places.get(&child.resource).and_then(|place| self.resources.get(place));
            let is_awaited = row.is_some_and(|row| row.operation != OperationState::Idle) || also.contains(&child.id);
            is_awaited && child.has_ended()
        });
        self.count_read(|read| read.children += children.len());
        children
    }

    fn nested_stacks(&self, parent: StackId) -> Vec<Summary> {
        let Some(asked) = self.stacks.get(&parent).map(|row| &row.stack) else { return Vec::new() };
        let last_request = asked.updated.unwrap_or(asked.created);
        let nested = self.nested.get(&parent).into_iter().flatten();
        let mut children: Vec<(&Stack, Summary)> = nested
            .filter_map(|id| self.stacks.get(id))
            .filter_map(|row| Some((&row.stack, row.stack.parent.as_ref()?.resource)))
            .filter(|(stack, resource)| {
                let seen = stack.deleted.is_none_or(|deleted| deleted >= last_request);
                seen || self.resource_places.contains_key(resource)
            })
            .map(|(stack, resource)| (stack, summary(stack, resource)))
            .collect();
        children.sort_by_key(|(stack, _)| (stack.created, stack.id));
        children.into_iter().map(|(_, summary)| summary).collect()
    }
}

fn summary(stack: &Stack, resource: crate::ResourceId) -> Summary {
    Summary {
        id: stack.id,
        resource,
        state: stack.state,
        reason: stack.reason.clone(),
        generation: stack.generation,
        settled: stack.settled,
        deleted: stack.deleted.is_some(),
    }
}
