//! A circuit breaker for each cloud service: calls to a service that does not respond are suspended for all sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Consecutive failures that open a breaker.
const FAILURES: u32 = 5;
/// The first back-off; it doubles with each failed probe.
const FIRST: Duration = Duration::from_secs(1);
/// The longest back-off, unless the service requests more.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest back-off that a service can request.
const ASKED: Duration = Duration::from_mins(5);

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The service responded, possibly with an error.
    Answered,
    /// No response, or a 5xx status except 501. Contains the back-off that the service requests (`Retry-After`).
    Failed(Option<Duration>),
}

/// The effect of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The service failed several times in a row: the breaker is open now.
    Opened,
    /// The service responds again: the breaker is closed now.
    Closed,
    /// No change to report.
    None,
}

/// Closed: all calls are admitted. After [`FAILURES`] consecutive failures it opens: calls fail immediately, without
/// being sent, for the back-off time. Then one call at a time is admitted as a probe. A failed probe doubles the
/// back-off; any response closes the breaker.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Consecutive failures.
    failures: u32,
    /// How often it has opened since the last response.
    opened: u32,
    /// Open until this time; closed if `None`.
    until: Option<Instant>,
    /// Whether a probe is in progress.
    is_probed: bool,
}

impl Breaker {
    /// Admits a call, or returns the time until calls are admitted again.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Pass, Duration> {
        let mut state = self.state();
        let is_probe = match state.until {
            None => false,
            Some(until) if Instant::now() < until => return Err(until - Instant::now()),
            Some(_) if state.is_probed => return Err(FIRST),
            Some(_) => true,
        };
        state.is_probed |= is_probe;
        Ok(Pass { breaker: Arc::clone(self), is_probe })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that the breaker has admitted. If it is dropped without a report, for example when it is canceled, it has no
/// effect.
#[derive(Debug)]
pub(crate) struct Pass {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl Pass {
    /// Reports the outcome of the call. `chance` is a number in 0..1 that reduces the back-off by up to half, so that
    /// many processes do not probe at once.
    pub(crate) fn report(mut self, verdict: Verdict, chance: f64) -> Change {
        let is_probe = std::mem::take(&mut self.is_probe);
        let mut state = self.breaker.state();
        let asked = match verdict {
            Verdict::Answered => {
                let was_open = state.until.is_some();
                *state = State::default();
                return if was_open { Change::Closed } else { Change::None };
            }
            Verdict::Failed(asked) => asked,
        };
        state.failures = state.failures.saturating_add(1);
        if is_probe {
            state.is_probed = false;
        }
        // Calls that were in progress when it opened have no effect.
        if is_probe || (state.until.is_none() && state.failures >= FAILURES) {
            let back_off = FIRST.saturating_mul(2u32.saturating_pow(state.opened)).min(LONGEST);
            let back_off = back_off.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0);
            let wait = asked.unwrap_or_default().min(ASKED).max(back_off);
            state.opened = state.opened.saturating_add(1);
            state.until = Some(Instant::now() + wait);
            // Later failed probes are not reported.
            if !is_probe {
                return Change::Opened;
            }
        }
        Change::None
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.state().is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Verdict = Verdict::Failed(None);

    /// A breaker that has just opened for the first time.
    fn open(asked: Option<Duration>) -> Arc<Breaker> {
        let breaker = Arc::new(Breaker::default());
        for _ in 0..FAILURES {
            breaker.admit().unwrap().report(Verdict::Failed(asked), 0.0);
        }
        breaker
    }

    #[tokio::test(start_paused = true)]
    async fn opens_after_consecutive_failures_only() {
        let breaker = Arc::new(Breaker::default());
        for verdict in [FAILED, FAILED, FAILED, FAILED, Verdict::Answered, FAILED, FAILED, FAILED, FAILED] {
            assert_eq!(breaker.admit().unwrap().report(verdict, 0.0), Change::None);
        }
        assert_eq!(breaker.admit().unwrap().report(FAILED, 0.0), Change::Opened);
        assert_eq!(breaker.admit().unwrap_err(), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn sends_one_probe_at_a_time_and_doubles_the_back_off() {
        let breaker = open(None);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(breaker.admit().unwrap_err(), Duration::from_secs(seconds));
            tokio::time::advance(Duration::from_secs(seconds)).await;
            let probe = breaker.admit().unwrap();
            assert!(breaker.admit().is_err(), "one probe at a time");
            probe.report(FAILED, 0.0);
        }
        tokio::time::advance(LONGEST).await;
        assert_eq!(breaker.admit().unwrap().report(Verdict::Answered, 0.0), Change::Closed);
        assert!(breaker.admit().is_ok() && breaker.admit().is_ok(), "a response closes it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_canceled_probe_allows_another_one() {
        let breaker = open(None);
        tokio::time::advance(FIRST).await;
        drop(breaker.admit().unwrap());
        assert!(breaker.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_in_progress_do_not_open_it_again() {
        let breaker = Arc::new(Breaker::default());
        let late: Vec<Pass> = (0..20).map(|_| breaker.admit().unwrap()).collect();
        for pass in late {
            pass.report(FAILED, 0.0);
        }
        assert_eq!(breaker.admit().unwrap_err(), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn respects_retry_after_and_randomization() {
        assert_eq!(open(Some(Duration::from_secs(9))).admit().unwrap_err(), Duration::from_secs(9));
        assert_eq!(open(Some(Duration::from_hours(9))).admit().unwrap_err(), ASKED);
        let breaker = Arc::new(Breaker::default());
        for _ in 0..FAILURES {
            breaker.admit().unwrap().report(FAILED, 1.0);
        }
        assert_eq!(breaker.admit().unwrap_err(), FIRST / 2);
    }
}
