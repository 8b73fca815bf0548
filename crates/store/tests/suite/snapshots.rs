//! Snapshots of stacks, and the parameters of requests.

use kiln_resource::{Action, State, Status};
use kiln_store::{Batch, Details, NewStack, Snapshot, SnapshotId, StackId, StackRequest};
use kiln_value::{Value, value};
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{at, claimed, deleting, stack};

fn snapshot(stack: StackId, action: Action, second: i64) -> Snapshot {
    Snapshot {
        id: SnapshotId(Uuid::new_v4()),
        stack,
        name: (second % 2 == 0).then(|| "nächtlich".to_owned()),
        state: State::new(action, Status::InProgress),
        reason: "Stack SNAPSHOT started".to_owned(),
        data: Value::Null,
        created: at(second),
    }
}

#[tokio::test]
async fn a_snapshot_is_stored_with_its_request_and_changed_by_the_engine() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (made, lease) = claimed(store, "web").await;
        let (first, second) = (snapshot(made.id, Action::Snapshot, 2), snapshot(made.id, Action::Snapshot, 1));
        let details = Details { snapshot: Some(first.id), ..Details::default() };
        let request = StackRequest {
            details: details.clone(),
            snapshot: Some(first.clone()),
            ..StackRequest::new(Action::Snapshot, at(2))
        };
        assert_eq!(store.request(made.id, request).await.unwrap().details, details);
        assert_eq!(store.stack(made.id).await.unwrap().unwrap().details, details);
        let done = Snapshot {
            state: State::new(Action::Snapshot, Status::Complete),
            data: value!({"resources": {"r": {"resource_data": {"k": "v"}}}}),
            ..first.clone()
        };
        let snapshots = vec![done.clone(), second.clone()];
        store.commit(lease, Batch { snapshots: snapshots.into(), ..Batch::default() }).await.unwrap();
        assert_eq!(store.snapshots(made.id).await.unwrap(), [second.clone(), done.clone()]);
        assert_eq!(store.snapshot(made.id, done.id).await.unwrap().as_ref(), Some(&done));
        assert_eq!(store.snapshot(StackId(Uuid::new_v4()), done.id).await.unwrap(), None);
        let remove_snapshots = vec![done.id];
        store.commit(lease, Batch { remove_snapshots, ..Batch::default() }).await.unwrap();
        assert_eq!(store.snapshots(made.id).await.unwrap(), [second]);
        // A later request has no parameters of the earlier one.
        let asked = store.request(made.id, StackRequest::new(Action::Delete, at(3))).await.unwrap();
        assert_eq!(asked.details, Details::default());
        store.commit(lease, deleting(asked.generation)).await.unwrap();
        assert_eq!(store.snapshots(made.id).await.unwrap(), []);
    }
}

#[tokio::test]
async fn data_to_adopt_is_stored_with_the_stack_and_not_listed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let new = stack("adopted");
        let adopt = Snapshot { data: value!({"resources": {}}), ..snapshot(new.id, Action::Adopt, 1) };
        let new = NewStack { action: Action::Adopt, adopt: Some(adopt.clone()), ..new };
        let made = store.create_stack(new).await.unwrap();
        assert_eq!(made.details.snapshot, Some(adopt.id));
        assert_eq!(store.snapshot(made.id, adopt.id).await.unwrap(), Some(adopt));
        assert_eq!(store.snapshots(made.id).await.unwrap(), []);
    }
}
