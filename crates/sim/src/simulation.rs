//! All that one run consists of, shared by its tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_store::MemoryStore;
use tokio::sync::{Notify, mpsc};

use crate::clock::{TrueTime, WallClock};
use crate::cloud::SimCloud;
use crate::dice::Dice;
use crate::gate::Gate;
use crate::ledger::Ledger;
use crate::rule::{Rule, Violation};
use crate::sabotage::Sabotage;
use crate::scenario::{Noise, Scenario, When};
use crate::trace::Trace;

/// Calls in one run; more are a loop.
const MOST_CALLS: u64 = 400_000;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Label {
    /// Which engine; `None`: the users' service.
    pub slot: Option<usize>,
    /// How often it was started before.
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

/// What is broken now.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// Engines that do not reach the cloud.
    pub cloud_cut: BTreeSet<Option<usize>>,
    /// Engines that do not reach the database.
    pub store_cut: BTreeSet<Option<usize>>,
    /// The database refuses everything.
    pub store_out: bool,
    /// Services that refuse everything.
    pub services_out: BTreeSet<String>,
    /// No ring is heard.
    pub deaf: bool,
}

/// All that one run consists of.
pub(crate) struct Simulation {
    /// What is to happen.
    pub scenario: Arc<Scenario>,
    /// The time.
    pub time: TrueTime,
    /// Chance.
    pub dice: Dice,
    /// What happened.
    pub trace: Trace,
    /// The database.
    pub store: MemoryStore,
    /// The database's clock.
    pub store_clock: Arc<WallClock>,
    /// What the checks remember.
    pub ledger: Ledger,
    /// The defect that is put back on purpose.
    pub sabotage: Option<Sabotage>,
    cloud: Mutex<SimCloud>,
    switches: Mutex<Switches>,
    first: Mutex<Option<Violation>>,
    accused: Notify,
    counts: Mutex<Counts>,
    /// Where faults that wait for a call are told of it, by their place in the scenario.
    triggers: mpsc::UnboundedSender<usize>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Calls of each engine that may set off a fault.
    of_engine: BTreeMap<Option<usize>, u64>,
    all: u64,
}

impl Simulation {
    /// The simulation at the beginning of a run, and where calls that set off faults are reported.
    pub(crate) fn new(
        scenario: Arc<Scenario>,
        traced: bool,
        sabotage: Option<Sabotage>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<usize>) {
        let time = TrueTime::start();
        let store_clock = Arc::new(WallClock::new(time, 0, 0));
        let (triggers, told) = mpsc::unbounded_channel();
        let clock = Arc::clone(&store_clock);
        let sim = Self {
            dice: Dice::new(scenario.seed),
            scenario,
            time,
            trace: Trace::new(traced, time),
            store: MemoryStore::new(Arc::new(move || clock.now())),
            store_clock,
            ledger: Ledger::default(),
            sabotage,
            cloud: Mutex::default(),
            switches: Mutex::default(),
            first: Mutex::default(),
            accused: Notify::new(),
            counts: Mutex::default(),
            triggers,
        };
        (Arc::new(sim), told)
    }

    /// The cloud's objects.
    pub(crate) fn cloud(&self) -> MutexGuard<'_, SimCloud> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is broken now.
    pub(crate) fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may hit any call now; none once it is calm.
    pub(crate) fn noise(&self) -> Option<&Noise> {
        (self.time.ms() < self.scenario.calm_ms).then_some(&self.scenario.noise)
    }

    /// Whether a defect is put back.
    pub(crate) fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// Notes that a rule is broken. Only the first counts: others may follow from it.
    pub(crate) fn accuse(&self, rule: Rule, text: impl Into<String>) {
        let violation = Violation { rule, text: text.into(), at_ms: self.time.ms() };
        self.trace.note("RULE", || violation.to_string());
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        self.accused.notify_one();
    }

    /// The first rule that was broken.
    pub(crate) fn violation(&self) -> Option<Violation> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a rule is broken.
    pub(crate) async fn accused(&self) {
        while self.violation().is_none() {
            self.accused.notified().await;
        }
    }

    /// Counts a call, and sets off the faults that wait for it.
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

    /// A call was sent: sets off the faults that wait for it.
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
            if fault.when == when && fault.what.engine() == label.slot && label.slot.is_some() && !calm {
                // Whoever waits for it is there as long as the run.
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
