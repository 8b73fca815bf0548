//! Export, abandon and adopt.

use kiln_resource::{Action, SnapshotId, State, Status};
use kiln_stack::load;
use kiln_store::{Details, Snapshot, Stack, StackRequest};
use kiln_value::{Value, value};

use crate::actions::bench::{Bench, asked, sources};

fn inner() -> Value {
    value!({
        "heat_template_version": "2018-08-31",
        "resources": {"inner": {"type": "Test::Thing", "metadata": {"m": 1}}},
    })
}

fn tree() -> kiln_plan::Sources {
    let resources = value!({
        "one": {"type": "Test::Thing", "deletion_policy": "Retain"},
        "two": {"type": "Test::Thing", "properties": {"word": {"get_attr": ["one", "secret"]}}},
        "below": {"type": "inner.yaml", "deletion_policy": "Retain"},
        "many": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 2, "resource_def": {"type": "Test::Thing"}},
            "update_policy": {"batch_create": {"max_batch_size": 1}},
        },
    });
    sources(resources, &value!({}), &[("inner.yaml", inner())])
}

fn abandon() -> StackRequest {
    StackRequest { details: Details { keep_objects: true, ..Details::default() }, ..asked(Action::Delete) }
}

#[tokio::test]
async fn an_abandoned_stack_keeps_its_objects_and_can_be_adopted() {
    let bench = Bench::new().await;
    let stack = bench.create(&tree()).await;
    let nested = bench.child(stack.id, "below").await;
    let data = kiln_stack::export(&bench.backends, &stack).await.unwrap();
    let one = data.get("resources").and_then(|all| all.get("one")).unwrap();
    let id = one.str_at("resource_id").unwrap();
    let wanted = value!({
        "name": "one", "resource_id": id, "type": "Test::Thing", "action": "CREATE", "status": "COMPLETE",
        "metadata": {}, "resource_data": {"secret": "s"},
    });
    assert_eq!(one, &wanted);
    let below = data.get("resources").and_then(|all| all.get("below")).unwrap();
    assert_eq!(below.str_at("id"), Some(nested.id.to_string().as_str()));
    bench.forget_calls();
    let gone = bench.request(stack.id, abandon()).await;
    assert_eq!(gone.state, State::new(Action::Delete, Status::Complete));
    let nested = bench.backends.store.stack(nested.id).await.unwrap().unwrap();
    assert!(nested.deleted.is_some(), "a nested stack is abandoned, too, even with the policy Retain");
    assert_eq!(bench.calls(), Vec::<String>::new());

    let adopted = bench.begin(Action::Adopt, &tree(), Some(data.clone()), true).await;
    let stack = bench.settled(adopted).await;
    assert_eq!(stack.state, State::new(Action::Adopt, Status::Complete), "{}", stack.reason);
    assert_eq!(bench.calls(), Vec::<String>::new());
    let rows = bench.resources(adopted).await;
    let row = rows.get("one").unwrap();
    assert_eq!(row.physical_id.as_deref(), Some(id));
    assert_eq!(row.data.get("secret").and_then(Value::as_str), Some("s"));
    assert_eq!(row.state, State::new(Action::Adopt, Status::Complete));
    // The attribute that another resource reads is known.
    assert_eq!(rows.get("two").unwrap().properties().get("word").and_then(Value::as_str), Some("s"));
    let nested = bench.child(adopted, "below").await;
    assert_eq!(nested.state, State::new(Action::Adopt, Status::Complete));
    assert_eq!(bench.resources(nested.id).await.get("inner").unwrap().metadata, value!({"m": 1}));
    let events = bench.events(adopted).await;
    let of = |name: &str| events.iter().filter(|event| event.starts_with(name)).cloned().collect::<Vec<_>>();
    assert_eq!(of("one"), ["one ADOPT_IN_PROGRESS state changed", "one ADOPT_COMPLETE state changed"]);
    assert_eq!(
        of("<stack>"),
        ["<stack> ADOPT_IN_PROGRESS Stack ADOPT started", "<stack> ADOPT_COMPLETE Stack ADOPT completed successfully",]
    );
    // The data is no longer stored.
    assert_eq!(bench.backends.store.snapshot(adopted, stack.details.snapshot.unwrap()).await.unwrap(), None);
    // From now on it is a stack like any other.
    bench.request(adopted, asked(Action::Delete)).await;
    assert_eq!(bench.calls().len(), 3, "{:?}", bench.calls());
    assert!(bench.calls().iter().all(|call| call.starts_with("DELETE")));
}

#[tokio::test]
async fn an_adopt_fails_without_an_id_and_its_rollback_keeps_the_objects() {
    let bench = Bench::new().await;
    let resources = value!({"a": {"type": "Test::Thing"}, "b": {"type": "Test::Thing", "depends_on": "a"}});
    let sources = sources(resources, &value!({}), &[]);
    let data = value!({"resources": {"a": {"resource_id": "old"}}});
    let text = "Resource ADOPT failed: Exception: resources.b: Resource ID was not provided.";
    let id = bench.begin(Action::Adopt, &sources, Some(data.clone()), false).await;
    let stack = bench.settled(id).await;
    assert_eq!((stack.state, stack.reason.as_str()), (State::new(Action::Adopt, Status::Failed), text));
    assert_eq!(bench.resources(id).await.get("a").unwrap().physical_id.as_deref(), Some("old"));

    let id = bench.begin(Action::Adopt, &sources, Some(data), true).await;
    let stack = bench.settled(id).await;
    assert_eq!(stack.state, State::new(Action::Rollback, Status::Complete), "{}", stack.reason);
    assert!(bench.events(id).await.contains(&format!("<stack> ADOPT_FAILED {text}")));
    assert!(bench.resources(id).await.is_empty());
    assert_eq!(bench.calls(), Vec::<String>::new(), "nothing was deleted");
    // The parameter of the rollback ends with it.
    bench.request(id, asked(Action::Delete)).await;
}

#[tokio::test]
async fn an_adopt_survives_the_engine() {
    let mut bench = Bench::new().await;
    let resources = value!({"a": {"type": "Test::Thing"}, "n": {"type": "inner.yaml"}});
    let sources = sources(resources, &value!({}), &[("inner.yaml", inner())]);
    let inner = value!({"inner": {"resource_id": "i"}});
    let data = value!({"resources": {"a": {"resource_id": "old"}, "n": {"resources": inner}}});
    let id = bench.begin(Action::Adopt, &sources, Some(data), false).await;
    for pause in 0..6 {
        tokio::time::sleep(std::time::Duration::from_millis(3 * pause)).await;
        bench.kill();
        bench.start();
    }
    let stack = bench.completed(id).await;
    assert_eq!(stack.state.action, Action::Adopt);
    let nested = bench.child(id, "n").await;
    assert_eq!(bench.resources(nested.id).await.get("inner").unwrap().physical_id.as_deref(), Some("i"));
    assert_eq!(bench.calls(), Vec::<String>::new());
}

/// An update that adopts objects.
fn import(bench: &Bench, stack: &Stack, resources: Value, data: Value) -> StackRequest {
    let data = Snapshot {
        id: SnapshotId(bench.backends.chance.uuid()),
        stack: stack.id,
        name: None,
        state: State::new(Action::Adopt, Status::InProgress),
        reason: String::new(),
        data: value!({ "resources": data }),
        created: bench.backends.clock.now(),
    };
    StackRequest {
        desired: Some(load::texts(&sources(resources, &value!({}), &[]))),
        details: Details { snapshot: Some(data.id), ..Details::default() },
        snapshot: Some(data),
        ..asked(Action::Update)
    }
}

#[tokio::test]
async fn an_update_adopts_objects_into_a_stack() {
    let bench = Bench::new().await;
    let one = value!({"type": "Test::Thing"});
    let stack = bench.create(&sources(value!({ "one": (one.clone()) }), &value!({}), &[])).await;
    bench.forget_calls();
    let reads = value!({"type": "Test::Thing", "properties": {"word": {"get_resource": "two"}}});
    let wanted = value!({ "one": (one.clone()), "two": one, "three": reads });
    let data = value!({"two": {"resource_id": "old"}, "three": {"resource_id": "older"}});
    let stack = bench.request(stack.id, import(&bench, &stack, wanted, data)).await;
    assert_eq!(stack.state, State::new(Action::Update, Status::Complete), "{}", stack.reason);
    assert!(stack.adopts());
    let rows = bench.resources(stack.id).await;
    let state = |name: &str| (rows[name].state.to_string(), rows[name].physical_id.clone().unwrap());
    assert_eq!(state("one"), ("CREATE_COMPLETE".to_owned(), "thing-1".to_owned()));
    assert_eq!(state("two"), ("ADOPT_COMPLETE".to_owned(), "old".to_owned()));
    assert_eq!(state("three"), ("ADOPT_COMPLETE".to_owned(), "older".to_owned()));
    assert_eq!(rows["three"].properties().get("word").and_then(Value::as_str), Some("old"));
    assert_eq!(bench.calls(), Vec::<String>::new(), "nothing is created or changed");
    assert_eq!(bench.backends.store.snapshot(stack.id, stack.details.snapshot.unwrap()).await.unwrap(), None);
    // From now on they belong to the stack.
    bench.request(stack.id, asked(Action::Delete)).await;
    assert_eq!(bench.calls(), ["DELETE old", "DELETE older", "DELETE thing-1"]);
}

#[tokio::test]
async fn the_rollback_of_an_import_keeps_its_objects() {
    let bench = Bench::new().await;
    let one = value!({"type": "Test::Thing"});
    let first = sources(value!({ "one": (one.clone()) }), &value!({}), &[]);
    let stack = bench.completed(bench.begin(Action::Create, &first, None, true).await).await;
    bench.forget_calls();
    let last = value!({"type": "Test::Thing", "depends_on": "two"});
    let wanted = value!({ "one": (one.clone()), "two": one, "three": last });
    let data = value!({"two": {"resource_id": "old"}, "three": {"resource_id": ""}});
    let request = import(&bench, &stack, wanted, data);
    let used = request.details.snapshot.unwrap();
    let stack = bench.request(stack.id, request).await;
    assert_eq!(stack.state, State::new(Action::Rollback, Status::Complete), "{}", stack.reason);
    assert!(!stack.adopts());
    let events = bench.events(stack.id).await;
    assert!(events.contains(&"two ADOPT_COMPLETE state changed".to_owned()), "{events:?}");
    let rows = bench.resources(stack.id).await;
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["one"]);
    assert_eq!(bench.calls(), Vec::<String>::new(), "the object is kept");
    assert_eq!(bench.backends.store.snapshot(stack.id, used).await.unwrap(), None);
}
