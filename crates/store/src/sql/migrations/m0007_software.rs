//! Software configs and deployments.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    All("CREATE TABLE IF NOT EXISTS kiln_software_config (
        id {id} NOT NULL PRIMARY KEY,
        project {name} NOT NULL,
        name {name} NULL,
        namespace {name} NULL,
        body {text} NULL,
        created {int} NOT NULL
    ) {table}"),
    All("CREATE INDEX kiln_software_config_project ON kiln_software_config (project, created, id)"),
    All("CREATE TABLE IF NOT EXISTS kiln_software_deployment (
        id {id} NOT NULL PRIMARY KEY,
        project {name} NOT NULL,
        user_project {name} NULL,
        config {id} NOT NULL,
        server {name} NOT NULL,
        body {text} NULL,
        created {int} NOT NULL,
        updated {int} NULL
    ) {table}"),
    All("CREATE INDEX kiln_software_deployment_project ON kiln_software_deployment (project, created)"),
    All("CREATE INDEX kiln_software_deployment_users ON kiln_software_deployment (user_project, created)"),
    All("CREATE INDEX kiln_software_deployment_config ON kiln_software_deployment (config)"),
    All("CREATE INDEX kiln_software_deployment_server ON kiln_software_deployment (server)"),
];
