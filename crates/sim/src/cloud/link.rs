//! The connection between an engine and the cloud: latency, errors, lost responses, partitions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, FailureKind, Method};
use kiln_stack::Clouds;
use kiln_store::{Stack, UnusedCredentials};
use kiln_value::{Class, Map, Value, value};
use tokio::sync::oneshot;

use super::Answer;
use super::object::Object;
use super::serve::{CloudCall, Pace, Refusal};
use crate::gate::Gate;
use crate::rule::Rule;
use crate::sabotage::Sabotage;
use crate::simulation::{Label, Simulation};
use crate::template_model::Plain;
use crate::{bases, crashes, sinks, trusts};

/// Timeout of callers.
pub(crate) const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Not a service: see [`Link::has_extension`].
pub(crate) const SABOTAGE: &str = "sabotage";
/// Maximum delay of the effect of a call.
pub(super) const LATEST_EFFECT_MS: u64 = 12_000;
/// How often somebody else creates an object that looks like the lost one without a mark, in thousandths.
const TWINS: u64 = 500;

/// The clouds of an engine process.
pub(crate) struct SimClouds {
    sim: Arc<Simulation>,
    label: Label,
    gate: Arc<Gate>,
}

impl SimClouds {
    /// The connection of an engine.
    pub(crate) fn new(sim: Arc<Simulation>, label: Label, gate: Arc<Gate>) -> Self {
        Self { sim, label, gate }
    }
}

#[async_trait]
impl Clouds for SimClouds {
    async fn cloud(&self, stack: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        let sim = &self.sim;
        let refused = sim.noise().is_some_and(|noise| sim.dice.chance(("identity", self.label.slot), noise.refused));
        if refused || sim.switches().services_out.contains("identity") {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.gate.pass().await;
            return Err(Failure::new(FailureKind::Unavailable, Class::ServiceUnavailable, "identity is not there"));
        }
        if !trusts::holds(sim, stack).await {
            return Err(Failure::new(FailureKind::Refused, Class::AuthorizationFailure, "the trust is gone"));
        }
        Ok(Arc::new(Link { sim: Arc::clone(sim), label: self.label, gate: Arc::clone(&self.gate) }))
    }

    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        let result = trusts::revoke(&self.sim, self.label, unused).await;
        self.gate.pass().await;
        result
    }
}

/// A session.
struct Link {
    sim: Arc<Simulation>,
    label: Label,
    gate: Arc<Gate>,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Served,
    NotSent,
    Refused(u16),
    /// It is executed, and the response is this status.
    Broken(u16),
    /// It is executed, and there is no response.
    Lost,
    /// The response is 504, and it is executed later.
    Late,
    /// It is executed, and the response is invalid.
    Garbled,
}

impl Link {
    fn fate(&self, call: &CloudCall) -> Fate {
        let sim = &self.sim;
        let key = (call.kind.service(), &call.resource, call.is_write());
        // A late write could revert a newer one, which no client can prevent.
        let may_be_late = call.part.is_none() && matches!(call.method, Method::Post | Method::Delete);
        if sim.switches().services_out.contains(call.kind.service()) {
            return Fate::Refused(503);
        }
        let Some(noise) = sim.noise() else { return Fate::Served };
        let hit = |what: &str, of: u64| sim.dice.chance((what, key), of);
        let pick = |what: &str, of: &[u16]| {
            let at = sim.dice.up_to((what, key), of.len().saturating_sub(1) as u64);
            usize::try_from(at).ok().and_then(|at| of.get(at)).copied().unwrap_or(500)
        };
        let conflicts = matches!(call.method, Method::Post | Method::Delete);
        if hit("not sent", noise.not_sent) {
            Fate::NotSent
        } else if hit("refused", noise.refused) {
            let codes: &[u16] = if conflicts { &[409, 429, 500, 503, 504] } else { &[429, 500, 503, 504] };
            Fate::Refused(pick("which", codes))
        } else if hit("lost", noise.lost_reply) {
            match pick("how", &[0, 0, 1, 500, 502, 504]) {
                1 if call.method == Method::Post => Fate::Garbled,
                0 | 1 => Fate::Lost,
                status => Fate::Broken(status),
            }
        } else if may_be_late && hit("late", noise.late) {
            Fate::Late
        } else {
            Fate::Served
        }
    }

    /// Latency of the request and of the response.
    fn ways(&self, call: &CloudCall) -> (u64, u64) {
        let (sim, key) = (&self.sim, (call.kind.service(), &call.resource, call.is_write()));
        let latency = sim.scenario.noise.latency_ms.max(1);
        let way = |what: &str| 1 + sim.dice.up_to((what, key), latency);
        let slow = sim.noise().is_some_and(|noise| sim.dice.chance(("slow", key), noise.slow));
        let (there, back) = (way("there"), way("back"));
        if slow { (there + 1_000 + sim.dice.up_to(("slow by", key), 4_000), back) } else { (there, back) }
    }

    async fn exchange(&self, call: CloudCall) -> Result<Value, Failure> {
        let sim = &self.sim;
        let shown = || {
            format!("{:?} {}/{}", call.method, call.kind.service(), call.id.as_deref().unwrap_or(""))
                + " for "
                + &call.resource
        };
        self.sim.before_call(self.label, &self.gate).await;
        if call.is_write() {
            sim.ledger.call_sent(sim, self.label, &call);
        }
        let cut = sim.switches().cloud_cut.contains(&self.label.slot);
        let fate = if cut { Fate::NotSent } else { self.fate(&call) };
        sim.trace.note(&self.label.to_string(), || format!("{} [{fate:?}]", shown()));
        let (there, back) = self.ways(&call);
        if fate == Fate::NotSent {
            tokio::time::sleep(Duration::from_millis(there)).await;
            return Err(Failure::new(FailureKind::NotSent, Class::ConnectFailure, "connection refused"));
        }
        let deadline = tokio::time::Instant::now() + CLIENT_TIMEOUT;
        let (reply, answer) = oneshot::channel();
        tokio::spawn(travel(Arc::clone(sim), self.label, call.clone(), fate, (there, back), reply));
        self.sim.after_send(self.label, &self.gate).await;
        let failed = || Failure::new(FailureKind::Unavailable, Class::RequestTimeout, "no reply");
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(refusal))) => Err(failure_of(&refusal)),
            Ok(Err(_)) => {
                tokio::time::sleep_until(deadline).await;
                Err(failed())
            }
            Err(_) => Err(failed()),
        }
    }
}

/// Whether a call creates an object without a mark.
fn is_unmarked(call: &CloudCall) -> bool {
    call.kind == Plain::Blind && call.method == Method::Post && call.id.is_none()
}

/// A request in transit: it is executed even if its engine fails.
async fn travel(
    sim: Arc<Simulation>,
    label: Label,
    call: CloudCall,
    fate: Fate,
    (there, back): (u64, u64),
    reply: oneshot::Sender<Result<Value, Refusal>>,
) {
    let sleep = |ms: u64| tokio::time::sleep(Duration::from_millis(ms));
    let status_text = |status: u16| Refusal::new(status, format!("the service says {status}"));
    sleep(there).await;
    match fate {
        Fate::NotSent => {}
        Fate::Refused(status) => {
            if is_unmarked(&call) && sim.dice.chance(("other", &call.resource), TWINS) {
                sim.cloud().make_other(&call, sim.time.ms());
            }
            sleep(back).await;
            let _ = reply.send(Err(status_text(status)));
        }
        Fate::Late => {
            let delay = sim.dice.up_to(("late by", &call.resource), LATEST_EFFECT_MS.saturating_sub(there + back));
            sleep(back).await;
            let _ = reply.send(Err(status_text(504)));
            sleep(delay).await;
            sim.trace.note("cloud", || format!("late: {:?} for {} of {label}", call.method, call.resource));
            // Nobody waits for the response.
            let _ = effect(&sim, &call, fate).await;
        }
        Fate::Served | Fate::Broken(_) | Fate::Lost | Fate::Garbled => {
            let answer = effect(&sim, &call, fate).await;
            sleep(back).await;
            let cut = sim.switches().cloud_cut.contains(&label.slot);
            match fate {
                Fate::Lost => {}
                _ if cut => {}
                Fate::Garbled => drop(reply.send(answer.map(|_| Value::Null))),
                Fate::Broken(status) => drop(reply.send(Err(status_text(status)))),
                _ => drop(reply.send(answer)),
            }
        }
    }
}

/// Executes a call and checks its effects.
async fn effect(sim: &Arc<Simulation>, call: &CloudCall, fate: Fate) -> Result<Value, Refusal> {
    let is_lost = fate != Fate::Served && is_unmarked(call);
    let has_twin = is_lost && sim.dice.chance(("twin", &call.resource), TWINS);
    let key = (call.kind.service(), &call.resource);
    let lag = sim.noise().map_or(0, |noise| sim.dice.up_to(("lag", key), noise.list_lag_ms));
    let pace = Pace { build_ms: 500 + sim.dice.up_to(("build", key), 9_500), lag_ms: lag, has_twin };
    let now = sim.time.ms();
    if let Some(id) = call.id.as_ref().filter(|_| call.is_write())
        && sim.cloud().get(id, now).is_some_and(Object::is_foreign)
    {
        sim.accuse(Rule::Foreign, format!("{:?} {id} for {}", call.method, call.resource));
    }
    bases::check(sim, call);
    let Answer { result, twin, dependants, hammered } = sim.cloud().serve(call, pace, now);
    sim.trace.note("cloud", || {
        let shown = match &result {
            Ok(value) => value.str_at("id").unwrap_or("done").to_owned(),
            Err(refusal) => format!("{} {}", refusal.status, refusal.text),
        };
        format!(
            "{:?} {}/{} for {}: {shown}",
            call.method,
            call.kind.service(),
            call.id.as_deref().unwrap_or(""),
            call.resource
        )
    });
    if let Some(twin) = twin {
        sim.accuse(Rule::MadeTwice, format!("{} of stack {} has {twin} already", call.resource, call.stack));
    }
    if hammered {
        sim.accuse(Rule::UnpacedPolls, format!("{:?} {:?} {:?} again and again", call.method, call.id, call.mark));
    }
    for dependant in dependants {
        if sim.ledger.stands_for(sim, &dependant).await && !sim.ledger.may_leave(&call.stack, &dependant.stack) {
            let (id, other) = (call.id.as_deref().unwrap_or_default(), &dependant.id);
            sim.accuse(
                Rule::EarlyDelete,
                format!("{id} ({}) while {other} ({}) needs it", call.resource, dependant.resource),
            );
        }
    }
    result
}

fn failure_of(refusal: &Refusal) -> Failure {
    let (kind, class) = match refusal.status {
        404 => (FailureKind::NotFound, Class::NotFound),
        409 => (FailureKind::Conflict, Class::Conflict),
        413 | 429 => (FailureKind::OverLimit, Class::OverLimit),
        500 => (FailureKind::ServerError, Class::InternalServerError),
        501..=599 => (FailureKind::Unavailable, Class::ServiceUnavailable),
        _ => (FailureKind::Refused, Class::BadRequest),
    };
    let mut failure = Failure::new(kind, class, refusal.text.clone());
    if refusal.status == 429 {
        failure.retry_after = Some(Duration::from_secs(2));
    }
    failure
}

#[async_trait]
impl Cloud for Link {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        if request.service == sinks::SERVICE {
            return sinks::post(&self.sim, self.label, &self.gate, request).await;
        }
        let Some(call) = CloudCall::read(&request) else {
            return Err(Failure::new(
                FailureKind::Refused,
                Class::BadRequest,
                format!("no such path: {}", request.path),
            ));
        };
        // It may wait for a token or for the concurrency limit, and the lease may expire meanwhile.
        let key = ("room", call.kind.service(), &call.resource);
        if self.sim.noise().is_some() && self.sim.dice.chance(key, 100) {
            tokio::time::sleep(Duration::from_millis(self.sim.dice.up_to(key, 3_000))).await;
        }
        self.gate.pass().await;
        if request.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return Err(Failure::new(FailureKind::NotSent, Class::ConnectFailure, "the lease may have ended"));
        }
        let result = match self.sim.sabotage {
            Some(Sabotage::FindLies) if call.mark.is_some() => Ok(value!({"objects": []})),
            Some(Sabotage::SkipDelete) if call.method == Method::Delete => Ok(Value::Null),
            Some(Sabotage::StaleUpdate) if call.method == Method::Put && call.part.is_none() => Ok(Value::Null),
            _ => self.exchange(call).await,
        };
        self.gate.pass().await;
        crashes::panic(&self.sim, self.label, "a call");
        result.map(|body| CloudResponse { status: 200, headers: Map::new(), body })
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        if finder != bases::FINDER {
            return Ok(name_or_id.to_owned());
        }
        let found = bases::find(&self.sim, name_or_id).await;
        self.gate.pass().await;
        found
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    /// The drivers of the simulation use this call to find out which defects to simulate.
    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        Ok(service == SABOTAGE && self.sim.sabotage.is_some_and(|sabotage| sabotage.name() == alias))
    }

    async fn time(&self, _: &str) -> Option<i64> {
        i64::try_from(self.sim.time.ms() / 1_000).ok()
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("sim".to_owned())
    }
}
