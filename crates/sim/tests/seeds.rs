//! Seeds of the simulation.

use std::sync::atomic::{AtomicU64, Ordering};

use kiln_sim::database::Database;
use kiln_sim::generate;
use kiln_sim::rule::Rule;
use kiln_sim::run::run;
use kiln_sim::sabotage::Sabotage;
use kiln_sim::scenario::Scenario;
use kiln_sim::shrink::shrink;

/// A failing seed must fail again, in the same way and at the same time.
#[test]
fn the_same_seed_gives_the_same_trace() {
    let of_sqlite = (0..2).map(|seed| Scenario { database: Database::Sqlite, ..generate::scenario(seed) });
    for scenario in (0..40).map(generate::scenario).chain(of_sqlite) {
        let seed = scenario.seed;
        let (once, again) = (run(&scenario, true, None), run(&scenario, true, None));
        let differs = once.trace.lines().zip(again.trace.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(once, again, "seed {seed}");
    }
}

/// Shrunk scenarios are stored as JSON and run again.
#[test]
fn a_scenario_survives_json() {
    for seed in 0..40 {
        let scenario = generate::scenario(seed);
        let text = serde_json::to_string(&scenario).expect("a scenario is JSON");
        assert_eq!(serde_json::from_str::<Scenario>(&text).expect("it is read"), scenario);
    }
}

/// The first seeds of `cargo sim`, in a debug build. `KILN_SEEDS=from..to` runs others.
#[test]
fn some_hundred_seeds_pass() {
    let range = std::env::var("KILN_SEEDS").ok();
    let parsed = range
        .as_deref()
        .and_then(|range| range.split_once(".."))
        .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    let range = parsed.unwrap_or(0..300);
    let next = AtomicU64::new(range.start);
    let failing = || -> Vec<String> {
        let seeds =
            std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|seed| *seed < range.end);
        let of = |seed| Some(format!("seed {seed}: {}", run(&generate::scenario(seed), false, None).violation?));
        seeds.filter_map(of).collect()
    };
    let failed = std::thread::scope(|scope| {
        let other = scope.spawn(failing);
        let mut failed = failing();
        failed.extend(other.join().expect("the seeds ran"));
        failed
    });
    assert_eq!(failed, Vec::<String>::new());
}

/// Scenarios that have found a defect.
#[test]
fn what_was_mended_stays_mended() {
    for text in [
        // A signal whose delivery fails, to a resource that is replaced meanwhile: the replacement received the next one
        // first.
        include_str!("data/order_of_messages.json"),
        // A snapshot after a failed update: it was forgotten that the object may have the new properties, and a restore
        // did not set the old ones.
        include_str!("data/snapshot_after_a_failed_update.json"),
        // Engines that took over a rollback one after the other each gave it the whole timeout again.
        include_str!("data/timeout_of_a_rollback_after_take_overs.json"),
        // A snapshot after a create that failed half-way: a restore kept the half object.
        include_str!("data/snapshot_after_a_failed_create.json"),
        // A failed create whose object is found in order after a snapshot: its attributes were not read, and another
        // resource was created without them.
        include_str!("data/attributes_after_a_failed_create.json"),
        // A signal that is sent again after a lost reply, while the stack is abandoned and adopted.
        include_str!("data/signal_sent_again_after_an_adoption.json"),
        // The row that replaced a marked one adopted the same object, which the marked one then deleted.
        include_str!("data/marked_while_adopted.json"),
        // Seed 704274: the update timed out at once, because the engine had read the clock before.
        include_str!("data/request_after_the_database_clock_went_back.json"),
        // Seed 1056: the driver panicked after its create was sent, and a delete did not look for the object.
        include_str!("data/a_create_that_panics.json"),
        // Seed 1055: the database refused a row, and the snapshot of the request stayed in progress.
        include_str!("data/a_refused_row_of_a_snapshot.json"),
        // Seed 3108: a snapshot was made of a resource that was deleted and waited at its post-delete hook.
        include_str!("data/a_snapshot_while_a_deleted_resource_waits_at_a_hook.json"),
        // Seed 86053: the end of the nested stack was noticed, but the actor ended before it was stored, without end; and the
        // group was said to change its size for ever.
        include_str!("data/a_group_that_is_deleted_while_its_change_of_size_is_awaited.json"),
        // Seed 39955: the database refused a row, whose operation deleted an object that the next plan only updated.
        include_str!("data/a_plan_while_an_operation_has_not_ended.json"),
    ] {
        let scenario: Scenario = serde_json::from_str(text).expect("a scenario");
        assert_eq!(run(&scenario, false, None).violation, None);
    }
}

/// A simulated defect must be detected, and a smaller scenario must show it too.
#[test]
fn a_defect_is_found_and_made_smaller() {
    let seeds = (0..200).map(generate::scenario);
    let found = seeds.filter(|scenario| run(scenario, false, None).violation.is_none()).find_map(|scenario| {
        let violation = run(&scenario, false, Some(Sabotage::SkipDelete)).violation?;
        (violation.rule == Rule::LeftBehind).then_some((violation, scenario))
    });
    let (violation, scenario) = found.expect("a delete that is left out is found");
    assert_eq!(violation.rule, Rule::LeftBehind);
    let smaller = shrink(scenario.clone(), violation.rule, Some(Sabotage::SkipDelete));
    assert!(smaller.actions.len() <= scenario.actions.len() && smaller.faults.is_empty());
    let again = run(&smaller, false, Some(Sabotage::SkipDelete)).violation;
    assert_eq!(again.map(|violation| violation.rule), Some(Rule::LeftBehind));
}
