//! Operations that another engine has begun.
//!
//! An engine that fails may have called a create whose object appears later, up to `call_limit` after the end of its
//! lease. That time is stored with the operation ([`Phase::Lost`]), so that engines which take over one after the other
//! do not restart the wait.

use std::time::Duration;

use kiln_resource::{LostCall, Phase};
use kiln_stack::clock::micros;
use kiln_store::Lease;

/// What the engine knows about the calls of the previous owner of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TakeOver {
    /// When the effects of all its calls are visible, by the database's clock; `None`: it had no call in progress.
    until: Option<i64>,
    epoch: i64,
    /// The claim, by the database's clock, and a later time by the monotonic clock of this engine.
    claimed: (i64, Duration),
    call_limit: Duration,
}

impl TakeOver {
    pub(crate) fn new(lease: &Lease, call_limit: Duration, now: Duration) -> Self {
        let ended = lease.at.saturating_sub(micros(lease.idle));
        let until = (!lease.clean).then(|| ended.saturating_add(micros(call_limit)));
        Self { until, epoch: lease.epoch, claimed: (lease.at, now), call_limit }
    }

    /// The phase of a create that the previous owner has left in this phase.
    pub(crate) fn phase(&self, left: &Phase) -> Phase {
        let until = match left {
            Phase::Lost(lost) if lost.epoch == self.epoch - 1 => Some(lost.until),
            Phase::Intent | Phase::Lost(_) => self.until,
            other => return other.clone(),
        };
        until.map_or(Phase::Intent, |until| Phase::Lost(LostCall { until, epoch: self.epoch }))
    }

    /// The same time by the monotonic clock. The database's clock may have been set back, so it is never further away
    /// than a call takes.
    pub(crate) fn believed_from(&self, lost: &LostCall) -> Duration {
        let (at, now) = self.claimed;
        let left = Duration::from_micros(u64::try_from(lost.until.saturating_sub(at)).unwrap_or(0));
        now + left.min(self.call_limit)
    }
}

/// Whether a search that found nothing proves that nothing was created. It tells about the time when it was asked, even if
/// the answer comes late.
pub(crate) fn is_believed(asked: Duration, believed_from: Duration) -> bool {
    asked >= believed_from
}

#[cfg(test)]
mod tests {
    use kiln_store::{EngineId, StackId};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(75);

    /// The claim of epoch 5 at 1,000 s of the database and 10 s of the engine, 20 s after the end of the last lease.
    fn take_over(clean: bool) -> TakeOver {
        let (stack, owner) = (StackId(uuid::Uuid::nil()), EngineId(uuid::Uuid::nil()));
        let lease = Lease { stack, owner, epoch: 5, clean, idle: Duration::from_secs(20), at: 1_000_000_000 };
        TakeOver::new(&lease, LIMIT, Duration::from_secs(10))
    }

    fn lost(seconds: i64, epoch: i64) -> Phase {
        Phase::Lost(LostCall { until: seconds * 1_000_000, epoch })
    }

    #[test]
    fn a_call_of_the_failed_engine_is_lost_until_the_limit_after_its_lease() {
        assert_eq!(take_over(false).phase(&Phase::Intent), lost(1_055, 5));
        assert_eq!(take_over(true).phase(&Phase::Intent), Phase::Intent);
    }

    #[test]
    fn the_next_engine_does_not_restart_the_wait() {
        for clean in [false, true] {
            assert_eq!(take_over(clean).phase(&lost(1_003, 4)), lost(1_003, 5));
        }
    }

    #[test]
    fn an_engine_in_between_that_did_not_know_the_phase_may_have_called() {
        assert_eq!(take_over(false).phase(&lost(1_003, 3)), lost(1_055, 5));
        assert_eq!(take_over(true).phase(&lost(1_003, 3)), Phase::Intent);
    }

    #[test]
    fn the_wait_ends_by_the_monotonic_clock_and_is_never_longer_than_a_call() {
        let wait = |until| take_over(false).believed_from(&LostCall { until, epoch: 5 });
        assert_eq!(wait(1_003_000_000), Duration::from_secs(13));
        assert_eq!(wait(999_000_000), Duration::from_secs(10));
        assert_eq!(wait(9_999_000_000), Duration::from_secs(85));
    }
}
