//! Groups of instances with a launch configuration.

use kiln_resource::{Action, StackId};
use kiln_value::{Value, text, value};

use crate::groups::bench::Bench;

fn template(data: &str, group: &str, policy: &str) -> String {
    format!(
        "HeatTemplateFormatVersion: '2012-12-12'
Resources:
  lc:
    Type: AWS::AutoScaling::LaunchConfiguration
    Properties: {{ImageId: i, InstanceType: t, UserData: {data}}}
  g:
    Type: {group}
    Properties:
      AvailabilityZones: [nova]
      LaunchConfigurationName: {{Ref: lc}}
      {{}}
{policy}
Outputs:
  list: {{Value: {{'Fn::GetAtt': [g, InstanceList]}}}}
"
    )
}

async fn list(bench: &Bench, stack: StackId) -> String {
    bench.outputs(stack).await.get("list").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_new_launch_configuration_replaces_instances_in_batches() {
    let bench = Bench::new();
    let engine = bench.engine();
    let of = |data: &str, size: u32, rolling: bool| {
        let policy = "    UpdatePolicy: {RollingUpdate: {MaxBatchSize: 2, MinInstancesInService: 1, PauseTime: PT30S}}";
        let template = template(data, "OS::Heat::InstanceGroup", if rolling { policy } else { "" });
        template.replace("      {}\n", &format!("      Size: {size}\n"))
    };
    let id = bench.create(&of("one", 3, true), None).await;
    let created = bench.completed(id).await;
    assert_eq!(list(&bench, id).await, "one,one,one");
    let group = bench.row(id, "g").await;
    let child = bench.child(id, "g").await;
    let types: Vec<String> =
        bench.backends.store.resources(child).await.expect("read").into_iter().map(|row| row.resource_type).collect();
    assert_eq!(types, ["OS::Heat::ScaledResource"; 3]);
    bench.update(id, &of("two", 3, true)).await;
    let updated = bench.completed(id).await;
    assert_eq!(list(&bench, id).await, "two,two,two");
    assert!((30.0..60.0).contains(&(updated - created)), "{updated}");
    assert_eq!(bench.row(id, "g").await.id, group.id);
    // Without a policy, only new instances have new settings.
    bench.update(id, &of("three", 4, false)).await;
    bench.completed(id).await;
    assert_eq!(list(&bench, id).await, "two,two,two,three");
    engine.kill();
}

/// `resource show` has the list also if no template reads it; the nested stack has no output for it then.
#[tokio::test(start_paused = true)]
async fn the_list_of_instances_is_shown_without_an_output() {
    let bench = Bench::new();
    let engine = bench.engine();
    let template = template("one", "OS::Heat::InstanceGroup", "");
    let (template, _) = template.split_once("Outputs:").expect("outputs");
    let id = bench.create(&template.replace("      {}\n", "      Size: 3\n"), None).await;
    bench.completed(id).await;
    let view = kiln_stack::LoadedStack::load(&bench.backends, id).await.expect("read").expect("a stack");
    assert_eq!(view.attributes("g", &[]).await.get("InstanceList"), Some(&value!("one,one,one")));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_cfn_scales_a_group_of_cfn() {
    let bench = Bench::new();
    let engine = bench.engine();
    let policy = "  up:
    Type: AWS::AutoScaling::ScalingPolicy
    Properties:
      AutoScalingGroupName: {Ref: g}
      AdjustmentType: PercentChangeInCapacity
      ScalingAdjustment: 50
      MinAdjustmentStep: 2";
    let template = template("one", "AWS::AutoScaling::AutoScalingGroup", policy);
    let id = bench.create(&template.replace("      {}\n", "      MinSize: 1\n      MaxSize: 8\n"), None).await;
    bench.completed(id).await;
    assert_eq!(list(&bench, id).await, "one");
    bench.signal(id, "up", value!({"state": "alarm"})).await;
    bench.quiet(id).await;
    assert_eq!(list(&bench, id).await, "one,one,one");
    bench.signal(id, "up", Value::Null).await;
    bench.quiet(id).await;
    assert_eq!((list(&bench, id).await.as_str(), bench.signals(id).await.len()), ("one,one,one,one,one", 2));
    let end = bench.row(id, "g").await.metadata.get("cooldown_end").and_then(Value::as_map).cloned().expect("an end");
    assert_eq!(end.values().next(), Some(&"PercentChangeInCapacity : 50".into()));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_with_additional_instances_ends_with_the_former_size() {
    let bench = Bench::new();
    let engine = bench.engine();
    let of = |data: &str, min: u32, batch: u32| {
        let policy = format!(
            "    UpdatePolicy: {{AutoScalingRollingUpdate: {{MaxBatchSize: {batch}, MinInstancesInService: {min}, \
             PauseTime: PT1S}}}}"
        );
        let template = template(data, "AWS::AutoScaling::AutoScalingGroup", &policy);
        template.replace("      {}\n", "      MinSize: 10\n      MaxSize: 20\n")
    };
    let id = bench.create(&of("one", 1, 2), None).await;
    bench.completed(id).await;
    for (data, min, batch) in [("two", 8, 4), ("three", 20, 1)] {
        bench.update(id, &of(data, min, batch)).await;
        bench.completed(id).await;
        assert_eq!(list(&bench, id).await, [data; 10].join(","));
    }
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_group_is_replaced_when_a_property_requires_it() {
    let bench = Bench::new();
    let engine = bench.engine();
    let of = |zone: &str| {
        let template = template("one", "AWS::AutoScaling::AutoScalingGroup", "").replace("[nova]", zone);
        template.replace("      {}\n", "      MinSize: 1\n      MaxSize: 2\n")
    };
    let id = bench.create(&of("[nova]"), None).await;
    bench.completed(id).await;
    let first = bench.child(id, "g").await;
    let plan = bench.preview(id, &of("[other]")).await;
    let group = plan.entries.iter().find(|entry| entry.name == "g").expect("the group");
    assert_eq!(group.list(), "replaced");
    bench.update(id, &of("[other]")).await;
    bench.completed(id).await;
    assert_ne!(bench.child(id, "g").await, first);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_change_of_size_is_seen_in_metadata_and_not_done_while_suspended() {
    let bench = Bench::new();
    let engine = bench.engine();
    let policy = "  up:
    Type: AWS::AutoScaling::ScalingPolicy
    Properties: {AutoScalingGroupName: {Ref: g}, AdjustmentType: ChangeInCapacity, ScalingAdjustment: 1}
  balancer:
    Type: AWS::EC2::Instance
    Metadata: {IPs: {'Fn::GetAtt': [g, InstanceList]}}
    Properties: {ImageId: i, InstanceType: t}";
    let template = template("one", "AWS::AutoScaling::AutoScalingGroup", policy);
    let id = bench.create(&template.replace("      {}\n", "      MinSize: 1\n      MaxSize: 8\n"), None).await;
    bench.completed(id).await;
    let addresses = async || text::str(bench.row(id, "balancer").await.metadata.get("IPs").expect("addresses"));
    assert_eq!(addresses().await, "one");
    bench.signal(id, "up", Value::Null).await;
    bench.quiet(id).await;
    assert_eq!(addresses().await, "one,one");

    bench.ask(id, Action::Suspend).await;
    bench.signal(id, "up", Value::Null).await;
    bench.quiet(id).await;
    let last = bench.events(id).await.pop().expect("an event");
    assert_eq!((last.action.as_str(), last.reason.as_str()), ("SUSPEND", "Cannot signal resource during SUSPEND"));
    assert_eq!(addresses().await, "one,one");
    engine.kill();
}
