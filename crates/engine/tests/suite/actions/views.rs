//! Stacks as clients read them again and again, from memory or from the store.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use jiff::Timestamp;
use kiln_resource::{Action, Status};
use kiln_stack::{Backends, Chance, Clock, LoadedStack, SystemClock, load};
use kiln_store::{HealthMark, MessageBody, Stack, StackId, StackRequest};
use kiln_value::{Value, value};
use kiln_view::{RecentReads, listed};

use crate::actions::bench::{Bench, asked, sources};

/// A process that reads stacks for clients.
struct Process {
    backends: Backends,
    recent: RecentReads,
}

impl Process {
    fn new(backends: &Backends) -> Self {
        Self { backends: backends.clone(), recent: RecentReads::default() }
    }

    async fn view(&self, stack: Stack) -> LoadedStack {
        self.recent.view(&self.backends, stack).await.expect("read")
    }
}

/// The rows and outputs of a stack.
async fn shown(view: &LoadedStack) -> String {
    format!("{:#?}\n{:#?}", listed(view), view.outputs(None).await)
}

/// Reads a stack as clients do, repeatedly: what it shows must be in the store.
async fn read(process: &Process, id: StackId) -> String {
    let stack = process.backends.store.stack(id).await.expect("read").expect("there");
    let stored = shown(&LoadedStack::load(&process.backends, id).await.expect("read").expect("there")).await;
    for turn in ["first", "again", "once more"] {
        let view = process.view(stack.clone()).await;
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

/// A database file that is removed at the end.
struct DatabaseFile(std::path::PathBuf);

impl DatabaseFile {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("kiln-{}.db", Chance::from_os().uuid())))
    }

    fn url(&self) -> String {
        format!("sqlite://{}?mode=rwc", self.0.display())
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Reads a stack in a process until nothing is left to do: as long as its row is the same, what is shown is in the store.
async fn follow(process: &Process, id: StackId) -> String {
    for _ in 0..2_000 {
        let stack = process.backends.store.stack(id).await.expect("read").expect("there");
        let view = shown(&process.view(stack.clone()).await).await;
        let stored = shown(&LoadedStack::load(&process.backends, id).await.expect("read").expect("there")).await;
        let work = process.backends.store.inbox(id, jiff::Timestamp::MAX).await.expect("read");
        let after = process.backends.store.stack(id).await.expect("read").expect("there");
        if after == stack {
            assert_eq!(view, stored, "{} after {} batches", stack.state, stack.writes);
            if !stack.is_pending() && work.is_empty() {
                return view;
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("stuck");
}

fn update(word: &str) -> StackRequest {
    StackRequest { desired: Some(load::texts(&with_word(word))), ..asked(Action::Update) }
}

#[tokio::test]
async fn what_is_in_memory_is_what_is_stored() {
    let bench = Bench::new().await;
    let process = Process::new(&bench.backends);
    let id = bench.create(&with_word("one")).await.id;
    let kept = |process: &Process| process.recent.size().0;
    let mut before = read(&process, id).await;
    assert_eq!(kept(&process), 1);
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
        let action = request.action;
        let stack = bench.request(id, request).await;
        let now = read(&process, id).await;
        assert_ne!(now, before, "{action}, {}", stack.reason);
        before = now;
    }
    // A mark changes a row without a request.
    bench
        .send(id, "thing", MessageBody::MarkUnhealthy(HealthMark { unhealthy: true, reason: Some("ill".to_owned()) }))
        .await;
    for _ in 0..500 {
        if bench.resources(id).await["thing"].state.failed() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let now = read(&process, id).await;
    assert!(now.contains("ill") && now != before, "{now}");
    // A rollback shows the rows of before.
    let failing = StackRequest { disable_rollback: Some(false), ..update("fail") };
    let stack = bench.request(id, failing).await;
    assert_eq!((stack.state.action, stack.state.status), (Action::Rollback, Status::Complete), "{}", stack.reason);
    read(&process, id).await;
    assert_eq!(kept(&process), 1, "one stack");
}

/// The nested stack stays as it is while the metadata of the resource that it implements change.
#[tokio::test]
async fn a_template_that_reads_its_resource_is_not_kept() {
    let bench = Bench::new().await;
    let process = Process::new(&bench.backends);
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
    assert!(read(&process, child.id).await.contains("one"));
    assert_eq!(process.recent.size().0, 0);
    let request = StackRequest { desired: Some(load::texts(&outer("two"))), ..asked(Action::Update) };
    bench.request(id, request).await;
    assert!(read(&process, child.id).await.contains("two"));
}

/// One process has the contents of a stack in memory, another one changes the stack.
#[tokio::test]
async fn a_process_never_shows_what_another_one_has_changed() {
    let file = DatabaseFile::new();
    let bench = Bench::on(&file.url()).await;
    let reader = Process::new(&bench.other_process(&file.url()).await);
    let inner = value!({
        "heat_template_version": "2018-08-31",
        "resources": {"thing": {"type": "Test::Thing"}},
        "outputs": {"secret": {"value": {"get_attr": ["thing", "secret"]}}},
    });
    let with_word = |word: &str| {
        let resources = value!({
            "thing": {"type": "Test::Thing", "properties": {"word": word}},
            "nested": {"type": "file:///inner.yaml"},
        });
        let mut sources = sources(resources, &value!({}), &[("file:///inner.yaml", inner.clone())]);
        let template = std::sync::Arc::make_mut(&mut sources.template).as_map_mut().expect("a map");
        let secret = |resource: &str| value!({"value": {"get_attr": [resource, "secret"]}});
        template.insert("outputs".to_owned(), value!({"own": (secret("thing")), "inner": (secret("nested"))}));
        sources
    };
    let id = bench.create(&with_word("one")).await.id;
    let child = bench.child(id, "nested").await.id;
    let update = |word: &str| StackRequest { desired: Some(load::texts(&with_word(word))), ..asked(Action::Update) };
    let ill = || MessageBody::MarkUnhealthy(HealthMark { unhealthy: true, reason: Some("ill".to_owned()) });
    // Requests to the stack, and messages to a resource of the nested stack or else of the stack.
    let request = |request: StackRequest| (Some(request), None);
    let message = |inner: bool, body: MessageBody| (None, Some((inner, body)));
    let changes = [
        request(update("two")),
        message(false, MessageBody::Signal("s1".into())),
        message(true, MessageBody::Signal("s2".into())),
        message(false, ill()),
        request(update("three")),
        request(asked(Action::Suspend)),
        request(asked(Action::Resume)),
        request(StackRequest { disable_rollback: Some(false), ..update("fail") }),
        request(asked(Action::Delete)),
    ];
    let mut before = (follow(&reader, id).await, follow(&reader, child).await);
    assert!(before.0.contains("own") && before.1.contains("secret"), "{before:?}");
    for (number, (request, message)) in changes.into_iter().enumerate() {
        assert_eq!(reader.recent.size().0, 2, "both are in memory: change {number}");
        if let Some(request) = request {
            bench.backends.store.request(id, request).await.expect("stored");
        }
        if let Some((inner, body)) = message {
            bench.send(if inner { child } else { id }, "thing", body).await;
        }
        // The stack also shows an output of the nested one.
        follow(&reader, child).await;
        let now = (follow(&reader, id).await, follow(&reader, child).await);
        assert_ne!(now.0, before.0, "change {number} is seen");
        before = now;
    }
}

/// What does not fit is read each time; the others stay in memory.
#[tokio::test]
async fn a_stack_above_the_bound_is_read_each_time() {
    const BOUND: usize = 64 << 10;
    let bench = Bench::new().await;
    let process = Process { recent: RecentReads::of_size(BOUND), ..Process::new(&bench.backends) };
    let size = |process: &Process| process.recent.size();
    let many = |count: usize| -> Value {
        let thing =
            |i: usize| (format!("thing{i}"), value!({"type": "Test::Thing", "properties": {"word": (i.to_string())}}));
        (0..count).map(thing).collect()
    };
    let small = bench.create(&with_word("one")).await.id;
    read(&process, small).await;
    let (stacks, of_small) = size(&process);
    assert!(stacks == 1 && of_small > 0 && of_small < BOUND, "{of_small}");
    let big = bench.create(&sources(many(200), &value!({}), &[])).await.id;
    assert_eq!(read(&process, big).await.matches("implementation").count(), 200);
    assert_eq!(size(&process), (1, of_small), "the small one is still there, the big one is not");
    // An update makes it small enough, another one makes it too big again.
    for (count, kept) in [(3, 2), (200, 1)] {
        let texts = load::texts(&sources(many(count), &value!({}), &[]));
        bench.request(big, StackRequest { desired: Some(texts), ..asked(Action::Update) }).await;
        assert_eq!(read(&process, big).await.matches("implementation").count(), count);
        read(&process, small).await;
        let (stacks, bytes) = size(&process);
        assert!(stacks == kept && bytes <= BOUND, "{count}: {stacks} stacks of {bytes} bytes");
    }
    // Files and parameters take memory too.
    let long = value!("x".repeat(BOUND));
    let with_file = sources(many(1), &value!({}), &[("file:///long.txt", long.clone())]);
    let with_parameter = sources(many(1), &value!({"parameter_defaults": {"long": long}}), &[]);
    for long in [with_file, with_parameter] {
        let id = bench.create(&long).await.id;
        read(&process, id).await;
        assert_eq!(size(&process), (1, of_small));
    }
    // Many that fit: the last ones are kept.
    for _ in 0..30 {
        let id = bench.create(&sources(many(10), &value!({}), &[])).await.id;
        read(&process, id).await;
        let (stacks, bytes) = size(&process);
        assert!(stacks > 0 && bytes <= BOUND, "{stacks} stacks of {bytes} bytes");
    }
}

/// A clock whose first two pauses are over at once.
#[derive(Default)]
struct TwoPauses(Mutex<Vec<Duration>>);

#[async_trait]
impl Clock for TwoPauses {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic() + self.0.lock().expect("no panic").iter().sum::<Duration>()
    }

    async fn sleep(&self, time: Duration) {
        if self.0.lock().expect("no panic").len() == 2 {
            std::future::pending::<()>().await;
        }
        self.0.lock().expect("no panic").push(time);
    }
}

#[tokio::test]
async fn what_nobody_reads_any_more_takes_no_memory() {
    let bench = Bench::new().await;
    let process = Process::new(&bench.backends);
    let id = bench.create(&with_word("one")).await.id;
    read(&process, id).await;
    assert_eq!(process.recent.size().0, 1);
    assert!(process.recent.expire(&TwoPauses::default()).now_or_never().is_none(), "it goes on for ever");
    assert_eq!(process.recent.size(), (0, 0));
}
