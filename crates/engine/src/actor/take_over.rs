//! Operations that another engine has begun.
//!
//! An engine that fails may have called a create whose object appears later, up to `call_limit` after the end of its
//! lease. How long that still takes is stored with the operation ([`Phase::Lost`]), so that engines which take over one
//! after the other do not restart the wait. It is counted from the last report of the engine before its claim: the next
//! one has seen by its own clock for how long there was no later report, whatever the clock of the database says. While an
//! engine waits, it stores how much is left: an engine on SQLite takes over at once, and has seen no silence at all.

use std::time::Duration;

use kiln_resource::{LostCall, Phase};
use kiln_store::Lease;

/// The number of times that a wait is stored while it lasts.
const STORED_STEPS: u32 = 16;

/// What the engine knows about the calls of the previous owner of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TakeOver {
    epoch: i64,
    call_limit: Duration,
    /// How long after the claim the effects of all its calls are visible; `None`: it had no call in progress.
    left: Option<Duration>,
    /// For how long it had certainly not reported before the claim.
    silence: Duration,
    /// The last report of this engine before the claim, by its monotonic clock.
    reported: Duration,
    /// The time from that report to the claim.
    age: Duration,
}

impl TakeOver {
    /// `reported`: the last report of this engine before the claim, `claimed`: a time after the claim, both by its monotonic
    /// clock.
    pub(crate) fn new(lease: &Lease, call_limit: Duration, reported: Duration, claimed: Duration) -> Self {
        let left = (!lease.clean).then(|| call_limit.saturating_sub(lease.idle));
        let age = claimed.saturating_sub(reported);
        Self { epoch: lease.epoch, call_limit, left, silence: lease.silence, reported, age }
    }

    /// The phase of a create that the previous owner has left in this phase. All its calls were made before the claim.
    pub(crate) fn phase(&self, left: &Phase) -> Phase {
        let left = match left {
            Phase::Lost(lost) if lost.epoch == self.epoch - 1 => {
                Some(lost.left.saturating_sub(self.silence).min(self.call_limit))
            }
            Phase::Intent | Phase::Lost(_) => self.left,
            other => return other.clone(),
        };
        left.map_or(Phase::Intent, |left| Phase::Lost(LostCall { left: self.age + left, epoch: self.epoch }))
    }

    /// The end of the wait by the monotonic clock of this engine.
    pub(crate) fn believed_from(&self, lost: &LostCall) -> Duration {
        self.reported + lost.left
    }
}

/// What is left of a wait that ends at `believed_from`, as the next engine needs it: counted from the last
/// report of this engine after which the lease was renewed, because what others had seen before it is no longer of use for a
/// claim. `None`: it is not much less than what is stored.
pub(crate) fn shorter(
    stored: &LostCall,
    believed_from: Duration,
    reported: Duration,
    call_limit: Duration,
) -> Option<LostCall> {
    let left = believed_from.saturating_sub(reported);
    (left + call_limit / STORED_STEPS <= stored.left).then_some(LostCall { left, ..*stored })
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

    /// The claim of epoch 5, at 13 s of the engine, which has reported at 10 s. The last owner has not reported for 35 s,
    /// and made no call for 20 s.
    fn take_over(clean: bool) -> TakeOver {
        let (stack, owner) = (StackId(uuid::Uuid::nil()), EngineId(uuid::Uuid::nil()));
        let (silence, idle) = (Duration::from_secs(35), Duration::from_secs(20));
        let lease = Lease { stack, owner, epoch: 5, clean, silence, idle };
        TakeOver::new(&lease, LIMIT, Duration::from_secs(10), Duration::from_secs(13))
    }

    fn lost(seconds: u64, epoch: i64) -> Phase {
        Phase::Lost(LostCall { left: Duration::from_secs(seconds), epoch })
    }

    #[test]
    fn a_call_of_the_failed_engine_is_lost_until_the_limit_after_its_lease() {
        assert_eq!(take_over(false).phase(&Phase::Intent), lost(58, 5));
        assert_eq!(take_over(true).phase(&Phase::Intent), Phase::Intent);
    }

    #[test]
    fn the_next_engine_does_not_restart_the_wait() {
        for clean in [false, true] {
            assert_eq!(take_over(clean).phase(&lost(40, 4)), lost(8, 5));
            assert_eq!(take_over(clean).phase(&lost(30, 4)), lost(3, 5));
            assert_eq!(take_over(clean).phase(&lost(9_999, 4)), lost(78, 5), "never longer than a call takes");
        }
    }

    #[test]
    fn an_engine_in_between_that_did_not_know_the_phase_may_have_called() {
        assert_eq!(take_over(false).phase(&lost(40, 3)), lost(58, 5));
        assert_eq!(take_over(true).phase(&lost(40, 3)), Phase::Intent);
    }

    #[test]
    fn engines_that_each_live_for_a_short_time_wait_together() {
        let (stack, owner) = (StackId(uuid::Uuid::nil()), EngineId(uuid::Uuid::nil()));
        let (second, mut stored, mut lives) = (Duration::from_secs(1), Phase::Intent, 0);
        for epoch in 5.. {
            // The next one proves by a file lock that its predecessor is dead. It lives for 10 s, and reports each second.
            let lease = Lease { stack, owner, epoch, clean: false, silence: Duration::ZERO, idle: Duration::ZERO };
            let taken_over = TakeOver::new(&lease, LIMIT, second, second);
            stored = taken_over.phase(&stored);
            let Phase::Lost(lost) = stored else { panic!("{stored:?}") };
            lives += 1;
            let (died, believed_from) = (11 * second, taken_over.believed_from(&lost));
            if is_believed(died, believed_from) {
                break;
            }
            stored = Phase::Lost(shorter(&lost, believed_from, 9 * second, LIMIT).unwrap());
        }
        assert_eq!(lives, 10, "8 of 10 seconds are never waited for again");
        let lost = LostCall { left: 60 * second, epoch: 5 };
        assert_eq!(shorter(&lost, 61 * second, 4 * second, LIMIT), None, "not worth a write");
    }

    #[test]
    fn the_wait_is_counted_from_the_report() {
        let lost = LostCall { left: Duration::from_secs(58), epoch: 5 };
        assert_eq!(take_over(false).believed_from(&lost), Duration::from_secs(68));
    }
}
