//! What a guard does not permit, for each way in which an object can change or go.

use std::collections::BTreeSet;

use kiln_plan::{Guards, HeldGuard};
use kiln_resource::{GuardRule, GuardedRequest, StackPolicy, Verb};

use super::*;

fn protect(from: &[Verb], resources: &str) -> GuardRule {
    let from = from.iter().copied().collect::<BTreeSet<_>>();
    GuardRule::Protect { from, resources: Some(resources.to_owned()), lock: false }
}

fn guards(action: Action, rule: GuardRule) -> Guards {
    let guard = HeldGuard { rule, until: Some(at(99)), words: "the guard 7 of jo".to_owned() };
    let request = GuardedRequest { action, is_signal: false };
    Guards { guards: vec![guard], path: String::new(), request, made_since: None }
}

#[expect(clippy::unnecessary_wraps, reason = "as a request has them")]
fn heeded(guards: Guards) -> Option<Arc<Guards>> {
    Some(Arc::new(guards))
}

/// The request stops before the call.
fn stopped(action: &str, of_stack: &str, row: u128, what: &str) -> Vec<String> {
    let blame = format!("Guarded: resources.a: it would be {what}, which the guard 7 of jo forbids");
    vec![
        format!("note a{row}: {action}_FAILED, {blame}"),
        format!("end {of_stack}_FAILED: Resource {action} failed: {blame}"),
    ]
}

#[test]
fn what_a_guard_forbids_stops_the_request_before_its_call() {
    use Verb::{Delete, Replace, Update};
    let starts = |what: &str| Ok(format!("start {what}"));
    let table = [
        ("an update", Update, change(), Err(("UPDATE", "updated"))),
        ("a replacement is no update", Replace, change(), starts("UPDATE of a1")),
        ("a replacement", Replace, replace(), Err(("UPDATE", "replaced"))),
        ("a replacement deletes the object", Delete, replace(), Err(("UPDATE", "replaced"))),
        ("a replacement changes the resource", Update, replace(), Err(("UPDATE", "replaced"))),
        ("an update deletes nothing", Delete, change(), starts("UPDATE of a1")),
        (
            "a resource that stays as it is",
            Update,
            keep(),
            Ok("end UPDATE_COMPLETE: Stack UPDATE completed successfully".to_owned()),
        ),
    ];
    for (what, from, decision, expected) in table {
        let mut stack = Stack::of([row("a", 1)]);
        let guards = heeded(guards(Action::Update, protect(&[from], "a")));
        stack.begin(Request { guards, ..request(Action::Update, 2, [target("a", [], 1)]) });
        let lines = stack.decided("a", decision, 2);
        match expected {
            Ok(last) => assert_eq!(lines.last(), Some(&last), "{what}"),
            Err((action, verb)) => assert_eq!(lines, stopped(action, "UPDATE", 1, verb), "{what}"),
        }
    }
}

#[test]
fn a_guarded_object_is_not_deleted_whatever_removes_its_row() {
    let guarded = |action| heeded(guards(action, protect(&[Verb::Delete], "*")));
    // Its resource was removed from the template; the stack is deleted.
    for action in [Action::Update, Action::Delete] {
        let mut stack = Stack::of([row("a", 1)]);
        let lines = stack.begin(Request { guards: guarded(action), ..request(action, 2, []) });
        assert_eq!(lines, stopped("DELETE", action.as_str(), 1, "deleted"));
    }
    // Its replacement exists: a guard that is newer than the replacement.
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(request(Action::Update, 2, [target("a", [], 9)]));
    stack.decided("a", replace(), 3);
    stack.on(Event::Guarded(guarded(Action::Update)));
    assert_eq!(stack.done(3)[1..], stopped("DELETE", "UPDATE", 1, "replaced"));
    // A former row that an update left behind.
    let [old, new] = replaced(row("a", 1), of_request(2, row("a", 2)));
    let mut stack = Stack::of([old, new]);
    let begin = request(Action::Update, 3, [target("a", [], 9)]);
    stack.begin(Request { guards: guarded(Action::Update), ..begin });
    assert_eq!(stack.decided("a", keep(), 9), stopped("DELETE", "UPDATE", 1, "replaced"));
}

#[test]
fn what_was_never_finished_or_is_taken_back_is_not_protected() {
    let starts = ["note a1: DELETE_IN_PROGRESS", "start DELETE of a1"];
    let half_made = in_state(Action::Create, Status::Failed, row("a", 1));
    let tried = Resource { operation: kiln_resource::OperationState::HalfMade(definition(1)), ..row("a", 1) };
    for (what, row, made_since) in [
        ("its create failed", half_made, None),
        ("its create failed before a check", tried, None),
        ("the operation has made it that is rolled back", row("a", 1), Some(at(0))),
    ] {
        let mut stack = Stack::of([row]);
        let protected = Guards { made_since, ..guards(Action::Rollback, protect(&[Verb::Delete], "*")) };
        let lines = stack.begin(Request { guards: heeded(protected), ..request(Action::Rollback, 3, []) });
        assert_eq!(lines, starts, "{what}");
        // Neither before the call of the delete, nor after it has failed.
        assert_eq!(stack.model.guarded(id(1)), None, "{what}");
        stack.failed(1);
        let again = Guards { made_since, ..guards(Action::Rollback, protect(&[Verb::Delete], "*")) };
        let lines = stack.begin(Request { guards: heeded(again), ..request(Action::Rollback, 4, []) });
        assert_eq!(lines, starts, "{what}");
    }
    let mut stack = Stack::of([row("a", 1)]);
    let guards = Guards { made_since: Some(at(1)), ..guards(Action::Rollback, protect(&[Verb::Delete], "*")) };
    let lines = stack.begin(Request { guards: heeded(guards), ..request(Action::Rollback, 3, []) });
    assert_eq!(lines, stopped("DELETE", "ROLLBACK", 1, "deleted"), "it is older than the operation");
}

#[test]
fn a_guard_ends_by_itself_and_can_be_lifted() {
    let begin = || Request {
        guards: heeded(guards(Action::Update, protect(&[Verb::Update], "a"))),
        ..request(Action::Update, 2, [target("a", [], 1)])
    };
    let mut stack = Stack::of([row("a", 1)]);
    stack.time = 98;
    stack.begin(begin());
    assert_eq!(stack.decided("a", change(), 2).last().expect("one"), "start UPDATE of a1");
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(begin());
    stack.on(Event::Guarded(None));
    assert_eq!(stack.decided("a", change(), 2).last().expect("one"), "start UPDATE of a1");
}

#[test]
fn a_guard_that_is_newer_than_an_operation_is_seen_before_its_call() {
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(request(Action::Update, 2, [target("a", [], 1)]));
    stack.decided("a", change(), 2);
    assert_eq!(stack.model.guarded(id(1)), None);
    stack.on(Event::Guarded(heeded(guards(Action::Update, protect(&[Verb::Delete], "a")))));
    assert_eq!(stack.model.guarded(id(1)), None, "nothing is deleted");
    stack.on(Event::Guarded(heeded(guards(Action::Update, GuardRule::Freeze { signals: false }))));
    let failure = stack.model.guarded(id(1)).expect("a failure");
    assert_eq!(failure.to_string(), "Guarded: it would be updated, which the guard 7 of jo forbids");
    // What runs without a call of this request has no guard: a check reads.
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(Request {
        guards: heeded(guards(Action::Check, protect(&[Verb::Delete], "*"))),
        ..request(Action::Check, 2, [])
    });
    assert_eq!(stack.model.guarded(id(1)), None);
}

#[test]
fn a_stack_policy_holds_while_the_stack_is_updated() {
    let text = r#"{"Statement": [{"Effect": "Allow", "Action": "Update:Modify", "Principal": "*", "Resource": "*"}]}"#;
    let policy = || GuardRule::StackPolicy(StackPolicy::try_from(text.to_owned()).expect("a policy"));
    let mut stack = Stack::of([row("a", 1)]);
    let begin = request(Action::Update, 2, [target("a", [], 1)]);
    stack.begin(Request { guards: heeded(guards(Action::Update, policy())), ..begin });
    assert_eq!(stack.decided("a", replace(), 2), stopped("UPDATE", "UPDATE", 1, "replaced"));
    let mut stack = Stack::of([row("a", 1)]);
    let lines =
        stack.begin(Request { guards: heeded(guards(Action::Delete, policy())), ..request(Action::Delete, 2, []) });
    assert_eq!(lines.last().expect("one"), "start DELETE of a1");
}
