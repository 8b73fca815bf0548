//! Defects of engines, users and rows that a cluster must survive: calls that panic, actors that are aborted, requests that
//! are broken off, and rows that the database refuses for good.

use std::time::Duration;

use kiln_store::{Batch, Error, Lease};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::drivers::ON_PURPOSE;
use crate::scenario::{Ask, Scenario};
use crate::simulation::{Label, Simulation};

/// How often each happens, in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Crashes {
    /// Calls of an engine that panic: before they are sent, or with their response.
    pub panics: u64,
    /// Leases that a renewal does not report as held: their actors are aborted wherever they are.
    pub aborts: u64,
    /// Requests of users that are broken off at any await, and sent again.
    pub broken_off: u64,
    /// The name of the resources whose rows the database refuses.
    pub refused_row: Option<String>,
    /// When it refuses them.
    pub refused_from_ms: u64,
    /// For how long.
    pub refused_for_ms: u64,
}

/// Adds crashes to a part of the scenarios. They have their own random numbers, so that the other seeds keep their
/// scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x4352_4153_4845);
    let rng = &mut rng;
    let mut of = |share: f64, most: u64| if rng.random_bool(share) { rng.random_range(1..=most) } else { 0 };
    let crashes =
        Crashes { panics: of(0.12, 8), aborts: of(0.12, 100), broken_off: of(0.15, 300), ..Crashes::default() };
    scenario.crashes = crashes;
    if rng.random_bool(0.12) {
        let names = scenario.actions.iter().flat_map(|action| match &action.ask {
            Ask::Create(wish) | Ask::Update(wish) => wish.template.resources.iter().collect(),
            _ => Vec::new(),
        });
        let names: Vec<String> = names.map(|resource| resource.name.clone()).collect();
        scenario.crashes.refused_row = names.choose(rng).cloned();
        scenario.crashes.refused_from_ms = rng.random_range(0..scenario.calm_ms);
        scenario.crashes.refused_for_ms = rng.random_range(500..60_000);
    }
}

/// A call of an engine may panic.
pub(crate) fn panic(sim: &Simulation, label: Label, call: &str) {
    if label.slot.is_some() && happens(sim, (call, label), sim.scenario.crashes.panics) {
        sim.trace.note(&label.to_string(), || format!("panics in {call}"));
        panic!("{ON_PURPOSE}");
    }
}

/// The leases that a renewal reports as held.
pub(crate) fn renewed(sim: &Simulation, label: Label, mut leases: Vec<Lease>) -> Vec<Lease> {
    leases.retain(|lease| !happens(sim, ("abort", label, lease.stack), sim.scenario.crashes.aborts));
    leases
}

/// After which time a user breaks a request off, if at all.
pub(crate) fn breaks_off(sim: &Simulation, number: usize) -> Option<Duration> {
    let key = ("broken off", number);
    happens(sim, key, sim.scenario.crashes.broken_off).then(|| Duration::from_millis(sim.dice.up_to(key, 100)))
}

/// The database refuses some rows for good.
pub(crate) fn accept(sim: &Simulation, batch: &Batch) -> Result<(), Error> {
    let crashes = &sim.scenario.crashes;
    let (from, now) = (crashes.refused_from_ms, sim.time.ms());
    let refuses = now >= from && now < (from + crashes.refused_for_ms).min(sim.scenario.calm_ms);
    match &crashes.refused_row {
        Some(name) if refuses && (&batch.save).into_iter().any(|row| row.name == *name) => {
            Err(Error::Invalid(format!("the row of {name} is refused").into()))
        }
        _ => Ok(()),
    }
}

fn happens(sim: &Simulation, key: impl std::hash::Hash, of: u64) -> bool {
    of > 0 && sim.noise().is_some() && sim.dice.chance(key, of)
}
