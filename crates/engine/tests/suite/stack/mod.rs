//! Creates stacks and waits for them, and saves plans.

use std::collections::BTreeMap;
use std::time::Duration;

use kiln_plan::Sources;
use kiln_plan_document::{Decision, Entry, StackPart};
use kiln_resource::{Action, PlanId, StackId};
use kiln_stack::{Backends, Clock as _, LoadedStack, SystemClock, load};
use kiln_store::{NewPlan, NewStack, Plan, PlanPart, PlanState, Stack, Store};
use kiln_value::Value;
use kiln_view::observed_object::observe;
use kiln_view::plan_document;
use kiln_view::preview::Preview;
use tokio::time::Instant;

/// Requests a new stack, as the API does.
pub(crate) async fn create(backends: &Backends, name: &str, sources: &Sources) -> StackId {
    let id = StackId(backends.chance.uuid());
    let stack = NewStack {
        username: "demo".to_owned(),
        user_id: "demo".to_owned(),
        ..NewStack::new(id, name.to_owned(), "demo".to_owned(), load::texts(sources), SystemClock.now())
    };
    backends.store.create_stack(stack).await.expect("stored");
    id
}

/// The stack when its operation has ended, which must happen within a timeout.
pub(crate) async fn settled(store: &dyn Store, id: StackId, within: Duration) -> Stack {
    let start = Instant::now();
    loop {
        let stack = store.stack(id).await.expect("read").expect("there");
        if !stack.is_pending() {
            return stack;
        }
        assert!(start.elapsed() < within, "stuck: {stack:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Saves a plan, as the service does.
pub(crate) async fn save_plan(backends: &Backends, preview: &Preview) -> PlanId {
    let (store, stack) = (&backends.store, &preview.stack);
    let mut generations: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    let mut open = vec![(String::new(), stack.id)];
    while let Some((path, id)) = open.pop() {
        let Some(stack) = store.stack(id).await.expect("read") else { continue };
        generations.entry(path.clone()).or_default().insert(id.to_string(), stack.generation);
        for row in store.resources(id).await.expect("read") {
            let path = if path.is_empty() { row.name.clone() } else { format!("{path}/{}", row.name) };
            open.extend(row.child.map(|child| (path, child)));
        }
    }
    let resources = plan_document::Plan::of(preview, kiln_plan_document::Action::Update).0.resources;
    let changes = |entry: &&Entry| {
        matches!(entry.decision.at_most, Decision::Update | Decision::Replace | Decision::Delete) && !entry.retained
    };
    let paths = resources.iter().filter(changes).map(|entry| entry.path.clone()).collect();
    let observed = match LoadedStack::load(backends, stack.id).await.expect("read") {
        Some(view) => observe(&view, &paths).await.expect("read").into_iter().map(|seen| seen.object).collect(),
        None => Vec::new(),
    };
    let parts = StackPart::split(resources, observed, Vec::new(), &generations).expect("JSON").into_iter();
    let parts =
        parts.map(|(path, part)| PlanPart { path, body: serde_json::to_string(&part).expect("JSON") }).collect();
    let plan = Plan {
        id: PlanId(backends.chance.uuid()),
        project: stack.project.clone(),
        stack: stack.id,
        stack_name: stack.name.clone(),
        name: None,
        action: Action::Update,
        generation: stack.generation,
        author: None,
        desired: None,
        digest: "of what was shown".to_owned(),
        state: PlanState::Ready,
        body: Value::Null,
        created: backends.clock.now(),
        expires: None,
    };
    let id = plan.id;
    store.save_plan(&NewPlan { plan, desired: None, parts }).await.expect("saved");
    id
}
