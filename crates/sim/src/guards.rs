//! Guards that protect the objects of a stack from deletion: their scenarios and their rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_resource::{Action, GuardRule, Method, Status, Verb};
use kiln_store::{Author, Error, Guard, GuardId, GuardTerms, Stack, StackId, StackQuery};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::cloud::CloudCall;
use crate::rule::Rule;
use crate::scenario::{Ask, Scenario, UserAction};
use crate::simulation::Simulation;

/// Protects the stacks of some scenarios for a while. It has its own random numbers, so that the other seeds keep their
/// scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x6775_6172);
    if !rng.random_bool(0.2) {
        return;
    }
    let stacks: BTreeSet<usize> = scenario.actions.iter().map(|action| action.stack).collect();
    for stack in stacks {
        let at_ms = rng.random_range(0..scenario.calm_ms);
        let later = rng.random_range(at_ms..scenario.calm_ms);
        scenario.actions.push(UserAction { at_ms, stack, ask: Ask::Protect });
        scenario.actions.push(UserAction { at_ms: later, stack, ask: Ask::Unprotect });
    }
    scenario.actions.sort_by_key(|action| (action.at_ms, action.stack));
}

/// A guard that protects all resources of a stack from deletion.
pub(crate) fn guard(id: GuardId, stack: &Stack, sim: &Simulation) -> Guard {
    let from = BTreeSet::from([Verb::Delete]);
    let rule = GuardRule::Protect { from, resources: Some("*".to_owned()), lock: false };
    let terms = GuardTerms { rule, until: None, reason: String::new() };
    let (project, created) = (stack.project.clone(), sim.store_clock.now());
    Guard { id, project, stack: Some(stack.id), terms, author: author(), created }
}

pub(crate) fn author() -> Author {
    Author { user_id: "user".to_owned(), username: "user".to_owned() }
}

/// The objects that a guard protects which is stored now: those that are whole, and on which no operation runs.
pub(crate) async fn protected(sim: &Simulation, guard: &Guard) -> Result<BTreeSet<String>, Error> {
    let tree = StackQuery { root: guard.stack, nested: true, ..StackQuery::default() };
    let stacks = sim.store.stacks(&tree).await?;
    let ids: Vec<StackId> = stacks.iter().map(|stack| stack.id).collect();
    let rows = sim.store.resources_of(&ids).await?;
    let is_whole = |row: &kiln_resource::Resource| {
        row.running().is_none()
            && row.child.is_none()
            && row.state.status == Status::Complete
            && row.state.action != Action::Delete
    };
    Ok(rows.into_iter().filter(is_whole).filter_map(|row| row.physical_id).collect())
}

/// No engine deletes a protected object. What a rollback takes back is not protected.
pub(crate) fn check(sim: &Simulation, stack: &Stack, call: &CloudCall) {
    let Some(id) = call.id.as_ref().filter(|_| call.method == Method::Delete) else { return };
    // A delete of several calls goes on although a newer request has ended the rollback.
    if sim.ledger.rolls_back(stack) {
        sim.ledger.take_back(id);
    }
    if !sim.ledger.is_taken_back(id) && sim.ledger.is_guarded(id) {
        sim.accuse(Rule::Guarded, format!("{id} of {} is deleted", call.resource));
    }
}

/// Lifts all guards, so that every stack can be deleted.
pub(crate) async fn lift_all(sim: &Arc<Simulation>) {
    for guard in sim.store.guards("sim").await.unwrap_or_default() {
        sim.ledger.lift(guard.id);
        _ = sim.store.lift_guard("sim", guard.id, &author()).await;
    }
}
