//! Hooks: where operations stop, and how they go on.

use std::time::Duration;

use kiln_plan::Sources;
use kiln_plan::hook::waits_at;
use kiln_resource::{Action, MessageId, StackId, State, Status};
use kiln_stack::{Clock as _, SystemClock, load};
use kiln_store::{Cancel, HealthMark, HookClearing, Message, MessageBody, StackRequest};
use kiln_value::{Value, value};

use crate::actions::bench::{Bench, asked, sources};

fn hooked(resources: Value, hooks: Value) -> Sources {
    let inner = value!({"heat_template_version": "2018-08-31", "resources": {"inner": {"type": "Test::Thing"}}});
    sources(resources, &value!({"resource_registry": {"resources": hooks}}), &[("inner.yaml", inner)])
}

fn things() -> Value {
    value!({"a": {"type": "Test::Thing"}, "b": {"type": "Test::Thing", "depends_on": "a"}})
}

impl Bench {
    /// Waits until a resource waits at a hook.
    async fn reaches(&self, stack: StackId, name: &str, hook: &str) {
        for _ in 0..2000 {
            let rows = self.backends.store.resources(stack).await.expect("the store");
            let waits = |row: &kiln_store::Resource| waits_at(row).is_some_and(|at| at.as_str() == hook);
            if rows.iter().any(|row| row.name == name && waits(row)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{name} does not reach {hook}: {:?}", self.events(stack).await);
    }

    async fn clear(&self, stack: StackId, name: &str, hook: &str) {
        self.send(stack, name, MessageBody::ClearHook(HookClearing { hook: hook.to_owned() })).await;
    }

    pub(crate) async fn send(&self, stack: StackId, name: &str, body: MessageBody) {
        let (id, resource, now) = (MessageId(self.backends.chance.uuid()), Some(name.to_owned()), SystemClock.now());
        let message = Message { id, stack, resource, body, due: now, sent: now };
        self.backends.store.send(&message).await.expect("the store");
    }

    async fn ask(&self, stack: StackId, action: Action, sources: Option<&Sources>) {
        let request = StackRequest { desired: sources.map(load::texts), ..asked(action) };
        self.backends.store.request(stack, request).await.expect("the store");
    }
}

fn count(events: &[String], text: &str) -> usize {
    events.iter().filter(|event| event.contains(text)).count()
}

#[tokio::test]
async fn a_create_stops_before_and_after() {
    let mut bench = Bench::new().await;
    let hooks = value!({"b": {"hooks": ["pre-create", "post-create"]}, "nothing*": {"hooks": "pre-create"}});
    let id = bench.begin(Action::Create, &hooked(things(), hooks), None, false).await;
    bench.reaches(id, "b", "pre-create").await;
    assert_eq!(bench.calls(), ["CREATE thing-1"]);
    assert_eq!(bench.resources(id).await.get("b").expect("the store").state, State::INIT);
    // Other hooks are not meant.
    bench.clear(id, "b", "pre-update").await;
    bench.kill();
    bench.start();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(bench.calls(), ["CREATE thing-1"]);
    bench.clear(id, "b", "pre-create").await;
    bench.reaches(id, "b", "post-create").await;
    bench.kill();
    bench.start();
    assert!(bench.backends.store.stack(id).await.expect("the store").unwrap().is_pending());
    bench.clear(id, "b", "post-create").await;
    let stack = bench.completed(id).await;
    assert_eq!(stack.state.action, Action::Create);
    assert_eq!(bench.calls(), ["CREATE thing-1", "CREATE thing-2"]);
    let events = bench.events(id).await;
    let of_b: Vec<&str> = events.iter().filter_map(|event| event.strip_prefix("b ")).collect();
    let wanted = [
        "INIT_COMPLETE CREATE paused until Hook pre-create is cleared",
        "INIT_COMPLETE Hook pre-create is cleared",
        "CREATE_IN_PROGRESS state changed",
        "CREATE_COMPLETE state changed",
        "CREATE_COMPLETE CREATE paused until Hook post-create is cleared",
        "CREATE_COMPLETE Hook post-create is cleared",
    ];
    assert_eq!(of_b, wanted);
}

/// Seed 19852 of the simulation: the replaced row stayed beside its replacement.
#[tokio::test]
async fn a_resource_that_is_marked_unhealthy_at_a_hook_is_replaced_at_once() {
    let bench = Bench::new().await;
    let hooks = value!({"b": {"hooks": ["post-create"]}});
    let id = bench.begin(Action::Create, &hooked(things(), hooks), None, false).await;
    bench.reaches(id, "b", "post-create").await;
    let body = HealthMark { unhealthy: true, reason: Some("it looks bad".to_owned()) };
    bench.send(id, "b", MessageBody::MarkUnhealthy(body)).await;
    bench.clear(id, "b", "post-create").await;
    while !bench.calls().contains(&"CREATE thing-3".to_owned()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.reaches(id, "b", "post-create").await;
    bench.clear(id, "b", "post-create").await;
    let stack = bench.completed(id).await;
    assert_eq!(stack.state.action, Action::Create);
    assert_eq!(bench.calls(), ["CREATE thing-1", "CREATE thing-2", "CREATE thing-3", "DELETE thing-2"]);
    assert_eq!(bench.backends.store.resources(id).await.expect("the store").len(), 2);
}

#[tokio::test]
async fn an_update_stops_at_every_resource_and_a_delete_at_its_own_hooks() {
    let bench = Bench::new().await;
    let stack = bench.create(&hooked(things(), value!({}))).await;
    let hooks = value!({"*": {"hooks": ["pre-update"]}, "a": {"hooks": ["post-update", "pre-delete", "post-delete"]}});
    let changed = value!({
        "a": {"type": "Test::Thing", "properties": {"word": "new"}},
        "b": {"type": "Test::Thing", "depends_on": "a"},
    });
    bench.ask(stack.id, Action::Update, Some(&hooked(changed, hooks))).await;
    bench.reaches(stack.id, "a", "pre-update").await;
    assert!(bench.calls().iter().all(|call| call.starts_with("CREATE")), "{:?}", bench.calls());
    bench.clear(stack.id, "a", "pre-update").await;
    bench.reaches(stack.id, "a", "post-update").await;
    bench.clear(stack.id, "a", "post-update").await;
    // As in Heat, also a resource that does not change stops.
    bench.reaches(stack.id, "b", "pre-update").await;
    bench.clear(stack.id, "b", "pre-update").await;
    let updated = bench.completed(stack.id).await;
    assert_eq!(updated.state.action, Action::Update);

    bench.forget_calls();
    bench.ask(stack.id, Action::Delete, None).await;
    bench.reaches(stack.id, "a", "pre-delete").await;
    assert_eq!(bench.calls(), ["DELETE thing-2"]);
    bench.clear(stack.id, "a", "pre-delete").await;
    bench.reaches(stack.id, "a", "post-delete").await;
    assert_eq!(bench.calls(), ["DELETE thing-1", "DELETE thing-2"]);
    bench.clear(stack.id, "a", "post-delete").await;
    assert!(bench.completed(stack.id).await.deleted.is_some());
}

#[tokio::test]
async fn hooks_reach_into_nested_stacks() {
    let bench = Bench::new().await;
    let hooks = value!({"n": {"inn*": {"hooks": "pre-create"}}});
    let id = bench.begin(Action::Create, &hooked(value!({"n": {"type": "inner.yaml"}}), hooks), None, false).await;
    let nested = loop {
        if let Some(child) = bench.resources(id).await.get("n").and_then(|row| row.child) {
            break child;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    bench.reaches(nested, "inner", "pre-create").await;
    bench.clear(nested, "inner", "pre-create").await;
    bench.completed(id).await;
}

/// A failure, a cancel, a delete and a rollback end the wait.
#[tokio::test]
async fn nobody_waits_at_a_hook_of_an_ended_request() {
    let bench = Bench::new().await;
    let hooks = || value!({"b": {"hooks": "pre-create"}});
    for rollback in [false, true] {
        let resources = value!({
            "b": {"type": "Test::Thing"},
            "slow": {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 1}},
            "bad": {"type": "Test::Thing", "properties": {"word": "fail"}, "depends_on": "slow"},
        });
        let id = bench.begin(Action::Create, &hooked(resources, hooks()), None, rollback).await;
        bench.reaches(id, "b", "pre-create").await;
        let stack = bench.settled(id).await;
        let wanted = if rollback { (Action::Rollback, Status::Complete) } else { (Action::Create, Status::Failed) };
        assert_eq!((stack.state.action, stack.state.status), wanted, "{}", stack.reason);
        assert_eq!(count(&bench.events(id).await, "Failure occurred while waiting."), 1);
    }
    let id = bench.begin(Action::Create, &hooked(things(), hooks()), None, false).await;
    bench.reaches(id, "b", "pre-create").await;
    bench.ask(id, Action::Delete, None).await;
    assert!(bench.completed(id).await.deleted.is_some());

    let id = bench.begin(Action::Create, &hooked(things(), hooks()), None, false).await;
    bench.reaches(id, "b", "pre-create").await;
    let now = SystemClock.now();
    let message = Message {
        id: MessageId(bench.backends.chance.uuid()),
        stack: id,
        resource: None,
        body: MessageBody::Cancel(Cancel { generation: Some(1), ..Cancel::default() }),
        due: now,
        sent: now,
    };
    bench.backends.store.send(&message).await.expect("the store");
    let stack = bench.settled(id).await;
    assert_eq!(stack.reason, "Stack CREATE cancelled");
    // The next update creates the resource; its own hook is not one of an update.
    let updated = bench
        .request(id, StackRequest { desired: Some(load::texts(&hooked(things(), hooks()))), ..asked(Action::Update) })
        .await;
    assert_eq!(updated.state, State::new(Action::Update, Status::Complete), "{}", updated.reason);
}
