//! Resources that are forgotten because their objects cannot be deleted.

use kiln_resource::Parting;
use kiln_resource::{Action, MessageId, StackId, State, Status};
use kiln_stack::load;
use kiln_store::{Message, MessageBody, Orphan, OrphanQuery, StackRequest};
use kiln_value::value;

use crate::actions::bench::{Bench, asked, sources};

impl Bench {
    /// Asks to forget a resource, and waits until the message is handled.
    async fn forget(&self, stack: StackId, name: &str, path: &str) {
        let now = asked(Action::Delete).now;
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack,
            resource: Some(name.to_owned()),
            body: MessageBody::Forget(Parting {
                user_id: "u1".to_owned(),
                username: "alice".to_owned(),
                reason: "host lost".to_owned(),
                path: path.to_owned(),
                region: Some("R1".to_owned()),
            }),
            due: now,
            sent: now,
        };
        self.backends.store.send(&message).await.expect("the store");
        for _ in 0..2000 {
            let stack = self.backends.store.stack(stack).await.expect("the store").expect("there");
            if stack.deleted.is_some() || self.backends.store.inbox(stack.id, now).await.expect("the store").is_empty()
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the message is not handled");
    }

    async fn orphans(&self) -> Vec<Orphan> {
        self.backends.store.orphans(&OrphanQuery::default()).await.expect("the store")
    }
}

const DELETED: State = State { action: Action::Delete, status: Status::Complete };

#[tokio::test]
async fn a_delete_that_one_object_blocks_ends_after_it_is_forgotten() {
    let bench = Bench::new().await;
    let resources = value!({
        "stuck": {"type": "Test::Thing", "properties": {"word": "stuck"}, "depends_on": "base"},
        "base": {"type": "Test::Thing"},
        "other": {"type": "Test::Thing"},
    });
    let stack = bench.create(&sources(resources, &value!({}), &[])).await;
    let object = bench.resources(stack.id).await["stuck"].physical_id.clone();
    // A resource that is not being deleted is not forgotten.
    bench.forget(stack.id, "other", "other").await;
    assert_eq!((bench.orphans().await, bench.resources(stack.id).await.len()), (vec![], 3));

    let failed = bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(failed.state, State::new(Action::Delete, Status::Failed));
    assert_eq!(failed.reason, "Resource DELETE failed: Error: resources.stuck: the object is in use");
    bench.forget(stack.id, "stuck", "stuck").await;
    let orphans = bench.orphans().await;
    let [orphan] = orphans.as_slice() else { panic!("{orphans:?}") };
    assert_eq!((orphan.physical_id.clone(), orphan.resource_type.as_str()), (object.clone(), "Test::Thing"));
    assert_eq!((orphan.stack, &orphan.stack_name, orphan.path.as_str()), (stack.id, &stack.name, "stuck"));
    assert_eq!(orphan.reason, "host lost: Error: resources.stuck: the object is in use");
    assert_eq!((orphan.username.as_str(), orphan.region.as_deref()), ("alice", Some("R1")));
    let events = bench.events(stack.id).await;
    let object = object.expect("an object");
    let said = format!("stuck DELETE_COMPLETE Forgotten by alice: the object {object} is left in the cloud");
    assert!(events.contains(&said), "{events:#?}");

    let deleted = bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(deleted.state, DELETED, "{}", deleted.reason);
    assert!(bench.calls().iter().all(|call| *call != format!("DELETE {object}")), "{:?}", bench.calls());
    assert_eq!(bench.orphans().await, orphans);
}

#[tokio::test]
async fn a_delete_in_progress_is_interrupted_and_goes_on_with_the_rest() {
    let mut bench = Bench::new().await;
    let resources = value!({
        "hanging": {"type": "Test::Thing", "properties": {"word": "hang"}, "depends_on": "base"},
        "base": {"type": "Test::Thing"},
    });
    let stack = bench.create(&sources(resources, &value!({}), &[])).await;
    bench.backends.store.request(stack.id, asked(Action::Delete)).await.expect("the store");
    while bench.resources(stack.id).await["hanging"].state.action != Action::Delete {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // Another engine takes over the delete.
    bench.kill();
    bench.start();
    bench.forget(stack.id, "hanging", "hanging").await;
    let deleted = bench.settled(stack.id).await;
    assert_eq!(deleted.state, DELETED, "{}", deleted.reason);
    let paths: Vec<String> = bench.orphans().await.into_iter().map(|orphan| orphan.path).collect();
    assert_eq!(paths, ["hanging"]);
    let base = bench.calls().iter().filter(|call| call.starts_with("DELETE")).count();
    assert_eq!(base, 1, "only the other one is deleted: {:?}", bench.calls());
}

#[tokio::test]
async fn in_a_nested_stack_the_blocking_resource_is_named_and_forgotten() {
    let bench = Bench::new().await;
    let resources = value!({"stuck": {"type": "Test::Thing", "properties": {"word": "stuck"}}});
    let inner = value!({"heat_template_version": "2018-08-31", "resources": resources});
    let outer = value!({"below": {"type": "inner.yaml"}, "beside": {"type": "Test::Thing"}});
    let stack = bench.create(&sources(outer, &value!({}), &[("inner.yaml", inner)])).await;
    let nested = bench.child(stack.id, "below").await;
    let failed = bench.request(stack.id, asked(Action::Delete)).await;
    let blame = "Resource DELETE failed: Error: resources.below.resources.stuck: the object is in use";
    assert_eq!((failed.state.status, failed.reason.as_str()), (Status::Failed, blame));
    assert_eq!(bench.resources(stack.id).await.keys().collect::<Vec<_>>(), ["below"], "the rest is deleted");
    // The row of the nested stack leads to its resources: it stays.
    bench.forget(stack.id, "below", "below").await;
    assert_eq!(bench.orphans().await, []);
    bench.forget(nested.id, "stuck", "below/stuck").await;
    let deleted = bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(deleted.state, DELETED, "{}", deleted.reason);
    let orphans = bench.orphans().await;
    assert_eq!(orphans.iter().map(|orphan| orphan.path.as_str()).collect::<Vec<_>>(), ["below/stuck"]);
    assert_eq!((orphans[0].stack, &orphans[0].stack_name), (stack.id, &stack.name), "of the root stack");
}

/// A delete that fails leaves the row of a nested stack whose own delete may still end, and users can delete a nested stack.
#[tokio::test]
async fn a_nested_stack_that_is_gone_fails_a_check_and_is_made_again_by_an_update() {
    let bench = Bench::new().await;
    let inner =
        [("inner.yaml", value!({"heat_template_version": "2018-08-31", "resources": {"a": {"type": "Test::Thing"}}}))];
    let content = sources(value!({"n": {"type": "inner.yaml"}}), &value!({}), &inner);
    for by_check in [false, true] {
        let id = bench.create(&content).await.id;
        let gone = bench.child(id, "n").await.id;
        bench.request(gone, asked(Action::Delete)).await;
        if by_check {
            let checked = bench.request(id, asked(Action::Check)).await;
            assert_eq!(checked.state, State::new(Action::Check, Status::Failed));
            assert!(checked.reason.contains("the nested stack does not exist any more"), "{}", checked.reason);
        }
        let update = StackRequest { desired: Some(load::texts(&content)), ..asked(Action::Update) };
        let updated = bench.request(id, update).await;
        assert_eq!(updated.state, State::new(Action::Update, Status::Complete), "{}", updated.reason);
        let new = bench.child(id, "n").await;
        assert!(new.id != gone && new.deleted.is_none(), "{new:?}");
        assert_eq!(bench.resources(new.id).await.len(), 1);
    }
}
