//! Benchmarks of planning: `cargo bench -p kiln-plan`.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_plan::{Blueprint, Command, Decision, Event, Model, Nesting, Outcome, Request, ResourceTypes, Sources};
use kiln_resource::{
    Action, Context, Driver, Failure, Found, Operation, Registry, ResourceId, StackId, Step, StoredDefinition,
    TypeRules,
};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, value};

fn main() {
    divan::main();
}

struct Nothing;

impl TypeRules for Nothing {}

#[async_trait]
impl Driver for Nothing {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}

fn catalog() -> ResourceTypes {
    let types = kiln_resource::shipped::types().expect("sound definitions");
    ResourceTypes::new(Registry::build(types, |_| Some(Arc::new(Nothing))))
}

/// Values that each read the one `back` places before; 0: none.
fn sources(size: usize, back: usize) -> Sources {
    let resources: Map = (0..size)
        .map(|i| {
            let value = match i.checked_sub(back) {
                Some(before) if back > 0 => value!({"get_attr": [(format!("v{before}")), "value"]}),
                _ => "x".into(),
            };
            (format!("v{i}"), value!({"type": "OS::Heat::Value", "properties": {"value": value}}))
        })
        .collect();
    Sources {
        template: Arc::new(value!({"heat_template_version": "2021-04-16", "resources": resources})),
        environment: Arc::new(Environment::default()),
        files: Arc::new(Files::default()),
    }
}

#[divan::bench(args = [(2_000, 0), (2_000, 1), (10_000, 10)])]
fn read_a_blueprint(bencher: divan::Bencher<'_, '_>, (size, back): (usize, usize)) {
    let (catalog, sources) = (catalog(), sources(size, back));
    bencher.bench(|| Blueprint::build(sources.clone(), &catalog, None, Nesting::default()).expect("sound"));
}

/// A create from the first decision to the last; operations end immediately.
#[divan::bench(args = [(1_000, 0), (10_000, 0), (10_000, 1)])]
fn plan_a_create(bencher: divan::Bencher<'_, '_>, (size, back): (usize, usize)) {
    let blueprint = Blueprint::build(sources(size, back), &catalog(), None, Nesting::default()).expect("sound");
    bencher.bench(|| {
        let mut next = 0_u128;
        let mut fresh = || {
            next += 1;
            ResourceId(uuid::Uuid::from_u128(next))
        };
        let (stack, now) = (StackId(uuid::Uuid::nil()), jiff::Timestamp::UNIX_EPOCH);
        let targets = blueprint.targets(&mut fresh);
        let begin = Event::Begin(Box::new(Request { targets, ..Request::new(stack, Action::Create, 1) }));
        let mut model = Model::new([]);
        let mut todo = model.decide(now, begin);
        let mut ended = false;
        while let Some(command) = todo.pop() {
            let event = match command {
                Command::Decide { serial, name, .. } => Event::Decided {
                    serial,
                    name,
                    decision: Decision::Create { definition: Arc::new(StoredDefinition::of_type("T")) },
                    fresh: fresh(),
                    kind: (String::new(), String::new()),
                    attributes: Map::new(),
                },
                Command::Start(row) => Event::Finished {
                    row,
                    physical_id: None,
                    data: Map::new(),
                    attributes: None,
                    outcome: Outcome::Done(None),
                },
                Command::End { .. } => {
                    ended = true;
                    continue;
                }
                _ => continue,
            };
            todo.extend(model.decide(now, event));
        }
        assert!(ended);
    });
}
