//! Snapshots of stacks, and the deletion policy Snapshot.

use std::time::Duration;

use kiln_plan::Sources;
use kiln_resource::{Action, MessageId, SnapshotId, StackId, State, Status};
use kiln_stack::load;
use kiln_store::{Details, Message, MessageBody, Snapshot, SnapshotRemoval, Stack, StackRequest};
use kiln_value::{Value, value};

use crate::actions::bench::{Bench, asked, sources};

fn tree() -> Sources {
    let inner = value!({"heat_template_version": "2018-08-31", "resources": {"inner": {"type": "Test::Thing"}}});
    let resources = value!({
        "one": {"type": "Test::Thing"},
        "value": {"type": "OS::Heat::Value", "properties": {"value": "v"}},
        "below": {"type": "inner.yaml"},
    });
    sources(resources, &value!({}), &[("inner.yaml", inner)])
}

impl Bench {
    /// Requests a snapshot.
    async fn ask_snapshot(&self, stack: &Stack) -> SnapshotId {
        let request = asked(Action::Snapshot);
        let snapshot = Snapshot {
            id: SnapshotId(self.backends.chance.uuid()),
            stack: stack.id,
            name: None,
            state: State::new(Action::Snapshot, Status::InProgress),
            reason: String::new(),
            data: Value::Null,
            created: request.now,
        };
        let id = snapshot.id;
        let details = Details { snapshot: Some(id), ..Details::default() };
        self.backends
            .store
            .request(stack.id, StackRequest { details, snapshot: Some(snapshot), ..request })
            .await
            .expect("the store");
        id
    }

    async fn snapshot(&self, stack: StackId, id: SnapshotId) -> Option<Snapshot> {
        self.backends.store.snapshot(stack, id).await.expect("the store")
    }

    async fn remove_snapshot(&self, stack: StackId, id: SnapshotId) {
        let now = asked(Action::Delete).now;
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack,
            resource: None,
            body: MessageBody::DeleteSnapshot(SnapshotRemoval { snapshot: id }),
            due: now,
            sent: now,
        };
        self.backends.store.send(&message).await.expect("the store");
        for _ in 0..1000 {
            if self.backends.store.inbox(stack, now).await.expect("the store").is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the message is not handled");
    }
}

#[tokio::test]
async fn a_snapshot_saves_every_resource_and_is_deleted_again() {
    let bench = Bench::new().await;
    let stack = bench.create(&tree()).await;
    bench.forget_calls();
    let id = bench.ask_snapshot(&stack).await;
    let stack = bench.completed(stack.id).await;
    assert_eq!(stack.state, State::new(Action::Snapshot, Status::Complete));
    assert_eq!(bench.calls().len(), 2, "{:?}", bench.calls());
    let snapshot = bench.snapshot(stack.id, id).await.expect("the store");
    assert_eq!(snapshot.state, stack.state);
    let data = &snapshot.data;
    assert_eq!((data.str_at("action"), data.str_at("status")), (Some("SNAPSHOT"), Some("COMPLETE")));
    let resources = data.get("resources").expect("the store");
    let one = resources.get("one").expect("the store");
    let copy = one.get("resource_data").and_then(|data| data.str_at("copy")).expect("the store");
    assert_eq!(copy, format!("copy of {}", one.str_at("resource_id").expect("the store")));
    assert!(one.get("resource_data").and_then(|data| data.get("kiln_saved")).is_none(), "{one:?}");
    let inner = resources.get("below").and_then(|below| below.get("resources")).and_then(|inner| inner.get("inner"));
    assert_eq!(inner.and_then(|inner| inner.str_at("action")), Some("SNAPSHOT"));
    let rows = bench.resources(stack.id).await;
    assert!(rows.values().all(|row| row.state == State::new(Action::Snapshot, Status::Complete)), "{rows:?}");
    let events = bench.events(stack.id).await;
    assert!(events.contains(&"value SNAPSHOT_COMPLETE state changed".to_owned()), "{events:?}");

    bench.forget_calls();
    bench.remove_snapshot(stack.id, id).await;
    assert_eq!(bench.snapshot(stack.id, id).await, None);
    let calls = bench.calls();
    assert!(calls.len() == 2 && calls.iter().all(|call| call.starts_with("REMOVE copy of thing-")), "{calls:?}");
    // The state of the stack did not change.
    assert_eq!(bench.settled(stack.id).await.state, stack.state);
    bench.request(stack.id, asked(Action::Delete)).await;
}

#[tokio::test]
async fn a_stack_is_deleted_with_its_snapshots_or_not_at_all() {
    let bench = Bench::new().await;
    let stack = bench.create(&tree()).await;
    let id = bench.ask_snapshot(&stack).await;
    bench.completed(stack.id).await;
    bench.lock_copies(true);
    let failed = bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(failed.state, State::new(Action::Delete, Status::Failed));
    assert!(failed.reason.contains("Conflict") && failed.reason.contains("the copy is locked"), "{}", failed.reason);
    let snapshot = bench.snapshot(stack.id, id).await.expect("the store");
    assert_eq!(snapshot.state, State::new(Action::Delete, Status::Failed));
    bench.lock_copies(false);
    let gone = bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(gone.state, State::new(Action::Delete, Status::Complete), "{}", gone.reason);
    assert!(gone.deleted.is_some());
    assert_eq!(bench.calls().iter().filter(|call| call.starts_with("REMOVE")).count(), 2);
    assert_eq!(bench.snapshot(stack.id, id).await, None);
}

#[tokio::test]
async fn a_snapshot_survives_the_engine() {
    let mut bench = Bench::new().await;
    let stack = bench.create(&tree()).await;
    for round in 0..3 {
        bench.forget_calls();
        let id = bench.ask_snapshot(&stack).await;
        for pause in 0..4 {
            tokio::time::sleep(Duration::from_millis(2 * pause + round)).await;
            bench.kill();
            bench.start();
        }
        bench.completed(stack.id).await;
        let data = bench.snapshot(stack.id, id).await.expect("the store").data;
        let one = data.get("resources").and_then(|all| all.get("one")).expect("the store");
        assert!(one.get("resource_data").and_then(|data| data.get("copy")).is_some(), "{one:?}");
        bench.kill();
        bench.start();
        bench.remove_snapshot(stack.id, id).await;
        assert_eq!(bench.snapshot(stack.id, id).await, None);
    }
}

/// A later request ends a snapshot; what it has saved until then can still be deleted.
#[tokio::test]
async fn a_snapshot_that_another_request_ends_is_failed() {
    let bench = Bench::new().await;
    let resources = value!({
        "fast": {"type": "Test::Thing"},
        "slow": {"type": "Test::Thing", "properties": {"word": "slow"}, "depends_on": "fast"},
    });
    let stack = bench.create(&sources(resources.clone(), &value!({}), &[])).await;
    let id = bench.ask_snapshot(&stack).await;
    let saved = State::new(Action::Snapshot, Status::Complete);
    while bench.resources(stack.id).await.get("fast").is_none_or(|row| row.state != saved) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.backends.store.request(stack.id, asked(Action::Delete)).await.expect("the store");
    let gone = bench.completed(stack.id).await;
    assert!(gone.deleted.is_some());
    assert_eq!(bench.snapshot(stack.id, id).await, None);
}

#[tokio::test]
async fn the_deletion_policy_snapshot_saves_before_the_delete() {
    let bench = Bench::new().await;
    let thing =
        |word: &str| value!({"type": "Test::Thing", "deletion_policy": "Snapshot", "properties": {"word": word}});
    let resources = value!({"waits": (thing("a")), "quick": (thing("quick"))});
    let stack = bench.create(&sources(resources, &value!({}), &[])).await;
    bench.forget_calls();
    bench.request(stack.id, asked(Action::Delete)).await;
    let wanted = ["DELETE thing-1", "DELETE thing-2", "SNAPSHOT thing-1", "SNAPSHOT thing-2"];
    assert_eq!(bench.calls(), wanted);
    let stack = bench.settled(stack.id).await;
    assert!(stack.deleted.is_some(), "{}", stack.reason);
}

/// A snapshot sets the status of a resource, but does not make up for a delete or a create that failed: an update replaces
/// what they have left.
#[tokio::test]
async fn a_snapshot_does_not_hide_what_failed() {
    let thing =
        |word: &str| sources(value!({"one": {"type": "Test::Thing", "properties": {"word": word}}}), &value!({}), &[]);
    let snapshot_and_update = async |bench: &Bench, failed: &Stack, sources: &Sources| {
        bench.ask_snapshot(failed).await;
        let saved = bench.completed(failed.id).await;
        assert_eq!(saved.state, State::new(Action::Snapshot, Status::Complete));
        bench.forget_calls();
        let desired = Some(load::texts(sources));
        bench.request(failed.id, StackRequest { desired, ..asked(Action::Update) }).await;
        bench.calls()
    };

    let bench = Bench::new().await;
    let stack = bench.create(&thing("stuck")).await;
    let failed = bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(failed.state, State::new(Action::Delete, Status::Failed));
    assert_eq!(snapshot_and_update(&bench, &failed, &thing("stuck")).await, ["CREATE thing-2"]);

    let bench = Bench::new().await;
    let id = bench.begin(Action::Create, &thing("half"), None, false).await;
    let failed = bench.settled(id).await;
    assert_eq!(failed.state, State::new(Action::Create, Status::Failed));
    assert_eq!(snapshot_and_update(&bench, &failed, &thing("half")).await, ["CREATE thing-2", "DELETE thing-1"]);
}
