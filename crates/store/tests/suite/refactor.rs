//! Resources that move between stacks: all or nothing, and only while no engine works on one of the stacks.

use kiln_resource::{Action, Status};
use kiln_store::{
    Author, Batch, Error, EventQuery, Message, MessageBody, MessageId, MovedStack, OperationQuery, Operations, Parent,
    Refactor, RefactoredStack, Resource, Stack, StackQuery, StackRequest, Store,
};
use kiln_value::Value;
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{at, claim, claimed, engine, event, resource, settle, settling, text};
use crate::proxy::{Cut, Proxy};

fn part(stack: &Stack) -> RefactoredStack {
    let author = Some(Author { user_id: "u1".to_owned(), username: "demo".to_owned() });
    let request = StackRequest {
        desired: Some(text("refactored")),
        author,
        if_generation: Some(stack.generation),
        ..StackRequest::new(Action::Update, at(50))
    };
    RefactoredStack { id: stack.id, writes: stack.writes, request, events: vec![event(stack, "r", 50)], ends: true }
}

pub(crate) fn nothing(stack: &Stack) -> Refactor {
    Refactor { stacks: vec![part(stack)], rows: Vec::new(), nested: Vec::new() }
}

/// A settled stack with one resource.
async fn settled(store: &dyn Store, name: &str) -> (Stack, Resource) {
    let (made, lease) = claimed(store, name).await;
    let row = resource(made.id, "r");
    let save = Batch { save: vec![row.clone()].into(), ..settling(settle(1, Action::Create, Status::Complete)) };
    store.commit(lease, save).await.unwrap();
    store.release(&[lease]).await.unwrap();
    (store.stack(made.id).await.unwrap().unwrap(), row)
}

/// A settled nested stack with one resource, of the resource `owner` in `above`.
async fn settled_below(store: &dyn Store, above: &Stack, owner: &Resource) -> (Stack, Resource) {
    let made = store.create_stack(crate::make::child(above, owner)).await.unwrap();
    let lease = claim(store, engine(), made.id).await;
    let row = resource(made.id, "inner");
    let save = Batch { save: vec![row.clone()].into(), ..settling(settle(1, Action::Create, Status::Complete)) };
    store.commit(lease, save).await.unwrap();
    store.release(&[lease]).await.unwrap();
    (store.stack(made.id).await.unwrap().unwrap(), row)
}

/// The move of a nested stack below another root stack and parent.
fn moved_stack(stack: &Stack, root: &Stack, parent: Parent) -> MovedStack {
    MovedStack { id: stack.id, writes: stack.writes, generation: stack.generation, root: root.id, parent }
}

/// An engine that was killed when it had ended its work has left its lease.
#[tokio::test]
async fn a_lease_that_a_killed_engine_has_left_is_taken_when_it_has_expired() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let made = store.create_stack(crate::make::stack("left")).await.unwrap();
        let short = std::time::Duration::from_millis(300);
        let leases = store.claim(engine(), short, &[made.id], 1).await.unwrap();
        store.commit(leases[0], settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        let now = store.stack(made.id).await.unwrap().unwrap();
        assert!(matches!(store.refactor(&nothing(&now)).await, Err(Error::Changed(_))), "it has not expired");
        tokio::time::sleep(2 * short).await;
        store.refactor(&nothing(&now)).await.unwrap();
        let late = store.commit(leases[0], Batch::default()).await;
        assert!(matches!(late, Err(Error::Stale(_))), "its epoch is over: {late:?}");
        store.request(made.id, StackRequest::new(Action::Check, at(60))).await.unwrap();
        let lease = claim(store, engine(), made.id).await;
        assert!(lease.clean, "no call is in progress");
        bed.end().await;
    }
}

/// A row leaves a nested stack: an engine carries out the update, and nothing returns to the former template.
#[tokio::test]
async fn an_update_that_an_engine_carries_out_returns_to_its_own_template() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (web, owner) = settled(store, "web").await;
        let (inner, row) = settled_below(store, &web, &owner).await;
        let web = store.stack(web.id).await.unwrap().unwrap();
        let mut moved = row.clone();
        moved.move_to(&inner.name, web.id, "named");
        let refactor = Refactor {
            stacks: vec![RefactoredStack { ends: false, ..part(&web) }],
            rows: vec![moved],
            nested: vec![moved_stack(&inner, &web, inner.parent.clone().unwrap())],
        };
        let [asked] = &store.refactor(&refactor).await.unwrap()[..] else { panic!("one stack") };
        assert!(asked.is_pending() && asked.state.status == Status::InProgress);
        assert_eq!(asked.previous.as_ref(), Some(&asked.desired));
        assert!(store.resources(inner.id).await.unwrap().is_empty());
        let names: Vec<String> = store.resources(web.id).await.unwrap().into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["r", "named"]);
        assert!(matches!(store.refactor(&refactor).await, Err(Error::Changed(_))), "once");
        let back = store.request(web.id, StackRequest::new(Action::Rollback, at(60))).await.unwrap();
        assert_eq!(back.desired, asked.desired);
        claim(store, engine(), web.id).await;
        bed.end().await;
    }
}

#[tokio::test]
async fn rows_move_between_stacks_in_one_transaction() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (from, row) = settled(store, "from").await;
        let (to, stays) = settled(store, "to").await;
        let moved = Resource { stack: to.id, name: "moved".to_owned(), ..row.clone() };
        let refactor = Refactor { stacks: vec![part(&to), part(&from)], rows: vec![moved.clone()], nested: Vec::new() };
        let stacks = store.refactor(&refactor).await.unwrap();
        assert_eq!(stacks.len(), 2);
        for (before, after) in [(&from, &stacks), (&to, &stacks)]
            .map(|(before, stacks)| (before, stacks.iter().find(|stack| stack.id == before.id).unwrap()))
        {
            assert_eq!(store.stack(after.id).await.unwrap().as_ref(), Some(after));
            assert_eq!((after.generation, after.settled), (before.generation + 1, before.generation + 1));
            assert_eq!((after.state.action, after.state.status), (Action::Update, Status::Complete));
            // A rollback returns to what is now, and not to where a resource is that is gone.
            assert_eq!(after.desired, text("refactored").digests());
            assert_eq!(after.previous, Some(after.desired.clone()));
            assert!(after.writes > before.writes, "what was read before is out of date");
            let events = store.events(&EventQuery { stacks: vec![after.id], ..EventQuery::default() }).await.unwrap();
            let states: Vec<_> = events.iter().map(|event| (event.is_of_stack(), event.status)).collect();
            let (create, update) = ((true, Status::InProgress), (true, Status::InProgress));
            let (moved, end) = ((false, Status::Complete), (true, Status::Complete));
            assert_eq!(states, [create, update, moved, end], "{events:?}");
            let query = OperationQuery { of: Operations::OfTree(after.id), marker: None, limit: Some(1) };
            let operations = store.operations(&query).await.unwrap();
            let [operation] = operations.as_slice() else { panic!("{operations:?}") };
            assert_eq!(operation.end.as_ref().map(|end| end.status), Some(Status::Complete));
            assert_eq!(operation.desired.as_ref(), Some(&after.desired), "a revision");
        }
        assert_eq!(store.resources(from.id).await.unwrap(), []);
        // In the order of their creation.
        assert_eq!(store.resources(to.id).await.unwrap(), [moved, stays]);
        // No engine has anything to do.
        assert!(store.claim(engine(), crate::make::TTL, &[from.id, to.id], 2).await.unwrap().is_empty());
        bed.end().await;
    }
}

#[tokio::test]
async fn nothing_moves_if_one_of_the_stacks_is_not_at_rest() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (from, row) = settled(store, "from").await;
        let (to, stays) = settled(store, "to").await;
        let refactor = Refactor {
            stacks: vec![part(&from), part(&to)],
            rows: vec![
                Resource { stack: to.id, ..row.clone() },
                Resource { name: "other".to_owned(), ..stays.clone() },
            ],
            nested: Vec::new(),
        };
        let is_refused = async |refactor: &Refactor| {
            let refused = store.refactor(refactor).await.unwrap_err();
            assert!(matches!(refused, Error::Changed(id) if id == to.id), "{refused:?}");
            assert_eq!(store.resources(from.id).await.unwrap(), std::slice::from_ref(&row));
            assert_eq!(store.resources(to.id).await.unwrap(), std::slice::from_ref(&stays));
            assert_eq!(store.stack(from.id).await.unwrap(), Some(from.clone()));
        };
        // A message that nobody has handled.
        let (id, body) = (MessageId(Uuid::new_v4()), MessageBody::Signal(Value::Null));
        let message = Message { id, stack: to.id, resource: Some("r".to_owned()), body, due: at(-9), sent: at(-9) };
        store.send(&message).await.unwrap();
        is_refused(&refactor).await;
        // An engine that has claimed it.
        let lease = claim(store, engine(), to.id).await;
        is_refused(&refactor).await;
        store.commit(lease, Batch { handled: vec![id], ..Batch::default() }).await.unwrap();
        is_refused(&refactor).await;
        store.release(&[lease]).await.unwrap();
        // What the engine has written since.
        is_refused(&refactor).await;
        let (from_now, to_now) = (store.stack(from.id).await.unwrap(), store.stack(to.id).await.unwrap().unwrap());
        assert_eq!(from_now, Some(from.clone()));
        let stacks = vec![part(&from), part(&to_now)];
        // Another request.
        store.request(to.id, StackRequest::new(Action::Check, at(9))).await.unwrap();
        is_refused(&Refactor { stacks, ..refactor.clone() }).await;
        bed.end().await;
    }
}

#[tokio::test]
async fn a_nested_stack_moves_with_its_resource() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (from, row) = settled(store, "from").await;
        let (to, _) = settled(store, "to").await;
        let (first, inner) = settled_below(store, &from, &row).await;
        let (second, _) = settled_below(store, &first, &inner).await;
        let nested = [first, second];
        let moved = Resource { stack: to.id, name: "moved".to_owned(), child: Some(nested[0].id), ..row.clone() };
        let parents = [
            Parent { stack: to.id, resource: row.id, resource_name: "moved".to_owned() },
            nested[1].parent.clone().unwrap(),
        ];
        let refactor = Refactor {
            stacks: vec![part(&to), part(&from)],
            rows: vec![moved],
            nested: nested.iter().zip(parents.clone()).map(|(stack, parent)| moved_stack(stack, &to, parent)).collect(),
        };
        // A request to one of them since it was read.
        let mut late = refactor.clone();
        late.nested[1].generation = 7;
        let refused = store.refactor(&late).await.unwrap_err();
        assert!(matches!(refused, Error::Changed(id) if id == nested[1].id), "{refused:?}");
        assert_eq!(store.stack(nested[0].id).await.unwrap(), Some(nested[0].clone()));
        assert_eq!(store.stack(from.id).await.unwrap(), Some(from.clone()));

        store.refactor(&refactor).await.unwrap();
        for (before, parent) in nested.iter().zip(parents) {
            let after = store.stack(before.id).await.unwrap().unwrap();
            assert!(after.writes > before.writes, "what was read before is out of date");
            let expected = Stack { root: to.id, parent: Some(parent), writes: after.writes, ..before.clone() };
            assert_eq!(after, expected);
        }
        let tree = async |root: &Stack| {
            let query = StackQuery { roots: vec![root.id], nested: true, ..StackQuery::default() };
            store.stacks(&query).await.unwrap().len()
        };
        assert_eq!((tree(&from).await, tree(&to).await), (1, 3));
        let children = async |of: &Stack| store.children(of.id).await.unwrap().len();
        assert_eq!((children(&from).await, children(&to).await), (0, 1));
        bed.end().await;
    }
}

#[tokio::test]
async fn of_two_at_once_one_is_refused() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (one, row) = settled(store, "one").await;
        let (two, _) = settled(store, "two").await;
        let refactor = |stacks, name: &str| {
            let row = Resource { stack: two.id, name: name.to_owned(), ..row.clone() };
            Refactor { stacks, rows: vec![row], nested: Vec::new() }
        };
        let first = refactor(vec![part(&one), part(&two)], "first");
        let second = refactor(vec![part(&two), part(&one)], "second");
        let results = tokio::join!(store.refactor(&first), store.refactor(&second));
        let winner = match results {
            (Ok(_), Err(Error::Changed(_))) => "first",
            (Err(Error::Changed(_)), Ok(_)) => "second",
            other => panic!("{other:?}"),
        };
        let names: Vec<String> = store.resources(two.id).await.unwrap().into_iter().map(|row| row.name).collect();
        assert_eq!(names, [winner, "r"]);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_at_the_commit_moves_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let proxy = Proxy::start(&bed).await;
            let store = proxy.store().await;
            for (after, has_child) in [(false, false), (true, false), (false, true), (true, true)] {
                let name = |side: &str| format!("{side}-{after}-{has_child}");
                let (from, row) = settled(&*bed.store, &name("from")).await;
                let (to, _) = settled(&*bed.store, &name("to")).await;
                let child = if has_child { Some(settled_below(&*bed.store, &from, &row).await.0) } else { None };
                let parent = Parent { stack: to.id, resource: row.id, resource_name: row.name.clone() };
                let moved = Resource { stack: to.id, child: child.as_ref().map(|child| child.id), ..row.clone() };
                let nested = child.iter().map(|child| moved_stack(child, &to, parent.clone())).collect();
                let refactor = Refactor { stacks: vec![part(&from), part(&to)], rows: vec![moved], nested };
                proxy.cut(Cut::AtCommit { after, left: 1 });
                let stacks = store.refactor(&refactor).await.unwrap();
                assert!(stacks.iter().all(|stack| stack.generation == 2 && stack.settled == 2), "{stacks:?}");
                // With the resource of the nested stack.
                let moved = if has_child { 3 } else { 2 };
                assert_eq!(bed.store.count_resources(to.id).await.unwrap(), moved);
                assert_eq!(bed.store.count_resources(from.id).await.unwrap(), 0);
                if let Some(child) = child {
                    let child = bed.store.stack(child.id).await.unwrap().unwrap();
                    assert_eq!((child.root, child.parent), (to.id, Some(parent)));
                }
            }
            assert!(proxy.cuts() >= 4, "{}", proxy.cuts());
            drop(store);
        }
        bed.end().await;
    }
}
