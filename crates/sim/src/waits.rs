//! Resources that wait for the signals of another one: their type, their scenarios, and the check that no signal is
//! slept over.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    Action, Context, Driver, Facts, Failure, Found, Operation, Received, Resource, ResourceId, Status, Step, TypeRules,
};
use kiln_store::Batch;
use kiln_value::{Class, Map, Value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::rule::Rule;
use crate::scenario::{Ask, Scenario, UserAction};
use crate::simulation::Simulation;
use crate::template_model::{KindModel, Plain, ResourceModel, TemplateModel};

/// Maximum time between two looks at the signals.
const LOOK: Duration = Duration::from_secs(10);

/// The name of the type.
pub(crate) const WAIT: &str = "Sim::Wait";

/// Seconds until a wait fails.
const TIMEOUT: f64 = 40.0;

/// Maximum time between the last signal of a wait and its end.
const PROMPT_MS: u64 = 5_000;

/// The driver of the type.
pub(crate) struct WaitDriver;

impl WaitDriver {
    fn look(cx: &Context<'_>, until: f64) -> Result<Step, Failure> {
        let count = cx.facts.property("count").as_i64().unwrap_or_default();
        let heard =
            cx.facts.observed.first().and_then(|inbox| inbox.metadata.as_map()).map_or(0, |signals| signals.len());
        if i64::try_from(heard).is_ok_and(|heard| heard >= count) {
            return Ok(Step::done());
        }
        match Duration::try_from_secs_f64(until - cx.now) {
            // The clock may be corrected while it waits.
            Ok(left) if !left.is_zero() => Ok(Step::wait(Value::Float(until), left.min(LOOK))),
            _ => Err(Failure::other(Class::Timeout, format!("{heard} of {count} signals"))),
        }
    }
}

impl TypeRules for WaitDriver {
    fn observes(&self, facts: &Facts) -> Vec<Value> {
        vec![facts.property("inbox").clone()]
    }
}

#[async_trait]
impl Driver for WaitDriver {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create | Operation::Update { .. } => Self::look(cx, cx.now + TIMEOUT),
            Operation::Delete => Ok(match cx.facts.observed.first() {
                Some(inbox) => Step::done().received(inbox, Received::nothing().metadata(Map::new())),
                None => Step::done(),
            }),
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        Self::look(cx, kiln_value::number::to_f64(state).unwrap_or_default())
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}

/// Adds waits and signals to the scenario of a seed. They have their own random numbers, so that the other seeds keep
/// their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5349_474e_414c);
    if !rng.random_bool(0.25) {
        return;
    }
    let mut signals = Vec::new();
    for action in &mut scenario.actions {
        let (Ask::Create(wish) | Ask::Update(wish)) = &mut action.ask else { continue };
        let inbox = inbox_of(&mut wish.template);
        let count = rng.random_range(1..=3);
        wish.template.resources.push(resource("wait", KindModel::Wait { inbox: inbox.clone(), count }));
        for _ in 0..rng.random_range(0..=4) {
            let ask = Ask::Signal { resource: inbox.clone(), count: 1 };
            let at_ms = action.at_ms + rng.random_range(0..45_000);
            signals.push(UserAction { at_ms, stack: action.stack, ask });
        }
    }
    scenario.actions.extend(signals);
    scenario.actions.sort_by_key(|action| (action.at_ms, action.stack));
    let last = scenario.actions.iter().map(|action| action.at_ms).max().unwrap_or_default();
    scenario.calm_ms = scenario.calm_ms.max(last + 5_000);
}

/// The first inbox of a template; a new one if there is none.
fn inbox_of(template: &mut TemplateModel) -> String {
    let inbox = KindModel::Plain(Plain::Inbox);
    if let Some(found) = template.resources.iter().find(|resource| resource.kind == inbox) {
        return found.name.clone();
    }
    template.resources.push(resource("inbox", inbox));
    "inbox".to_owned()
}

fn resource(name: &str, kind: KindModel) -> ResourceModel {
    ResourceModel::of(name.to_owned(), kind)
}

/// When signals were stored, and waits began.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    signalled: BTreeMap<ResourceId, u64>,
    began: BTreeMap<ResourceId, u64>,
}

impl Waits {
    /// A commit was accepted: a wait must end with its last signal. Returns the names of those that have slept.
    pub(crate) fn committed(
        &mut self,
        sim: &Simulation,
        batch: &Batch,
        before: &BTreeMap<ResourceId, Resource>,
    ) -> Vec<String> {
        let now = sim.time.ms();
        let mut late = Vec::new();
        for row in &batch.save {
            let old = before.get(&row.id);
            if old.is_none_or(|old| old.metadata != row.metadata) {
                self.signalled.insert(row.id, now);
            }
            if row.resource_type != WAIT || !matches!(row.state.action, Action::Create | Action::Update) {
                continue;
            }
            let was_busy = old.is_some_and(|old| old.state.status == Status::InProgress);
            match row.state.status {
                Status::InProgress if !was_busy => drop(self.began.insert(row.id, now)),
                Status::Complete if was_busy => {
                    let signalled = row.requires.iter().filter_map(|inbox| self.signalled.get(inbox)).max();
                    let since = signalled.max(self.began.get(&row.id)).copied().unwrap_or(now);
                    if now.saturating_sub(since) > PROMPT_MS && !sim.scenario.disturbs_engines() {
                        late.push(format!("{} slept {} ms over its last signal", row.name, now - since));
                    }
                }
                _ => {}
            }
        }
        late
    }
}

/// Accuses the waits that have slept.
pub(crate) fn accuse(sim: &Simulation, late: Vec<String>) {
    for text in late {
        sim.accuse(Rule::SleptOver, text);
    }
}
