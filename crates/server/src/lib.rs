//! Assembles a service from its configuration, with the concrete adapters.
//!
//! [`runtime::Runtime`] holds the parts of a service: store, types, clouds, identity, engine and API. The other modules
//! each read one part of the configuration.

mod audit;
pub mod certificate;
pub mod checks;
mod client_view;
pub mod clients;
pub mod database;
pub mod doctor;
mod encryption_key;
pub mod heartbeat_thread;
mod heat_behind;
mod heat_projects;
mod heat_settings;
pub mod in_process;
pub mod language;
pub mod lifecycle_plugins;
pub mod listeners;
pub mod local_database;
mod maintenance;
pub mod own_certificate;
pub mod owner_only;
mod passed_sockets;
pub mod plugins;
pub mod policy_files;
mod preflight;
pub mod reload;
pub mod report;
pub mod resource_types;
#[cfg(test)]
mod rights;
pub mod runtime;
mod secret_source;
pub mod service_cloud;
pub mod shown_options;
pub mod shutdown;
pub mod signatures;
pub mod stack_user_domain;
pub mod systemd;
pub mod take_over;
pub mod topology_types;
pub mod upgrade_check;
pub mod web_templates;
pub mod whole_file;
