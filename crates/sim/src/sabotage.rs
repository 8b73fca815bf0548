//! Defects put back on purpose, to see that the rules find them.

use std::str::FromStr;

macro_rules! sabotages {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A defect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Sabotage { $($(#[$doc])* $name,)* }

        impl Sabotage {
            /// All of them.
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
    /// The store takes writes of an old epoch.
    SkipFence = "skip-fence",
    /// The intent of a create is not stored.
    ForgetIntent = "forget-intent",
    /// `find` answers that nothing was made.
    FindLies = "find-lies",
    /// What cannot be told is taken for not made.
    CannotTellIsNotMade = "cannot-tell-is-not-made",
    /// The lease of an engine that died is taken for one that was given back.
    CrashIsClean = "crash-is-clean",
    /// A row's requirements are not stored.
    DropRequires = "drop-requires",
    /// The id of a made object is not stored.
    ForgetId = "forget-id",
    /// The removal of a row is not stored.
    KeepRow = "keep-row",
    /// A delete's first call is left out.
    SkipDelete = "skip-delete",
    /// A handled message stays in the inbox.
    HandleTwice = "handle-twice",
    /// A message is taken out of the inbox unhandled.
    LoseMessage = "lose-message",
    /// The inbox is read backwards.
    InboxBackwards = "inbox-backwards",
    /// Polls do not wait.
    NoPace = "no-pace",
    /// The engine's monotonic clock stands still: nothing fences its calls.
    StoppedClock = "stopped-clock",
    /// The engine measures by the wall clock.
    WallForMonotonic = "wall-for-monotonic",
    /// A stop in good order drops calls under way and gives the leases back at once.
    StopDropsCalls = "stop-drops-calls",
    /// What a lost create made is believed absent at once.
    NoCallLimit = "no-call-limit",
    /// An answer without an id passes for an object with an empty one.
    EmptyId = "empty-id",
    /// A commit is acknowledged and not carried out.
    LoseCommit = "lose-commit",
    /// With its clock set back the database lets no lease be claimed.
    StuckLeases = "stuck-leases",
    /// Trusts are not taken back.
    RevokeLies = "revoke-lies",
    /// A trust that could not be taken back is forgotten.
    SweepForgets = "sweep-forgets",
    /// Drivers count their polls in what is stored, and do not wait.
    CountingPolls = "counting-polls",
    /// Actors look at their stack's row every half second.
    ImpatientLook = "impatient-look",
    /// The template before the first update is not kept.
    ForgetPrevious = "forget-previous",
    /// A renewal is answered as held although it is lost.
    RenewLies = "renew-lies",
    /// A release is not carried out and the lease goes on.
    LeaseForEver = "lease-for-ever",
    /// The end of a request is not stored.
    LoseEnd = "lose-end",
    /// An update's new properties are not sent.
    StaleUpdate = "stale-update",
    /// The store hides a newer request from the engine.
    HideRequest = "hide-request",
}
