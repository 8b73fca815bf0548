//! What a plan of an update holds in memory, and how much of it a template needs. Allocations are counted, so the result is
//! the same on every machine.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_engine::{Engine, Options};
use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Command, Event, Model, Nesting, Outcome, Request, ResourceTypes, Sources, Target};
use kiln_resource::{
    Action, Operation, OperationState, Phase, Registry, Resource, ResourceId, Running, StackId, State, Status,
    StoredDefinition, shipped,
};
use kiln_stack::{Backends, Chance, Clock as _, LoadedStack, NoCloud, SystemClock, load};
use kiln_store::{MemoryStore, NewStack};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, Value, value};
use kiln_view::preview::{self, Terms};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::sync::Mutex;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Only one test at a time counts allocations.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Bytes that are allocated now.
fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn sources(count: usize) -> Sources {
    let one = |n| (format!("v{n}"), value!({"type": "OS::Heat::Value", "properties": {"value": (format!("x{n}"))}}));
    let resources: Map = (0..count).map(one).collect();
    Sources {
        template: Arc::new(value!({"heat_template_version": "2021-04-16", "resources": resources})),
        environment: Arc::new(Environment::default()),
        files: Arc::new(Files::default()),
    }
}

/// The allocations for the attributes that others read of each resource: one reader reads all of them, and each of the
/// others reads one.
fn allocations_for_wanted_paths(count: usize) -> usize {
    let attribute = |n: usize, reader: &str| value!({"get_attr": [(format!("v{n}")), "value", reader, n]});
    let all: Vec<Value> = (0..count).map(|n| attribute(n, "all")).collect();
    let one =
        |n: usize, read: Value| (format!("v{n}"), value!({"type": "OS::Heat::Value", "properties": {"value": read}}));
    let mut resources: Map = (1..count).map(|n| one(n, attribute(n - 1, "one"))).collect();
    resources.extend([
        one(0, "x".into()),
        ("all".to_owned(), value!({"type": "OS::Heat::Value", "properties": {"value": all}})),
    ]);
    let outputs: Map = (0..count).map(|n| (format!("o{n}"), value!({"value": (attribute(n, "output"))}))).collect();
    let template = value!({"heat_template_version": "2021-04-16", "resources": resources, "outputs": outputs});
    let types = shipped::types().expect("definitions");
    let types = ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for));
    let sources = Sources { template: Arc::new(template), ..sources(0) };
    let before = ALLOCATOR.stats().allocations;
    let blueprint = Blueprint::build(sources, &types, None, Nesting::default()).expect("a template");
    let paths: usize = blueprint.definitions().keys().map(|name| blueprint.wanted_paths(name).len()).sum();
    assert_eq!(paths, 3 * count - 1);
    ALLOCATOR.stats().allocations - before
}

#[test]
fn wanted_paths_cost_as_much_as_there_are() {
    let _alone = ALONE.blocking_lock();
    let [few, many] = [300, 1_200].map(allocations_for_wanted_paths);
    println!("allocations: {few}, {many}");
    assert!(many < 5 * few, "for 300 resources {few}, for 1,200 {many}");
}

fn row_id(number: usize) -> ResourceId {
    ResourceId(uuid::Uuid::from_u128(number as u128 + 1))
}

/// A nested stack whose update by an earlier request is still running.
fn updating(number: usize) -> Resource {
    let stack = StackId(uuid::Uuid::nil());
    let mut row = Resource::new(stack, row_id(number), &format!("n{number}"), "nested.yaml", Timestamp::UNIX_EPOCH);
    let definition = Arc::new(StoredDefinition::of_type("nested.yaml"));
    (row.generation, row.child, row.state) = (1, Some(stack), State::new(Action::Update, Status::InProgress));
    row.definition = Some(Arc::clone(&definition));
    let running = Running {
        operation: Operation::Update { before: Map::new(), changed: Map::new() },
        definition: Some(definition),
        phase: Phase::Intent,
        token: String::new(),
        attempt: 0,
        requires: Vec::new(),
        afterwards: OperationState::Idle,
    };
    Resource { operation: running.into(), ..row }
}

/// The bytes that are allocated while nested stacks end their updates, each of which the planner has asked about before.
fn allocated_for_ended_operations(count: usize) -> usize {
    let kind = || ("nested.yaml".to_owned(), "nested.yaml".to_owned());
    let target =
        |n: usize| Target { name: format!("n{n}"), requires: Vec::new(), kind: kind(), fresh: row_id(count + n) };
    let mut model = Model::new((0..count).map(updating));
    let request = Request::new(StackId(uuid::Uuid::nil()), Action::Update, 2);
    let begin = Request { targets: (0..count).map(target).collect(), ..request };
    let asked = |commands: &[Command]| commands.iter().filter(|one| matches!(one, Command::Decide { .. })).count();
    let first = asked(&model.decide(Timestamp::UNIX_EPOCH, Event::Begin(Box::new(begin))));
    let before = ALLOCATOR.stats().bytes_allocated;
    let mut again = 0;
    for row in (0..count).map(row_id) {
        let outcome = Outcome::Done(None);
        let ended = Event::Finished { row, physical_id: None, data: Map::new(), attributes: None, outcome };
        again += asked(&model.decide(Timestamp::UNIX_EPOCH, ended));
    }
    assert_eq!((first, again), (count, count), "each is asked about once more");
    ALLOCATOR.stats().bytes_allocated - before
}

#[test]
fn an_ended_operation_does_not_look_at_the_decisions_about_others() {
    let _alone = ALONE.blocking_lock();
    let [few, many] = [300, 1_200].map(allocated_for_ended_operations);
    println!("bytes: {few}, {many}");
    assert!(many < 5 * few, "for 300 resources {few}, for 1,200 {many}");
}

#[tokio::test]
async fn a_plan_shares_what_does_not_change() {
    const COUNT: usize = 2_000;
    let _alone = ALONE.lock().await;
    let types = shipped::types().expect("definitions");
    let backends = Backends {
        store: Arc::new(MemoryStore::new(Arc::new(|| SystemClock.now()))),
        resource_types: Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for))),
        clouds: Arc::new(NoCloud),
        clock: Arc::new(SystemClock),
        chance: Arc::new(Chance::seeded(1)),
        caches: Arc::default(),
    };
    let engine = Engine::new(Options::default(), backends.clone());
    tokio::spawn(async move {
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        engine.run(stopped).await.expect("the engine runs");
    });
    let id = StackId(backends.chance.uuid());
    let texts = load::texts(&sources(COUNT));
    let new = NewStack::new(id, "s".to_owned(), "demo".to_owned(), texts, backends.clock.now());
    backends.store.create_stack(new).await.expect("stored");
    loop {
        let stack = backends.store.stack(id).await.expect("read").expect("there");
        if !stack.is_pending() {
            assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let start = held();
    let mut view = LoadedStack::load(&backends, id).await.expect("read").expect("there");
    let identity = load::identity(&view.stack);
    let new = Blueprint::build(sources(COUNT), &backends.resource_types, identity, Nesting::default());
    let before = held();
    let plan = preview::preview(
        &backends,
        &mut view,
        Arc::new(new.expect("a template")),
        Terms::default(),
        &mut HiddenValues::default(),
    )
    .await
    .expect("a plan");
    let after = held();
    assert_eq!(plan.entries.len(), COUNT);
    let of_each = [after - before, after - start].map(|bytes| bytes / COUNT);
    println!("bytes of each resource: {of_each:?}");
    assert!(of_each[0] < 400, "the plan alone: {of_each:?}");
    assert!(of_each[1] < 4_000, "the plan with the stack and both templates: {of_each:?}");
}
