//! Seeds of the simulation.

use kiln_sim::generate;
use kiln_sim::run::run;

/// A failing seed must fail again, in the same way and at the same time.
#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..40 {
        let scenario = generate::scenario(seed);
        let (once, again) = (run(&scenario, true, None), run(&scenario, true, None));
        let differs = once.trace.lines().zip(again.trace.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(once, again, "seed {seed}");
    }
}

/// What is shrunk is kept as JSON and played again.
#[test]
fn a_scenario_survives_json() {
    for seed in 0..40 {
        let scenario = generate::scenario(seed);
        let text = serde_json::to_string(&scenario).expect("a scenario is JSON");
        assert_eq!(serde_json::from_str::<kiln_sim::scenario::Scenario>(&text).expect("it is read"), scenario);
    }
}
