//! How often and how fast an engine retries calls without a response.
//!
//! This is the only place for retries of stack operations: cloud sessions do not retry them. The whole step of an
//! operation is retried, and the operation sleeps meanwhile, so that it can be interrupted and does not count against
//! the concurrency limit. A create is retried only when it is certain that nothing was created (`step.rs`).

use std::time::Duration;

use kiln_resource::Failure;

use crate::clock::Chance;

/// Delay before the first retry; it doubles with each retry.
const FIRST: Duration = Duration::from_secs(1);
/// Maximum delay, unless the service requests more.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum delay that a service may request.
const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// Maximum numbers of retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    /// For creates that end in an error or conflict, and deletes with a conflict (Heat's `action_retry_limit`).
    pub(crate) actions: u32,
    /// For steps without a response.
    pub(crate) calls: u32,
}

/// Delay before retry number `attempt` (from 0): 1 s, 2 s, 4 s … up to half a minute, less a random part, and at least
/// the time that the service requests.
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
