//! Runs a scenario from start to end and checks the rules.

use std::cell::RefCell;
use std::sync::{Arc, Once};
use std::time::Duration;

use kiln_resource::{Action, State, Status};
use kiln_store::{Stack, StackQuery};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::drivers::ON_PURPOSE;
use crate::rule::{Rule, Violation};
use crate::sabotage::Sabotage;
use crate::scenario::{Ask, Fault, FaultKind, Scenario, UserAction, When};
use crate::simulation::Simulation;
use crate::template_model::Build;
use crate::users::Users;
use crate::{continued, guards, hooks, inbox, logs, plugins, sinks, takeovers, trusts, wanted};

/// Maximum duration of an operation after the last fault, in milliseconds.
const BOUND_MS: u64 = 900_000;
/// How long an action may continue after its timeout.
const SLACK_MS: u64 = 120_000;
/// Maximum time until a delete takes effect: it may have to wait for a lost call.
const NOTICE_MS: u64 = 90_000;
/// Idle time before the cluster must be quiet.
const REST: Duration = Duration::from_secs(90);
/// How long couriers may take to find that everything is sent.
const LAST_LOOK: Duration = Duration::from_secs(5);
/// How long the quiet cluster is observed.
const QUIET: Duration = Duration::from_mins(1);

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The first violation.
    pub violation: Option<Violation>,
    /// The trace, if it was requested.
    pub trace: String,
    /// Virtual duration.
    pub virtual_ms: u64,
    /// Number of requests to the cloud.
    pub served: u64,
}

impl Outcome {
    fn not_started(error: &dyn std::error::Error) -> Self {
        let violation = Violation { rule: Rule::Panic, text: error.to_string(), at_ms: 0 };
        Self { violation: Some(violation), trace: String::new(), virtual_ms: 0, served: 0 }
    }
}

thread_local! {
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Records panics of runs instead of printing them.
fn catch_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let noted = PANICS
                .with(|panics| panics.borrow_mut().as_mut().map(|panics| panics.push(info.to_string())).is_some());
            if !noted {
                former(info);
            }
        }));
    });
}

/// Runs a scenario.
pub fn run(scenario: &Scenario, traced: bool, sabotage: Option<Sabotage>) -> Outcome {
    catch_panics();
    PANICS.with(|panics| *panics.borrow_mut() = Some(Vec::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(play(Arc::new(scenario.clone()), traced, sabotage)),
        Err(error) => Outcome::not_started(&error),
    };
    PANICS.with(|panics| *panics.borrow_mut() = None);
    outcome
}

fn report_panics(sim: &Simulation) {
    let panics = PANICS.with(|panics| panics.borrow_mut().as_mut().map(std::mem::take));
    let unwanted = |text: &String| !text.contains(ON_PURPOSE);
    if let Some(text) = panics.into_iter().flatten().find(unwanted) {
        sim.accuse(Rule::Panic, text.replace('\n', " "));
    }
}

async fn play(scenario: Arc<Scenario>, traced: bool, sabotage: Option<Sabotage>) -> Outcome {
    let (sim, triggers) = match Simulation::new(scenario, traced, sabotage).await {
        Ok(new) => new,
        Err(error) => return Outcome::not_started(&error),
    };
    let logs = traced.then(|| logs::collect(&sim));
    let cluster = Cluster::new(&sim);
    tokio::select! {
        biased;
        () = sim.accused() => {}
        () = story(&sim, &cluster, triggers) => {}
    }
    report_panics(&sim);
    drop(logs);
    Outcome {
        violation: sim.violation(),
        trace: sim.trace.take(),
        virtual_ms: sim.time.ms(),
        served: sim.cloud().served(),
    }
}

async fn story(sim: &Arc<Simulation>, cluster: &Arc<Cluster>, triggers: UnboundedReceiver<usize>) {
    for engine in 0..cluster.len() {
        cluster.start(engine);
    }
    let users = Users::new(sim);
    let mut asking = JoinSet::new();
    for (number, action) in sim.scenario.actions.iter().cloned().enumerate() {
        let users = Arc::clone(&users);
        asking.spawn(async move {
            tokio::time::sleep(Duration::from_millis(action.at_ms)).await;
            users.act(number, &action).await;
        });
    }
    for fault in sim.scenario.faults.clone() {
        if let When::Time(at) = fault.when {
            let (sim, cluster) = (Arc::clone(sim), Arc::clone(cluster));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(at)).await;
                inject(&sim, &cluster, &fault).await;
            });
        }
    }
    tokio::spawn(set_off(Arc::clone(sim), Arc::clone(cluster), triggers));
    tokio::spawn(watch(Arc::clone(sim), Arc::clone(cluster)));
    tokio::spawn(hooks::clear_all(Arc::clone(sim)));
    tokio::time::sleep(Duration::from_millis(sim.scenario.calm_ms)).await;
    calm_down(sim, cluster);
    guards::lift_all(sim).await;
    // Users whose requests failed retry.
    while asking.join_next().await.is_some() {}
    all_end(sim).await;
    // Messages that were due when the database's clock was set back are due again once it has caught up.
    tokio::time::sleep(REST + sim.store_clock.back()).await;
    judge_rest(sim).await;
    guards::lift_all(sim).await;
    continued::finish(sim, &users).await;
    for (number, stack) in roots(sim).await.into_iter().enumerate() {
        if stack.deleted.is_none() {
            let place = stack.name.trim_start_matches('s').parse().unwrap_or_default();
            let action = UserAction { at_ms: 0, stack: place, ask: Ask::Delete };
            users.act(1_000 + number, &action).await;
        }
    }
    all_end(sim).await;
    for stack in roots(sim).await {
        if stack.deleted.is_none() {
            sim.accuse(Rule::DeleteFailed, format!("{} is {}: {}", stack.name, stack.state, stack.reason));
        }
    }
    tokio::time::sleep(REST).await;
    for stack in roots(sim).await {
        wanted::check_gone(sim, &stack).await;
    }
    sinks::check(sim).await;
    plugins::check(sim).await;
    trusts::check(sim, &roots(sim).await).await;
    for engine in 0..cluster.len() {
        cluster.stop(engine).await;
    }
}

/// Injects faults that are triggered by calls.
async fn set_off(sim: Arc<Simulation>, cluster: Arc<Cluster>, mut triggers: UnboundedReceiver<usize>) {
    while let Some(at) = triggers.recv().await {
        let Some(fault) = sim.scenario.faults.get(at).cloned() else { continue };
        let (sim, cluster) = (Arc::clone(&sim), Arc::clone(&cluster));
        tokio::spawn(async move { inject(&sim, &cluster, &fault).await });
    }
}

/// Injects a fault from its start to its end, at the latest when the calm phase starts.
async fn inject(sim: &Arc<Simulation>, cluster: &Arc<Cluster>, fault: &Fault) {
    let left = sim.scenario.calm_ms.saturating_sub(sim.time.ms());
    let lasts = Duration::from_millis(fault.for_ms.min(left));
    sim.trace.note("fault", || format!("{:?} for {lasts:?}", fault.what));
    cluster.disturb(&fault.what, true);
    match &fault.what {
        FaultKind::Kill(engine) => {
            cluster.kill(*engine);
            tokio::time::sleep(lasts).await;
            cluster.start(*engine);
        }
        FaultKind::Stop(engine) => {
            cluster.stop(*engine).await;
            tokio::time::sleep(lasts).await;
            cluster.start(*engine);
        }
        FaultKind::Pause(engine) => {
            let process = cluster.pause(*engine);
            tokio::time::sleep(lasts).await;
            if process.is_some() {
                cluster.go_on(*engine);
            }
        }
        FaultKind::Suspend(engine) => {
            let process = cluster.pause(*engine);
            tokio::time::sleep(lasts).await;
            // Another fault may have stopped it before.
            if let Some(process) = process {
                cluster.resume(*engine, process, lasts);
            }
        }
        FaultKind::ClockBack(engine, ms) => {
            cluster.set_back(*engine, *ms);
            tokio::time::sleep(lasts).await;
            cluster.set_back(*engine, 0);
        }
        FaultKind::ClockForward(engine, ms) => {
            cluster.set_back(*engine, -ms);
            tokio::time::sleep(lasts).await;
            cluster.set_back(*engine, 0);
        }
        FaultKind::StoreClockBack(ms) => {
            sim.store_clock.set_further_back(*ms);
        }
        FaultKind::StoreClockForward(ms) => {
            sim.store_clock.set_further_back(-ms);
        }
        FaultKind::CutCloud(engine) => {
            sim.switches().cloud_cut.insert(Some(*engine));
            tokio::time::sleep(lasts).await;
            sim.switches().cloud_cut.remove(&Some(*engine));
        }
        FaultKind::CutStore(engine) => {
            sim.switches().store_cut.insert(Some(*engine));
            tokio::time::sleep(lasts).await;
            sim.switches().store_cut.remove(&Some(*engine));
        }
        FaultKind::StoreOutage => {
            sim.switches().store_out = true;
            tokio::time::sleep(lasts).await;
            sim.switches().store_out = false;
        }
        FaultKind::ServiceOutage(service) => {
            sim.switches().services_out.insert(service.clone());
            tokio::time::sleep(lasts).await;
            sim.switches().services_out.remove(service);
        }
        FaultKind::Deaf => {
            sim.switches().deaf = true;
            tokio::time::sleep(lasts).await;
            sim.switches().deaf = false;
        }
    }
    cluster.disturb(&fault.what, false);
}

/// Stops all faults.
fn calm_down(sim: &Simulation, cluster: &Cluster) {
    sim.trace.note("fault", || "no more".to_owned());
    *sim.switches() = crate::simulation::Switches::default();
    for engine in 0..cluster.len() {
        cluster.set_back(engine, 0);
        cluster.go_on(engine);
        cluster.start(engine);
    }
}

pub(crate) async fn roots(sim: &Simulation) -> Vec<Stack> {
    let query = StackQuery { deleted: true, ..StackQuery::default() };
    sim.store.stacks(&query).await.unwrap_or_default()
}

/// Waits until every operation has ended, which must happen within a time limit.
pub(crate) async fn all_end(sim: &Simulation) {
    let start = sim.time.ms();
    loop {
        let query = StackQuery { deleted: true, nested: true, ..StackQuery::default() };
        let stacks = sim.store.stacks(&query).await.unwrap_or_default();
        let mut pending = stacks.iter().filter(|stack| stack.is_pending()).peekable();
        if pending.peek().is_none() {
            return;
        }
        let now = sim.time.ms();
        for stack in pending {
            // A rollback has its own timeout.
            let more = if may_be_endless(sim) { limit_ms(sim, stack).saturating_mul(2) } else { 0 };
            // Timers of resources are times of the database.
            let more = more.saturating_add(u64::try_from(sim.store_clock.back().as_millis()).unwrap_or(u64::MAX));
            if now > (start + BOUND_MS).saturating_add(more) {
                sim.accuse(Rule::Stuck, format!("{} is {} since {start} ms", stack.name, stack.state));
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn may_be_endless(sim: &Simulation) -> bool {
    sim.scenario.actions.iter().any(|action| match &action.ask {
        Ask::Create(wish) | Ask::Update(wish) => wish.template.all().iter().any(|r| r.build == Build::Never),
        _ => false,
    })
}

fn limit_ms(sim: &Simulation, stack: &Stack) -> u64 {
    let minutes = stack.timeout_mins.filter(|minutes| *minutes > 0).and_then(|minutes| u64::try_from(minutes).ok());
    let default = Cluster::options(sim).action_timeout;
    minutes.map_or(u64::try_from(default.as_millis()).unwrap_or(u64::MAX), |minutes| minutes.saturating_mul(60_000))
}

/// Checks repeatedly for actions that exceed their timeout.
async fn watch(sim: Arc<Simulation>, cluster: Arc<Cluster>) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        report_panics(&sim);
        cluster.start_what_has_ended();
        takeovers::check(&sim, &cluster);
        let now = sim.time.ms();
        for record in sim.ledger.stacks() {
            let stack = &record.stack;
            let calm = if sim.scenario.disturbs_engines() { sim.scenario.calm_ms } else { 0 };
            let asked = stack.is_pending() && stack.state.action == Action::Delete;
            if asked && !record.was_written() && now > record.since_ms.max(calm) + NOTICE_MS {
                let text =
                    format!("{} is {} since {} ms, and nothing happens", stack.name, stack.state, record.since_ms);
                sim.accuse(Rule::Unnoticed, text);
            }
            let timed = stack.state.status == Status::InProgress && stack.state.action != Action::Delete;
            if !timed || stack.parent.is_some() {
                continue;
            }
            let mut limit = record.since_ms.saturating_add(limit_ms(&sim, stack));
            limit = limit.max(calm);
            // Timeouts are times of the database.
            limit = limit.saturating_add(u64::try_from(sim.store_clock.back().as_millis()).unwrap_or(u64::MAX));
            if now > limit.saturating_add(SLACK_MS) {
                let text = format!("{} is {} since {} ms", stack.name, stack.state, record.since_ms);
                sim.accuse(Rule::PastTimeout, text);
            }
        }
    }
}

/// After an idle time, checks the final state and that the cluster is quiet.
async fn judge_rest(sim: &Arc<Simulation>) {
    for stack in roots(sim).await {
        let reached = [Action::Create, Action::Update, Action::Rollback, Action::Adopt, Action::Restore];
        if reached.iter().any(|action| stack.state == State::new(*action, Status::Complete)) {
            wanted::check_wanted(sim, &stack).await;
        }
        let snapshots = sim.store.snapshots(stack.id).await.unwrap_or_default();
        if snapshots.iter().any(|snapshot| snapshot.state.status == Status::InProgress) {
            sim.accuse(Rule::SnapshotOpen, format!("{} is {}, but a snapshot is in progress", stack.name, stack.state));
        }
        if stack.deleted.is_some() {
            wanted::check_gone(sim, &stack).await;
        } else {
            inbox::check(sim, &stack).await;
            inbox::check_scaling(sim, &stack).await;
        }
    }
    let query = StackQuery { nested: true, ..StackQuery::default() };
    for stack in sim.store.stacks(&query).await.unwrap_or_default() {
        wanted::check_idle(sim, &stack, &[]).await;
    }
    // What could not be sent before waits for up to some minutes.
    sinks::check(sim).await;
    plugins::check(sim).await;
    sinks::all_sent(sim).await;
    // After the last events, a courier looks once more for others.
    tokio::time::sleep(LAST_LOOK).await;
    sim.ledger.take_queries();
    tokio::time::sleep(QUIET).await;
    let engines = sim.scenario.engines.len() as u64;
    for (query, count) in sim.ledger.take_queries() {
        let most = match query {
            // Each engine looks for work and for events to send, and reports its heartbeat.
            "claim" | "engines" | "take over" => 65 * engines,
            // Each engine forgets each process that has ended: that of a stopped one may be unable to report its end.
            "forget engine" => sim.ledger.count_ended() * engines,
            "next_lane" => 32 * engines,
            "renew" | "report" => 15 * engines,
            "now" => 7 * engines,
            // One engine purges.
            "forget" | "forget_events" => 2,
            "unused_credentials" | "retire_credentials" | "delete_credentials" | "unused_user_projects" => 5 * engines,
            _ => 0,
        };
        if count > most {
            sim.accuse(Rule::NotQuiet, format!("{count} of {query} in {QUIET:?} although nothing is to do"));
        }
    }
}
