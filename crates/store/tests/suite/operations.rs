//! Operations: written with requests and their ends, and purged.

use kiln_resource::{Action, Status};
use kiln_store::operation::End;
use kiln_store::{
    Author, Batch, Error, Event, EventQuery, NewStack, OperationId, OperationQuery, Operations, Retention, StackId,
    StackRequest, Store,
};
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{
    PROJECT, at, child, claim, claimed, deleting, engine, event, resource, settle, settling, stack, text,
};

fn all(root: StackId) -> OperationQuery {
    OperationQuery { of: Operations::OfTree(root), marker: None, limit: None }
}

fn by_ann(request: StackRequest) -> StackRequest {
    let author = Some(Author { user_id: "u2".to_owned(), username: "Ann".to_owned() });
    StackRequest { author, ..request }
}

async fn events_of(store: &dyn Store, stack: StackId) -> Vec<Event> {
    store.events(&EventQuery { stacks: vec![stack], ..EventQuery::default() }).await.unwrap()
}

#[tokio::test]
async fn a_request_to_a_stack_is_an_operation_with_an_author_and_an_end() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (web, lease) = claimed(store, "web").await;
        let [create] = <[_; 1]>::try_from(store.operations(&all(web.id)).await.unwrap()).unwrap();
        assert_eq!((create.id, create.stack, create.root), (web.operation(), web.id, web.id));
        assert_eq!((create.action, create.generation, create.project.as_str()), (Action::Create, 1, PROJECT));
        assert_eq!(create.author, Some(Author { user_id: "u1".to_owned(), username: "demo".to_owned() }));
        assert_eq!((&create.desired, &create.end), (&Some(web.desired.clone()), &None));
        store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        let ended = store.operation(web.id, create.id).await.unwrap().unwrap();
        let done = settle(1, Action::Create, Status::Complete);
        assert_eq!(ended.end, Some(End { time: done.now, status: Status::Complete, reason: done.reason }));

        let update = StackRequest { desired: Some(text("two")), ..StackRequest::new(Action::Update, at(5)) };
        let updated = store.request(web.id, by_ann(update)).await.unwrap();
        let suspended = store.request(web.id, StackRequest::new(Action::Suspend, at(6))).await.unwrap();
        let failed = settling(settle(suspended.generation, Action::Suspend, Status::Failed));
        store.commit(lease, failed).await.unwrap();
        let [suspend, update, first] = <[_; 3]>::try_from(store.operations(&all(web.id)).await.unwrap()).unwrap();
        assert_eq!(first, ended);
        assert_eq!(update.author.unwrap().username, "Ann");
        assert_eq!((update.desired, update.end), (Some(updated.desired.clone()), None), "a newer request replaced it");
        assert_eq!((suspend.author, suspend.desired, suspend.begun), (None, None, at(6)));
        assert_eq!(suspend.end.unwrap().status, Status::Failed);

        let again = StackRequest { desired: Some(text("three")), ..StackRequest::new(Action::Update, at(6)) };
        let third = store.request(web.id, by_ann(again)).await.unwrap().generation;
        let failed = settling(settle(third, Action::Update, Status::Failed));
        let failed = Batch { rollback: Some(StackRequest::rollback(third, false, at(7))), ..failed };
        let rollback = store.commit(lease, failed).await.unwrap();
        let begun = store.revision(web.id, rollback.generation).await.unwrap().unwrap();
        assert_eq!((begun.action, begun.author, begun.end), (Action::Rollback, None, None));
        let ended = store.revision(web.id, third).await.unwrap().and_then(|one| one.end).unwrap();
        assert_eq!(ended.status, Status::Failed, "the rollback is an operation of its own");
        let revisions = OperationQuery { of: Operations::Revisions(web.id), ..all(web.id) };
        let revisions = store.operations(&revisions).await.unwrap();
        let numbers: Vec<i64> = revisions.iter().map(|one| one.generation).collect();
        assert_eq!(numbers, [rollback.generation, third, updated.generation, 1]);
        assert_eq!(revisions[0].desired, Some(web.desired.clone()), "a rollback returns to the first template");
        assert_eq!(store.revision(web.id, updated.generation).await.unwrap().unwrap().desired, Some(updated.desired));
        assert_eq!(store.revision(web.id, suspended.generation).await.unwrap(), None);
        let page = OperationQuery { marker: Some(suspend.id), limit: Some(1), ..all(web.id) };
        assert_eq!(store.operations(&page).await.unwrap()[0].id, update.id);
        let unknown = OperationQuery { marker: Some(OperationId(Uuid::new_v4())), ..all(web.id) };
        assert!(matches!(store.operations(&unknown).await, Err(Error::NotFound(_))));
        let other = store.create_stack(stack("other")).await.unwrap();
        assert_eq!(store.operation(other.id, first.id).await.unwrap(), None, "of another tree");
        bed.end().await;
    }
}

#[tokio::test]
async fn the_work_of_nested_stacks_belongs_to_the_operation_of_their_root() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (web, lease) = claimed(store, "web").await;
        let row = resource(web.id, "group");
        let nested = NewStack { operation: Some(web.operation()), ..child(&web, &row) };
        let batch = Batch {
            save: vec![row.clone()].into(),
            children: vec![nested.clone()],
            events: vec![event(&web, "group", 1)],
            ..Batch::default()
        };
        store.commit(lease, batch).await.unwrap();
        let lease_of_nested = claim(store, engine(), nested.id).await;
        let stored = store.stack(nested.id).await.unwrap().unwrap();
        assert_eq!(stored.operation(), web.operation());
        store.commit(lease_of_nested, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        let [create] = <[_; 1]>::try_from(store.operations(&all(web.id)).await.unwrap()).unwrap();
        assert_eq!(create.end, None, "the nested stack has ended, the operation has not");
        for events in [events_of(store, web.id).await, events_of(store, nested.id).await] {
            assert!(!events.is_empty());
            assert!(events.iter().all(|event| event.operation == Some(create.id)), "{events:?}");
        }
        store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();

        // A group that scales by itself.
        let request = StackRequest { desired: Some(text("more")), ..StackRequest::new(Action::Update, at(9)) };
        store.commit(lease, Batch { requests: vec![(nested.id, request)], ..Batch::default() }).await.unwrap();
        let [scaling, _] = <[_; 2]>::try_from(store.operations(&all(web.id)).await.unwrap()).unwrap();
        assert_eq!((scaling.stack, scaling.root, scaling.author), (nested.id, web.id, None));
        store.commit(lease_of_nested, settling(settle(2, Action::Update, Status::Complete))).await.unwrap();
        assert!(store.operation(web.id, scaling.id).await.unwrap().unwrap().end.is_some());
        let revisions = OperationQuery { of: Operations::Revisions(web.id), ..all(web.id) };
        assert_eq!(store.operations(&revisions).await.unwrap().len(), 1, "revisions are templates of the root");
        bed.end().await;
    }
}

#[tokio::test]
async fn old_operations_are_purged_and_texts_of_revisions_are_kept() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (web, lease) = claimed(store, "web").await;
        for second in 1..6 {
            let desired = Some(text(&format!("revision {second}")));
            let update = StackRequest { desired, ..StackRequest::new(Action::Update, at(second)) };
            store.request(web.id, update).await.unwrap();
        }
        let keep = |operations| Retention { deleted_before: at(-1_000), operations };
        assert_eq!(store.forget(&keep(0)).await.unwrap(), 0);
        assert_eq!(store.operations(&all(web.id)).await.unwrap().len(), 6);
        assert_eq!(store.forget(&keep(2)).await.unwrap(), 4);
        let kept = store.operations(&all(web.id)).await.unwrap();
        let numbers: Vec<i64> = kept.iter().map(|one| one.generation).collect();
        assert_eq!(numbers, [6, 5]);
        for revision in &kept {
            let texts = store.desired(revision.desired.as_ref().unwrap()).await.unwrap();
            assert_eq!(texts, text(&format!("revision {}", revision.generation - 1)));
        }

        let deleted = store.request(web.id, StackRequest::new(Action::Delete, at(9))).await.unwrap();
        store.commit(lease, deleting(deleted.generation)).await.unwrap();
        assert_eq!(store.operations(&all(web.id)).await.unwrap()[0].action, Action::Delete, "kept with its stack");
        while store.forget(&Retention { deleted_before: at(1_000), operations: 0 }).await.unwrap() > 0 {}
        assert_eq!(store.operations(&all(web.id)).await.unwrap(), []);
        bed.end().await;
    }
}
