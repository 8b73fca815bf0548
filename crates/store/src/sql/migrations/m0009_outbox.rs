//! The outbox.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `due` is the time before which an entry may not be sent: the end of a claim, or of a pause after a failure.
    All("CREATE TABLE IF NOT EXISTS kiln_outbox (
        seq {serial},
        id {id} NOT NULL,
        lane {word} NOT NULL,
        root {id} NOT NULL,
        destination {text} NOT NULL,
        body {text} NOT NULL,
        created {int} NOT NULL,
        due {int} NOT NULL,
        attempts {int} NOT NULL,
        mark {id} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_outbox_id ON kiln_outbox (id)"),
    All("CREATE INDEX kiln_outbox_lane ON kiln_outbox (lane, seq)"),
    All("CREATE INDEX kiln_outbox_root ON kiln_outbox (root)"),
];
