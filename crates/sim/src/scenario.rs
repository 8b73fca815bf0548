//! Scenarios as plain data: generated from a seed, shrunk by removing parts, stored as JSON.

use serde::{Deserialize, Serialize};

use crate::bases::Bases;
use crate::crashes::Crashes;
use crate::database::Database;
use crate::template_model::TemplateModel;

/// A run: engines, user actions and faults. Times are milliseconds of virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Determines everything else: latencies, and the calls that the noise affects.
    pub seed: u64,
    /// The engines.
    pub engines: Vec<EnginePlan>,
    /// User actions, sorted by time.
    pub actions: Vec<UserAction>,
    /// Faults at specific times.
    pub faults: Vec<Fault>,
    /// Faults that may affect any call.
    pub noise: Noise,
    /// Writes in one commit of an engine.
    pub batch: usize,
    /// Whether the stacks have an event sink.
    #[serde(default)]
    pub sink: bool,
    /// Whether the engines run a lifecycle plug-in.
    #[serde(default)]
    pub plugin: bool,
    /// The named objects.
    #[serde(default)]
    pub bases: Bases,
    /// The store.
    #[serde(default)]
    pub database: Database,
    /// Panics, aborted actors, requests that are broken off, refused rows.
    #[serde(default)]
    pub crashes: Crashes,
    /// The time from which there are no user actions and no faults.
    pub calm_ms: u64,
}

/// An engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnginePlan {
    /// How far its wall clock is ahead of true time.
    pub ahead_ms: i64,
    /// Parts per million by which its clocks are faster than true time.
    pub drift_ppm: i64,
}

/// A user action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserAction {
    /// The time.
    pub at_ms: u64,
    /// The stack.
    pub stack: usize,
    /// The action.
    pub ask: Ask,
}

/// Actions of users. Actions that the service would reject are not sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Creates a new stack with the name.
    Create(Wish),
    /// Updates the template.
    Update(Wish),
    /// Updates to a former revision: this many before the newest, or the oldest.
    Return(u64),
    /// Continues the operation that has failed.
    Continue,
    /// Cancels the running update with a rollback.
    Cancel,
    /// Cancels the running operation without a rollback.
    Stay,
    /// Marks a resource unhealthy.
    Mark(String),
    /// Adds a guard that protects the resources of the stack from deletion.
    Protect,
    /// Lifts the guards of the stack.
    Unprotect,
    /// Deletes the stack.
    Delete,
    /// Suspends the stack.
    Suspend,
    /// Resumes the stack.
    Resume,
    /// Checks the stack.
    Check,
    /// Makes a snapshot.
    Snapshot,
    /// Restores the last snapshot.
    Restore,
    /// Deletes the last snapshot.
    DropSnapshot,
    /// Abandons the stack; the next create with its name adopts its resources.
    Abandon,
    /// Sends several signals to a resource.
    Signal {
        /// The resource.
        resource: String,
        /// Number of signals.
        count: u32,
    },
}

impl Ask {
    /// Whether it is a request to an existing stack, except a delete.
    pub fn is_request(&self) -> bool {
        match self {
            Self::Update(_)
            | Self::Return(_)
            | Self::Continue
            | Self::Cancel
            | Self::Suspend
            | Self::Resume
            | Self::Check
            | Self::Snapshot
            | Self::Restore => true,
            Self::Create(_)
            | Self::Stay
            | Self::Mark(_)
            | Self::Protect
            | Self::Unprotect
            | Self::Delete
            | Self::DropSnapshot
            | Self::Abandon
            | Self::Signal { .. } => false,
        }
    }
}

/// A desired state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// The template.
    pub template: TemplateModel,
    /// Whether a failure triggers a rollback.
    #[serde(default)]
    pub rollback: bool,
    /// Timeout of the action in minutes.
    #[serde(default)]
    pub timeout_mins: Option<i64>,
    /// Hooks by patterns of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<(String, String)>,
    /// Whether the types of nested templates are those of the environment, and not the files themselves.
    #[serde(default)]
    pub aliases: bool,
    /// Whether an update keeps to a saved plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The start.
    pub when: When,
    /// The duration.
    pub for_ms: u64,
    /// The kind of the fault.
    pub what: FaultKind,
}

/// The start of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At a time.
    Time(u64),
    /// At the n-th call of the engine to the cloud or write to the store, before that call is sent. A fault that affects no
    /// engine counts the calls of the first one.
    Call(u64),
    /// The same, but after the call is sent: it is executed, and the engine does not receive the response.
    Sent(u64),
}

/// The kind of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Kills the engine, and restarts it after the duration.
    Kill(usize),
    /// Pauses the engine, but not its clock.
    Pause(usize),
    /// Suspends the machine of the engine: its monotonic clock stands still, and its wall clock is right when it goes on.
    Suspend(usize),
    /// Stops the engine cleanly and restarts it.
    Stop(usize),
    /// Blocks the connection between the engine and the cloud.
    CutCloud(usize),
    /// Blocks the connection between the engine and the database.
    CutStore(usize),
    /// The database rejects everything.
    StoreOutage,
    /// A service of the cloud rejects everything.
    ServiceOutage(String),
    /// Sets the wall clock of the engine back by this number of milliseconds.
    ClockBack(usize, i64),
    /// Sets the wall clock of the engine forward by this number of milliseconds.
    ClockForward(usize, i64),
    /// Sets the clock of the database back by this number of milliseconds, permanently.
    StoreClockBack(i64),
    /// Sets the clock of the database forward by this number of milliseconds, permanently.
    StoreClockForward(i64),
    /// All rings are lost.
    Deaf,
}

impl FaultKind {
    /// Whether an engine may do nothing for others meanwhile.
    pub fn disturbs(&self, engine: usize) -> bool {
        match self {
            Self::Kill(other)
            | Self::Pause(other)
            | Self::Suspend(other)
            | Self::Stop(other)
            | Self::CutStore(other) => *other == engine,
            Self::StoreOutage => true,
            _ => false,
        }
    }

    /// The engine that it affects, if any.
    pub fn engine(&self) -> Option<usize> {
        match self {
            Self::Kill(engine)
            | Self::Pause(engine)
            | Self::Suspend(engine)
            | Self::Stop(engine)
            | Self::CutCloud(engine)
            | Self::CutStore(engine)
            | Self::ClockBack(engine, _)
            | Self::ClockForward(engine, _) => Some(*engine),
            Self::StoreOutage
            | Self::ServiceOutage(_)
            | Self::StoreClockBack(_)
            | Self::StoreClockForward(_)
            | Self::Deaf => None,
        }
    }
}

/// Failure rates of calls in thousandths, and latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Noise {
    /// Maximum normal latency of the cloud in each direction.
    pub latency_ms: u64,
    /// Maximum latency of the database in each direction.
    pub store_latency_ms: u64,
    /// Calls that a service rejects (409, 429, 500, 503).
    pub refused: u64,
    /// Calls that are executed but return an error or no response.
    pub lost_reply: u64,
    /// Calls that return 504 and are executed later.
    pub late: u64,
    /// Very slow calls.
    pub slow: u64,
    /// Calls that never reach the cloud.
    pub not_sent: u64,
    /// Calls to the database that fail before they are executed.
    pub store_refused: u64,
    /// Writes to the database that fail after they are executed.
    pub store_lost_reply: u64,
    /// Lost rings.
    pub ring_lost: u64,
    /// Duplicated rings.
    pub ring_doubled: u64,
    /// Maximum time until a new object is listed.
    pub list_lag_ms: u64,
}

impl Scenario {
    /// Whether faults affect engines or the database, so that work may stall for other reasons.
    pub fn disturbs_engines(&self) -> bool {
        let cloudy = |fault: &Fault| matches!(fault.what, FaultKind::ServiceOutage(_) | FaultKind::Deaf);
        let crashes = &self.crashes;
        let crashing = crashes.panics > 0 || crashes.aborts > 0 || crashes.refused_row.is_some();
        crashing || !self.faults.iter().all(cloudy) || self.noise.store_refused > 0 || self.noise.store_lost_reply > 0
    }

    /// Whether the clock of the database is set back.
    pub fn sets_store_clock_back(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.what, FaultKind::StoreClockBack(_)))
    }
}
