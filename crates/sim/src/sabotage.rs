//! Deliberate defects that verify that the rules detect them.

use std::str::FromStr;

macro_rules! sabotages {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A defect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Sabotage { $($(#[$doc])* $name,)* }

        impl Sabotage {
            /// All defects.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }

        impl FromStr for Sabotage {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|one| one.name() == word).ok_or_else(|| format!("no defect {word}"))
            }
        }
    };
}

sabotages! {
    /// The store accepts writes with an old epoch.
    SkipFence = "skip-fence",
    /// The intent of a create is not stored.
    ForgetIntent = "forget-intent",
    /// `find` always reports that nothing was created.
    FindLies = "find-lies",
    /// An unknown outcome is treated as not created.
    CannotTellIsNotMade = "cannot-tell-is-not-made",
    /// The last object that looks like that of a lost create is adopted.
    LastIsOurs = "last-is-ours",
    /// The lease of a failed engine is treated as released.
    CrashIsClean = "crash-is-clean",
    /// The dependencies of a row are not stored.
    DropRequires = "drop-requires",
    /// The ID of a created object is not stored.
    ForgetId = "forget-id",
    /// The removal of a row is not stored.
    KeepRow = "keep-row",
    /// The first call of a delete is omitted.
    SkipDelete = "skip-delete",
    /// A handled message stays in the inbox.
    HandleTwice = "handle-twice",
    /// A message is removed from the inbox without being handled.
    LoseMessage = "lose-message",
    /// The inbox is read in reverse order.
    InboxBackwards = "inbox-backwards",
    /// Polls have no delay.
    NoPace = "no-pace",
    /// The monotonic clock of the engine stands still: calls are not fenced.
    StoppedClock = "stopped-clock",
    /// The engine uses the wall clock for durations.
    WallForMonotonic = "wall-for-monotonic",
    /// A clean stop drops running calls and releases the leases immediately.
    StopDropsCalls = "stop-drops-calls",
    /// The object of a lost create is considered missing immediately.
    NoCallLimit = "no-call-limit",
    /// A response without an ID counts as an object with an empty ID.
    EmptyId = "empty-id",
    /// A commit is acknowledged but not executed.
    LoseCommit = "lose-commit",
    /// When its clock is set back, the database does not allow any claims.
    StuckLeases = "stuck-leases",
    /// Trusts are not revoked.
    RevokeLies = "revoke-lies",
    /// A trust that could not be revoked is deleted from the records.
    SweepForgets = "sweep-forgets",
    /// Drivers store the number of polls and do not wait.
    CountingPolls = "counting-polls",
    /// Actors read the row of their stack every half second.
    ImpatientLook = "impatient-look",
    /// The template before the first update is not stored.
    ForgetPrevious = "forget-previous",
    /// A renewal succeeds although the lease is lost.
    RenewLies = "renew-lies",
    /// A release is not executed and the lease continues.
    LeaseForEver = "lease-for-ever",
    /// The end of a request is not stored.
    LoseEnd = "lose-end",
    /// An update's new properties are not sent.
    StaleUpdate = "stale-update",
    /// Entries of the outbox are removed before they are sent.
    RemoveBeforeSend = "remove-before-send",
    /// The entries of the outbox are read in reverse order.
    OutboxBackwards = "outbox-backwards",
    /// The runs of plug-ins after operations are not stored.
    LosePluginRun = "lose-plugin-run",
    /// The end of a snapshot is not stored.
    LoseSnapshotEnd = "lose-snapshot-end",
    /// Engines see no guards.
    HideGuards = "hide-guards",
    /// Engines do not see what a request skips.
    HideSkips = "hide-skips",
    /// The store hides newer requests from the engine.
    HideRequest = "hide-request",
}
