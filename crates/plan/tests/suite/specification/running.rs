//! Running operations: their steps and results, other engines, and newer requests.

use super::*;

#[test]
fn a_step_is_stored_and_the_operation_goes_on() {
    let mut stack = Stack::of([]);
    stack.begin(request(Action::Create, 1, [target("a", [], 1)]));
    stack.decided("a", create(), 9);
    let (phase, child) = (Phase::Wait("started".into()), Some(StackId(uuid::Uuid::from_u128(5))));
    let step = Event::Stepped {
        row: id(1),
        physical_id: Some("object".to_owned()),
        child,
        data: Map::from_iter([("key".to_owned(), "value".into())]),
        phase: phase.clone(),
        attempt: 0,
        token: "token".to_owned(),
    };
    assert_eq!(stack.on(step), ["start CREATE of a1"]);
    let row = stack.row(1);
    assert_eq!((row.physical_id.as_deref(), row.child), (Some("object"), child));
    assert_eq!(row.data.get("key").and_then(Value::as_str), Some("value"));
    assert_eq!(row.running().map(|running| &running.phase), Some(&phase));
}

#[test]
fn what_an_operation_waits_for_is_its_reason_without_an_event() {
    let mut stack = Stack::of([]);
    stack.begin(request(Action::Create, 1, [target("a", [], 1)]));
    stack.decided("a", create(), 9);
    for (reason, shown) in [(Some("a quota"), "a quota"), (None, "state changed")] {
        assert_eq!(stack.on(Event::Waits { row: id(1), reason: reason.map(str::to_owned) }), [""; 0]);
        assert_eq!(stack.row(1).reason, shown);
    }
}

#[test]
fn an_update_that_needs_a_replacement_after_all_is_decided_about_again() {
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(request(Action::Update, 2, [target("a", [], 99)]));
    stack.decided("a", change(), 99);
    let again = ["note a1: UPDATE_COMPLETE, it needs a replacement", "decide about a1"];
    assert_eq!(stack.ended(1, Outcome::Replace("it needs a replacement".to_owned())), again);
    assert_eq!(stack.row(1).operation, kiln_resource::OperationState::MustReplace);
}

#[test]
fn another_engine_continues_what_runs() {
    let begin = |generation| request(Action::Update, generation, [target("a", [], 9), target("b", ["a"], 2)]);
    let mut stack = Stack::of([of_request(2, runs(update(), row("a", 1)))]);
    assert_eq!(stack.begin(begin(2)), ["resume UPDATE of a1"]);
    // The call of the engine before may have been lost.
    let phase = Phase::Lost(kiln_resource::LostCall { left: std::time::Duration::from_secs(5), epoch: 1 });
    assert_eq!(stack.on(Event::TakenOver { row: id(1), phase: phase.clone() }), [""; 0]);
    assert_eq!(stack.row(1).running().map(|running| &running.phase), Some(&phase));
    // The result is that of this request; the node still decides, because the operation may have begun with other values.
    assert_eq!(stack.done(1), ["note a1: UPDATE_COMPLETE", "decide about a1"]);
}

#[test]
fn a_newer_request_waits_for_the_operations_of_the_one_before() {
    let mut stack = Stack::of([]);
    stack.begin(request(Action::Create, 1, [target("a", [], 1)]));
    stack.decided("a", create(), 9);
    assert_eq!(stack.begin(request(Action::Update, 2, [target("a", [], 9)])), [""; 0]);
    // The failure of the former operation does not fail this request: its node decides about the row.
    let next = ["note a1: CREATE_FAILED, Error: resources.a: bad luck", "decide about a1"];
    assert_eq!(stack.failed(1), next);
}

#[test]
fn a_delete_interrupts_what_runs() {
    let mut stack = Stack::of([]);
    stack.begin(request(Action::Create, 1, [target("a", [], 1)]));
    stack.decided("a", create(), 9);
    assert_eq!(stack.begin(request(Action::Delete, 2, [])), ["interrupt a1"]);
    assert_eq!(stack.failed(1)[1..], ["note a1: DELETE_IN_PROGRESS", "start DELETE of a1"]);
}

#[test]
fn an_operation_of_another_version_is_not_touched() {
    let unknown = kiln_resource::OperationState::Unknown(Value::Null);
    let mut stack = Stack::of([Resource { operation: unknown.clone(), ..row("a", 1) }]);
    let end = stack.begin(request(Action::Update, 2, [target("a", [], 9)]));
    assert!(end[0].contains("this operation was started by another version of Kiln"), "{end:?}");
    assert_eq!(stack.row(1).operation, unknown);
}

#[test]
fn a_copy_of_a_model_does_not_change_with_it() {
    let stack = Stack::of([row("a", 1)]);
    let mut copy = Stack { model: stack.model.clone(), asked: BTreeMap::new(), time: 0 };
    copy.begin(request(Action::Delete, 2, []));
    assert_eq!((stack.row(1).state.action, copy.row(1).state.action), (Action::Create, Action::Delete));
}

/// A failed operation is continued without some resources: they stay as they are, and the others go on.
#[test]
fn nothing_is_done_with_a_skipped_resource() {
    let failed = in_state(Action::Create, Status::Failed, row("a", 1));
    let skips = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let targets = || [target("a", [], 91), target("b", ["a"], 92), target("c", [], 93)];
    // `b` has not begun, and has no row.
    let mut stack = Stack::of([failed.clone()]);
    let begin = Request { skipped: skips(&["a", "b"]), ..request(Action::Create, 2, targets()) };
    assert_eq!(stack.begin(begin), ["decide about c93"]);
    stack.decided("c", create(), 9);
    assert_eq!(
        stack.done(93),
        ["note c93: CREATE_COMPLETE", "end CREATE_COMPLETE: Stack CREATE completed successfully"]
    );
    assert_eq!((stack.row(1).state, stack.current("b")), (failed.state, None));
    // Without the skip, it is tried again.
    let mut stack = Stack::of([failed]);
    assert_eq!(stack.begin(request(Action::Create, 2, targets())), ["decide about a1", "decide about c93"]);
    // A row that would be deleted stays too.
    let mut stack = Stack::of([row("a", 1), row("b", 2)]);
    let lines = stack.begin(Request { skipped: skips(&["a"]), ..request(Action::Update, 2, []) });
    assert_eq!(lines, ["note b2: DELETE_IN_PROGRESS", "start DELETE of b2"]);
    assert_eq!(stack.done(2).last().expect("one"), "end UPDATE_COMPLETE: Stack UPDATE completed successfully");
    assert_eq!(stack.current("a"), Some(1));
    // So does what its object needs: a replaced row, and one that is no longer in the template. Nothing keeps `d`.
    let mut web = in_state(Action::Check, Status::Failed, row("web", 5));
    web.requires = vec![id(1), id(3)];
    let [mut net, new] = replaced(row("net", 1), row("net", 2));
    net.requires = vec![id(4)];
    let mut stack = Stack::of([net, new, row("disk", 3), row("base", 4), web, row("d", 6)]);
    let targets = [target("net", [], 91), target("web", ["net"], 92)];
    let lines = stack.begin(Request { skipped: skips(&["net", "web"]), ..request(Action::Update, 2, targets) });
    assert_eq!(lines, ["note d6: DELETE_IN_PROGRESS", "start DELETE of d6"]);
    assert_eq!(stack.done(6).last().expect("one"), "end UPDATE_COMPLETE: Stack UPDATE completed successfully");
}
