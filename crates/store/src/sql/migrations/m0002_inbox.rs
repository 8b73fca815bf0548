//! Messages, planned credentials, and leases that record how they ended.

use super::Change::{self, All, Widen};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `released` is the epoch that was released cleanly: a claim increments the epoch, so it does not apply to the next
    // lease. `ttl` is the time to live: a lease that ends later than that from now was issued before the clock was set
    // back. `mark` identifies the last claim or batch, so that an engine that lost its connection during the commit can
    // find out whether it succeeded. An engine of the first schema does not change these columns.
    All("ALTER TABLE kiln_lease ADD COLUMN released {int} NOT NULL DEFAULT 0"),
    All("ALTER TABLE kiln_lease ADD COLUMN ttl {int} NOT NULL DEFAULT 60000000"),
    All("ALTER TABLE kiln_lease ADD COLUMN mark {id} NULL"),
    // `due` and `body` are cleared when the message is handled; the row is kept for some time to detect a repeated
    // send.
    All("CREATE TABLE IF NOT EXISTS kiln_message (
        id {id} NOT NULL PRIMARY KEY,
        stack {id} NOT NULL,
        resource {text} NULL,
        kind {word} NOT NULL,
        body {text} NULL,
        due {int} NULL,
        sent {int} NOT NULL,
        handled {int} NULL
    ) {table}"),
    All("CREATE INDEX kiln_message_stack ON kiln_message (stack, due)"),
    All("CREATE INDEX kiln_message_due ON kiln_message (due, stack)"),
    All("CREATE INDEX kiln_message_handled ON kiln_message (handled)"),
    All("ALTER TABLE kiln_stack ADD COLUMN messages {int} NOT NULL DEFAULT 0"),
    // An empty `envelope` means not known yet. `touched` is the time when the row was last planned, stored, attached to
    // a stack or detached from one.
    All("ALTER TABLE kiln_credentials ADD COLUMN plan {text} NULL"),
    All("ALTER TABLE kiln_credentials ADD COLUMN touched {int} NOT NULL DEFAULT 0"),
    All("CREATE INDEX kiln_stack_credentials ON kiln_stack (credentials)"),
    // The length of names is limited only where an index needs it.
    Widen {
        table: "kiln_stack",
        columns: &[
            ("parent_name", "NULL"),
            ("username", "NOT NULL"),
            ("user_id", "NOT NULL"),
            ("user_project", "NULL"),
        ],
    },
    Widen { table: "kiln_resource", columns: &[("name", "NOT NULL")] },
    Widen { table: "kiln_event", columns: &[("resource_name", "NOT NULL"), ("action", "NOT NULL")] },
    Widen { table: "kiln_engine", columns: &[("hostname", "NOT NULL")] },
];
