//! The query API with a temporary SQLite store, one user and no engine.

mod actions;
mod faults;
mod pages;
mod support;
