//! Leases.

use std::collections::BTreeSet;
use std::time::Duration;

use super::state::{LeaseRow, State, micros_of};
use crate::limits::CLAIMS;
use crate::{EngineId, Lease, Silent, StackId};

impl LeaseRow {
    /// Whether the lease has expired.
    fn is_over(&self, now: i64) -> bool {
        self.expires <= now
    }

    /// Whether the lease ends later than possible, because the clock was set back after the claim.
    fn is_from_the_future(&self, now: i64) -> bool {
        self.expires.saturating_sub(self.ttl) > now
    }

    fn extend(&mut self, ttl: Duration, now: i64) {
        self.expires = now.saturating_add(micros_of(ttl));
        self.ttl = micros_of(ttl);
    }

    /// The next lease.
    fn swap(&mut self, stack: StackId, owner: EngineId, ttl: Duration, idle: Duration, now: i64) -> Lease {
        let clean = self.released == self.epoch;
        self.owner = Some(owner);
        self.epoch += 1;
        self.extend(ttl, now);
        Lease { stack, owner, epoch: self.epoch, clean, idle, at: now }
    }
}

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
            let Some(row) = self.stacks.get_mut(&stack) else { continue };
            let lease = &mut row.lease;
            let is_gone = lease.owner.is_none_or(|owner| !engines.contains_key(&owner));
            if lease.expires == 0 || is_gone && lease.is_over(now) {
                leases.push(lease.swap(stack, owner, ttl, Duration::ZERO, now));
            } else if is_gone && lease.is_from_the_future(now) {
                lease.extend(ttl, now);
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
            let Some(lease) = self.stacks.get(&stack).map(|row| &row.lease).filter(|lease| lease.expires > 0) else {
                continue;
            };
            let left = silent.iter().find(|silent| lease.owner == Some(silent.engine) && self.is_still(silent));
            let is_over = lease.is_over(now) || lease.is_from_the_future(now);
            let forgotten = lease.owner == Some(owner) && is_over && !held.contains(&stack);
            if !seen.insert(stack) || left.is_none() && !forgotten {
                continue;
            }
            let idle = left.map_or(Duration::ZERO, |silent| silent.idle);
            leases.extend(self.stacks.get_mut(&stack).map(|row| row.lease.swap(stack, owner, ttl, idle, now)));
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
        self.stacks.get(&lease.stack).is_some_and(|row| {
            let stored = &row.lease;
            stored.owner == Some(lease.owner) && stored.epoch == lease.epoch && stored.expires > 0
        })
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
                row.lease.expires = 0;
                row.lease.released = lease.epoch;
            }
        }
        let stacks: Vec<StackId> = leases.iter().map(|lease| lease.stack).collect();
        let work = if stacks.is_empty() { BTreeSet::new() } else { self.work(&stacks, now) };
        work.into_iter().map(|(_, stack)| stack).collect()
    }
}
