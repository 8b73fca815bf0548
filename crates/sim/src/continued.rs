//! Failed operations that users continue, and kills during that.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::scenario::{Ask, Fault, FaultKind, Scenario, UserAction, When};

/// Lets users continue what has failed in a part of the scenarios, some time after a request, and kills engines soon after.
/// It has its own random numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x636f_6e74);
    let rng = &mut rng;
    if !rng.random_bool(0.25) {
        return;
    }
    let changes = scenario.actions.iter().filter(|action| {
        matches!(action.ask, Ask::Create(_) | Ask::Update(_) | Ask::Cancel | Ask::Delete) && rng.random_bool(0.7)
    });
    let changes: Vec<(u64, usize)> = changes.map(|action| (action.at_ms, action.stack)).collect();
    for (since, stack) in changes {
        let at_ms = since + rng.random_range(3_000..60_000);
        scenario.actions.push(UserAction { at_ms, stack, ask: Ask::Continue });
        scenario.calm_ms = scenario.calm_ms.max(at_ms + 20_000);
        if rng.random_bool(0.4) {
            let what = FaultKind::Kill(rng.random_range(0..scenario.engines.len()));
            let when = When::Time(at_ms + rng.random_range(0..10_000));
            scenario.faults.push(Fault { when, for_ms: rng.random_range(500..20_000), what });
        }
    }
    scenario.actions.sort_by_key(|action| (action.at_ms, action.stack));
}
