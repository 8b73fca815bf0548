//! The REST API, driven through the real router.

mod adopt;
mod availability;
mod browsers;
mod connections;
mod groups;
mod hidden_parameters;
mod kept_lists;
mod long_lists;
mod nested;
mod operations;
mod personas;
mod plans;
mod refactors;
mod reference;
mod signals;
mod snapshots;
mod software_endpoints;
mod sources;
mod stacks;
mod support;
mod turns;
mod type_policy;
mod unbuilt;
mod uploads;
mod watch;
mod webhooks;
