//! Failures and rollbacks.

use super::*;

fn with_rollback<const N: usize>(action: Action, targets: [Target; N]) -> Request {
    Request { rollback: true, ..request(action, 2, targets) }
}

#[test]
fn a_failure_asks_for_a_rollback_if_the_request_wants_one_and_knows_one() {
    let table = [
        (Action::Create, true, "end CREATE_FAILED, roll back: Resource CREATE failed: Error: resources.a: bad luck"),
        (Action::Create, false, "end CREATE_FAILED: Resource CREATE failed: Error: resources.a: bad luck"),
        (Action::Update, true, "end UPDATE_FAILED, roll back: Resource CREATE failed: Error: resources.a: bad luck"),
        (Action::Restore, true, "end RESTORE_FAILED, roll back: Resource CREATE failed: Error: resources.a: bad luck"),
        (Action::Rollback, true, "end ROLLBACK_FAILED: Resource CREATE failed: Error: resources.a: bad luck"),
    ];
    for (action, rollback, expected) in table {
        let mut stack = Stack::of([]);
        stack.begin(Request { rollback, ..request(action, 1, [target("a", [], 1)]) });
        stack.decided("a", create(), 9);
        assert_eq!(stack.failed(1)[1..], [expected], "{action}");
    }
}

#[test]
fn a_failure_lets_running_operations_end() {
    let mut stack = Stack::of([]);
    stack.begin(request(Action::Create, 1, [target("a", [], 1), target("b", [], 2), target("c", ["b"], 3)]));
    stack.decided("a", create(), 9);
    stack.decided("b", create(), 9);
    assert_eq!(stack.failed(1), ["note a1: CREATE_FAILED, Error: resources.a: bad luck"]);
    // `c` does not begin.
    let end = ["note b2: CREATE_COMPLETE", "end CREATE_FAILED: Resource CREATE failed: Error: resources.a: bad luck"];
    assert_eq!(stack.done(2), end);
}

/// An update that replaces `a`, and fails at `b`.
fn failed_after_a_replacement() -> Stack {
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(with_rollback(Action::Update, [target("a", [], 99), target("b", ["a"], 3)]));
    stack.decided("a", replace(), 2);
    // The delete of the replaced row begins.
    stack.done(2);
    stack.decided("b", create(), 9);
    stack.failed(3);
    stack
}

#[test]
fn a_rollback_of_a_replacement_returns_to_the_replaced_row() {
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(with_rollback(Action::Update, [target("a", [], 99)]));
    stack.decided("a", replace(), 2);
    assert_eq!(
        stack.failed(2)[1..],
        ["end UPDATE_FAILED, roll back: Resource CREATE failed: Error: resources.a: bad luck"]
    );
    assert_eq!(stack.begin(request(Action::Rollback, 3, [target("a", [], 99)])), ["decide about a1"]);
    assert_eq!(stack.decided("a", keep(), 99), ["note a2: DELETE_IN_PROGRESS", "start DELETE of a2"]);
    assert_eq!((stack.row(1).replaced_by, stack.row(1).replaces), (None, None));
    assert_eq!(stack.done(2).last().expect("an end"), "end ROLLBACK_COMPLETE: Stack ROLLBACK completed successfully");
}

#[test]
fn a_rollback_keeps_the_replacement_if_the_replaced_row_is_being_deleted() {
    let mut stack = failed_after_a_replacement();
    let lines = stack.begin(request(Action::Rollback, 3, [target("a", [], 99)]));
    assert_eq!(lines, ["note b3: DELETE_IN_PROGRESS", "start DELETE of b3", "decide about a2"]);
}

#[test]
fn another_engine_continues_a_rollback_with_the_row_that_it_has_made() {
    let mut stack = failed_after_a_replacement();
    stack.begin(request(Action::Rollback, 3, [target("a", [], 99)]));
    assert_eq!(stack.decided("a", replace(), 4), ["note a4: CREATE_IN_PROGRESS", "start CREATE of a4"]);
    let again = || request(Action::Rollback, 3, [target("a", [], 99)]);
    let mut next = stack.taken_over();
    assert_eq!(next.begin(again()), ["resume DELETE of a1", "resume DELETE of b3", "resume CREATE of a4"]);
    assert_eq!(next.done(4), ["note a4: CREATE_COMPLETE", "decide about a4"]);
    // The create is one of this rollback, which fails with it.
    let mut next = stack.taken_over();
    next.begin(again());
    next.failed(4);
    next.done(1);
    let end = "end ROLLBACK_FAILED: Resource CREATE failed: Error: resources.a: bad luck";
    assert_eq!(next.done(3).last().map(String::as_str), Some(end));
}

#[test]
fn a_request_that_is_barred_ends_what_runs_and_fails_without_a_rollback() {
    let mut stack = Stack::of([runs(Operation::Create, row("a", 1))]);
    let barred = Some("the template is damaged".to_owned());
    let lines =
        stack.begin(Request { barred, ..with_rollback(Action::Update, [target("a", [], 9), target("b", [], 8)]) });
    assert_eq!(lines, ["resume CREATE of a1"]);
    assert_eq!(stack.done(1), ["note a1: CREATE_COMPLETE", "end UPDATE_FAILED: the template is damaged"]);
}

#[test]
fn a_timeout_interrupts_what_runs_and_a_cancel_does_so_if_it_says_so() {
    let table = [
        (Event::TimedOut, &["interrupt a1", "end CREATE_FAILED, roll back: Timed out"][..]),
        (Event::Cancelled { interrupt: true }, &["interrupt a1"]),
        (Event::Cancelled { interrupt: false }, &[]),
    ];
    for (event, expected) in table {
        let mut stack = Stack::of([]);
        stack.begin(with_rollback(Action::Create, [target("a", [], 1)]));
        stack.decided("a", create(), 9);
        assert_eq!(stack.on(event.clone()), expected, "{event:?}");
        if let Event::Cancelled { .. } = event {
            assert_eq!(stack.failed(1)[1..], ["end CREATE_FAILED: Stack CREATE cancelled"], "no rollback");
        }
    }
}
