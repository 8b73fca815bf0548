//! A whole cluster simulated from one seed, in one thread, on virtual time.
//!
//! A [`scenario::Scenario`] says what users ask for and what fails; [`run::run`] plays it with real engines on a
//! simulated cloud and database and tells the first [`rule::Rule`] that was broken. docs/simulation.md has the rules
//! and the defects that they find.

mod bell;
pub mod clock;
mod cloud;
mod cluster;
pub mod dice;
mod drivers;
pub mod gate;
pub mod generate;
mod inbox;
mod ledger;
mod logs;
pub mod rule;
pub mod run;
pub mod sabotage;
pub mod scenario;
pub mod shrink;
mod simulation;
pub mod states;
mod store_link;
mod tamper;
pub mod template_model;
mod trace;
mod trusts;
mod users;
mod wanted;
