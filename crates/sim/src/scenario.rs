//! What happens in one run, as plain data: generated from a seed, made smaller by dropping parts, kept as JSON.

use serde::{Deserialize, Serialize};

use crate::template_model::TemplateModel;

/// One run: who works, what users ask for, which faults happen. Times are milliseconds of virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Decides what the other parts leave open: latencies, and which calls the noise hits.
    pub seed: u64,
    /// The engines.
    pub engines: Vec<EnginePlan>,
    /// What users ask for, in the order of time.
    pub actions: Vec<UserAction>,
    /// Faults with a place in time.
    pub faults: Vec<Fault>,
    /// Faults that may hit any call.
    pub noise: Noise,
    /// Writes in one commit of an engine.
    pub batch: usize,
    /// From then on nothing is asked for and nothing fails any more.
    pub calm_ms: u64,
}

/// An engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnginePlan {
    /// How far its wall clock is ahead of true time.
    pub ahead_ms: i64,
    /// How much faster its clocks run than true time, in millionths.
    pub drift_ppm: i64,
}

/// Something that a user asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserAction {
    /// When.
    pub at_ms: u64,
    /// Of which stack.
    pub stack: usize,
    /// What.
    pub ask: Ask,
}

/// What a user can ask for. What the service would refuse is not sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// A new stack of the name.
    Create(Wish),
    /// Another template.
    Update(Wish),
    /// The running update ended by a rollback.
    Cancel,
    /// The running request ended, and all left as it is.
    Stay,
    /// A resource declared unhealthy.
    Mark(String),
    /// The stack gone.
    Delete,
    /// All asleep.
    Suspend,
    /// All awake.
    Resume,
    /// All looked at.
    Check,
    /// Signals, one after another, to a resource.
    Signal {
        /// The resource.
        resource: String,
        /// How many.
        count: u32,
    },
}

/// What a stack should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// The template.
    pub template: TemplateModel,
    /// Whether a failure is answered by a rollback.
    #[serde(default)]
    pub rollback: bool,
    /// Minutes that the action may take.
    #[serde(default)]
    pub timeout_mins: Option<i64>,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// When it begins.
    pub when: When,
    /// How long it lasts.
    pub for_ms: u64,
    /// What fails.
    pub what: FaultKind,
}

/// When a fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At a time.
    Time(u64),
    /// At so many calls of the engine to the cloud or writes to the store: right before that call is sent.
    Call(u64),
    /// The same, right after the call is sent: it has its effect, and the engine does not see the reply.
    Sent(u64),
}

/// What fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The engine dies, and starts anew after the time.
    Kill(usize),
    /// The engine stands still, its clock does not.
    Pause(usize),
    /// The engine is stopped in good order and starts anew.
    Stop(usize),
    /// Nothing passes between the engine and the cloud.
    CutCloud(usize),
    /// Nothing passes between the engine and the database.
    CutStore(usize),
    /// The database refuses everything.
    StoreOutage,
    /// A service of the cloud refuses everything.
    ServiceOutage(String),
    /// The engine's wall clock is behind by so many milliseconds.
    ClockBack(usize, i64),
    /// The database's clock is behind by so many milliseconds, and stays so.
    StoreClockBack(i64),
    /// No ring is heard.
    Deaf,
}

impl FaultKind {
    /// The engine that it hits, if it hits one.
    pub fn engine(&self) -> Option<usize> {
        match self {
            Self::Kill(engine)
            | Self::Pause(engine)
            | Self::Stop(engine)
            | Self::CutCloud(engine)
            | Self::CutStore(engine)
            | Self::ClockBack(engine, _) => Some(*engine),
            Self::StoreOutage | Self::ServiceOutage(_) | Self::StoreClockBack(_) | Self::Deaf => None,
        }
    }
}

/// How often a call fails, in thousandths, and how slow things are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Noise {
    /// Longest ordinary way to the cloud, and back.
    pub latency_ms: u64,
    /// Longest way to the database, and back.
    pub store_latency_ms: u64,
    /// Calls that a service refuses (409, 429, 500, 503).
    pub refused: u64,
    /// Calls that have their effect and whose reply is an error or never comes.
    pub lost_reply: u64,
    /// Calls that are answered by 504 and have their effect later.
    pub late: u64,
    /// Calls that take very long.
    pub slow: u64,
    /// Calls that never reach the cloud.
    pub not_sent: u64,
    /// Calls to the database that fail before they have an effect.
    pub store_refused: u64,
    /// Writes to the database that fail after they had their effect.
    pub store_lost_reply: u64,
    /// Rings that are not heard.
    pub ring_lost: u64,
    /// Rings that are heard twice.
    pub ring_doubled: u64,
    /// Longest time until a new object is listed.
    pub list_lag_ms: u64,
}

impl Scenario {
    /// Whether engines or the database are disturbed, so that work may stand still for reasons of their own.
    pub fn disturbs_engines(&self) -> bool {
        let cloudy = |fault: &Fault| matches!(fault.what, FaultKind::ServiceOutage(_) | FaultKind::Deaf);
        !self.faults.iter().all(cloudy) || self.noise.store_refused > 0 || self.noise.store_lost_reply > 0
    }

    /// Whether the database's clock is set back, so that leases end before their owners can know.
    pub fn sets_store_clock_back(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.what, FaultKind::StoreClockBack(_)))
    }
}
