//! Clocks that jump forward, also by minutes: the database is continued on a host that is ahead, or a wall clock is set.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::scenario::{Fault, FaultKind, Scenario, When};

/// Adds jumps to a part of the scenarios, some of them while a call is in progress. They have their own random numbers, so
/// that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x4a55_4d50);
    let rng = &mut rng;
    if !rng.random_bool(0.15) {
        return;
    }
    for _ in 0..rng.random_range(1..=3) {
        let ms = if rng.random_bool(0.3) { rng.random_range(1_000..60_000) } else { rng.random_range(60_000..900_000) };
        let what = if rng.random_bool(0.7) {
            FaultKind::StoreClockForward(ms)
        } else {
            FaultKind::ClockForward(rng.random_range(0..scenario.engines.len()), ms)
        };
        let when = if rng.random_bool(0.5) {
            When::Sent(rng.random_range(1..60))
        } else {
            When::Time(rng.random_range(0..scenario.calm_ms))
        };
        scenario.faults.push(Fault { when, for_ms: rng.random_range(500..120_000), what });
    }
}
