//! Returns to former revisions (`kiln stack rollback --to`), and kills during them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};

use crate::scenario::{Ask, Fault, FaultKind, Scenario, UserAction, When};

/// Adds returns to a part of the scenarios, each some time after an update, and kills engines soon after most of them. They
/// have their own random numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x0052_4556_4953);
    let rng = &mut rng;
    if !rng.random_bool(0.25) {
        return;
    }
    let updates = scenario.actions.iter().filter(|action| matches!(action.ask, Ask::Update(_)));
    let updates: Vec<(u64, usize)> = updates.map(|action| (action.at_ms, action.stack)).collect();
    for (since, stack) in updates.choose_multiple(rng, 2).copied().collect::<Vec<_>>() {
        let at_ms =
            since + if rng.random_bool(0.3) { rng.random_range(0..3_000) } else { rng.random_range(5_000..60_000) };
        scenario.actions.push(UserAction { at_ms, stack, ask: Ask::Return(rng.random_range(1..=3)) });
        scenario.calm_ms = scenario.calm_ms.max(at_ms + 20_000);
        for _ in 0..rng.random_range(0..=2) {
            let what = FaultKind::Kill(rng.random_range(0..scenario.engines.len()));
            let when = When::Time(at_ms + rng.random_range(0..15_000));
            scenario.faults.push(Fault { when, for_ms: rng.random_range(500..20_000), what });
        }
    }
    scenario.actions.sort_by_key(|action| (action.at_ms, action.stack));
}
