//! The first tables.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `due` is the time of the oldest unfinished request, which claims look for. `live_name` is the name while it is in
    // use by a live root stack. `desired` and `previous` are three digests each: template, environment, files.
    All("CREATE TABLE IF NOT EXISTS kiln_stack (
        id {id} NOT NULL PRIMARY KEY,
        name {name} NOT NULL,
        live_name {name} NULL,
        project {name} NOT NULL,
        parent_stack {id} NULL,
        parent_resource {id} NULL,
        parent_name {name} NULL,
        root {id} NOT NULL,
        depth {int} NOT NULL,
        action {word} NOT NULL,
        status {word} NOT NULL,
        reason {text} NOT NULL,
        desired {word} NOT NULL,
        previous {word} NULL,
        generation {int} NOT NULL,
        settled {int} NOT NULL,
        due {int} NULL,
        disable_rollback {int} NOT NULL,
        timeout_mins {int} NULL,
        tags {text} NULL,
        username {name} NOT NULL,
        user_id {name} NOT NULL,
        credentials {id} NULL,
        user_project {name} NULL,
        created {int} NOT NULL,
        updated {int} NULL,
        deleted {int} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_stack_live_name ON kiln_stack (project, live_name)"),
    All("CREATE INDEX kiln_stack_created ON kiln_stack (project, created, id)"),
    All("CREATE INDEX kiln_stack_parent ON kiln_stack (parent_stack)"),
    All("CREATE INDEX kiln_stack_root ON kiln_stack (root)"),
    All("CREATE INDEX kiln_stack_due ON kiln_stack (due)"),
    All("CREATE INDEX kiln_stack_deleted ON kiln_stack (deleted)"),
    All("CREATE TABLE IF NOT EXISTS kiln_tag (
        stack {id} NOT NULL,
        tag {name} NOT NULL,
        PRIMARY KEY (stack, tag)
    ) {table}"),
    All("CREATE INDEX kiln_tag_tag ON kiln_tag (tag)"),
    // `used` is the time of the last reference by a stack, within a tolerance.
    All("CREATE TABLE IF NOT EXISTS kiln_content (
        digest {word} NOT NULL PRIMARY KEY,
        used {int} NOT NULL,
        body {text} NOT NULL
    ) {table}"),
    All("CREATE TABLE IF NOT EXISTS kiln_resource (
        seq {serial},
        id {id} NOT NULL,
        stack {id} NOT NULL,
        name {name} NOT NULL,
        type {text} NOT NULL,
        implementation {text} NOT NULL,
        physical_id {text} NULL,
        action {word} NOT NULL,
        status {word} NOT NULL,
        reason {text} NOT NULL,
        step {text} NULL,
        definition {text} NULL,
        metadata {text} NULL,
        data {text} NULL,
        attributes {text} NULL,
        requires {text} NULL,
        replaces {id} NULL,
        replaced_by {id} NULL,
        child {id} NULL,
        generation {int} NOT NULL,
        created {int} NOT NULL,
        updated {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_resource_id ON kiln_resource (id)"),
    All("CREATE INDEX kiln_resource_stack ON kiln_resource (stack, seq)"),
    All("CREATE TABLE IF NOT EXISTS kiln_event (
        seq {serial},
        id {id} NOT NULL,
        stack {id} NOT NULL,
        root {id} NOT NULL,
        resource_name {name} NOT NULL,
        resource_type {text} NOT NULL,
        physical_id {text} NULL,
        action {word} NOT NULL,
        status {word} NOT NULL,
        reason {text} NOT NULL,
        properties {text} NULL,
        time {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_event_id ON kiln_event (id)"),
    All("CREATE INDEX kiln_event_stack ON kiln_event (stack, seq)"),
    // `expires` 0: released, or never claimed. `writes` counts commits, so that writes of two engines always conflict.
    All("CREATE TABLE IF NOT EXISTS kiln_lease (
        stack {id} NOT NULL PRIMARY KEY,
        owner {id} NULL,
        epoch {int} NOT NULL,
        expires {int} NOT NULL,
        writes {int} NOT NULL
    ) {table}"),
    All("CREATE INDEX kiln_lease_owner ON kiln_lease (owner)"),
    All("CREATE TABLE IF NOT EXISTS kiln_credentials (
        id {id} NOT NULL PRIMARY KEY,
        envelope {text} NOT NULL,
        created {int} NOT NULL
    ) {table}"),
    All("CREATE TABLE IF NOT EXISTS kiln_engine (
        id {id} NOT NULL PRIMARY KEY,
        hostname {name} NOT NULL,
        pid {int} NOT NULL,
        started {int} NOT NULL,
        seen {int} NOT NULL,
        report_interval {int} NOT NULL
    ) {table}"),
];
