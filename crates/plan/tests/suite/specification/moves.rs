//! Resources that have another name than before.

use super::*;

fn moved<const N: usize>(moves: [(&str, &str); N], request: Request) -> Request {
    Request { moves: moves.map(|(from, to)| (from.to_owned(), to.to_owned())).into(), ..request }
}

/// What an update with these moves does first, with two resources of the template.
fn begun<const N: usize>(rows: impl IntoIterator<Item = Resource>, moves: [(&str, &str); N]) -> Vec<String> {
    let mut stack = Stack::of(rows);
    stack.begin(moved(moves, request(Action::Update, 2, [target("a", [], 8), target("b", [], 9)])))
}

#[test]
fn a_row_moves_once_from_a_name_that_is_gone_to_one_without_a_row() {
    let decide = |one: &str, other: &str| vec![format!("decide about {one}"), format!("decide about {other}")];
    let with =
        |moves: &[&str], rest: Vec<String>| moves.iter().map(|line| (*line).to_owned()).chain(rest).collect::<Vec<_>>();
    let note = "note a1: CREATE_COMPLETE, moved from old";
    assert_eq!(begun([row("old", 1)], [("old", "a")]), with(&["move old to a1", note], decide("a1", "b9")));
    // Nothing to do: it has moved before, or it never existed.
    assert_eq!(begun([row("a", 1)], [("old", "a")]), decide("a1", "b9"));
    assert_eq!(begun([], [("old", "a")]), decide("a8", "b9"));
    // The new name is taken, so the old one is just not in the template any more.
    let taken = begun([row("old", 1), row("a", 2)], [("old", "a")]);
    assert!(!taken.iter().any(|line| line.starts_with("move")), "{taken:?}");
    // A name of the template keeps its row, and a target that is not in the template gets none.
    assert_eq!(begun([row("b", 1)], [("b", "a")]), decide("a8", "b1"));
    let unwanted = begun([row("old", 1)], [("old", "c")]);
    assert!(!unwanted.iter().any(|line| line.starts_with("move")), "{unwanted:?}");
}

#[test]
fn a_row_that_only_waits_moves_without_an_event() {
    let moved = begun([unmade(row("old", 1))], [("old", "a")]);
    assert_eq!(moved, ["move old to a1", "decide about a1", "decide about b9"]);
}

#[test]
fn all_rows_of_a_name_move_together() {
    let mut stack = Stack::of(replaced(row("old", 1), of_request(2, row("old", 2))));
    stack.begin(moved([("old", "a")], request(Action::Update, 3, [target("a", [], 9)])));
    assert_eq!((stack.row(1).name.as_str(), stack.row(2).name.as_str(), stack.current("a")), ("a", "a", Some(2)));
}

#[test]
fn a_rollback_returns_to_the_former_name() {
    let mut stack = Stack::of([row("old", 1)]);
    stack.begin(Request { rollback: true, ..moved([("old", "a")], request(Action::Update, 2, [target("a", [], 8)])) });
    stack.decided("a", refuse(), 9);
    let back = stack.begin(request(Action::Rollback, 3, [target("old", [], 8)]));
    assert_eq!(back.first().map(String::as_str), Some("move a to old1"), "{back:?}");
    assert_eq!(stack.row(1).former_names().count(), 0);
}

/// Names of objects are made of the first name, and those who know only a former name still reach the resource.
#[test]
fn names_are_remembered() {
    let mut stack = Stack::of([row("first", 1)]);
    for (generation, from, to) in [(2, "first", "second"), (3, "second", "third")] {
        let target = Target { name: to.to_owned(), ..target("", [], 8) };
        stack.begin(moved([(from, to)], request(Action::Update, generation, [target])));
        stack.decided(to, keep(), 9);
    }
    let moved = stack.row(1);
    assert_eq!((moved.first_name(), moved.former_names().collect::<Vec<_>>()), ("first", vec!["first", "second"]));
    stack.begin(request(Action::Update, 4, [target("third", [], 8)]));
    stack.decided("third", replace(), 2);
    let (new, known) = (stack.row(2), stack.model.current_or_moved("first").map(|row| row.id));
    assert_eq!((new.first_name(), known), ("third", Some(id(2))), "a new object has a new name");
}

#[test]
fn a_delete_and_a_check_move_nothing() {
    for action in [Action::Delete, Action::Check] {
        let mut stack = Stack::of([row("old", 1)]);
        let begun = stack.begin(moved([("old", "a")], request(action, 2, [])));
        assert!(!begun.iter().any(|line| line.starts_with("move")), "{begun:?}");
    }
}
