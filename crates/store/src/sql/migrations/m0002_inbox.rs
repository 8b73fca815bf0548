//! Messages, planned credentials, and leases that tell how they ended.

use super::Change::{self, All, Widen};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `released` is the epoch that was given back in good order: a claim raises the epoch, so that it says nothing of
    // the next one. `ttl` is how long the lease was given for: one that ends later than that from now was given by a
    // clock that was set back since. `mark` tells the last claim or batch from others: whoever lost the connection
    // while it was committed finds out by it. An engine of the first schema leaves all three as they are.
    All("ALTER TABLE kiln_lease ADD COLUMN released {int} NOT NULL DEFAULT 0"),
    All("ALTER TABLE kiln_lease ADD COLUMN ttl {int} NOT NULL DEFAULT 60000000"),
    All("ALTER TABLE kiln_lease ADD COLUMN mark {id} NULL"),
    // `due` and `body` go when the message was handled; the row stays for a while, so that it is not stored again.
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
    // An empty `envelope` is one that is not known yet. `touched` is when the row was last planned, kept, attached to a
    // stack or detached from one.
    All("ALTER TABLE kiln_credentials ADD COLUMN plan {text} NULL"),
    All("ALTER TABLE kiln_credentials ADD COLUMN touched {int} NOT NULL DEFAULT 0"),
    All("CREATE INDEX kiln_stack_credentials ON kiln_stack (credentials)"),
    // Names have no longest length but where an index needs one.
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
