//! Settings of all processes, and answers to requests with an idempotency key.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    All("CREATE TABLE IF NOT EXISTS kiln_setting (
        name {word} NOT NULL PRIMARY KEY,
        value {text} NOT NULL
    ) {table}"),
    // `id` is the digest of the key, the user, the project and the route; `body` that of the body. `answer` is NULL while the
    // request is processed.
    All("CREATE TABLE IF NOT EXISTS kiln_answer (
        id {word} NOT NULL PRIMARY KEY,
        body {word} NOT NULL,
        request {word} NOT NULL,
        begun {int} NOT NULL,
        answer {text} NULL
    ) {table}"),
    All("CREATE INDEX kiln_answer_begun ON kiln_answer (begun)"),
];
