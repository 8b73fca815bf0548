//! Leases.

use std::collections::BTreeSet;
use std::time::Duration;

use super::state::State;
use crate::{Claimable, EngineId, Lease, LeaseRow, StackId};

impl State {
    /// The stacks with work among which an engine claims, oldest first.
    pub(super) fn candidates(&self, claimable: Claimable<'_>, now: i64) -> Vec<StackId> {
        let only = if let Claimable::Named(stacks) = claimable { Some(stacks) } else { None };
        let mut seen = BTreeSet::new();
        let stacks = self.work(only, now).into_iter().map(|(_, stack)| stack);
        stacks.filter(|stack| seen.insert(*stack) && self.is_among(*stack, claimable)).collect()
    }

    /// Claims a stack, if it may be claimed and still has work.
    pub(super) fn claim(
        &mut self,
        stack: StackId,
        owner: EngineId,
        ttl: Duration,
        claimable: Claimable<'_>,
        now: i64,
    ) -> Option<Lease> {
        let mut row = self.stacks.get(&stack)?.lease;
        let lease = self.next_lease(stack, &row, owner, claimable, now);
        let lease = lease.filter(|_| !self.work(Some(&[stack]), now).is_empty());
        let is_left_behind = matches!(claimable, Claimable::LeftBehind { .. });
        if let Some(lease) = &lease {
            row.claimed(lease, ttl, now);
        } else if !is_left_behind && !self.is_known(row.owner) && row.is_from_the_future(now) {
            row.extend(ttl, now);
        }
        self.stacks.get_mut(&stack)?.lease = row;
        lease
    }

    /// The lease that an engine gets if it may claim the stack.
    fn next_lease(
        &self,
        stack: StackId,
        row: &LeaseRow,
        owner: EngineId,
        claimable: Claimable<'_>,
        now: i64,
    ) -> Option<Lease> {
        let Claimable::LeftBehind { silent, held } = claimable else {
            return row.is_free(self.is_known(row.owner), now).then(|| row.next(stack, owner, None));
        };
        let left = row.silent_owner(silent, |silent| self.is_still(silent));
        let is_forgotten = row.is_forgotten(owner, now) && !held.contains(&stack);
        (left.is_some() || is_forgotten).then(|| row.next(stack, owner, left))
    }

    fn is_known(&self, owner: Option<EngineId>) -> bool {
        owner.is_some_and(|owner| self.engines.contains_key(&owner))
    }

    fn is_among(&self, stack: StackId, claimable: Claimable<'_>) -> bool {
        let Claimable::OfOtherProjects(projects) = claimable else { return true };
        self.stacks.get(&stack).is_some_and(|row| !projects.contains(&row.stack.project))
    }

    /// Stacks with work, all or only these, oldest first, whether or not they are leased.
    pub(super) fn work(&self, only: Option<&[StackId]>, now: i64) -> BTreeSet<(i64, StackId)> {
        let Some(only) = only else {
            let messages = self.due.iter().take_while(|(due, ..)| *due <= now).map(|(due, stack, _)| (*due, *stack));
            // A stack may occur twice.
            return self.pending.iter().copied().chain(messages).collect();
        };
        let due = |stack: &StackId| {
            let pending = self.stacks.get(stack)?.due;
            Some((pending.into_iter().chain(self.oldest_due(*stack, now)).min()?, *stack))
        };
        only.iter().filter_map(due).collect()
    }

    /// Whether the engine of the lease may write.
    pub(super) fn is_current(&self, lease: Lease) -> bool {
        self.stacks.get(&lease.stack).is_some_and(|row| row.lease.is_current(&lease))
    }

    /// Extends a lease; false if it is no longer held.
    pub(super) fn extend(&mut self, lease: Lease, ttl: Duration, now: i64) -> bool {
        if !self.is_current(lease) {
            return false;
        }
        if let Some(row) = self.stacks.get_mut(&lease.stack) {
            row.lease.extend(ttl, now);
        }
        true
    }

    /// Releases leases; returns the given stacks that have work, whether or not the lease was held.
    pub(super) fn give_back(&mut self, leases: &[Lease], now: i64) -> BTreeSet<StackId> {
        for lease in leases.iter().filter(|lease| self.is_current(**lease)).copied().collect::<Vec<_>>() {
            if let Some(row) = self.stacks.get_mut(&lease.stack) {
                row.lease.release();
            }
        }
        let stacks: Vec<StackId> = leases.iter().map(|lease| lease.stack).collect();
        self.work(Some(&stacks), now).into_iter().map(|(_, stack)| stack).collect()
    }
}
