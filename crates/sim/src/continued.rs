//! Failed operations that users continue, also without some resources, and kills during that.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use kiln_resource::{Action, Method, Resource, Status};
use kiln_store::{Error, Stack, StackId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::cloud::CloudCall;
use crate::dice;
use crate::rule::Rule;
use crate::run::{all_end, roots};
use crate::scenario::{Ask, Fault, FaultKind, Scenario, UserAction, When};
use crate::simulation::Simulation;
use crate::template_model::{Build, KindModel, Plain, ResourceModel, TemplateModel};
use crate::users::Users;

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

/// The paths that a user skips who continues a failed operation: some resources that have failed, and what needs them. Half of
/// the users skip nothing.
pub(crate) async fn skips(sim: &Simulation, number: usize, stack: &Stack) -> Result<Vec<String>, Error> {
    let mut rng = StdRng::seed_from_u64(dice::hash((sim.scenario.seed, "skip", number)));
    let wanted = match stack.state.action {
        Action::Create | Action::Update => Some(&stack.desired),
        Action::Rollback => stack.previous.as_ref(),
        _ => None,
    };
    let Some(template) = wanted.and_then(|wanted| sim.ledger.meaning(wanted)).filter(|_| rng.random_bool(0.5)) else {
        return Ok(Vec::new());
    };
    let mut skips = BTreeSet::new();
    collect(sim, &mut rng, &template, stack.id, "", &mut skips).await?;
    Ok(skips.into_iter().collect())
}

/// Collects the paths of a stack and its nested stacks. Returns whether there are any.
fn collect<'a>(
    sim: &'a Simulation,
    rng: &'a mut StdRng,
    template: &'a TemplateModel,
    stack: StackId,
    place: &'a str,
    skips: &'a mut BTreeSet<String>,
) -> BoxFuture<'a, Result<bool, Error>> {
    async move {
        let rows = sim.store.resources(stack).await?;
        let mut gone: BTreeSet<&str> = BTreeSet::new();
        let mut inside: BTreeSet<&str> = BTreeSet::new();
        for resource in &template.resources {
            let of_name: Vec<&Resource> = rows.iter().filter(|row| row.name == resource.name).collect();
            let has_failed =
                |row: &&&Resource| row.state.status == Status::Failed && row.state.action != Action::Delete;
            match (&resource.kind, of_name.iter().find(has_failed)) {
                (KindModel::Nested(inner), Some(row)) => {
                    let path = format!("{place}{}/", resource.name);
                    if let Some(child) = row.child
                        && collect(sim, rng, inner, child, &path, skips).await?
                    {
                        inside.insert(&resource.name);
                    }
                }
                (KindModel::Plain(_) | KindModel::Value | KindModel::Wait { .. }, Some(_)) if rng.random_bool(0.8) => {
                    gone.insert(&resource.name);
                }
                _ => {}
            }
        }
        // Each depends only on earlier ones.
        for resource in &template.resources {
            let mut others = resource.needs.iter().chain(&resource.after).chain(&resource.reads);
            let group = if let KindModel::Policy { group, .. } = &resource.kind { Some(group) } else { None };
            let is_without = |other: &String| gone.contains(other.as_str()) || inside.contains(other.as_str());
            if others.any(is_without) || group.is_some_and(is_without) {
                gone.insert(&resource.name);
            }
        }
        skips.extend(gone.iter().map(|name| format!("{place}{name}")));
        Ok(!gone.is_empty() || !inside.is_empty())
    }
    .boxed()
}

/// How often a user continues an operation: some objects fail several times before they can be built.
const TIMES: usize = 8;

/// In the end, when nothing disturbs any more, continues what has failed: it ends COMPLETE, unless its templates cannot.
pub(crate) async fn finish(sim: &Arc<Simulation>, users: &Users) {
    if !is_sound(sim) {
        return;
    }
    let mut failed = Vec::new();
    for _ in 0..TIMES {
        failed = roots(sim).await;
        failed.retain(|stack| {
            let continues = matches!(stack.state.action, Action::Create | Action::Update | Action::Rollback);
            stack.deleted.is_none() && stack.state.status == Status::Failed && continues && !stack.adopts()
        });
        if failed.is_empty() {
            return;
        }
        for stack in &failed {
            _ = users.go_on(stack, Vec::new()).await;
        }
        all_end(sim).await;
    }
    for stack in failed {
        sim.accuse(Rule::NotContinued, format!("{} is {}: {}", stack.name, stack.state, stack.reason));
    }
}

/// Whether nothing in the templates fails for ever, waits for somebody, runs out of time, or needs a name that another stack
/// may have.
fn is_sound(sim: &Simulation) -> bool {
    let is_sound = |resource: &ResourceModel| {
        let is_built = match resource.build {
            Build::Sound | Build::Takes(_) => true,
            Build::Fails(times) => usize::try_from(times).is_ok_and(|times| times < TIMES),
            Build::Never | Build::Panics => false,
        };
        is_built && !matches!(resource.kind, KindModel::Wait { .. } | KindModel::Plain(Plain::Holder))
    };
    sim.scenario.actions.iter().all(|action| match &action.ask {
        Ask::Create(wish) | Ask::Update(wish) => {
            wish.timeout_mins.is_none() && wish.template.all().into_iter().all(is_sound)
        }
        _ => true,
    })
}

/// Nothing is done with a skipped resource.
pub(crate) fn check(sim: &Simulation, stack: &Stack, call: &CloudCall) {
    let is_skipped = stack.is_pending() && stack.details.skip.contains(&call.resource);
    if is_skipped && call.method != Method::Get {
        let (method, id) = (call.method, call.id.as_deref().unwrap_or_default());
        sim.accuse(Rule::Skipped, format!("{method:?} {id} for {}, which is skipped", call.resource));
    }
}
