//! The order of the work on the resources.

use super::*;

#[test]
fn creates_wait_for_what_they_require() {
    let mut stack = Stack::of([]);
    let targets = [target("a", [], 1), target("b", ["a"], 2), target("c", ["b", "gone"], 3)];
    assert_eq!(stack.begin(request(Action::Create, 1, targets)), ["decide about a1"]);
    stack.decided("a", create(), 9);
    assert_eq!(stack.done(1), ["note a1: CREATE_COMPLETE", "decide about b2"]);
    stack.decided("b", create(), 9);
    assert_eq!(stack.row(2).requires, [id(1)]);
    assert_eq!(stack.done(2), ["note b2: CREATE_COMPLETE", "decide about c3"]);
}

#[test]
fn deletes_wait_for_what_requires_them() {
    let mut stack = Stack::of([row("a", 1), requires([1], row("b", 2)), requires([2], row("c", 3))]);
    let delete = request(Action::Delete, 2, []);
    assert_eq!(stack.begin(delete), ["note c3: DELETE_IN_PROGRESS", "start DELETE of c3"]);
    let next = ["note c3: DELETE_COMPLETE", "remove row 3", "note b2: DELETE_IN_PROGRESS", "start DELETE of b2"];
    assert_eq!(stack.done(3), next);
}

#[test]
fn what_depends_on_nothing_is_deleted_in_the_reverse_order_of_its_creation() {
    // The IDs say nothing about the order: those of real rows are random.
    let mut stack = Stack::of([row("a", 2), row("b", 3), row("c", 1)]);
    let started: Vec<String> = stack.begin(request(Action::Delete, 2, []));
    let started: Vec<&str> = started.iter().filter_map(|line| line.strip_prefix("start DELETE of ")).collect();
    assert_eq!(started, ["c1", "b3", "a2"]);
}

#[test]
fn an_update_deletes_after_the_update_of_the_name_and_before_what_the_row_required() {
    let [old, new] = replaced(requires([3], row("a", 1)), requires([3], of_request(2, row("a", 2))));
    let mut stack = Stack::of([row("b", 3), old, new]);
    assert_eq!(stack.begin(request(Action::Update, 3, [target("a", [], 99)])), ["decide about a2"]);
    // `b` is not wanted any more, but both rows of `a` require it: the row that stays lets it go when it is kept.
    assert_eq!(stack.decided("a", keep(), 99), ["note a1: DELETE_IN_PROGRESS", "start DELETE of a1"]);
    let next = ["note a1: DELETE_COMPLETE", "remove row 1", "note b3: DELETE_IN_PROGRESS", "start DELETE of b3"];
    assert_eq!(stack.done(1), next);
}

#[test]
fn suspend_and_resume_go_in_opposite_orders() {
    let suspended = |row| in_state(Action::Suspend, Status::Complete, row);
    let table = [
        (Action::Suspend, [row("a", 1), requires([1], row("b", 2))], "start SUSPEND of b2"),
        (Action::Resume, [suspended(row("a", 1)), suspended(requires([1], row("b", 2)))], "start RESUME of a1"),
        (Action::Check, [row("a", 1), requires([1], row("b", 2))], "start CHECK of a1"),
        (Action::Snapshot, [row("a", 1), requires([1], row("b", 2))], "start SNAPSHOT of a1"),
    ];
    for (action, rows, first) in table {
        assert_eq!(Stack::of(rows).begin(request(action, 2, []))[1..], [first], "{action}");
    }
}

#[test]
fn a_check_goes_on_after_a_failure_and_names_it_in_the_end() {
    let mut stack = Stack::of([row("a", 1), requires([1], row("b", 2))]);
    stack.begin(request(Action::Check, 2, []));
    assert_eq!(stack.failed(1)[1..], ["note b2: CHECK_IN_PROGRESS", "start CHECK of b2"]);
    assert!(stack.done(2).last().expect("an end").starts_with("end CHECK_FAILED: Resource CHECK failed: a: "));
}
