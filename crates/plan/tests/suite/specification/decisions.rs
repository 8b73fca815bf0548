//! What follows from the decision about a resource.

use kiln_value::Class;

use super::*;

fn decided(row: Option<Resource>, decision: Decision) -> Vec<String> {
    let mut stack = Stack::of(row);
    stack.begin(Request { rollback: false, ..request(Action::Update, 2, [target("a", [], 1)]) });
    stack.decided("a", decision, 2)
}

#[test]
fn each_decision_has_its_commands() {
    let there = || Some(row("a", 1));
    let table: [(&str, Option<Resource>, Decision, &[&str]); 9] = [
        (
            "a new resource gets the row of the target",
            None,
            create(),
            &["note a1: CREATE_IN_PROGRESS", "start CREATE of a1"],
        ),
        (
            "the row of an earlier request that did not begin is used",
            Some(unmade(row("a", 1))),
            create(),
            &["note a1: CREATE_IN_PROGRESS", "start CREATE of a1"],
        ),
        (
            "what does not change needs nothing, and nothing else is left to do",
            there(),
            keep(),
            &["end UPDATE_COMPLETE: Stack UPDATE completed successfully"],
        ),
        (
            "a failed resource that is kept is sound again",
            there().map(|row| in_state(Action::Update, Status::Failed, row)),
            keep(),
            &[
                "note a1: UPDATE_COMPLETE, Update status to COMPLETE for FAILED resource neither update nor replace.",
                "end UPDATE_COMPLETE: Stack UPDATE completed successfully",
            ],
        ),
        ("an update in place", there(), change(), &["note a1: UPDATE_IN_PROGRESS", "start UPDATE of a1"]),
        ("a replacement is a new row", there(), replace(), &["note a2: CREATE_IN_PROGRESS", "start CREATE of a2"]),
        (
            "Heat starts the update before it finds that it needs a replacement",
            there(),
            Decision::Replace { definition: definition(2), why: Vec::new(), announce: Some("needs it".to_owned()) },
            &[
                "note a1: UPDATE_IN_PROGRESS",
                "note a1: UPDATE_COMPLETE, needs it",
                "note a2: CREATE_IN_PROGRESS",
                "start CREATE of a2",
            ],
        ),
        (
            "a resource that is refused fails, and the request with it",
            there(),
            refuse(),
            &[
                "note a1: UPDATE_IN_PROGRESS",
                "note a1: UPDATE_FAILED, ValueError: resources.a: unfit",
                "end UPDATE_FAILED: Resource UPDATE failed: ValueError: resources.a: unfit",
            ],
        ),
        (
            "a restricted action is an event; the resource stays as it is",
            there(),
            Decision::Restrict { failure: Failure::other(Class::ResourceActionRestricted, "update is restricted") },
            &[
                "note a1: UPDATE_FAILED, update is restricted",
                "end UPDATE_FAILED: Resource UPDATE failed: ResourceActionRestricted: resources.a: update is restricted",
            ],
        ),
    ];
    for (what, row, decision, expected) in table {
        assert_eq!(decided(row, decision), expected, "{what}");
    }
}

#[test]
fn a_replacement_and_the_replaced_row_know_each_other() {
    let mut stack = Stack::of([row("a", 1)]);
    stack.begin(request(Action::Update, 2, [target("a", [], 99)]));
    stack.decided("a", replace(), 2);
    assert_eq!((stack.row(1).replaced_by, stack.row(2).replaces), (Some(id(2)), Some(id(1))));
    assert_eq!((stack.current("a"), stack.row(2).generation), (Some(2), 2));
    assert_eq!(stack.done(2), ["note a2: CREATE_COMPLETE", "note a1: DELETE_IN_PROGRESS", "start DELETE of a1"]);
    let end = ["note a1: DELETE_COMPLETE", "remove row 1", "end UPDATE_COMPLETE: Stack UPDATE completed successfully"];
    assert_eq!(stack.done(1), end);
}

#[test]
fn an_object_that_exists_is_adopted_with_its_metadata() {
    let metadata = Value::Map(Map::from_iter([("of".to_owned(), "the object".into())]));
    let adopted = BTreeMap::from([("a".to_owned(), metadata.clone())]);
    let mut stack = Stack::of([]);
    stack.begin(Request { adopted, ..request(Action::Adopt, 1, [target("a", [], 1), target("b", [], 2)]) });
    assert_eq!(stack.decided("a", create(), 9), ["note a1: ADOPT_IN_PROGRESS", "start ADOPT of a1"]);
    stack.decided("b", create(), 9);
    assert_eq!((&stack.row(1).metadata, &stack.row(2).metadata), (&metadata, &Value::Map(Map::new())));
}

#[test]
fn a_row_changes_at_the_time_of_the_event() {
    let mut stack = Stack::of([]);
    stack.begin(request(Action::Create, 1, [target("a", [], 1)]));
    stack.decided("a", create(), 9);
    assert_eq!((stack.row(1).created, stack.row(1).updated), (at(1), at(2)));
    stack.done(1);
    assert_eq!((stack.row(1).created, stack.row(1).updated), (at(1), at(3)));
}
