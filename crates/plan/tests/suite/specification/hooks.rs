//! Hooks: a resource waits before or after its operation until a user clears the hook.

use super::*;

fn cleared(name: &str, hook: Hook) -> Event {
    Event::HookCleared { name: name.to_owned(), hook }
}

fn with_hook<const N: usize>(action: Action, hook: Hook, targets: [Target; N]) -> Request {
    Request { hooks: hooks("a", hook), ..request(action, 2, targets) }
}

#[test]
fn a_resource_waits_before_its_operation() {
    let table = [
        (Action::Create, Hook::PreCreate, vec![], "CREATE", "decide about a1"),
        (Action::Update, Hook::PreUpdate, vec![row("a", 1)], "UPDATE", "decide about a1"),
    ];
    for (action, hook, rows, word, next) in table {
        let mut stack = Stack::of(rows);
        let waits = stack.begin(with_hook(action, hook, [target("a", [], 1)]));
        assert!(waits[0].ends_with(&format!("{word} paused until Hook {hook} is cleared")), "{waits:?}");
        assert_eq!(waits.len(), 1);
        assert_eq!(stack.on(cleared("a", hook)).last().map(String::as_str), Some(next));
    }
}

#[test]
fn a_resource_waits_after_its_operation_and_is_decided_about_again() {
    let mut stack = Stack::of([]);
    stack.begin(with_hook(Action::Create, Hook::PostCreate, [target("a", [], 1), target("b", ["a"], 2)]));
    stack.decided("a", create(), 9);
    let waits =
        ["note a1: CREATE_COMPLETE", "note a1: CREATE_COMPLETE, CREATE paused until Hook post-create is cleared"];
    assert_eq!(stack.done(1), waits);
    assert_eq!(stack.on(cleared("a", Hook::PostCreate))[1..], ["decide about a1"]);
    assert_eq!(stack.decided("a", keep(), 9), ["decide about b2"], "it does not stop twice");
}

#[test]
fn a_delete_waits_before_and_after_it() {
    let mut stack = Stack::of([row("a", 1)]);
    assert_eq!(stack.begin(with_hook(Action::Delete, Hook::PreDelete, [])).len(), 1);
    let next = ["note a1: DELETE_IN_PROGRESS", "start DELETE of a1"];
    assert_eq!(stack.on(cleared("a", Hook::PreDelete))[1..], next);
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(with_hook(Action::Delete, Hook::PostDelete, []));
    assert_eq!(stack.done(1).len(), 2);
    let end = ["remove row 1", "end DELETE_COMPLETE: Stack DELETE completed successfully"];
    assert_eq!(stack.on(cleared("a", Hook::PostDelete))[1..], end);
}

#[test]
fn another_engine_waits_on_at_the_same_hook_and_stops_at_none_twice() {
    let begin = || with_hook(Action::Create, Hook::PreCreate, [target("a", [], 1)]);
    let mut first = Stack::of([]);
    first.begin(begin());
    let mut second = first.taken_over();
    assert_eq!(second.begin(begin()), [""; 0]);
    second.on(cleared("a", Hook::PreCreate));
    assert_eq!(second.taken_over().begin(begin()), ["decide about a1"]);
}

#[test]
fn a_failure_ends_the_wait() {
    let mut stack = Stack::of([]);
    stack.begin(with_hook(Action::Create, Hook::PreCreate, [target("a", [], 1), target("b", [], 2)]));
    stack.decided("b", create(), 9);
    let lines = stack.failed(2);
    assert_eq!(lines[1], "note a1: INIT_COMPLETE, Failure occurred while waiting.");
    assert_eq!(lines[2], "end CREATE_FAILED: Resource CREATE failed: Error: resources.b: bad luck");
}

#[test]
fn a_hook_of_another_action_does_nothing() {
    let mut stack = Stack::of([row("a", 1)]);
    assert_eq!(stack.begin(with_hook(Action::Update, Hook::PreCreate, [target("a", [], 9)])), ["decide about a1"]);
    let rollback = with_hook(Action::Rollback, Hook::PreUpdate, [target("a", [], 9)]);
    assert_eq!(Stack::of([row("a", 1)]).begin(rollback), ["decide about a1"]);
}
