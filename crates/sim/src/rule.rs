//! The rules that every run must satisfy.

use std::fmt;

use serde::Serialize;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Rule { $($(#[$doc])* $name,)* }

        impl Rule {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

rules! {
    /// A write of an engine whose claim is not the latest is rejected.
    OldEpoch = "old-epoch",
    /// An engine sends no writes to the cloud for a stack that another engine has claimed.
    UnfencedCall = "unfenced-call",
    /// Each incarnation of a resource has at most one live object.
    MadeTwice = "made-twice",
    /// No two rows have the same object.
    Shared = "shared-object",
    /// Objects of others are neither adopted nor changed nor deleted.
    Foreign = "foreign-object",
    /// Nothing is deleted before its dependants.
    EarlyDelete = "deleted-before-dependant",
    /// An update that keeps to a plan changes and deletes only what the plan says.
    OutsideOfPlan = "outside-of-plan",
    /// An object that a guard protects is not deleted.
    Guarded = "guarded-object",
    /// Nothing is done with a resource without which a failed operation is continued, and it does not become COMPLETE.
    Skipped = "skipped-resource",
    /// A resource that the template has moved to another name keeps its object.
    Moved = "moved-resource",
    /// When the cause of a failure is gone, the operation is continued to its end.
    NotContinued = "not-continued",
    /// A delete leaves only retained objects.
    LeftBehind = "left-behind",
    /// COMPLETE means that each resource has one live object with the desired properties.
    NotAsWanted = "complete-but-not-as-wanted",
    /// State transitions are those of the reference.
    BadTransition = "bad-transition",
    /// A stack that is not in progress has no operations in progress.
    StillBusy = "settled-but-busy",
    /// Every operation ends within a time limit after the last fault.
    Stuck = "stuck",
    /// A delete takes effect soon, whatever was running and whether or not rings were lost.
    Unnoticed = "unnoticed-delete",
    /// The stacks of a killed engine are taken over soon, whatever the clocks say.
    SlowTakeOver = "slow-take-over",
    /// Every action ends within its timeout.
    PastTimeout = "past-its-timeout",
    /// Without faults every delete succeeds.
    DeleteFailed = "delete-failed",
    /// The rate of requests for one object is limited.
    UnpacedPolls = "unpaced-polls",
    /// The rate of commits is limited.
    UnpacedCommits = "unpaced-commits",
    /// Actors rely on rings and read the row of their stack rarely.
    UnpacedReads = "unpaced-reads",
    /// Actors rarely read all resources of their stack, however many messages come.
    UnpacedLoads = "unpaced-loads",
    /// A rollback returns to the last reached state, or to the state before the update.
    WrongTarget = "wrong-rollback-target",
    /// An idle stack causes no queries.
    NotQuiet = "not-quiet",
    /// Messages are handled once and in order.
    Inbox = "inbox",
    /// A resource that waits for signals ends its wait with the last one.
    SleptOver = "signal-slept-over",
    /// Each event of a stack with a sink arrives there at least once, those of a stack in their order.
    EventLost = "event-lost",
    /// The lifecycle plug-in is asked before each operation, and told about its end.
    PluginSkipped = "plugin-skipped",
    /// A snapshot is in progress only while its stack is.
    SnapshotOpen = "snapshot-open",
    /// A trust is recorded before it is created, exists while its stack exists, and is deleted with it.
    Credentials = "credentials",
    /// A clean stop takes a limited time.
    SlowStop = "slow-stop",
    /// Nothing panics.
    Panic = "panic",
    /// The number of calls of a run is limited.
    Runaway = "runaway",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The details.
    pub text: String,
    /// The virtual time in milliseconds.
    pub at_ms: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}.{:03} s: {}", self.rule, self.at_ms / 1000, self.at_ms % 1000, self.text)
    }
}
