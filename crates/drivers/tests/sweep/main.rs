//! The sweep: every driver that the simulated cloud can serve goes through create, update and delete with each call
//! disturbed, each step repeated, each undo repeated, and its engine dead between or within any two. The end must be the
//! same as without, nothing may be there twice, and nothing may be left after the delete.
//!
//! A type is one entry of `cases.rs`; `player.rs` plays the engine's rules. All runs in this process on paused time.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod cases;
mod compare;
mod coverage;
mod player;
mod runs;
mod stage;
mod wire;

/// A test of each case.
macro_rules! sweep {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            $crate::runs::sweep($crate::cases::$name()).await;
        })*

        /// The cases, by the name of their test.
        fn all() -> Vec<(&'static str, cases::Case)> {
            vec![$((stringify!($name), cases::$name())),*]
        }
    };
}

cases::every_case!(sweep);
