//! Members of `OS::Heat::ResourceGroup` that change in batches.

use std::time::Duration;

use kiln_resource::Status;
use kiln_value::text;

use crate::groups::bench::Bench;

fn template(count: u32, value: &str, policy: &str) -> String {
    format!(
        "{{heat_template_version: '2018-08-31', resources: {{g: {{type: 'OS::Heat::ResourceGroup', update_policy: {policy},
          properties: {{count: {count},
          resource_def: {{type: 'OS::Heat::TestResource', properties: {{value: '{value}-%index%'}}}}}}}}}},
          outputs: {{refs: {{value: {{get_attr: [g, refs]}}}}}}}}"
    )
}

/// The times (in seconds) and names of the members that completed an action.
async fn completed(bench: &Bench, stack: kiln_resource::StackId, action: &str) -> Vec<(i64, String)> {
    let child = bench.child(stack, "g").await;
    let events = bench.events(child).await;
    let of_members = events.iter().filter(|event| {
        event.resource_type == "OS::Heat::TestResource" && event.action == action && event.status == Status::Complete
    });
    let mut found: Vec<_> =
        of_members.map(|event| (Bench::seconds(event.time) / 30 * 30, event.resource_name.clone())).collect();
    found.sort();
    found
}

fn at(times: &[(i64, &str)]) -> Vec<(i64, String)> {
    times.iter().map(|(at, name)| (*at, (*name).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn members_are_created_and_updated_in_batches_with_pauses() {
    let bench = Bench::new();
    let engine = bench.engine();
    let policy = "{batch_create: {max_batch_size: 2, pause_time: 60}, rolling_update: {pause_time: 120.0}}";
    let id = bench.create(&template(3, "one", policy), None).await;
    bench.completed(id).await;
    assert_eq!(completed(&bench, id, "CREATE").await, at(&[(0, "0"), (0, "1"), (60, "2")]));
    bench.update(id, &template(3, "two", policy)).await;
    bench.completed(id).await;
    assert_eq!(completed(&bench, id, "UPDATE").await, at(&[(60, "2"), (180, "1"), (300, "0")]));
    // Another count is no new definition: there are no batches.
    bench.update(id, &template(6, "two", policy)).await;
    bench.completed(id).await;
    let child = bench.child(id, "g").await;
    assert_eq!(bench.members(child).await, ["0=two-0", "1=two-1", "2=two-2", "3=two-3", "4=two-4", "5=two-5"]);
    assert_eq!(completed(&bench, id, "CREATE").await.last(), Some(&(300, "5".to_owned())));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_goes_on_after_the_death_of_an_engine() {
    let bench = Bench::new();
    let first = bench.engine();
    let policy = "{rolling_update: {max_batch_size: 1, min_in_service: 2, pause_time: 60}}";
    let id = bench.create(&template(2, "one", policy), None).await;
    bench.completed(id).await;
    bench.update(id, &template(2, "two", policy)).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    first.kill();
    let child = bench.child(id, "g").await;
    assert_eq!(bench.members(child).await, ["0=one-0", "1=two-1", "2=two-2"]);
    let second = bench.engine();
    bench.completed(id).await;
    assert_eq!(bench.members(child).await, ["0=two-0", "1=two-1"]);
    // Each member was updated once.
    let updated: Vec<String> = completed(&bench, id, "UPDATE").await.into_iter().map(|(_, name)| name).collect();
    assert_eq!(updated, ["1", "0"]);
    second.kill();
}

#[tokio::test(start_paused = true)]
async fn pauses_beyond_the_timeout_are_refused() {
    let bench = Bench::new();
    let engine = bench.engine();
    let policy = "{rolling_update: {max_batch_size: 1, pause_time: 60}}";
    let id = bench.create(&template(3, "one", policy), Some(2)).await;
    bench.completed(id).await;
    bench.update(id, &template(3, "two", policy)).await;
    let stack = bench.settled(id).await;
    let text = "Resource UPDATE failed: ValueError: resources.g: \
                The current update policy will result in stack update timeout.";
    assert_eq!((stack.state.status, stack.reason.as_str()), (Status::Failed, text));
    let child = bench.child(id, "g").await;
    assert_eq!(bench.members(child).await, ["0=one-0", "1=one-1", "2=one-2"]);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn members_of_later_batches_keep_their_former_file() {
    let bench = Bench::new();
    let engine = bench.engine();
    let of = |file: &str| {
        format!(
            "{{heat_template_version: '2018-08-31', resources: {{g: {{type: 'OS::Heat::ResourceGroup',
              update_policy: {{rolling_update: {{max_batch_size: 1, min_in_service: 1, pause_time: 1}}}},
              properties: {{count: 3, resource_def: {{type: {file}}}}}}}}}}}"
        )
    };
    let member = "{heat_template_version: '2018-08-31', resources: {one: {type: 'OS::Heat::TestResource'}}}";
    let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
    bench.completed(id).await;
    for file in ["a.yaml", "b.yaml"] {
        bench.update_with(id, &of(file), &[(file, member)]).await;
        bench.completed(id).await;
    }
    let stack = bench.backends.store.stack(bench.child(id, "g").await).await.expect("read").expect("there");
    let files = bench.backends.store.desired(&stack.desired).await.expect("read").files;
    assert!(files.contains("b.yaml") && !files.contains("a.yaml"), "{files}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn the_reference_of_a_group_is_the_id_of_its_nested_stack() {
    let bench = Bench::new();
    let engine = bench.engine();
    let template = "heat_template_version: 2018-08-31
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 1, resource_def: {type: OS::Heat::None}}
  chain:
    type: OS::Heat::ResourceChain
    properties: {resources: [OS::Heat::None]}
outputs:
  group: {value: {get_resource: group}}
  chain: {value: {get_resource: chain}}
";
    let stack = bench.create(template, None).await;
    bench.settled(stack).await;
    for name in ["group", "chain"] {
        let child = bench.child(stack, name).await.to_string();
        assert_eq!(bench.outputs(stack).await[name].as_str(), Some(child.as_str()), "{name}");
    }
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn members_that_a_rolling_update_replaces_are_listed_by_their_index() {
    let bench = Bench::new();
    let engine = bench.engine();
    let top = "{heat_template_version: '2018-08-31', resources: {outer: {type: outer.yaml}}}";
    let outer = "{heat_template_version: '2018-08-31', resources: {inner: {type: inner.yaml}}}";
    let inner = |salt: &str, more: &str| {
        format!(
            "{{heat_template_version: '2018-08-31', resources: {{{more}
              group: {{type: 'OS::Heat::ResourceGroup', update_policy: {{rolling_update: {{max_batch_size: 2}}}},
                properties: {{count: 2, resource_def: {{type: 'OS::Heat::RandomString', properties: {{salt: {salt}}}}}}}}},
              reader: {{type: 'OS::Heat::Value', properties: {{value: {{list_join: ['-', {{get_attr: [group, refs]}}]}}}}}}}}}}"
        )
    };
    let id = bench.create("{heat_template_version: '2018-08-31'}", None).await;
    bench.completed(id).await;
    let source = "source: {type: 'OS::Heat::TestResource'},";
    let mut seen = Vec::new();
    for inner in [inner("{get_resource: source}", source), inner("text", "")] {
        let files = [("outer.yaml", outer), ("inner.yaml", &inner)];
        bench.update_with(id, top, &files).await;
        bench.completed(id).await;
        let nested = bench.child(bench.child(id, "outer").await, "inner").await;
        let group = bench.child(nested, "group").await;
        let members = [bench.row(group, "0").await, bench.row(group, "1").await];
        let refs = members.map(|row| text::str(row.data.get("value").expect("a value"))).join("-");
        assert_eq!(bench.row(nested, "reader").await.properties()["value"].as_str(), Some(refs.as_str()));
        assert!(bench.preview_with(id, top, &files).await.is_unchanged());
        seen.push(refs);
    }
    assert_ne!(seen[0], seen[1], "the update replaces the members");
    engine.kill();
}
