//! Groups of instances with a launch configuration.

use kiln_resource::StackId;
use kiln_value::{Value, value};

use crate::bench::Bench;

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
