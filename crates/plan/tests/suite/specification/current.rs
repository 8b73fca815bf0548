//! The current row of a name: the questions of `model/current.rs`, one case or more for each.

use super::*;

/// The rows of `a`, the action of the request that begins, and the number of the current row.
type Case = (&'static str, Vec<Resource>, Action, u128);

fn failed(row: Resource) -> Resource {
    in_state(Action::Create, Status::Failed, row)
}

fn goes(row: Resource) -> Resource {
    in_state(Action::Delete, Status::InProgress, row)
}

fn changed_at(second: i64, row: Resource) -> Resource {
    Resource { updated: at(second), ..row }
}

/// A row of request 2, and the one that the rollback, request 3, has made in its place.
fn made_by_rollback(old: Resource, fresh: u128) -> Vec<Resource> {
    let mut stack = Stack::of([old]);
    stack.begin(request(Action::Rollback, 3, [target("a", [], 99)]));
    stack.decided("a", replace(), fresh);
    stack.model.rows().cloned().collect()
}

#[test]
fn the_first_question_that_the_rows_answer_differently_decides() {
    let (old, new) = (|| row("a", 1), || of_request(2, row("a", 2)));
    let pair = |old, new| Vec::from(replaced(old, new));
    let forward: Vec<Case> = vec![
        ("is it not being deleted? one that failed stays", vec![failed(old()), goes(new())], Action::Update, 1),
        ("has it not failed? one that was replaced is sound", pair(old(), failed(new())), Action::Update, 1),
        ("was it not replaced? by any request", pair(of_request(3, old()), new()), Action::Update, 2),
        ("was it reached by the newest request?", vec![old(), new()], Action::Update, 2),
        (
            "was it changed last?",
            vec![changed_at(2, old()), changed_at(1, of_request(1, row("a", 2)))],
            Action::Update,
            1,
        ),
        ("the ID decides", vec![row("a", 1), row("a", 2)], Action::Update, 2),
        ("the same for a delete", pair(old(), new()), Action::Delete, 2),
        ("the same for a check", pair(old(), new()), Action::Check, 2),
    ];
    let back: Vec<Case> = vec![
        ("is it not being deleted? the former row may be gone", pair(goes(old()), new()), Action::Rollback, 2),
        ("has it not failed? the former row failed before", pair(failed(old()), new()), Action::Rollback, 2),
        ("was it reached by this rollback? the former row", pair(of_request(3, old()), new()), Action::Rollback, 1),
        ("was it reached by this rollback? a new row", pair(old(), of_request(3, new())), Action::Rollback, 2),
        ("was it not replaced by it?", pair(of_request(3, old()), of_request(3, new())), Action::Rollback, 2),
        ("does it replace no row that exists?", pair(old(), new()), Action::Rollback, 1),
        ("the row that it replaces is gone", pair(old(), new())[1..].to_vec(), Action::Rollback, 2),
        ("was it reached by the oldest request?", vec![old(), new()], Action::Rollback, 1),
    ];
    for (question, rows, action, expected) in forward.into_iter().chain(back) {
        for rows in [rows.clone(), rows.into_iter().rev().collect()] {
            let mut stack = Stack::of(rows);
            let targets = if action == Action::Delete { [].into() } else { vec![target("a", [], 99)] };
            stack.begin(Request { targets, ..request(action, 3, []) });
            assert_eq!(stack.current("a"), Some(expected), "{action}: {question}");
        }
    }
}

#[test]
fn a_row_that_the_rollback_has_made_stays_the_current_one() {
    // The row that the update made replaces one that is gone, so that the rollback replaces it once more. Its time of change
    // is that of its replacement: nothing but its origin tells them apart.
    let [_, new] = replaced(row("a", 1), of_request(2, row("a", 7)));
    for fresh in [3, 9] {
        let rows = made_by_rollback(new.clone(), fresh);
        assert_eq!(rows.len(), 2);
        let mut next = Stack::of(rows);
        let commands = next.begin(request(Action::Rollback, 3, [target("a", [], 99)]));
        assert_eq!(next.current("a"), Some(fresh));
        assert_eq!(commands[0], format!("resume CREATE of a{fresh}"), "another engine does not make a third object");
        // Users see it too.
        assert_eq!(number(next.model.shown(Some(3))["a"].id), fresh);
    }
}

#[test]
fn a_later_request_asks_what_any_request_asks() {
    let [_, new] = replaced(row("a", 1), of_request(2, row("a", 7)));
    let mut rows = made_by_rollback(new, 9);
    // The next update follows the replacement; its rollback returns to the row before it, whoever made the replacement.
    for row in &mut rows {
        let operation = kiln_resource::OperationState::Idle;
        *row = Resource { operation, ..in_state(Action::Create, Status::Complete, row.clone()) };
    }
    for (action, generation, expected) in [(Action::Update, 4, 9), (Action::Rollback, 5, 7)] {
        let mut stack = Stack::of(rows.clone());
        stack.begin(request(action, generation, [target("a", [], 99)]));
        assert_eq!(stack.current("a"), Some(expected), "{action}");
    }
}
