//! Plans of deletes.

use std::sync::Arc;

use kiln_plan::Sources;
use kiln_plan_document::{Decision, Entry};
use kiln_resource::{Action, StackId, Status};
use kiln_stack::LoadedStack;
use kiln_store::StackRequest;
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Value, value};
use kiln_view::plan_document::Plan;
use kiln_view::preview::preview_delete;

use super::{Bench, types};

const ROOT: &str = "
heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 8}, fail: {type: boolean, default: false}}
resources:
  nested:
    type: nested.yaml
    properties: {length: {get_param: length}, fail: {get_param: fail}}
";

const NESTED: &str = "
heat_template_version: 2018-08-31
parameters: {length: {type: number}, fail: {type: boolean}}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
  volume: {type: OS::Cinder::Volume, properties: {size: 1}}
  last:
    type: OS::Heat::TestResource
    depends_on: word
    properties: {value: {get_param: length}, fail: {get_param: fail}}
";

fn sources(parameters: Value) -> Sources {
    let template = kiln_template::source::parse(ROOT, "t.yaml", usize::MAX).expect("YAML").value;
    let environment = Environment::from_value(&value!({"parameters": parameters})).expect("an environment");
    Sources {
        template: Arc::new(template),
        environment: Arc::new(environment),
        files: Arc::new(Files([("nested.yaml".to_owned(), NESTED.to_owned())].into())),
    }
}

async fn planned(bench: &Bench, id: StackId) -> Vec<Entry> {
    let view = LoadedStack::load(&bench.backends, id).await.expect("read").expect("there");
    let preview = preview_delete(&bench.backends, &view).await.expect("read");
    let Plan(plan) = Plan::of(&preview, kiln_plan_document::Action::Delete);
    assert!(plan.resources.iter().all(|entry| entry.decision.at_least == Decision::Delete), "{plan:?}");
    plan.resources
}

/// A failed update leaves the object that a replacement has not deleted yet.
#[tokio::test(start_paused = true)]
async fn a_former_resource_of_a_nested_stack_is_marked() {
    let bench = Bench::new(1, &types()).await;
    let id = bench.create(&sources(value!({}))).await;
    assert_eq!(bench.settled(id).await.state.status, Status::Complete);
    let failed = bench.update(id, &sources(value!({"length": 9, "fail": true})), false).await;
    assert_eq!(failed.state.status, Status::Failed);
    let planned = planned(&bench, id).await;
    let listed: Vec<(&str, bool)> = planned.iter().map(|entry| (entry.path.as_str(), entry.former)).collect();
    let expected = [
        ("nested", false),
        ("nested/last", false),
        ("nested/volume", false),
        ("nested/word", false),
        ("nested/word", true),
    ];
    assert_eq!(listed, expected);
    bench.engine.abort();
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_stack_keeps_its_objects() {
    let bench = Bench::new(1, &types()).await;
    let id = bench.create(&sources(value!({}))).await;
    assert_eq!(bench.settled(id).await.state.status, Status::Complete);
    let lost = |planned: &[Entry]| planned.iter().filter(|entry| !entry.lost.is_empty()).count();
    assert_eq!(lost(&planned(&bench, id).await), 1, "the volume");
    bench.engine.abort();
    let mut abandon = StackRequest::new(Action::Delete, bench.backends.clock.now());
    abandon.details.keep_objects = true;
    bench.backends.store.request(id, abandon).await.expect("stored");
    let planned = planned(&bench, id).await;
    assert!(planned.len() == 4 && planned.iter().all(|entry| entry.retained), "{planned:?}");
    assert_eq!(lost(&planned), 0);
}
