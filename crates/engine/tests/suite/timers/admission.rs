//! A lifecycle plug-in or a pre-flight that hangs holds up neither the end of a request nor that of an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Check, Engine, LifecyclePlugin, Options, Preflight};
use kiln_resource::{Action, StackId, Status};
use kiln_store::{Cancel, Error, Message, MessageBody, Stack};
use kiln_value::Value;

use super::cluster::{Cluster, Running, done};
use super::{message, near};

/// A plug-in that never comes back before a create, and counts how often.
#[derive(Default)]
struct Hanging(Arc<AtomicUsize>);

#[async_trait]
impl LifecyclePlugin for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }

    fn limit(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn run(&self, document: &Value) -> Result<(), String> {
        if (document.str_at("phase"), document.str_at("action")) == (Some("before"), Some("CREATE")) {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

#[async_trait]
impl Preflight for Hanging {
    fn is_for_all(&self) -> bool {
        true
    }

    async fn check(&self, stack: &Stack) -> Result<Vec<Check>, Error> {
        if stack.state.action == Action::Create {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        Ok(Vec::new())
    }
}

/// What hangs.
#[derive(Clone, Copy)]
enum What {
    Plugin,
    Preflight,
}

/// A create with a time limit of two minutes, in which something has hung for ten seconds.
async fn hanging(what: What) -> (Cluster, Running, StackId) {
    let cluster = Cluster::new(|_, _, _| done());
    let engine = cluster.engine_of(|engine| match what {
        What::Plugin => engine.with_plugins(vec![Arc::new(Hanging::default())]),
        What::Preflight => engine.with_preflight(Arc::new(Hanging::default())),
    });
    let id = cluster.create(Some(2)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    (cluster, engine, id)
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_stack_ends_what_hangs() {
    for what in [What::Plugin, What::Preflight] {
        let (cluster, engine, id) = hanging(what).await;
        let (stack, at) = cluster.settled(id).await;
        assert_eq!((stack.state.to_string().as_str(), stack.reason.as_str()), ("CREATE_FAILED", "Timed out"));
        assert!(near(at, 120.0), "{at}");
        assert_eq!(cluster.driver.seen(), []);
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_what_hangs() {
    for what in [What::Plugin, What::Preflight] {
        let (cluster, engine, id) = hanging(what).await;
        let cancel = Message {
            resource: None,
            ..message(&cluster, id, MessageBody::Cancel(Cancel { interrupt: true, ..Cancel::default() }))
        };
        cluster.backends.store.send(&cancel).await.expect("sent");
        let (stack, at) = cluster.settled(id).await;
        assert_eq!(
            (stack.state.to_string().as_str(), stack.reason.as_str()),
            ("CREATE_FAILED", "Stack CREATE cancelled")
        );
        assert!(near(at, 10.0), "{at}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(cluster.backends.store.inbox(id, jiff::Timestamp::MAX).await.expect("read"), [], "it is handled");
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_request_ends_what_hangs() {
    for what in [What::Plugin, What::Preflight] {
        let (cluster, engine, id) = hanging(what).await;
        cluster.ask(id, Action::Delete).await;
        let (stack, at) = cluster.settled(id).await;
        assert!(stack.state.is_complete(Action::Delete) && near(at, 10.0), "{at} {stack:?}");
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn the_stop_of_the_engine_ends_a_plugin_and_the_next_engine_goes_on_at_once() {
    for what in [What::Plugin, What::Preflight] {
        let (cluster, engine, id) = hanging(what).await;
        let stop = engine.stop().await;
        assert!(stop < Duration::from_secs(1), "{stop:?}");
        let next = cluster.engine();
        let (stack, at) = cluster.settled(id).await;
        assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        assert!(near(at, 10.0), "{at}");
        next.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_whose_plugin_hangs_takes_no_room_from_others() {
    let cluster = Cluster::new(|_, _, _| done());
    let hanging = Arc::new(Hanging::default());
    let options = Options { max_stacks: 1, ..Options::default() };
    let engine = Engine::new(options, cluster.backends.clone()).with_plugins(vec![Arc::clone(&hanging) as _]);
    let engine = cluster.engine_of(|_| engine);
    for name in ["a", "b", "c"] {
        cluster.create_named(name).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(hanging.0.load(Ordering::SeqCst), 3);
    engine.kill();
}
