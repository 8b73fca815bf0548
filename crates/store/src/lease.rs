//! Leases, and what may happen to one.
//!
//! A claim compares the row that it has read with the stored one, and increments the epoch. A lease that nobody has claimed
//! still belongs to its owner, whatever its expiry, because nobody else can have written. The store in memory, the queries
//! of the databases (`sql/leases.rs`) and the model of the protocol (`crates/engine/src/protocol.rs`) follow these rules.

use std::time::Duration;

use jiff::Timestamp;

use crate::{EngineId, StackId};

/// An engine that has not reported for longer than a lease lives, as another engine has observed by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Silent {
    /// The engine.
    pub engine: EngineId,
    /// Its last report ([`crate::EngineInfo::seen`]): a later one contradicts the observation.
    pub seen: Timestamp,
    /// How long it has certainly not reported.
    pub silence: Duration,
    /// How long it can have made no call.
    pub idle: Duration,
}

impl Silent {
    /// Whether the engine has not reported since.
    pub fn is_still(&self, last_report: Option<Timestamp>) -> bool {
        last_report == Some(self.seen)
    }
}

/// The stacks with work that an engine claims.
#[derive(Clone, Copy, Debug)]
pub enum Claimable<'a> {
    /// Those without a lease.
    Free,
    /// Of these, those without a lease.
    Named(&'a [StackId]),
    /// Those without a lease that do not belong to these projects, so that other projects get their turn.
    OfOtherProjects(&'a [String]),
    /// Those with a lease that nobody works under: a lease of a silent engine, or one of the claiming engine that is not in
    /// `held` and was not renewed within its time to live, by the database's clock.
    LeftBehind {
        /// The silent engines.
        silent: &'a [Silent],
        /// The stacks that the claiming engine works on.
        held: &'a [StackId],
    },
}

/// The right of one engine to work on one stack, until it is released or another engine has found that its owner is
/// [`Silent`]. Each claim increments the epoch, and writes with an old epoch are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The stack.
    pub stack: StackId,
    /// The engine.
    pub owner: EngineId,
    /// Number of this claim.
    pub epoch: i64,
    /// Whether the previous owner released the lease with no call in progress, or there was no owner. An expired lease
    /// is not clean.
    pub clean: bool,
    /// How long the previous owner has certainly not reported, by the clock of the claiming engine.
    pub silence: Duration,
    /// How long the previous owner can have made no call, by the clock of the claiming engine.
    pub idle: Duration,
}

/// A lease as it is stored; initially without owner and with epoch 0. Times are microseconds since the epoch, by the
/// database's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeaseRow {
    /// The last engine that claimed it.
    pub owner: Option<EngineId>,
    /// The number of its last claim.
    pub epoch: i64,
    /// When it expires; 0: released, or never claimed.
    pub expires: i64,
    /// The time to live.
    pub ttl: i64,
    /// The epoch that was released cleanly.
    pub released: i64,
}

impl LeaseRow {
    /// Whether any engine may claim it; `is_known`: its owner has a row.
    pub fn is_free(&self, is_known: bool, now: i64) -> bool {
        self.expires == 0 || !is_known && self.expires <= now
    }

    /// The observation for which it may be taken over from its owner; `is_still` tells whether it is still true.
    pub fn silent_owner<'a>(&self, silent: &'a [Silent], is_still: impl Fn(&Silent) -> bool) -> Option<&'a Silent> {
        silent.iter().find(|silent| self.expires > 0 && self.owner == Some(silent.engine) && is_still(silent))
    }

    /// Whether its owner, which does not hold it, may claim it again: it has not received the response to its claim.
    pub fn is_forgotten(&self, owner: EngineId, now: i64) -> bool {
        self.expires > 0 && self.owner == Some(owner) && (self.expires <= now || self.is_from_the_future(now))
    }

    /// Whether it ends later than possible, because the clock was set back after the claim.
    pub fn is_from_the_future(&self, now: i64) -> bool {
        self.expires.saturating_sub(self.ttl) > now
    }

    /// The lease that its next owner gets; `silent`: the observation for which it is taken over.
    pub fn next(&self, stack: StackId, owner: EngineId, silent: Option<&Silent>) -> Lease {
        let (silence, idle) = silent.map_or_else(Default::default, |silent| (silent.silence, silent.idle));
        Lease { stack, owner, epoch: self.epoch + 1, clean: self.released == self.epoch, silence, idle }
    }

    /// The row of that lease.
    pub fn claimed(&mut self, lease: &Lease, ttl: Duration, now: i64) {
        (self.owner, self.epoch) = (Some(lease.owner), lease.epoch);
        self.extend(ttl, now);
    }

    /// Lives for its time to live from now.
    pub fn extend(&mut self, ttl: Duration, now: i64) {
        self.ttl = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 4);
        self.expires = now.saturating_add(self.ttl);
    }

    /// Whether the engine of the lease may write, renew and release.
    pub fn is_current(&self, lease: &Lease) -> bool {
        self.owner == Some(lease.owner) && self.epoch == lease.epoch && self.expires > 0
    }

    /// Anybody may claim it, and knows that no call is in progress.
    pub fn release(&mut self) {
        (self.expires, self.released) = (0, self.epoch);
    }
}
