//! An engine that stops makes no further attempts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Engine, Options};
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, FailureKind, State, Status};
use kiln_stack::Clouds;
use kiln_store::Stack;
use kiln_value::Class;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::groups::bench::Bench;

/// A cloud that finds nothing and takes a minute for a call.
struct Overloaded {
    start: Instant,
    finds: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Cloud for Overloaded {
    async fn call(&self, _: CloudRequest) -> Result<CloudResponse, Failure> {
        tokio::time::sleep(Duration::from_mins(1)).await;
        Err(Failure::new(FailureKind::NotSent, Class::Error, "overloaded"))
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        self.finds.lock().expect("whole").push(self.start.elapsed());
        Err(Failure::new(FailureKind::Unavailable, Class::Error, "overloaded"))
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("demo".to_owned())
    }
}

struct OneCloud(Arc<Overloaded>);

#[async_trait]
impl Clouds for OneCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Cloud>)
    }
}

const TEMPLATE: &str = "heat_template_version: 2018-08-31
resources:
  slow: {type: OS::Neutron::Net}
  asked: {type: OS::Neutron::Port, properties: {network: public}}
";

#[tokio::test(start_paused = true)]
async fn names_are_not_looked_up_again_while_the_last_calls_end() {
    let cloud = Arc::new(Overloaded { start: Instant::now(), finds: Mutex::default() });
    let bench = Bench::with_clouds(Arc::new(OneCloud(Arc::clone(&cloud))));
    let id = bench.create(TEMPLATE, None).await;
    let (stop, stopped) = watch::channel(false);
    let engine = Engine::new(Options::default(), bench.backends.clone());
    let running = tokio::spawn(async move { engine.run(stopped).await.expect("the engine runs") });
    tokio::time::sleep(Duration::from_secs(10)).await;
    stop.send_replace(true);
    let stopped_at = cloud.start.elapsed();
    running.await.expect("no panic");
    assert!(cloud.start.elapsed() > Duration::from_secs(50), "the call ends first");
    let finds = cloud.finds.lock().expect("whole").clone();
    assert!(finds.len() > 1 && finds.iter().all(|at| *at < stopped_at), "stopped at {stopped_at:?}: {finds:?}");
    let row = bench.row(id, "asked").await;
    assert_eq!(row.state, State::new(kiln_resource::Action::Init, Status::Complete), "the next engine asks again");
}
