//! Generated stacks that are created, updated, broken, interrupted and deleted, by seeds.
//!
//! The cloud is a set of objects; the engine is a queue of operations that end in any order. At every step the planner
//! must keep its guarantees: nothing is created before its dependencies, nothing is deleted before its dependants,
//! every request ends, and the final state is the desired state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kiln_plan::{Blame, Command, Decision, Event, Model, Outcome, Request, Target};
use kiln_resource::{Action, Failure, Operation, Resource, ResourceId, StackId, State, Status, StoredDefinition};
use kiln_value::{Class, Map, Value};
use proptest::prelude::*;

/// A resource of a generated template: its version (a change is an update), whether a change replaces it, and its
/// dependencies among earlier resources.
#[derive(Clone, Debug)]
struct Wanted {
    version: i64,
    replace: bool,
    requires: BTreeSet<usize>,
}

type Template = BTreeMap<usize, Wanted>;

fn template(size: usize) -> impl Strategy<Value = Template> {
    let one = (any::<bool>(), 0_i64..3, any::<bool>(), prop::collection::btree_set(0..size, 0..3));
    prop::collection::vec(one, size).prop_map(|all| {
        let present: BTreeSet<usize> = all.iter().enumerate().filter(|(_, r)| r.0).map(|(i, _)| i).collect();
        all.into_iter()
            .enumerate()
            .filter(|(_, (there, ..))| *there)
            .map(|(i, (_, version, replace, requires))| {
                let requires = requires.into_iter().filter(|r| *r < i && present.contains(r)).collect();
                (i, Wanted { version, replace, requires })
            })
            .collect()
    })
}

fn version(number: i64) -> Map {
    Map::from_iter([("version".to_owned(), Value::Int(number))])
}

fn version_of(definition: Option<&StoredDefinition>) -> i64 {
    let version = definition.and_then(|definition| definition.properties.get("version"));
    version.and_then(Value::as_i64).expect("a sound model")
}

struct SimulatedStack {
    template: Template,
    /// Stored rows, which survive a crash.
    stored: BTreeMap<ResourceId, Resource>,
    /// Existing objects, with the version of their create or last update.
    objects: BTreeMap<ResourceId, i64>,
    queue: Vec<ResourceId>,
    made: BTreeSet<ResourceId>,
    chance: u64,
    failures: u64,
    next_id: u128,
}

impl SimulatedStack {
    fn draw(&mut self, below: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % below.max(1)
    }

    fn name(index: usize) -> String {
        format!("r{index}")
    }

    fn index(name: &str) -> usize {
        name[1..].parse().expect("a sound model")
    }

    fn fresh(&mut self) -> ResourceId {
        self.next_id += 1;
        ResourceId(uuid::Uuid::from_u128(self.next_id))
    }

    fn targets(&mut self) -> Vec<Target> {
        self.template
            .clone()
            .iter()
            .map(|(i, wanted)| Target {
                name: Self::name(*i),
                requires: wanted.requires.iter().map(|r| Self::name(*r)).collect(),
                kind: ("T".to_owned(), "T".to_owned()),
                fresh: self.fresh(),
            })
            .collect()
    }

    fn decide(&mut self, model: &Model, name: &str) -> Decision {
        let wanted = self.template[&Self::index(name)].clone();
        for required in &wanted.requires {
            let row = model.current(&Self::name(*required)).expect("required resource has a row");
            assert!(row.state.status == Status::Complete, "{name} judged before r{required} is complete");
            assert_eq!(self.objects.get(&row.id), Some(&self.template[required].version), "{name} before r{required}");
        }
        let mut definition = StoredDefinition::of_type("T");
        definition.properties = version(wanted.version);
        let definition = Arc::new(definition);
        match model.current(name) {
            None => Decision::Create { definition },
            Some(row) if row.state == State::INIT => Decision::Create { definition },
            Some(row) if row.state.failed() || row.state.action == Action::Delete => {
                Decision::Replace { definition, why: vec!["failed".to_owned()], announce: None }
            }
            Some(row) if row.definition.as_ref() == Some(&definition) => Decision::Keep { definition: None },
            Some(_) if wanted.replace => {
                Decision::Replace { definition, why: vec!["version".to_owned()], announce: None }
            }
            Some(_) => Decision::Update { definition, before: Map::new(), changed: Map::new() },
        }
    }

    /// Executes commands; returns the end of the request, if it ended.
    fn carry_out(&mut self, model: &mut Model, commands: Vec<Command>) -> Option<(Action, Status)> {
        let mut todo: std::collections::VecDeque<Command> = commands.into();
        let mut end = None;
        while let Some(command) = todo.pop_front() {
            match command {
                Command::Decide { serial, name, .. } => {
                    let decision = self.decide(model, &name);
                    let fresh = self.fresh();
                    let kind = ("T".to_owned(), "T".to_owned());
                    todo.extend(model.decide(
                        Timestamp::UNIX_EPOCH,
                        Event::Decided { serial, name, decision, fresh, kind, attributes: Map::new() },
                    ));
                }
                Command::Save(id) => {
                    if let Some(row) = model.row(id) {
                        self.stored.insert(id, row.clone());
                    }
                }
                Command::Remove(id) => {
                    assert!(!self.objects.contains_key(&id), "a row is forgotten while its object exists");
                    self.stored.remove(&id);
                }
                Command::Start(id) | Command::Resume(id) => self.queue.push(id),
                Command::Note(_) | Command::Interrupt(_) | Command::Moved(..) => {}
                Command::Orphan(..) => panic!("nothing was to be forgotten"),
                Command::End { state, rolls_back, .. } => {
                    assert!(!rolls_back, "no rollback was asked for");
                    assert!(end.is_none() && self.queue.is_empty(), "ended while something is under way");
                    end = Some((state.action, state.status));
                }
            }
        }
        end
    }

    /// One operation ends with success or failure.
    fn step(&mut self, model: &mut Model) -> Option<(Action, Status)> {
        let which = usize::try_from(self.draw(self.queue.len() as u64)).expect("a sound model");
        let id = self.queue.swap_remove(which);
        let row = self.stored[&id].clone();
        let running = row.running().expect("a started row has a stored operation").clone();
        let fails = self.draw(100) < self.failures;
        match running.operation {
            // A failed create may leave an object.
            Operation::Create
                if (!fails || self.draw(2) == 0)
                // Found again after a crash, it is not created twice.
                && self.made.insert(id) =>
            {
                self.objects.insert(id, version_of(row.definition.as_deref()));
            }
            Operation::Update { .. } if !fails => {
                self.objects.insert(id, version_of(running.definition.as_deref()));
            }
            Operation::Delete if !fails => {
                for other in self.stored.values().filter(|other| other.requires.contains(&id)) {
                    assert!(!self.objects.contains_key(&other.id), "{} deleted before {}", row.name, other.name);
                }
                self.objects.remove(&id);
            }
            _ => {}
        }
        let outcome = if fails {
            Outcome::Failed(Blame::of(&row.name, &Failure::other(Class::ValueError, "bad luck")))
        } else {
            Outcome::Done(None)
        };
        let event = Event::Finished { row: id, physical_id: None, data: Map::new(), attributes: None, outcome };
        let commands = model.decide(Timestamp::UNIX_EPOCH, event);
        self.carry_out(model, commands)
    }

    /// A request; `cut` is the number of operations after which another engine takes over or the next request follows.
    fn request(&mut self, model: &mut Model, action: Action, generation: i64) -> Option<(Action, Status)> {
        let targets = if action == Action::Delete { Vec::new() } else { self.targets() };
        let begin = Request { targets, ..Request::new(StackId(uuid::Uuid::nil()), action, generation) };
        let commands = model.decide(Timestamp::UNIX_EPOCH, Event::Begin(Box::new(begin)));
        self.carry_out(model, commands)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_in_what_was_asked_for(
        templates in prop::collection::vec(template(9), 1..5),
        cuts in prop::collection::vec(prop::option::of(0_usize..12), 5),
        seed in any::<u64>(),
        failures in prop_oneof![Just(0_u64), Just(20)],
    ) {
        let mut stack = SimulatedStack {
            template: Template::new(), stored: BTreeMap::new(), objects: BTreeMap::new(), queue: Vec::new(),
            made: BTreeSet::new(), chance: seed, failures, next_id: 0,
        };
        let mut model = Model::new([]);
        for (n, template) in templates.into_iter().enumerate() {
            stack.template = template;
            let generation = i64::try_from(n).expect("a sound model") + 1;
            let action = if n == 0 { Action::Create } else { Action::Update };
            let mut end = stack.request(&mut model, action, generation);
            let mut left = cuts[n];
            while end.is_none() {
                if left == Some(0) {
                    if stack.draw(2) == 0 {
                        break; // The next request comes while this one is running.
                    }
                    // The engine fails: another one starts with the stored rows.
                    left = None;
                    stack.queue.clear();
                    model = Model::new(stack.stored.values().cloned());
                    end = stack.request(&mut model, action, generation);
                    continue;
                }
                left = left.map(|left| left - 1);
                prop_assert!(!stack.queue.is_empty(), "stuck: {:?}", stack.stored);
                end = stack.step(&mut model);
            }
            if let Some((_, Status::Complete)) = end {
                let there: BTreeMap<usize, i64> = stack.stored.values()
                    .map(|row| (SimulatedStack::index(&row.name), stack.objects[&row.id])).collect();
                let wanted: BTreeMap<usize, i64> =
                    stack.template.iter().map(|(i, wanted)| (*i, wanted.version)).collect();
                prop_assert_eq!(there, wanted);
                prop_assert_eq!(stack.objects.len(), stack.template.len());
            } else if end.is_some() {
                prop_assert!(failures > 0, "failed without a failure");
            }
        }
        // Finally, delete everything: without failures this must succeed.
        stack.failures = 0;
        let mut end = stack.request(&mut model, Action::Delete, 100);
        while end.is_none() {
            prop_assert!(!stack.queue.is_empty(), "stuck in delete");
            end = stack.step(&mut model);
        }
        prop_assert_eq!(end, Some((Action::Delete, Status::Complete)));
        prop_assert!(stack.stored.is_empty() && stack.objects.is_empty());
    }
}
