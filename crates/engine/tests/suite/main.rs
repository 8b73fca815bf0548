//! The engine with simulated clouds and databases in memory.

mod actions;
mod cluster_size;
mod couriers;
mod groups;
mod growth;
mod housekeeping;
mod metadata;
mod plan;
mod recorder;
mod requests;
mod stack;
mod stopping;
mod takeover;
mod timers;
mod webhooks;
