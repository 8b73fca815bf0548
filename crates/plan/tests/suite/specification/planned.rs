//! What a request may do that keeps to a saved plan.

use kiln_plan::{Allowed, StackInPlan};
use kiln_plan_document::{Awaited, Bounds, Decision as Planned, Entry, HiddenProperty, Property};
use kiln_resource::PlanId;
use kiln_value::value;

use super::*;

fn entry(name: &str, decision: Planned) -> Entry {
    Entry { decision: Bounds::certain(decision), ..Entry::kept(name.to_owned(), "T".to_owned()) }
}

/// An update of these properties.
fn updates<const N: usize>(name: &str, properties: [&str; N]) -> Entry {
    let properties = properties.map(|name| property(name, 2.into())).into();
    Entry { properties, ..entry(name, Planned::Update) }
}

/// A property that gets this value.
fn property(name: &str, value: Value) -> Property {
    Property::new(name.to_owned(), None, Some(value.into()))
}

/// A decision about `a` with a planned value of a property.
fn with_value(decision: Planned, name: &str, value: Value) -> Entry {
    Entry { properties: vec![property(name, value)], ..entry("a", decision) }
}

fn may(name: &str, at_least: Planned, at_most: Planned) -> Entry {
    Entry { decision: Bounds { at_least, at_most }, ..entry(name, at_most) }
}

fn former(name: &str) -> Entry {
    Entry { former: true, ..entry(name, Planned::Delete) }
}

fn plan(place: StackInPlan, entries: impl IntoIterator<Item = Entry>) -> Arc<Allowed> {
    Arc::new(Allowed::new(PlanId(uuid::Uuid::from_u128(7)), uuid::Uuid::from_u128(8), place, entries, &[]))
}

/// A case of the table: what it is about, how the plan knows the stack, its entries, the row, the decision, and the first command
/// or the last words.
type Case<'a> = (&'a str, StackInPlan, &'a [Entry], Option<Resource>, Decision, Result<&'a str, (&'a str, &'a str)>);

/// An update of these properties in place.
fn change_of<const N: usize>(properties: [&str; N]) -> Decision {
    let changed = properties.map(|name| (name.to_owned(), Value::Int(2))).into_iter().collect();
    Decision::Update { definition: definition(2), before: Map::new(), changed }
}

/// The stack of a row, which is nested.
fn nested(row: Resource) -> Resource {
    Resource { child: Some(StackId(uuid::Uuid::from_u128(5))), ..row }
}

/// The last words of the stack and of the resource, if the plan stops the operation.
fn stopped(action: &str, row: u128, why: &str) -> Vec<String> {
    let blame = format!(
        "OutsideOfPlan: resources.a: outside of the plan 00000000-0000-0000-0000-000000000007: it would be {why}"
    );
    vec![
        format!("note a{row}: {action}_FAILED, {blame}"),
        format!("end UPDATE_FAILED: Resource {action} failed: {blame}"),
    ]
}

#[test]
fn a_decision_outside_of_the_plan_stops_the_operation_before_its_call() {
    let there = || Some(row("a", 1));
    let (known, batch, new) = (StackInPlan::Known, StackInPlan::Batch, StackInPlan::New);
    let another = |what: &str, name: &str| format!("{what} with another value of {name} than the plan says");
    let updated = another("updated (p)", "p");
    let (created, replaced) = (another("created", "version"), another("replaced", "version"));
    let table: [Case<'_>; 29] = [
        ("a planned create", known, &[entry("a", Planned::Create)], None, create(), Ok("start CREATE of a1")),
        ("nothing is planned", known, &[], None, create(), Err(("CREATE", "created; the plan does not name it"))),
        (
            "what was kept is gone",
            known,
            &[entry("a", Planned::Keep)],
            None,
            create(),
            Err(("CREATE", "created; the plan keeps it")),
        ),
        (
            "another resource of this type is no permission",
            known,
            &[entry("b", Planned::Create)],
            None,
            create(),
            Err(("CREATE", "created; the plan does not name it")),
        ),
        (
            "another member of a new group",
            new,
            &[entry("b", Planned::Create)],
            None,
            create(),
            Ok("start CREATE of a1"),
        ),
        (
            "a member for the time of a batch",
            batch,
            &[entry("b", Planned::Keep)],
            None,
            create(),
            Ok("start CREATE of a1"),
        ),
        (
            "a member of another type",
            batch,
            &[Entry { resource_type: "U".to_owned(), ..entry("b", Planned::Keep) }],
            None,
            create(),
            Err(("CREATE", "created; the plan does not name it")),
        ),
        (
            "less than planned",
            known,
            &[entry("a", Planned::Replace)],
            there(),
            keep(),
            Ok("end UPDATE_COMPLETE: Stack UPDATE completed successfully"),
        ),
        ("a planned update", known, &[updates("a", ["p", "q"])], there(), change_of(["p"]), Ok("start UPDATE of a1")),
        (
            "another value",
            known,
            &[with_value(Planned::Update, "p", 1.into())],
            there(),
            change_of(["p"]),
            Err(("UPDATE", &updated)),
        ),
        (
            "a value that is known later",
            known,
            &[with_value(Planned::Update, "p", value!({"known_after": "b"}))],
            there(),
            change_of(["p"]),
            Ok("start UPDATE of a1"),
        ),
        (
            "an update with another value than that of the planned replacement",
            known,
            &[with_value(Planned::Replace, "p", 1.into())],
            there(),
            change_of(["p"]),
            Err(("UPDATE", &updated)),
        ),
        (
            "a create with another value",
            known,
            &[with_value(Planned::Create, "version", 9.into())],
            None,
            create(),
            Err(("CREATE", &created)),
        ),
        (
            "a replacement with another value",
            known,
            &[with_value(Planned::Replace, "version", 9.into())],
            there(),
            replace(),
            Err(("UPDATE", &replaced)),
        ),
        ("an update without properties", known, &[updates("a", [])], there(), change(), Ok("start UPDATE of a1")),
        (
            "another property",
            known,
            &[updates("a", ["p", "q"])],
            there(),
            change_of(["p", "r"]),
            Err(("UPDATE", "updated (p, r); the plan only updates p, q")),
        ),
        (
            "a property, where the plan only changes the metadata",
            known,
            &[updates("a", [])],
            there(),
            change_of(["p"]),
            Err(("UPDATE", "updated (p); the plan changes no properties of it")),
        ),
        (
            "an update of what is kept",
            known,
            &[entry("a", Planned::Keep)],
            there(),
            change_of(["p"]),
            Err(("UPDATE", "updated (p); the plan keeps it")),
        ),
        (
            "the content of a nested stack is checked there",
            known,
            &[entry("a", Planned::Keep)],
            there().map(nested),
            change_of(["p"]),
            Ok("start UPDATE of a1"),
        ),
        (
            "an update is less than a replacement",
            known,
            &[entry("a", Planned::Replace)],
            there(),
            change(),
            Ok("start UPDATE of a1"),
        ),
        (
            "what may be updated",
            known,
            &[Entry {
                awaited: vec![Awaited { property: "p".to_owned(), known_after: "b".to_owned() }],
                ..may("a", Planned::Keep, Planned::Update)
            }],
            there(),
            change_of(["p"]),
            Ok("start UPDATE of a1"),
        ),
        ("a planned replacement", known, &[entry("a", Planned::Replace)], there(), replace(), Ok("start CREATE of a2")),
        (
            "what may be replaced",
            known,
            &[may("a", Planned::Update, Planned::Replace)],
            there(),
            replace(),
            Ok("start CREATE of a2"),
        ),
        (
            "a replacement of what is updated",
            known,
            &[updates("a", ["p"])],
            there(),
            replace(),
            Err(("UPDATE", "replaced; the plan only updates it")),
        ),
        (
            "a replacement of a nested stack",
            known,
            &[entry("a", Planned::Keep)],
            there().map(nested),
            replace(),
            Err(("UPDATE", "replaced; the plan keeps it")),
        ),
        // An engine has created it for this request, and another one reads other values.
        (
            "a replacement of what the operation has made",
            known,
            &[entry("a", Planned::Create)],
            there(),
            replace(),
            Ok("start CREATE of a2"),
        ),
        (
            "an update of what a batch has made",
            batch,
            &[entry("b", Planned::Keep)],
            there(),
            change_of(["p"]),
            Ok("start UPDATE of a1"),
        ),
        (
            "an update in a stack that the operation has made",
            new,
            &[entry("a", Planned::Keep)],
            there(),
            change_of(["p"]),
            Ok("start UPDATE of a1"),
        ),
        (
            "a failure of the resource itself says why",
            known,
            &[entry("a", Planned::Keep)],
            there(),
            refuse(),
            Ok("end UPDATE_FAILED: Resource UPDATE failed: ValueError: resources.a: unfit"),
        ),
    ];
    for (what, place, entries, row, decision, expected) in table {
        let mut stack = Stack::of(row);
        let allowed = Some(plan(place, entries.to_vec()));
        stack.begin(Request { allowed, ..request(Action::Update, 2, [target("a", [], 1)]) });
        let lines = stack.decided("a", decision, 2);
        match expected {
            Ok(last) => assert_eq!(lines.last().map(String::as_str), Some(last), "{what}"),
            Err((action, why)) => assert_eq!(lines, stopped(action, 1, why), "{what}"),
        }
    }
}

#[test]
fn only_what_the_plan_deletes_or_replaces_is_deleted() {
    let starts = |row: u128| vec![format!("note a{row}: DELETE_IN_PROGRESS"), format!("start DELETE of a{row}")];
    let kept = stopped("DELETE", 1, "deleted; the plan keeps it");
    let nothing = Resource { physical_id: None, ..row("a", 1) };
    let data = Map::from_iter([(kiln_resource::LOST_CREATE.to_owned(), Value::Null)]);
    let lost = Resource { data, ..nothing.clone() };
    let table: [(&str, &[Entry], Resource, Vec<String>); 8] = [
        ("the object of a lost create may exist", &[entry("a", Planned::Keep)], lost, kept.clone()),
        ("a planned delete", &[entry("a", Planned::Delete)], row("a", 1), starts(1)),
        ("what may be deleted", &[may("a", Planned::Keep, Planned::Delete)], row("a", 1), starts(1)),
        ("a delete of what is kept", &[entry("a", Planned::Keep)], row("a", 1), kept.clone()),
        (
            "a delete of what is updated",
            &[updates("a", ["p"])],
            row("a", 1),
            stopped("DELETE", 1, "deleted; the plan only updates it"),
        ),
        ("a former row", &[entry("a", Planned::Keep), former("a")], row("a", 1), starts(1)),
        ("there is nothing to delete", &[entry("a", Planned::Keep)], nothing, starts(1)),
        ("the plan names all rows, so the operation has made this one", &[], row("a", 1), starts(1)),
    ];
    for (what, entries, row, expected) in table {
        let mut stack = Stack::of([row]);
        let allowed = Some(plan(StackInPlan::Known, entries.to_vec()));
        let lines = stack.begin(Request { allowed, ..request(Action::Update, 2, []) });
        assert_eq!(lines, expected, "{what}");
    }
}

#[test]
fn an_update_that_turns_into_a_replacement_stops_before_the_replacement() {
    let mut stack = Stack::of([row("a", 1)]);
    let allowed = Some(plan(StackInPlan::Known, [updates("a", ["p"])]));
    stack.begin(Request { allowed, ..request(Action::Update, 2, [target("a", [], 9)]) });
    stack.decided("a", change_of(["p"]), 2);
    let lines = stack.ended(1, Outcome::Replace("not in place".to_owned()));
    assert_eq!(lines, ["note a1: UPDATE_COMPLETE, not in place", "decide about a1"]);
    assert_eq!(stack.decided("a", replace(), 2), stopped("UPDATE", 1, "replaced; the plan only updates it"));
}

#[test]
fn nothing_else_begins_and_what_runs_ends() {
    let mut stack = Stack::of([row("a", 1), row("b", 2), row("c", 3)]);
    let allowed = Some(plan(StackInPlan::Known, [entry("a", Planned::Keep), updates("b", []), updates("c", [])]));
    let targets = [target("a", [], 91), target("b", [], 92), target("c", ["b"], 93)];
    stack.begin(Request { allowed, rollback: true, ..request(Action::Update, 2, targets) });
    stack.decided("b", change(), 9);
    let mut lines = stopped("UPDATE", 1, "replaced; the plan keeps it");
    lines[1] = lines[1].replace("end UPDATE_FAILED", "end UPDATE_FAILED, roll back");
    assert_eq!(stack.decided("a", replace(), 9), lines);
    // The rollback has no plan.
    assert_eq!(
        stack.begin(request(Action::Rollback, 3, [target("a", [], 91)])).last().expect("one"),
        "decide about a1"
    );
}

#[test]
fn another_engine_continues_within_the_plan() {
    let mut stack = Stack::of([row("a", 1), row("b", 2)]);
    let allowed = Some(plan(StackInPlan::Known, [entry("a", Planned::Replace), entry("b", Planned::Keep)]));
    let begin = || Request {
        allowed: allowed.clone(),
        ..request(Action::Update, 2, [target("a", [], 91), target("b", ["a"], 92)])
    };
    stack.begin(begin());
    stack.decided("a", replace(), 3);
    let mut next = stack.taken_over();
    assert_eq!(next.begin(begin()), ["resume CREATE of a3"]);
    assert_eq!(next.done(3), ["note a3: CREATE_COMPLETE", "decide about a3"]);
    assert_eq!(next.decided("a", keep(), 9), ["decide about b2", "note a1: DELETE_IN_PROGRESS", "start DELETE of a1"]);
    let lines = next.decided("b", change_of(["p"]), 9);
    assert!(lines[0].contains("resources.b: outside of the plan"), "{lines:?}");
}

/// What the plan masks is apart from its entries, and neither an error nor debug output has it.
#[test]
fn hidden_values_are_compared_and_not_said() {
    for (value, is_planned) in [(Value::Int(2), true), ("geheim".into(), false)] {
        let hidden = HiddenProperty { path: "a".to_owned(), name: "p".to_owned(), value };
        let (id, key) = (PlanId(uuid::Uuid::from_u128(7)), uuid::Uuid::from_u128(8));
        let masked = [with_value(Planned::Update, "p", "******".into())];
        let allowed = Arc::new(Allowed::new(id, key, StackInPlan::Known, masked, &[hidden]));
        assert!(!format!("{allowed:?}").contains("geheim"));
        let mut stack = Stack::of([row("a", 1)]);
        stack.begin(Request { allowed: Some(allowed), ..request(Action::Update, 2, [target("a", [], 1)]) });
        let lines = stack.decided("a", change_of(["p"]), 2);
        if is_planned {
            assert_eq!(lines.last().map(String::as_str), Some("start UPDATE of a1"));
        } else {
            assert_eq!(lines, stopped("UPDATE", 1, "updated (p) with another value of p than the plan says"));
        }
    }
}
