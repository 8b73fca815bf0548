//! Objects that templates refer to by name, as servers refer to images. Their owner deletes them and makes others under their
//! names, so the names change their meaning.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::translation::{Rule as TranslationRule, Translation};
use kiln_resource::{Failure, FailureKind, Method};
use kiln_value::{Class, Value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::cloud::CloudCall;
use crate::dice;
use crate::rule::Rule;
use crate::scenario::{Ask, Scenario};
use crate::simulation::Simulation;
use crate::template_model::{KindModel, TemplateModel};

/// The property.
pub(crate) const BASE: &str = "base";
/// The finder of the names.
pub(crate) const FINDER: &str = "sim.base";

const NAMES: [&str; 2] = ["gold", "tin"];

/// What happens to the named objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bases {
    /// When which name gets another meaning, in milliseconds.
    pub renewed: Vec<(u64, String)>,
    /// Whether no template changes a name that it has given: then no update may change the base of an object.
    pub steady: bool,
}

/// Gives a part of the scenarios named bases. It has its own random numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x6261_7365);
    if !rng.random_bool(0.4) {
        return;
    }
    let steady = rng.random_bool(0.7);
    for (number, action) in scenario.actions.iter_mut().enumerate() {
        if let Ask::Create(wish) | Ask::Update(wish) = &mut action.ask {
            give(&mut wish.template, (seed, if steady { 0 } else { number }));
        }
    }
    let renewed = (0..rng.random_range(1..=6)).map(|_| {
        let name = NAMES.choose(&mut rng).copied().unwrap_or(NAMES[0]);
        (rng.random_range(0..scenario.calm_ms.max(1)), name.to_owned())
    });
    scenario.bases = Bases { renewed: renewed.collect(), steady };
}

/// Gives resources bases by their names.
fn give(template: &mut TemplateModel, seed: (u64, usize)) {
    for resource in &mut template.resources {
        if let KindModel::Nested(inner) = &mut resource.kind {
            give(inner, seed);
        }
        let at = usize::try_from(dice::hash((seed, &resource.name)) % 3).unwrap_or_default();
        NAMES.get(at).copied().unwrap_or_default().clone_into(&mut resource.base);
    }
}

/// The rule that looks a name up.
pub(crate) fn translation() -> Translation {
    Translation { path: vec![BASE.to_owned()], rule: TranslationRule::Find(FINDER.to_owned()), when: None }
}

/// What a name means now.
pub(crate) async fn find(sim: &Arc<Simulation>, name: &str) -> Result<String, Failure> {
    let key = ("base", name);
    tokio::time::sleep(Duration::from_millis(1 + sim.dice.up_to(key, sim.scenario.noise.latency_ms))).await;
    if sim.noise().is_some_and(|noise| sim.dice.chance(key, noise.refused)) {
        return Err(Failure::new(FailureKind::Unavailable, Class::ServiceUnavailable, "the service says 503"));
    }
    let now = sim.time.ms();
    let count = sim.scenario.bases.renewed.iter().filter(|(at, renewed)| *at <= now && renewed == name).count();
    Ok(if NAMES.contains(&name) { format!("{name}-{count}") } else { name.to_owned() })
}

/// A call that changes the base of an object although no template says so follows a name that means another object.
pub(crate) fn check(sim: &Simulation, call: &CloudCall) {
    let (Some(Value::Str(base)), Some(id), Method::Put) = (call.body.get(BASE), &call.id, call.method) else { return };
    let held = sim.cloud().get(id, sim.time.ms()).map(|object| object.base.clone());
    if sim.scenario.bases.steady && held.as_ref().is_some_and(|held| held != base) {
        let held = held.unwrap_or_default();
        sim.accuse(
            Rule::NotAsWanted,
            format!("{} changes {id} from {held} to {base}, which nobody wants", call.resource),
        );
    }
}
