//! Simulates a whole cluster from one seed, in one thread, with virtual time.
//!
//! A [`scenario::Scenario`] contains user actions and faults; [`run::run`] executes it with real engines on a simulated
//! cloud and database and reports the first violated [`rule::Rule`]. docs/simulation.md lists the rules and the defects
//! that they detect.

mod bases;
mod bell;
pub mod clock;
mod cloud;
mod cluster;
mod continued;
mod crashes;
pub mod database;
pub mod dice;
mod drivers;
mod floods;
pub mod gate;
pub mod generate;
mod guards;
mod hooks;
mod inbox;
mod jumps;
mod ledger;
mod left;
mod logs;
mod moves;
mod plans;
mod plugins;
mod revisions;
pub mod rule;
pub mod run;
pub mod sabotage;
pub mod scenario;
pub mod shrink;
mod simulation;
mod sinks;
pub mod states;
mod store_link;
mod takeovers;
mod tamper;
pub mod template_model;
mod trace;
mod trusts;
mod users;
mod waits;
mod wanted;
