//! Updates that keep to a saved plan: their scenarios and their rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Nesting, Sources};
use kiln_plan_document::{Action as PlannedAction, Decision, StackPart};
use kiln_resource::{Action, Method, PlanId};
use kiln_stack::{Backends, Chance, LoadedStack, load};
use kiln_store::{
    Error, Event, NewPlan, Plan, PlanPart, PlanState, Planned, Stack, StackId, StackQuery, Store, version_of,
};
use kiln_value::Value;
use kiln_view::plan_document;
use kiln_view::preview::{self, Terms};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};

use crate::clock::EngineClock;
use crate::cloud::{CloudCall, SimClouds};
use crate::dice;
use crate::drivers;
use crate::gate::Gate;
use crate::rule::Rule;
use crate::scenario::{Ask, Scenario, UserAction};
use crate::simulation::{Label, Simulation};

/// Makes a part of the updates of some scenarios planned ones, and marks resources during them. It has its own random numbers,
/// so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x706c_616e);
    if !rng.random_bool(0.2) {
        return;
    }
    let mut marks = Vec::new();
    for action in &mut scenario.actions {
        let Ask::Update(wish) = &mut action.ask else { continue };
        wish.planned = rng.random_bool(0.7);
        let names: Vec<&str> = wish.template.resources.iter().map(|resource| resource.name.as_str()).collect();
        if let Some(name) = names.choose(&mut rng).filter(|_| wish.planned) {
            let at_ms = action.at_ms + rng.random_range(0..3_000);
            marks.push(UserAction { at_ms, stack: action.stack, ask: Ask::Mark((*name).to_owned()) });
        }
    }
    scenario.actions.extend(marks);
    scenario.actions.sort_by_key(|action| (action.at_ms, action.stack));
}

/// A plan, as the rule remembers it.
#[derive(Debug)]
pub(crate) struct KnownPlan {
    /// What is done at most with each object that existed.
    objects: BTreeMap<String, Decision>,
    /// The numbers of the last requests to the stacks that existed.
    generations: BTreeMap<StackId, i64>,
}

/// A plan that a user has saved, with the version of the tree that it was made from.
pub(crate) struct SavedPlan {
    pub(crate) planned: Planned,
    pub(crate) version: String,
}

/// Saves the plan of an update, as the service does; `None` if the stack or a nested one is in progress, or the update would be
/// refused.
pub(crate) async fn save(
    sim: &Arc<Simulation>,
    store: &dyn Store,
    stack: &Stack,
    sources: Sources,
) -> Result<Option<SavedPlan>, Error> {
    let tree = sim.store.stacks(&StackQuery { root: Some(stack.id), nested: true, ..StackQuery::default() }).await?;
    if tree.iter().any(|stack| stack.is_pending() || stack.deleted.is_some()) {
        return Ok(None);
    }
    let (label, gate) = (Label { slot: None, life: 0 }, Arc::new(Gate::default()));
    let key = dice::hash((sim.scenario.seed, "plan", stack.id, stack.generation, sim.time.ms()));
    let chance = Arc::new(Chance::seeded(key));
    let id = PlanId(chance.uuid());
    let backends = Backends {
        store: Arc::clone(&sim.store),
        resource_types: drivers::resource_types(),
        clouds: Arc::new(SimClouds::new(Arc::clone(sim), label, Arc::clone(&gate))),
        clock: Arc::new(EngineClock::new(Arc::clone(&sim.store_clock), gate, None)),
        chance,
        caches: Arc::default(),
    };
    let Some(mut view) = LoadedStack::load(&backends, stack.id).await? else { return Ok(None) };
    let identity = load::identity(&view.stack);
    let Ok(new) = Blueprint::build(sources, &backends.resource_types, identity, Nesting::default()) else {
        return Ok(None);
    };
    let (new, mut hidden) = (Arc::new(new), HiddenValues::default());
    let preview = preview::preview(&backends, &mut view, new, Terms::default(), &mut hidden).await?;
    let document = plan_document::Plan::of(&preview, PlannedAction::Update).0;
    if document.is_refused() {
        return Ok(None);
    }
    let object = |entry: &kiln_plan_document::Entry| Some((entry.object.clone()?, entry.decision.at_most));
    let objects = document.resources.iter().filter_map(object).collect();
    let mut generations: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    let mut places = load::places(&tree);
    for stack in &tree {
        let place = places.remove(&stack.id).unwrap_or_default();
        generations.entry(place).or_default().insert(stack.id.to_string(), stack.generation);
    }
    let damaged = |error: serde_json::Error| Error::Damaged(error.into());
    let mut parts = Vec::new();
    for (path, part) in StackPart::split(document.resources, Vec::new(), Vec::new(), &generations).map_err(damaged)? {
        let body = serde_json::to_string(&part).map_err(damaged)?;
        parts.push(PlanPart { path, body });
    }
    let plan = Plan {
        id,
        project: stack.project.clone(),
        stack: stack.id,
        stack_name: stack.name.clone(),
        name: None,
        action: Action::Update,
        generation: stack.generation,
        author: None,
        desired: None,
        digest: id.to_string(),
        state: PlanState::Ready,
        body: Value::Null,
        created: sim.store_clock.now(),
        expires: None,
    };
    let known = tree.iter().map(|stack| (stack.id, stack.generation)).collect();
    sim.ledger.plan(id, KnownPlan { objects, generations: known });
    store.save_plan(&NewPlan { plan, desired: None, parts }).await?;
    Ok(Some(SavedPlan { planned: Planned { plan: id, path: String::new() }, version: version_of(tree) }))
}

/// A write to the cloud for a stack whose request keeps to a plan does at most what the plan says about the object. `own`: the
/// number of the last request to the stack that was no part of another operation.
pub(crate) fn check(sim: &Simulation, stack: &Stack, own: i64, plan: &KnownPlan, call: &CloudCall) {
    let Some(decision) = call.id.as_ref().and_then(|id| plan.objects.get(id)) else { return };
    let planned = plan.generations.get(&stack.id).copied().unwrap_or_default();
    // Its operations may still run.
    let has_moved = stack.parent.is_some() && own > planned;
    let is_allowed = match decision {
        Decision::Keep | Decision::Refuse => false,
        Decision::Update => call.method != Method::Delete,
        Decision::Replace | Decision::Create | Decision::Delete => true,
    };
    if !is_allowed && !has_moved {
        let (method, id) = (call.method, call.id.as_deref().unwrap_or_default());
        sim.accuse(Rule::OutsideOfPlan, format!("{method:?} {id} of {}, planned {decision:?}", call.resource));
    }
}

/// Whether an event says that a resource was stopped by the plan or by a guard: it has begun nothing, so its state does not
/// change.
pub(crate) fn is_stop(event: &Event) -> bool {
    event.reason.starts_with("OutsideOfPlan") || event.reason.starts_with("Guarded")
}
