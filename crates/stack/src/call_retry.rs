//! How often and how fast an engine retries calls without a response.
//!
//! This is the only place for retries of stack operations: cloud sessions do not retry them. The whole step of an
//! operation is retried, and the operation sleeps meanwhile, so that it can be interrupted and does not count against
//! the concurrency limit. A create is retried only when it is certain that nothing was created (`step.rs`).

use std::time::Duration;

use kiln_resource::Failure;
use tokio::sync::watch;

use crate::backends::Backends;
use crate::clock::{Chance, Clock};

/// Delay before the first retry; it doubles with each retry.
const FIRST: Duration = Duration::from_secs(1);
/// Maximum delay, unless the service requests more.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum delay that a service may request.
const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// Maximum numbers of retries.
#[derive(Clone, Copy, Debug)]
pub struct RetryLimits {
    /// For creates that end in an error or conflict, and deletes with a conflict (Heat's `action_retry_limit`).
    pub actions: u32,
    /// For steps without a response.
    pub calls: u32,
}

/// Delay before retry number `attempt` (from 0): 1 s, 2 s, 4 s … up to half a minute, less a random part, and at least
/// the time that the service requests.
pub fn wait(attempt: u32, failure: Option<&Failure>, chance: &Chance) -> Duration {
    let own = chance.jitter(FIRST.saturating_mul(1 << attempt.min(5)).min(LONGEST));
    let asked = failure.and_then(|failure| failure.retry_after).unwrap_or_default();
    own.max(asked.min(LONGEST_ASKED))
}

/// Waits; false if the engine stops.
pub async fn pause(clock: &dyn Clock, time: Duration, drain: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = drain.wait_for(|stops| *stops) => false,
        () = clock.sleep(time) => true,
    }
}

/// The attempts of a call that is not a step of an operation.
pub struct Attempts {
    backends: Backends,
    retries: u32,
    /// True when the engine stops: then no more attempts are made. `None`: the caller is dropped then.
    drain: Option<watch::Receiver<bool>>,
    made: u32,
}

impl Attempts {
    /// At most so many `retries`; none after the engine stops.
    pub fn new(backends: &Backends, retries: u32, drain: Option<watch::Receiver<bool>>) -> Self {
        Self { backends: backends.clone(), retries, drain, made: 0 }
    }

    /// Waits after an attempt without a response; false if the engine stops.
    pub async fn pause(&mut self, failure: &Failure) -> bool {
        let time = wait(self.made, Some(failure), &self.backends.chance);
        self.made += 1;
        let clock = &self.backends.clock;
        if let Some(drain) = &mut self.drain {
            return pause(&**clock, time, drain).await;
        }
        clock.sleep(time).await;
        true
    }

    /// The final result; `None` after a pause if there was no response and the call is to be repeated.
    pub async fn result<T>(&mut self, answer: Result<T, Failure>) -> Option<Result<T, Failure>> {
        match &answer {
            Err(failure) if failure.is_passing() && self.made < self.retries && self.pause(failure).await => None,
            _ => Some(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_resource::FailureKind;
    use kiln_value::Class;

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
        let mut busy = Failure::new(FailureKind::OverLimit, Class::OverLimit, "");
        busy.retry_after = Some(Duration::from_secs(20));
        assert_eq!(wait(0, Some(&busy), &chance), Duration::from_secs(20));
        busy.retry_after = Some(Duration::from_hours(24));
        assert_eq!(wait(0, Some(&busy), &chance), LONGEST_ASKED);
    }
}
