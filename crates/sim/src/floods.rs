//! Hundreds of signals to a stack in progress.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};

use crate::scenario::{Ask, Scenario, UserAction};
use crate::template_model::{KindModel, Plain, ResourceModel};

/// Adds a flood to a part of the scenarios, during a create or an update of a stack with an inbox. It has its own random
/// numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x0046_4c4f_4f44);
    if !rng.random_bool(0.15) {
        return;
    }
    let is_inbox = |resource: &&ResourceModel| resource.kind == KindModel::Plain(Plain::Inbox);
    let inboxes = scenario.actions.iter().filter_map(|action| {
        let (Ask::Create(wish) | Ask::Update(wish)) = &action.ask else { return None };
        let inbox = wish.template.resources.iter().find(is_inbox)?;
        Some((action.at_ms, action.stack, inbox.name.clone()))
    });
    let inboxes: Vec<(u64, usize, String)> = inboxes.collect();
    let Some((since, stack, resource)) = inboxes.choose(&mut rng).cloned() else { return };
    let ask = Ask::Signal { resource, count: rng.random_range(200..=400) };
    let at_ms = since + rng.random_range(500..6_000);
    scenario.actions.push(UserAction { at_ms, stack, ask });
    scenario.calm_ms = scenario.calm_ms.max(at_ms + 20_000);
    scenario.actions.sort_by_key(|action| (action.at_ms, action.stack));
}
