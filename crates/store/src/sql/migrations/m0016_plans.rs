//! Saved plans. Change sets are plans with a name.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `name` is only there for change sets, and `desired` is as in `kiln_stack`. Without `expires`, a plan does not expire.
    All("CREATE TABLE IF NOT EXISTS kiln_plan (
        seq {serial},
        id {id} NOT NULL,
        project {name} NOT NULL,
        stack {id} NOT NULL,
        stack_name {name} NOT NULL,
        name {name} NULL,
        action {word} NOT NULL,
        generation {int} NOT NULL,
        user_id {text} NULL,
        username {text} NULL,
        desired {word} NULL,
        digest {word} NOT NULL,
        state {word} NOT NULL,
        body {text} NULL,
        created {int} NOT NULL,
        expires {int} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_plan_id ON kiln_plan (id)"),
    All("CREATE UNIQUE INDEX kiln_plan_name ON kiln_plan (stack, name)"),
    All("CREATE INDEX kiln_plan_project ON kiln_plan (project, stack_name, seq)"),
    // `place` is the digest of the path of the stack whose resources the part has.
    All("CREATE TABLE IF NOT EXISTS kiln_plan_part (
        id {id} NOT NULL PRIMARY KEY,
        plan {id} NOT NULL,
        number {int} NOT NULL,
        place {word} NOT NULL,
        body {text} NULL
    ) {table}"),
    All("CREATE INDEX kiln_plan_part_plan ON kiln_plan_part (plan, number)"),
    All("CREATE INDEX kiln_plan_part_place ON kiln_plan_part (plan, place, number)"),
    // `id` is made from plan and user, so that a user approves a plan once.
    All("CREATE TABLE IF NOT EXISTS kiln_plan_approval (
        id {id} NOT NULL PRIMARY KEY,
        plan {id} NOT NULL,
        user_id {text} NOT NULL,
        username {text} NOT NULL,
        given {int} NOT NULL
    ) {table}"),
    All("CREATE INDEX kiln_plan_approval_plan ON kiln_plan_approval (plan, given)"),
    // The bodies are sealed for the IDs, which stay the same.
    All("INSERT INTO kiln_plan (id, project, stack, stack_name, name, action, generation, digest, state, body, created)
        SELECT id, project, stack, stack_name, name, CASE WHEN generation = 0 THEN 'CREATE' ELSE 'UPDATE' END, generation,
            '', CASE WHEN executed = 0 THEN 'READY' ELSE 'EXECUTED' END, body, created
        FROM kiln_change_set
        WHERE NOT EXISTS (SELECT 1 FROM kiln_plan WHERE kiln_plan.id = kiln_change_set.id)
        ORDER BY created, id"),
    All("ALTER TABLE kiln_operation ADD COLUMN plan {id} NULL"),
    // 1: it keeps to plans.
    All("ALTER TABLE kiln_engine ADD COLUMN plans {int} NULL"),
];
