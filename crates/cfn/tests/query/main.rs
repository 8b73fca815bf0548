//! The query API with a temporary SQLite store, one user and no engine.

mod actions;
mod change_sets;
mod drift_detection;
mod faults;
mod masked_events;
mod pages;
mod personas;
mod stack_users;
mod support;
