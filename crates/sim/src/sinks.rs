//! An event sink: a queue to which couriers post the events of stacks, and the check that each event arrives.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{CloudRequest, CloudResponse, Failure, FailureKind};
use kiln_store::{EventQuery, StackQuery};
use kiln_value::{Class, Map, Value, value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::oneshot;

use crate::cloud::CLIENT_TIMEOUT;
use crate::gate::Gate;
use crate::rule::Rule;
use crate::scenario::{Fault, FaultKind, Scenario, When};
use crate::simulation::{Label, Simulation};

/// The service of the queue.
pub(crate) const SERVICE: &str = "messaging";
/// Maximum delay of the effect of a request.
const LATEST_MS: u64 = 12_000;
/// How long after the last fault events may arrive: the longest pause between two attempts, and some more.
const PATIENCE: Duration = Duration::from_mins(5);

/// Gives a part of the scenarios a sink. It has its own random numbers, so that the other seeds keep their scenarios.
pub(crate) fn add(scenario: &mut Scenario, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5349_4e4b);
    if !rng.random_bool(0.3) {
        return;
    }
    scenario.sink = true;
    if rng.random_bool(0.4) {
        let when = When::Time(rng.random_range(0..scenario.calm_ms.max(1)));
        let (for_ms, what) = (rng.random_range(1_000..60_000), FaultKind::ServiceOutage(SERVICE.to_owned()));
        scenario.faults.push(Fault { when, for_ms, what });
    }
}

/// The section of the environment.
pub(crate) fn section() -> Value {
    value!([{ "type": "zaqar-queue", "target": "events" }])
}

/// The messages of the queue.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    /// The IDs of the events, each at its first arrival.
    arrived: Vec<String>,
    known: BTreeSet<String>,
}

impl Sink {
    fn post(&mut self, request: &CloudRequest) {
        let messages = request.body.as_ref().and_then(|body| body.get("messages")).and_then(Value::as_list);
        for message in messages.unwrap_or_default() {
            let id = message.get("body").and_then(|body| body.str_at("id")).unwrap_or_default();
            if self.known.insert(id.to_owned()) {
                self.arrived.push(id.to_owned());
            }
        }
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Served,
    NotSent,
    Refused(u16),
    /// It is executed, and there is no response.
    Lost,
    /// The response is 504, and it is executed later.
    Late,
}

fn fate(sim: &Simulation, label: Label) -> Fate {
    {
        let switches = sim.switches();
        if switches.cloud_cut.contains(&label.slot) {
            return Fate::NotSent;
        }
        if switches.services_out.contains(SERVICE) {
            return Fate::Refused(503);
        }
    }
    let Some(noise) = sim.noise() else { return Fate::Served };
    let hit = |what: &str, of: u64| sim.dice.chance((what, SERVICE, label.slot), of);
    if hit("not sent", noise.not_sent) {
        Fate::NotSent
    } else if hit("refused", noise.refused) {
        Fate::Refused(if sim.dice.chance("which refusal of the sink", 500) { 503 } else { 429 })
    } else if hit("lost", noise.lost_reply) {
        Fate::Lost
    } else if hit("late", noise.late) {
        Fate::Late
    } else {
        Fate::Served
    }
}

/// A request of an engine to the queue. It is executed even if its engine fails.
pub(crate) async fn post(
    sim: &Arc<Simulation>,
    label: Label,
    gate: &Gate,
    request: CloudRequest,
) -> Result<CloudResponse, Failure> {
    sim.before_call(label, gate).await;
    let fate = fate(sim, label);
    let key = (SERVICE, label.slot);
    let latency = sim.scenario.noise.latency_ms.max(1);
    let way = |what: &str| Duration::from_millis(1 + sim.dice.up_to((what, key), latency));
    let (there, back) = (way("there"), way("back"));
    sim.trace.note(&label.to_string(), || format!("Post {SERVICE} [{fate:?}]"));
    let (reply, answer) = oneshot::channel();
    let deadline = tokio::time::Instant::now() + CLIENT_TIMEOUT;
    let world = Arc::clone(sim);
    tokio::spawn(async move {
        tokio::time::sleep(there).await;
        let refused = |status: u16| {
            let kind = if status == 429 { FailureKind::OverLimit } else { FailureKind::Unavailable };
            Err(Failure::new(kind, Class::ServiceUnavailable, format!("the sink says {status}")))
        };
        let result = match fate {
            Fate::NotSent => Err(Failure::new(FailureKind::NotSent, Class::ConnectFailure, "connection refused")),
            Fate::Refused(status) => refused(status),
            Fate::Late => {
                let delay = world.dice.up_to(("late by", key), LATEST_MS);
                let late = Arc::clone(&world);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                    late.sink().post(&request);
                });
                refused(504)
            }
            Fate::Served | Fate::Lost => {
                world.sink().post(&request);
                Ok(())
            }
        };
        tokio::time::sleep(back).await;
        if fate == Fate::Lost {
            // Nobody gets the response.
            std::future::pending::<()>().await;
        }
        drop(reply.send(result));
    });
    sim.after_send(label, gate).await;
    let failed = || Failure::new(FailureKind::Unavailable, Class::RequestTimeout, "no reply");
    let result = tokio::time::timeout_at(deadline, answer).await.map_err(|_| failed());
    gate.pass().await;
    result?.map_err(|_| failed())??;
    Ok(CloudResponse { status: 204, headers: Map::new(), body: Value::Null })
}

/// Every event of every stack has arrived, those of each stack in their order.
pub(crate) async fn check(sim: &Simulation) {
    if !sim.scenario.sink {
        return;
    }
    let start = sim.time.ms();
    let mut missing = misses(sim).await;
    while missing.is_some() && Duration::from_millis(sim.time.ms() - start) < PATIENCE + sim.store_clock.back() {
        tokio::time::sleep(Duration::from_secs(5)).await;
        missing = misses(sim).await;
    }
    if let Some(text) = missing {
        sim.accuse(Rule::EventLost, text);
    }
}

/// Waits until the outbox is empty.
pub(crate) async fn all_sent(sim: &Simulation) {
    let until = tokio::time::Instant::now() + PATIENCE + sim.store_clock.back();
    while matches!(sim.store.next_lane("").await, Ok(Some(_))) && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

/// What has not arrived, or not in its order.
async fn misses(sim: &Simulation) -> Option<String> {
    let query = StackQuery { deleted: true, nested: true, ..StackQuery::default() };
    let places: std::collections::BTreeMap<String, usize> = sim.sink().arrived.iter().cloned().zip(0..).collect();
    for stack in sim.store.stacks(&query).await.unwrap_or_default() {
        let query = EventQuery { stacks: vec![stack.id], ..EventQuery::default() };
        let mut last = None;
        for event in sim.store.events(&query).await.unwrap_or_default() {
            let what = || format!("{}: {} {}_{}", stack.name, event.resource_name, event.action, event.status);
            let Some(place) = places.get(&event.id.to_string()) else {
                return Some(format!("{} has not arrived at the sink", what()));
            };
            if last.is_some_and(|last| last > *place) {
                return Some(format!("{} has arrived at the sink before an earlier event", what()));
            }
            last = Some(*place);
        }
    }
    None
}
