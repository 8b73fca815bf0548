//! Tests of the `kiln` binary.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "processes run by the real clock")]

mod all_types;
mod audit;
mod blocks;
mod book;
mod cloud_user;
mod completion;
mod config;
mod confirmed;
mod continued;
mod dashboard;
mod database_tls;
mod databases;
mod demo;
mod doctor;
mod documented;
mod exit_codes;
mod full;
mod guards;
mod heat_behind;
mod heat_database;
mod heat_manage;
mod heat_releases;
mod help;
mod hidden;

mod imports;
mod listeners;
mod local;
mod logs;
mod lsp;
mod mistakes;
mod moved_plans;
mod operations;
mod plan;
mod plans;
mod preflight;
mod processes;
mod production;
mod progress;
mod refactor;
mod report;
mod run;
mod running;
mod service;
mod signed;
mod software;
mod standstill;
mod take_over;
mod template;
mod terminal;
mod testcloud;
mod types;
mod wire;
