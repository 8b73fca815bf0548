//! Objects that stacks take over: each belongs to one resource.

use kiln_resource::{Action, SnapshotId, State, Status};
use kiln_store::{Batch, Details, Error, NewStack, Resource, Snapshot, Stack, StackId, StackRequest, Store};
use kiln_value::value;
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{at, claim, deleting, engine, resource, settle, settling, stack};

const NET: &str = "OS::Neutron::Net";

fn data(stack: StackId, kind: &str, id: &str) -> Snapshot {
    Snapshot {
        id: SnapshotId(Uuid::new_v4()),
        stack,
        name: None,
        state: State::new(Action::Adopt, Status::InProgress),
        reason: String::new(),
        data: value!({"resources": {"r": {"type": kind, "resource_id": id}}}),
        created: at(1),
    }
}

/// A new stack that takes over an object.
fn adopting(name: &str, kind: &str, id: &str) -> NewStack {
    let new = stack(name);
    NewStack { action: Action::Adopt, adopt: Some(data(new.id, kind, id)), ..new }
}

/// Ends the request of a stack; its resource has the object.
async fn adopted(store: &dyn Store, made: &Stack, kind: &str, id: &str) {
    let lease = claim(store, engine(), made.id).await;
    let row = Resource { physical_id: Some(id.to_owned()), implementation: kind.to_owned(), ..resource(made.id, "r") };
    let end = settle(made.generation, Action::Adopt, Status::Complete);
    store.commit(lease, Batch { save: vec![row].into(), ..settling(end) }).await.unwrap();
    store.release(&[lease]).await.unwrap();
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(error @ Error::ObjectTaken { .. }) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_object_is_taken_over_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let id = Uuid::new_v4().to_string();
        let first = store.create_stack(adopting("first", NET, &id)).await.unwrap();
        let text = format!("the object {id} belongs to the stack first, which takes it over");
        assert_eq!(refusal(store.create_stack(adopting("second", NET, &id)).await), text);
        assert_eq!(store.stack_by_name(&first.project, "second").await.unwrap(), None, "nothing is left of it");
        adopted(store, &first, NET, &id).await;
        let text = format!("the object {id} belongs to the resource r of the stack first");
        assert_eq!(refusal(store.create_stack(adopting("second", "AWS::EC2::VPC", &id)).await), text);
        // Also for an update that takes it over, of the same stack too.
        let request = || StackRequest {
            snapshot: Some(data(first.id, NET, &id)),
            details: Details::default(),
            ..StackRequest::new(Action::Update, at(9))
        };
        assert_eq!(refusal(store.request(first.id, request()).await), text);
        assert_eq!(store.stack(first.id).await.unwrap().unwrap().generation, first.generation);
        // Another project does not see it.
        let other = NewStack { project: "other".to_owned(), ..adopting("other", NET, &id) };
        store.create_stack(other).await.unwrap();
        // An abandoned stack hands its objects out.
        let abandon = Details { keep_objects: true, ..Details::default() };
        let leaving = StackRequest { details: abandon, ..StackRequest::new(Action::Delete, at(10)) };
        let leaving = store.request(first.id, leaving).await.unwrap();
        let second = store.create_stack(adopting("second", NET, &id)).await.unwrap();
        assert!(refusal(store.create_stack(adopting("third", NET, &id)).await).contains("the stack second"));
        let lease = claim(store, engine(), first.id).await;
        store.commit(lease, deleting(leaving.generation)).await.unwrap();
        // A request that has failed holds nothing.
        let lease = claim(store, engine(), second.id).await;
        store.commit(lease, settling(settle(1, Action::Adopt, Status::Failed))).await.unwrap();
        store.create_stack(adopting("third", NET, &id)).await.unwrap();
        bed.end().await;
    }
}

/// Only the kinds of objects whose names are their IDs can have the same one.
#[tokio::test]
async fn names_are_unique_for_their_kind() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let keys = store.create_stack(adopting("keys", "OS::Nova::KeyPair", "web")).await.unwrap();
        adopted(store, &keys, "OS::Nova::KeyPair", "web").await;
        store.create_stack(adopting("logs", "OS::Swift::Container", "web")).await.unwrap();
        assert!(
            refusal(store.create_stack(adopting("more", "AWS::S3::Bucket", "web")).await).contains("the stack logs")
        );
        refusal(store.create_stack(adopting("mine", "OS::Nova::KeyPair", "web")).await);
        let other = NewStack { user_id: "u2".to_owned(), ..adopting("theirs", "OS::Nova::KeyPair", "web") };
        store.create_stack(other).await.unwrap();
        bed.end().await;
    }
}

#[tokio::test]
async fn of_many_at_once_one_takes_it_over() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        for round in 0..5 {
            let id = Uuid::new_v4().to_string();
            let asked = |n| store.create_stack(adopting(&format!("s{round}-{n}"), NET, &id));
            let (a, b, c, d) = tokio::join!(asked(1), asked(2), asked(3), asked(4));
            let (done, refused): (Vec<_>, Vec<_>) = [a, b, c, d].into_iter().partition(Result::is_ok);
            assert_eq!(done.len(), 1, "{refused:?}");
            for one in refused {
                refusal(one);
            }
        }
        bed.end().await;
    }
}
