//! Resources that get another name (`moved` in a template): their scenarios and their rule.

use std::collections::{BTreeMap, BTreeSet};

use kiln_resource::{Action, Resource, ResourceId, Status};
use kiln_store::{Batch, Stack};
use kiln_template::Template;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::generate::rename;
use crate::rule::Rule;
use crate::scenario::{Ask, Scenario, Wish};
use crate::simulation::Simulation;

/// Renames resources in a part of the scenarios: from an update on, their stack has the new name, and a move to it. It has its own
/// random numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x6d6f_7665);
    let rng = &mut rng;
    if !rng.random_bool(0.2) {
        return;
    }
    let mut serial = 0;
    for stack in scenario.actions.iter().map(|action| action.stack).collect::<BTreeSet<_>>() {
        let mut moved: Vec<(String, String)> = Vec::new();
        for action in scenario.actions.iter_mut().filter(|action| action.stack == stack) {
            let Ask::Update(wish) = &mut action.ask else { continue };
            apply(wish, &moved);
            if !wish.template.resources.is_empty() && rng.random_bool(0.7) {
                let at = rng.random_range(0..wish.template.resources.len());
                serial += 1;
                let one = (wish.template.resources[at].name.clone(), format!("m{serial}"));
                apply(wish, std::slice::from_ref(&one));
                moved.push(one);
            }
        }
    }
}

fn apply(wish: &mut Wish, moves: &[(String, String)]) {
    for (from, to) in moves {
        if let Some(at) = wish.template.resources.iter().position(|resource| resource.name == *from) {
            rename(&mut wish.template, at, to);
        }
        wish.template.moves.push((from.clone(), to.clone()));
    }
}

/// An update deletes no resource that the template has moved to another name, unless there was a resource with that name.
pub(crate) async fn check(sim: &Simulation, stack: &Stack, batch: &Batch, before: &BTreeMap<ResourceId, Resource>) {
    let begins = |row: &&Resource| {
        row.state.action == Action::Delete
            && row.state.status == Status::InProgress
            && before.get(&row.id).is_some_and(|old| old.state.action != Action::Delete)
    };
    if stack.state.action != Action::Update || stack.parent.is_some() || !batch.save.iter().any(|row| begins(&row)) {
        return;
    }
    let Ok(texts) = sim.store.desired(&stack.desired).await else { return };
    let Ok(sources) = kiln_stack::load::sources(&texts) else { return };
    let Ok(template) = Template::from_value(sources.template) else { return };
    let moves: BTreeMap<String, String> =
        template.moves().unwrap_or_default().into_iter().map(|one| (one.from, one.to)).collect();
    // Names are never used twice, so there is no circle.
    let last = |name: &str| std::iter::successors(moves.get(name), |name| moves.get(*name)).last();
    let rows = sim.store.resources(stack.id).await.unwrap_or_default();
    for row in batch.save.iter().filter(begins).filter(|row| row.replaced_by.is_none()) {
        let Some(to) = last(&row.name) else { continue };
        let is_new = |other: &&Resource| {
            other.name == *to && !other.has_moved() && other.replaces.is_none() && other.created >= row.created
        };
        if rows.iter().any(|other| is_new(&other)) {
            sim.accuse(Rule::Moved, format!("{} of {} is deleted, and should be {to} now", row.name, stack.name));
        }
    }
}
