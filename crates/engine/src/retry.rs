//! How often and how fast an engine repeats what a cloud did not answer.
//!
//! This is the one place for calls of stacks: sessions with a cloud do not repeat them. A step of an operation that was
//! not answered is repeated whole, and the operation sleeps until then, so that it can be interrupted and holds no
//! room.
//! A create is repeated only when it is certain that nothing was made (`step.rs`).

use std::time::Duration;

use kiln_resource::Failure;

use crate::clock::Chance;

/// The wait before the first repetition; it doubles with each.
const FIRST: Duration = Duration::from_secs(1);
/// No wait is longer, unless the service asks for more.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest wait that a service may ask for.
const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// How often something is repeated after the first attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    /// Creates that end in error or conflict, and deletes that conflict (Heat's `action_retry_limit`).
    pub(crate) actions: u32,
    /// Steps that were not answered.
    pub(crate) calls: u32,
}

/// The wait before repetition number `attempt` (from 0): 1 s, 2 s, 4 s … up to half a minute, less a random part, and
/// at
/// least what the service asked for.
pub(crate) fn wait(attempt: u32, failure: Option<&Failure>, chance: &Chance) -> Duration {
    let own = chance.jitter(FIRST.saturating_mul(1 << attempt.min(5)).min(LONGEST));
    let asked = failure.and_then(|failure| failure.retry_after).unwrap_or_default();
    own.max(asked.min(LONGEST_ASKED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_resource::FailureKind;

    #[test]
    fn waits_double_end_and_heed_the_service() {
        let chance = Chance::seeded(1);
        for (attempt, seconds) in [(0, 1), (1, 2), (2, 4), (4, 16), (5, 30), (90, 30)] {
            let longest = Duration::from_secs(seconds);
            for _ in 0..50 {
                let wait = wait(attempt, None, &chance);
                assert!(wait <= longest && wait >= longest / 2, "{attempt}: {wait:?}");
            }
        }
        let mut busy = Failure::new(FailureKind::OverLimit, "OverLimit", "");
        busy.retry_after = Some(Duration::from_secs(20));
        assert_eq!(wait(0, Some(&busy), &chance), Duration::from_secs(20));
        busy.retry_after = Some(Duration::from_hours(24));
        assert_eq!(wait(0, Some(&busy), &chance), LONGEST_ASKED);
    }
}
