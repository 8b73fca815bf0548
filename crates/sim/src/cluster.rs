//! The engines: start, kill, pause, stop.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_engine::{Engine, Options};
use kiln_stack::{Backends, Chance, Clock, StoreClock};
use kiln_store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::{EngineClock, WallClock};
use crate::cloud::SimClouds;
use crate::dice;
use crate::drivers;
use crate::gate::Gate;
use crate::plugins::SimPlugin;
use crate::rule::Rule;
use crate::sabotage::Sabotage;
use crate::scenario::FaultKind;
use crate::simulation::{Label, Simulation};
use crate::store_link::StoreLink;

/// Maximum duration of a clean stop.
const LONGEST_STOP: Duration = Duration::from_secs(90);

/// The call limit: the maximum delay of an effect plus the maximum list lag.
const CALL_LIMIT: Duration = Duration::from_secs(25);
/// Maximum delay until a new object is listed.
const LIST_DELAY: Duration = Duration::from_secs(10);

/// The engines of a run.
pub(crate) struct Cluster {
    sim: Arc<Simulation>,
    slots: Vec<Mutex<Slot>>,
}

/// A machine, with or without a running engine.
struct Slot {
    wall: Arc<WallClock>,
    life: u32,
    process: Option<Process>,
    /// Faults in progress that disturb the engine.
    disturbed: usize,
    /// Since when it is undisturbed, in milliseconds.
    fit_since: u64,
}

struct Process {
    label: Label,
    gate: Arc<Gate>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Cluster {
    /// The machines, without engines.
    pub(crate) fn new(sim: &Arc<Simulation>) -> Arc<Self> {
        let slot = |plan: &crate::scenario::EnginePlan| {
            let wall = Arc::new(WallClock::new(sim.time, plan.ahead_ms, plan.drift_ppm));
            Mutex::new(Slot { wall, life: 0, process: None, disturbed: 0, fit_since: 0 })
        };
        let slots = sim.scenario.engines.iter().map(slot).collect();
        Arc::new(Self { sim: Arc::clone(sim), slots })
    }

    fn slot(&self, engine: usize) -> Option<MutexGuard<'_, Slot>> {
        self.slots.get(engine).map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of machines.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The options of an engine.
    pub(crate) fn options(sim: &Simulation) -> Options {
        Options {
            lease: Duration::from_secs(15),
            poll: Duration::from_secs(1),
            action_timeout: Duration::from_mins(20),
            batch: sim.scenario.batch,
            look: Duration::from_millis(if sim.has(Sabotage::ImpatientLook) { 500 } else { 15_000 }),
            call_limit: if sim.has(Sabotage::NoCallLimit) { Duration::ZERO } else { CALL_LIMIT },
            list_delay: if sim.has(Sabotage::NoCallLimit) { Duration::ZERO } else { LIST_DELAY },
            drain: CALL_LIMIT,
            ..Options::default()
        }
    }

    /// Starts an engine on a machine without one.
    pub(crate) fn start(&self, engine: usize) {
        let Some(mut slot) = self.slot(engine) else { return };
        if slot.process.is_some() {
            return;
        }
        let sim = &self.sim;
        let label = Label { slot: Some(engine), life: slot.life };
        slot.life += 1;
        let gate = Arc::new(Gate::default());
        let own = Arc::new(EngineClock::new(Arc::clone(&slot.wall), Arc::clone(&gate), sim.sabotage));
        let clock = Arc::new(StoreClock::new(own));
        let store = Arc::new(StoreLink::new(Arc::clone(sim), label, Arc::clone(&gate)));
        let backends = Backends {
            store: Arc::clone(&store) as Arc<dyn Store>,
            resource_types: drivers::resource_types(),
            clouds: Arc::new(SimClouds::new(Arc::clone(sim), label, Arc::clone(&gate))),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            chance: Arc::new(Chance::seeded(dice::hash((sim.scenario.seed, label)))),
            caches: Arc::default(),
        };
        let (stop, stopped) = watch::channel(false);
        sim.trace.note(&label.to_string(), || "starts".to_owned());
        let mut running = Engine::new(Self::options(sim), backends);
        if sim.scenario.plugin {
            let plugin = SimPlugin { sim: Arc::clone(sim), label, gate: Arc::clone(&gate) };
            running = running.with_plugins(vec![Arc::new(plugin)]);
        }
        let watcher = Arc::clone(sim);
        let task = tokio::spawn(async move {
            while let Err(error) = clock.read(&*store).await {
                watcher.trace.note(&label.to_string(), || format!("does not know the time: {error}"));
            }
            let running = async {
                if let Err(error) = running.run(stopped).await {
                    watcher.trace.note(&label.to_string(), || format!("ended with {error}"));
                }
            };
            tokio::select! {
                // In a fixed order, so that a simulation can be replayed.
                biased;
                () = running => {}
                () = clock.follow(&*store) => {}
            }
        });
        slot.process = Some(Process { label, gate, stop, task });
        slot.fit_since = self.sim.time.ms();
    }

    /// A fault begins or ends.
    pub(crate) fn disturb(&self, by: &FaultKind, begins: bool) {
        for engine in (0..self.len()).filter(|engine| by.disturbs(*engine)) {
            let Some(mut slot) = self.slot(engine) else { continue };
            slot.disturbed = if begins { slot.disturbed + 1 } else { slot.disturbed.saturating_sub(1) };
            slot.fit_since = self.sim.time.ms();
        }
    }

    /// Since when an engine is undisturbed, in milliseconds: the one that is so for longest.
    pub(crate) fn fit_since(&self) -> Option<u64> {
        let slots = (0..self.len()).filter_map(|engine| self.slot(engine));
        slots.filter(|slot| slot.process.is_some() && slot.disturbed == 0).map(|slot| slot.fit_since).min()
    }

    /// Starts the engines again whose process has ended, as a service manager does.
    pub(crate) fn start_what_has_ended(&self) {
        for engine in 0..self.len() {
            let ended = |slot: &Slot| slot.process.as_ref().is_some_and(|process| process.task.is_finished());
            if self.slot(engine).is_some_and(|slot| ended(&slot)) {
                self.kill(engine);
                self.start(engine);
            }
        }
    }

    /// Kills an engine like kill -9: nothing is completed or released.
    pub(crate) fn kill(&self, engine: usize) {
        let Some(process) = self.slot(engine).and_then(|mut slot| slot.process.take()) else { return };
        self.sim.trace.note(&process.label.to_string(), || "is killed".to_owned());
        process.gate.kill();
        process.task.abort();
        self.sim.ledger.killed(process.label, self.sim.time.ms());
    }

    /// Pauses an engine, and returns the process; none if it does not run.
    pub(crate) fn pause(&self, engine: usize) -> Option<Label> {
        let slot = self.slot(engine)?;
        let process = slot.process.as_ref().filter(|process| process.gate.shut())?;
        self.sim.trace.note(&process.label.to_string(), || "stands still".to_owned());
        Some(process.label)
    }

    /// Resumes an engine.
    pub(crate) fn go_on(&self, engine: usize) {
        let Some(slot) = self.slot(engine) else { return };
        if let Some(process) = &slot.process {
            self.sim.trace.note(&process.label.to_string(), || "goes on".to_owned());
            process.gate.open();
        }
    }

    /// Resumes an engine whose machine was suspended: no monotonic time has passed, unless another process was started.
    pub(crate) fn resume(&self, engine: usize, process: Label, suspended: Duration) {
        if let Some(slot) = self.slot(engine)
            && slot.process.as_ref().is_some_and(|running| running.label == process)
        {
            slot.wall.was_suspended(suspended);
        }
        self.go_on(engine);
    }

    /// Stops an engine cleanly.
    pub(crate) async fn stop(&self, engine: usize) {
        let Some(process) = self.slot(engine).and_then(|mut slot| slot.process.take()) else { return };
        self.sim.trace.note(&process.label.to_string(), || "is stopped".to_owned());
        self.sim.ledger.stopped();
        process.gate.open();
        if self.sim.has(Sabotage::StopDropsCalls) {
            process.gate.kill();
            process.task.abort();
            let leases = self.sim.ledger.ever_claimed(process.label);
            if let Err(error) = self.sim.store.release(&leases).await {
                self.sim.trace.note("fault", || error.to_string());
            }
            return;
        }
        process.stop.send_replace(true);
        let mut task = process.task;
        if tokio::time::timeout(LONGEST_STOP, &mut task).await.is_err() {
            task.abort();
            if !process.gate.is_dead() {
                let text = format!("{} still runs {LONGEST_STOP:?} after its stop", process.label);
                self.sim.accuse(Rule::SlowStop, text);
            }
        }
        // Its remaining tasks belong to a dead process.
        process.gate.kill();
    }

    /// Sets the wall clock of an engine back, or corrects it.
    pub(crate) fn set_back(&self, engine: usize, ms: i64) {
        if let Some(slot) = self.slot(engine) {
            slot.wall.set_back(ms);
        }
    }
}
