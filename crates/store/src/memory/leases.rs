//! Leases.

use std::collections::BTreeSet;
use std::time::Duration;

use super::state::State;
use crate::limits::CLAIMS;
use crate::{EngineId, Lease, Silent, StackId};

impl State {
    pub(super) fn claim(
        &mut self,
        owner: EngineId,
        ttl: Duration,
        work: BTreeSet<(i64, StackId)>,
        limit: usize,
        now: i64,
    ) -> Vec<Lease> {
        let limit = limit.min(CLAIMS);
        let mut leases = Vec::new();
        let mut seen = BTreeSet::new();
        for (_, stack) in work {
            if leases.len() >= limit {
                break;
            }
            if !seen.insert(stack) {
                continue;
            }
            let engines = &self.engines;
            let Some(row) = self.stacks.get_mut(&stack).map(|row| &mut row.lease) else { continue };
            let is_known = row.owner.is_some_and(|owner| engines.contains_key(&owner));
            if row.is_free(is_known, now) {
                let lease = row.next(stack, owner, None);
                row.claimed(&lease, ttl, now);
                leases.push(lease);
            } else if !is_known && row.is_from_the_future(now) {
                row.extend(ttl, now);
            }
        }
        leases
    }

    pub(super) fn take_over(
        &mut self,
        owner: EngineId,
        ttl: Duration,
        silent: &[Silent],
        held: &[StackId],
        limit: usize,
        now: i64,
    ) -> Vec<Lease> {
        let limit = limit.min(CLAIMS);
        let (mut leases, mut seen) = (Vec::new(), BTreeSet::new());
        for (_, stack) in self.work(&[], now) {
            if leases.len() >= limit {
                break;
            }
            let Some(mut row) = self.stacks.get(&stack).map(|row| row.lease) else { continue };
            let left = row.silent_owner(silent, |silent| self.is_still(silent));
            let is_forgotten = row.is_forgotten(owner, now) && !held.contains(&stack);
            if !seen.insert(stack) || left.is_none() && !is_forgotten {
                continue;
            }
            let lease = row.next(stack, owner, left);
            row.claimed(&lease, ttl, now);
            self.stacks.entry(stack).and_modify(|stored| stored.lease = row);
            leases.push(lease);
        }
        leases
    }

    /// Stacks with work, oldest first, whether or not they are leased.
    pub(super) fn work(&self, only: &[StackId], now: i64) -> BTreeSet<(i64, StackId)> {
        if only.is_empty() {
            let messages = self.due.iter().take_while(|(due, ..)| *due <= now).map(|(due, stack, _)| (*due, *stack));
            // A stack may occur twice.
            return self.pending.iter().copied().chain(messages).collect();
        }
        let due = |stack: &StackId| {
            let pending = self.stacks.get(stack)?.due;
            Some((pending.into_iter().chain(self.oldest_due(*stack, now)).min()?, *stack))
        };
        only.iter().filter_map(due).collect()
    }

    /// Whether a stack belongs to none of these projects.
    pub(super) fn is_of_others(&self, stack: StackId, projects: &[String]) -> bool {
        self.stacks.get(&stack).is_some_and(|row| !projects.contains(&row.stack.project))
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
        let work = if stacks.is_empty() { BTreeSet::new() } else { self.work(&stacks, now) };
        work.into_iter().map(|(_, stack)| stack).collect()
    }
}
