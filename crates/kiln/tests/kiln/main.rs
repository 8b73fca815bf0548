//! Tests of the `kiln` binary.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod config;
mod demo;
mod doctor;
mod documented;
mod heat_manage;
mod help;
mod local;
mod lsp;
mod processes;
mod report;
mod run;
mod running;
mod service;
mod software;
mod template;
mod testcloud;
mod types;
