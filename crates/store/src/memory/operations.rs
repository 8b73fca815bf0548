//! Operations.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{State, micro};
use crate::limits::{EVENTS, STACKS};
use crate::operation::End;
use crate::{Error, Operation, OperationId, OperationQuery, OperationStore, Operations, Settle, Stack, StackId};

#[async_trait]
impl OperationStore for MemoryStore {
    async fn operations(&self, query: &OperationQuery) -> Result<Vec<Operation>, Error> {
        let (state, _) = self.open();
        let is_it = |id: OperationId| move |(_, operation): &(&u64, &Operation)| operation.id == id;
        let before = match query.marker {
            Some(marker) => match state.operations.iter().find(is_it(marker)) {
                Some((seq, _)) => *seq,
                None => return Err(Error::NotFound(format!("operation {marker}"))),
            },
            None => u64::MAX,
        };
        let is_asked = |operation: &&Operation| match query.of {
            Operations::OfTree(root) => operation.root == root,
            Operations::Revisions(stack) => operation.stack == stack && operation.desired.is_some(),
        };
        let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let newest_first = state.operations.range(..before).rev().map(|(_, operation)| operation);
        Ok(newest_first.filter(is_asked).take(limit).cloned().collect())
    }

    async fn operation(&self, root: StackId, id: OperationId) -> Result<Option<Operation>, Error> {
        let (state, _) = self.open();
        let mut all = state.operations.values();
        Ok(all.find(|operation| operation.id == id && operation.root == root).cloned())
    }

    async fn revision(&self, stack: StackId, generation: i64) -> Result<Option<Operation>, Error> {
        let (state, _) = self.open();
        let mut all = state.operations.values().filter(|operation| operation.desired.is_some());
        Ok(all.find(|operation| operation.stack == stack && operation.generation == generation).cloned())
    }
}

impl State {
    /// Appends an operation that a request began.
    pub(super) fn begin_operation(&mut self, operation: Operation) {
        let seq = self.next();
        self.operations.insert(seq, Operation { begun: micro(operation.begun), ..operation });
    }

    /// Writes the end of a stack's operation, if its request is one of its own.
    pub(super) fn end_operation(&mut self, stack: &Stack, settle: &Settle) {
        if stack.details.operation.is_some() || stack.generation != settle.generation {
            return;
        }
        let is_it =
            |one: &&mut Operation| one.stack == stack.id && one.generation == settle.generation && one.end.is_none();
        if let Some(operation) = self.operations.values_mut().find(is_it) {
            let (time, status, reason) = (micro(settle.now), settle.state.status, settle.reason.clone());
            operation.end = Some(End { time, status, reason });
        }
    }

    pub(super) fn forget_operations(&mut self, keep: u64) -> usize {
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        let mut stacks: BTreeMap<StackId, Vec<u64>> = BTreeMap::new();
        for (seq, operation) in &self.operations {
            stacks.entry(operation.stack).or_default().push(*seq);
        }
        let large = stacks.into_values().filter(|operations| operations.len() > keep).take(STACKS);
        let old: BTreeSet<u64> = large
            .flat_map(|operations| {
                let old = operations.len() - keep;
                operations.into_iter().take(old.min(EVENTS))
            })
            .collect();
        self.operations.retain(|seq, _| !old.contains(seq));
        old.len()
    }
}
