//! Stacks as clients read them again and again, from memory or from the store.

use kiln_engine::{View, load};
use kiln_resource::{Action, Status};
use kiln_store::{MessageKind, Stack, StackId, StackRequest};
use kiln_value::value;

use crate::actions::bench::{Bench, asked, sources};

/// The rows and outputs of a stack.
async fn shown(view: &View) -> String {
    format!("{:#?}\n{:#?}", view.listed(), view.outputs(None).await)
}

/// Reads a stack as clients do, repeatedly: what it shows must be in the store.
async fn read(bench: &Bench, id: StackId) -> String {
    let stack = bench.backends.store.stack(id).await.expect("read").expect("there");
    let stored = shown(&View::load(&bench.backends, id).await.expect("read").expect("there")).await;
    for turn in ["first", "again", "once more"] {
        let view = View::of(&bench.backends, stack.clone()).await.expect("read");
        assert_eq!(shown(&view).await, stored, "{turn}, {}", stack.state);
    }
    stored
}

/// The template of the test: an output reads the thing, which has a word.
fn with_word(word: &str) -> kiln_plan::Sources {
    let resources = value!({
        "thing": {"type": "Test::Thing", "properties": {"word": word}},
        "value": {"type": "OS::Heat::Value", "properties": {"value": word}, "depends_on": "thing"},
    });
    let mut sources = sources(resources, &value!({}), &[]);
    let template = std::sync::Arc::make_mut(&mut sources.template).as_map_mut().expect("a map");
    let outputs =
        value!({"word": {"value": {"get_attr": ["value", "value"]}}, "id": {"value": {"get_resource": "thing"}}});
    template.insert("outputs".to_owned(), outputs);
    sources
}

fn update(word: &str) -> StackRequest {
    StackRequest { desired: Some(load::texts(&with_word(word))), ..asked(Action::Update) }
}

#[tokio::test]
async fn what_is_in_memory_is_what_is_stored() {
    let bench = Bench::new().await;
    let id = bench.create(&with_word("one")).await.id;
    let kept = |bench: &Bench| bench.backends.caches.views.size().0;
    let mut before = read(&bench, id).await;
    assert_eq!(kept(&bench), 1);
    let failing = StackRequest { disable_rollback: Some(true), ..update("fail") };
    let steps = [
        update("two"),
        asked(Action::Check),
        update("three"),
        asked(Action::Suspend),
        asked(Action::Resume),
        failing,
        update("four"),
    ];
    for request in steps {
        let (action, desired) = (request.action, request.desired.is_some());
        let stack = bench.request(id, request).await;
        let now = read(&bench, id).await;
        assert_ne!(now, before, "{action}, {}", stack.reason);
        assert_eq!(desired, action == Action::Update);
        before = now;
    }
    // A mark changes a row without a request.
    bench.send(id, "thing", MessageKind::MarkUnhealthy, value!({"mark_unhealthy": true, "reason": "ill"})).await;
    for _ in 0..500 {
        if bench.resources(id).await["thing"].state.failed() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let now = read(&bench, id).await;
    assert!(now.contains("ill") && now != before, "{now}");
    // A rollback shows the rows of before.
    let failing = StackRequest { disable_rollback: Some(false), ..update("fail") };
    let stack = bench.request(id, failing).await;
    assert_eq!((stack.state.action, stack.state.status), (Action::Rollback, Status::Complete), "{}", stack.reason);
    read(&bench, id).await;
    assert_eq!(kept(&bench), 1, "one stack");
}

/// The nested stack stays as it is while the metadata of the resource that it implements change.
#[tokio::test]
async fn a_template_that_reads_its_resource_is_not_kept() {
    let bench = Bench::new().await;
    let inner = value!({
        "heat_template_version": "2018-08-31",
        "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"resource_facade": "metadata"}}}},
        "outputs": {"facade": {"value": {"resource_facade": "metadata"}}},
    });
    let outer = |word: &str| {
        let nested = value!({"nested": {"type": "file:///inner.yaml", "metadata": {"word": word}}});
        sources(nested, &value!({}), &[("file:///inner.yaml", inner.clone())])
    };
    let id = bench.create(&outer("one")).await.id;
    let child: Stack = bench.child(id, "nested").await;
    assert!(read(&bench, child.id).await.contains("one"));
    assert_eq!(bench.backends.caches.views.size().0, 0);
    let request = StackRequest { desired: Some(load::texts(&outer("two"))), ..asked(Action::Update) };
    bench.request(id, request).await;
    assert!(read(&bench, child.id).await.contains("two"));
}
