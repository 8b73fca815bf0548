//! A breaker for each service of the cloud: a service that does not answer is left alone for a time, by all sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open a breaker.
const FAILURES: u32 = 5;
/// The first back-off; it doubles with each probe that fails.
const FIRST: Duration = Duration::from_secs(1);
/// The longest back-off, unless the service asks for more.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest back-off that a service can ask for.
const ASKED: Duration = Duration::from_mins(5);

/// How a call came out, for the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The service answered, if only with a refusal.
    Answered,
    /// No answer, or 5xx but 501. With how long the service asks to be left alone (`Retry-After`).
    Failed(Option<Duration>),
}

/// What a verdict changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The service has not answered several times in a row: it is left alone now.
    Sick,
    /// It answers again.
    Well,
    /// Nothing that anybody must know.
    None,
}

/// Closed: all calls go through. After [`FAILURES`] in a row without an answer it opens: calls fail at once, without
/// being sent, for a back-off time. Then one call at a time goes through as a probe. A probe that fails doubles the
/// back-off; any answer closes the breaker.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures in a row.
    failures: u32,
    /// How often it has opened since the last answer.
    opened: u32,
    /// Open until then; closed if none.
    until: Option<Instant>,
    /// Whether a probe is under way.
    is_probed: bool,
}

impl Breaker {
    /// Lets a call through, or says how long calls are not to be sent.
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

/// A call that a breaker has let through. Dropped without a verdict, as when the caller gives up, it tells nothing.
#[derive(Debug)]
pub(crate) struct Pass {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl Pass {
    /// Tells how the call came out. `chance` is a number in 0..1 that takes up to half off the back-off, so that many
    /// processes do not probe at once.
    pub(crate) fn report(mut self, verdict: Verdict, chance: f64) -> Turn {
        let is_probe = std::mem::take(&mut self.is_probe);
        let mut state = self.breaker.state();
        let asked = match verdict {
            Verdict::Answered => {
                let was_open = state.until.is_some();
                *state = State::default();
                return if was_open { Turn::Well } else { Turn::None };
            }
            Verdict::Failed(asked) => asked,
        };
        state.failures = state.failures.saturating_add(1);
        if is_probe {
            state.is_probed = false;
        }
        // Calls that were under way when it opened change nothing.
        if is_probe || (state.until.is_none() && state.failures >= FAILURES) {
            let back_off = FIRST.saturating_mul(2u32.saturating_pow(state.opened)).min(LONGEST);
            let back_off = back_off.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0);
            let wait = asked.unwrap_or_default().min(ASKED).max(back_off);
            state.opened = state.opened.saturating_add(1);
            state.until = Some(Instant::now() + wait);
            // Probes that fail later are no news.
            if !is_probe {
                return Turn::Sick;
            }
        }
        Turn::None
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
    async fn opens_after_failures_in_a_row_only() {
        let breaker = Arc::new(Breaker::default());
        for verdict in [FAILED, FAILED, FAILED, FAILED, Verdict::Answered, FAILED, FAILED, FAILED, FAILED] {
            assert_eq!(breaker.admit().unwrap().report(verdict, 0.0), Turn::None);
        }
        assert_eq!(breaker.admit().unwrap().report(FAILED, 0.0), Turn::Sick);
        assert_eq!(breaker.admit().unwrap_err(), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn probes_one_at_a_time_and_backs_off_longer() {
        let breaker = open(None);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(breaker.admit().unwrap_err(), Duration::from_secs(seconds));
            tokio::time::advance(Duration::from_secs(seconds)).await;
            let probe = breaker.admit().unwrap();
            assert!(breaker.admit().is_err(), "one probe at a time");
            probe.report(FAILED, 0.0);
        }
        tokio::time::advance(LONGEST).await;
        assert_eq!(breaker.admit().unwrap().report(Verdict::Answered, 0.0), Turn::Well);
        assert!(breaker.admit().is_ok() && breaker.admit().is_ok(), "an answer closes it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_given_up_makes_room_for_another() {
        let breaker = open(None);
        tokio::time::advance(FIRST).await;
        drop(breaker.admit().unwrap());
        assert!(breaker.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_under_way_do_not_open_it_again() {
        let breaker = Arc::new(Breaker::default());
        let late: Vec<Pass> = (0..20).map(|_| breaker.admit().unwrap()).collect();
        for pass in late {
            pass.report(FAILED, 0.0);
        }
        assert_eq!(breaker.admit().unwrap_err(), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn heeds_the_service_and_chance() {
        assert_eq!(open(Some(Duration::from_secs(9))).admit().unwrap_err(), Duration::from_secs(9));
        assert_eq!(open(Some(Duration::from_hours(9))).admit().unwrap_err(), ASKED);
        let breaker = Arc::new(Breaker::default());
        for _ in 0..FAILURES {
            breaker.admit().unwrap().report(FAILED, 1.0);
        }
        assert_eq!(breaker.admit().unwrap_err(), FIRST / 2);
    }
}
