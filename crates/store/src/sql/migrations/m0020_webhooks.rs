//! Webhooks.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `events` and `stack` say which events are sent; `body` has the URL and the keys. `failing` is the first failure of the present
    // series, `failed` the last one; `sequence` is the place of the last delivery.
    All("CREATE TABLE IF NOT EXISTS kiln_webhook (
        seq {serial},
        id {id} NOT NULL,
        project {name} NOT NULL,
        stack {id} NULL,
        events {text} NOT NULL,
        body {text} NOT NULL,
        disabled {text} NULL,
        user_id {text} NOT NULL,
        username {text} NOT NULL,
        created {int} NOT NULL,
        version {int} NOT NULL,
        allowed {int} NULL,
        rate {int} NULL,
        failing {int} NULL,
        failed {int} NULL,
        sequence {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_webhook_id ON kiln_webhook (id)"),
    All("CREATE INDEX kiln_webhook_project ON kiln_webhook (project)"),
    // `id` is that of the entry of the outbox. `place` is the place of the delivery among those of its webhook; `refused` is how many
    // attempts the receiver has refused.
    All("CREATE TABLE IF NOT EXISTS kiln_webhook_delivery (
        seq {serial},
        id {id} NOT NULL,
        webhook {id} NOT NULL,
        type {word} NOT NULL,
        place {int} NOT NULL,
        body {text} NOT NULL,
        outcome {word} NOT NULL,
        attempts {int} NOT NULL,
        refused {int} NOT NULL,
        status {int} NULL,
        error {text} NULL,
        took {int} NULL,
        created {int} NOT NULL,
        tried {int} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_webhook_delivery_id ON kiln_webhook_delivery (id)"),
    All("CREATE INDEX kiln_webhook_delivery_of ON kiln_webhook_delivery (webhook, seq)"),
    All("CREATE INDEX kiln_webhook_delivery_created ON kiln_webhook_delivery (created)"),
];
