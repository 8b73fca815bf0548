//! What must always hold, by name.

use std::fmt;

use serde::Serialize;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A rule that a run may break.
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
    /// A write of an engine whose claim is not the last is not accepted.
    OldEpoch = "old-epoch",
    /// An engine sends no call that changes something for a stack that another one has claimed.
    UnfencedCall = "unfenced-call",
    /// There is one live object for each incarnation of a resource.
    MadeTwice = "made-twice",
    /// No two rows stand for one object.
    Shared = "shared-object",
    /// Nothing is deleted before what needs it.
    EarlyDelete = "deleted-before-dependant",
    /// After a delete nothing is left but what policy retains.
    LeftBehind = "left-behind",
    /// COMPLETE means: each resource has one live object with the wanted properties.
    NotAsWanted = "complete-but-not-as-wanted",
    /// States move only as the reference allows.
    BadTransition = "bad-transition",
    /// A stack that is not in progress has nothing in progress.
    StillBusy = "settled-but-busy",
    /// Every stack ends within a bound once faults cease.
    Stuck = "stuck",
    /// A delete is noticed soon, whatever was under way and whether a doorbell was heard.
    Unnoticed = "unnoticed-delete",
    /// Every action ends within its time limit.
    PastTimeout = "past-its-timeout",
    /// Without faults every delete ends well.
    DeleteFailed = "delete-failed",
    /// Requests for one object are paced.
    UnpacedPolls = "unpaced-polls",
    /// Commits are paced.
    UnpacedCommits = "unpaced-commits",
    /// An actor hears of news by doorbells; it reads its stack's row rarely.
    UnpacedReads = "unpaced-reads",
    /// A rollback returns to what was last reached, or to what was there before the update.
    WrongTarget = "wrong-rollback-target",
    /// A quiet stack costs no query.
    NotQuiet = "not-quiet",
    /// The inbox is handled once and in order.
    Inbox = "inbox",
    /// A trust is on record before it is given, holds while its stack lives, and goes when the stack is gone.
    Credentials = "credentials",
    /// A stop in good order takes a bounded time.
    SlowStop = "slow-stop",
    /// Nothing panics.
    Panic = "panic",
    /// A run needs a bounded number of calls.
    Runaway = "runaway",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What was seen.
    pub text: String,
    /// When, in milliseconds of virtual time.
    pub at_ms: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}.{:03} s: {}", self.rule, self.at_ms / 1000, self.at_ms % 1000, self.text)
    }
}
