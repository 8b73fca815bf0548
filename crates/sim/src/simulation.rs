//! The state of a run, shared by its tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_store::{Error, Store};
use tokio::sync::{Notify, mpsc};

use crate::clock::{TrueTime, WallClock};
use crate::cloud::SimCloud;
use crate::dice::Dice;
use crate::gate::Gate;
use crate::ledger::Ledger;
use crate::plugins::PluginRecord;
use crate::rule::{Rule, Violation};
use crate::sabotage::Sabotage;
use crate::scenario::{Noise, Scenario, When};
use crate::sinks::Sink;
use crate::trace::Trace;

/// Maximum number of calls in a run; more indicate a loop.
const MOST_CALLS: u64 = 400_000;

/// The origin of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Label {
    /// The engine; `None`: the users' service.
    pub slot: Option<usize>,
    /// Number of restarts.
    pub life: u32,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slot {
            Some(slot) => write!(f, "e{slot}.{}", self.life),
            None => write!(f, "api"),
        }
    }
}

/// Active faults.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// Engines without connection to the cloud.
    pub cloud_cut: BTreeSet<Option<usize>>,
    /// Engines without connection to the database.
    pub store_cut: BTreeSet<Option<usize>>,
    /// The database rejects everything.
    pub store_out: bool,
    /// Services that reject everything.
    pub services_out: BTreeSet<String>,
    /// All rings are lost.
    pub deaf: bool,
}

/// The state of a run.
pub(crate) struct Simulation {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The time.
    pub time: TrueTime,
    /// Random numbers.
    pub dice: Dice,
    /// The trace.
    pub trace: Trace,
    /// The database.
    pub store: Arc<dyn Store>,
    /// The database's clock.
    pub store_clock: Arc<WallClock>,
    /// The records of the checks.
    pub ledger: Ledger,
    /// The simulated defect.
    pub sabotage: Option<Sabotage>,
    cloud: Mutex<SimCloud>,
    sink: Mutex<Sink>,
    told: Mutex<PluginRecord>,
    switches: Mutex<Switches>,
    first: Mutex<Option<Violation>>,
    accused: Notify,
    counts: Mutex<Counts>,
    /// Reports calls that trigger faults, by the index of the fault in the scenario.
    triggers: mpsc::UnboundedSender<usize>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Number of calls of each engine that may trigger a fault.
    of_engine: BTreeMap<Option<usize>, u64>,
    all: u64,
}

impl Simulation {
    /// The initial state of a run, and the receiver of triggered faults.
    pub(crate) async fn new(
        scenario: Arc<Scenario>,
        traced: bool,
        sabotage: Option<Sabotage>,
    ) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<usize>), Error> {
        let time = TrueTime::start();
        let store_clock = Arc::new(WallClock::new(time, 0, 0));
        let (triggers, told) = mpsc::unbounded_channel();
        let sim = Self {
            dice: Dice::new(scenario.seed),
            time,
            trace: Trace::new(traced, time),
            store: scenario.database.open(Arc::clone(&store_clock)).await?,
            scenario,
            store_clock,
            ledger: Ledger::default(),
            sabotage,
            cloud: Mutex::default(),
            sink: Mutex::default(),
            told: Mutex::default(),
            switches: Mutex::default(),
            first: Mutex::default(),
            accused: Notify::new(),
            counts: Mutex::default(),
            triggers,
        };
        Ok((Arc::new(sim), told))
    }

    /// The cloud's objects.
    pub(crate) fn cloud(&self) -> MutexGuard<'_, SimCloud> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The event sink.
    pub(crate) fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the lifecycle plug-in was told.
    pub(crate) fn told(&self) -> MutexGuard<'_, PluginRecord> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The active faults.
    pub(crate) fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current noise; `None` in the calm phase.
    pub(crate) fn noise(&self) -> Option<&Noise> {
        (self.time.ms() < self.scenario.calm_ms).then_some(&self.scenario.noise)
    }

    /// Whether a defect is simulated.
    pub(crate) fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// Records a violation. Only the first one counts: others may be consequences.
    pub(crate) fn accuse(&self, rule: Rule, text: impl Into<String>) {
        let violation = Violation { rule, text: text.into(), at_ms: self.time.ms() };
        self.trace.note("RULE", || violation.to_string());
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        self.accused.notify_one();
    }

    /// The first violation.
    pub(crate) fn violation(&self) -> Option<Violation> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a rule is violated.
    pub(crate) async fn accused(&self) {
        while self.violation().is_none() {
            self.accused.notified().await;
        }
    }

    /// Counts a call and triggers its faults.
    pub(crate) async fn before_call(&self, label: Label, gate: &Gate) {
        let (count, all) = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.all += 1;
            let all = counts.all;
            let of_engine = counts.of_engine.entry(label.slot).or_default();
            *of_engine += 1;
            (*of_engine, all)
        };
        if all == MOST_CALLS {
            self.accuse(Rule::Runaway, format!("{all} calls"));
        }
        self.set_off(label, gate, When::Call(count)).await;
    }

    /// Triggers faults after a call was sent.
    pub(crate) async fn after_send(&self, label: Label, gate: &Gate) {
        let count = {
            let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.of_engine.get(&label.slot).copied().unwrap_or_default()
        };
        self.set_off(label, gate, When::Sent(count)).await;
    }

    async fn set_off(&self, label: Label, gate: &Gate, when: When) {
        let calm = self.time.ms() >= self.scenario.calm_ms;
        for (at, fault) in self.scenario.faults.iter().enumerate() {
            if fault.when == when && label.slot == Some(fault.what.engine().unwrap_or(0)) && !calm {
                // The receiver exists as long as the run.
                let _ = self.triggers.send(at);
                if matches!(fault.what, crate::scenario::FaultKind::Kill(_)) {
                    gate.kill();
                }
            }
        }
        if gate.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}
