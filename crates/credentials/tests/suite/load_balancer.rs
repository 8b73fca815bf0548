//! The load balancer of AWS, with an engine on the simulated cloud: its server gets the addresses of the instances.

use kiln_resource::StackId;
use kiln_service::Signal;
use kiln_value::{text, value};

use super::users::world;
use super::*;

/// `instances`: the names of the servers behind the load balancer.
fn template(instances: &str) -> TemplateText {
    let text = format!(
        "
heat_template_version: 2018-08-31
parameters:
  LbImageId: {{type: string, default: cirros}}
  LbFlavor: {{type: string, default: m1.nano}}
resources:
  one: &server
    type: AWS::EC2::Instance
    properties: {{ImageId: cirros, InstanceType: m1.nano}}
  two: *server
  balancer:
    type: AWS::ElasticLoadBalancing::LoadBalancer
    properties:
      AvailabilityZones: [nova]
      Instances: [{instances}]
      Listeners: [{{LoadBalancerPort: 80, InstancePort: 8080, Protocol: HTTP}}]
outputs:
  first: {{value: {{get_attr: [one, PublicIp]}}}}
  second: {{value: {{get_attr: [two, PublicIp]}}}}
  address: {{value: {{get_attr: [balancer, DNSName]}}}}
"
    );
    TemplateText::parse(&text, &Limits::default()).expect("a template")
}

impl World {
    /// The ID of the nested stack, when its server waits for the signal.
    async fn waiting_balancer(&self, parent: StackId) -> StackId {
        let store = &self.service.backends.store;
        let mut seen = Vec::new();
        for _ in 0..3_000 {
            let rows = store.resources(parent).await.expect("read");
            seen = rows.iter().map(|row| format!("{} {} {}", row.name, row.state, row.reason)).collect();
            let child = rows.iter().find(|row| row.name == "balancer").and_then(|row| row.child);
            if let Some(child) = child {
                let rows = store.resources(child).await.expect("read");
                seen = rows.iter().map(|row| format!("{} {} {}", row.name, row.state, row.reason)).collect();
                if rows.iter().any(|row| row.name == "WaitCondition" && row.state.status == Status::InProgress) {
                    return child;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the load balancer does not wait: {seen:?}");
    }

    /// HAProxy's configuration in the metadata of the server.
    async fn configuration(&self, nested: StackId) -> String {
        let metadata = self.row(nested, "LB_instance").await.metadata;
        let path = ["AWS::CloudFormation::Init", "config", "files", "/etc/haproxy/haproxy.cfg", "content"];
        text::str(path.iter().try_fold(&metadata, |value, key| value.get(key)).expect("a configuration"))
    }
}

#[tokio::test]
async fn the_server_knows_the_addresses_of_the_instances() {
    let world = world().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let store = Arc::clone(&world.service.backends.store);
    let one = template("{get_resource: one}");
    let id = world.create_of(&alice, "s", one).await.expect("a stack").id;

    let nested = world.waiting_balancer(id).await;
    let server = world.row(nested, "LB_instance").await.physical_id;
    let signal = value!({"Status": "SUCCESS", "Reason": "", "Data": "", "UniqueId": "1"});
    let signal = Signal { resource: "WaitHandle".to_owned(), details: signal };
    let inner = store.stack(nested).await.expect("read").expect("there");
    world.service.signal(inner, &signal).await.expect("sent");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    let (first, second) = (world.output(&stack, "first").await, world.output(&stack, "second").await);
    assert!(world.output(&stack, "address").await.is_truthy());
    let line = |number: i32, address: &Value| format!("    server server{number} {}:8080\n", text::str(address));
    let configuration = world.configuration(nested).await;
    assert!(configuration.contains(&line(1, &first)) && !configuration.contains("server2"), "{configuration}");

    let update =
        UpdateStack { template: Some(template("{get_resource: one}, {get_resource: two}")), ..UpdateStack::default() };
    world.service.update_stack(&alice, &stack, update).await.expect("accepted");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Update), "{}", stack.reason);
    let configuration = world.configuration(nested).await;
    assert!(configuration.contains(&line(1, &first)) && configuration.contains(&line(2, &second)), "{configuration}");
    assert_eq!(world.row(nested, "LB_instance").await.physical_id, server, "only the metadata have changed");

    let request = StackRequest::new(Action::Delete, kiln_stack::SystemClock.now());
    store.request(id, request).await.expect("asked");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete), "{}", stack.reason);
    assert_eq!(world.cloud.snapshot().count("servers"), 0);
}

/// A group behind a load balancer, with the settings of a server: `more` are further resources, among them the group.
fn group_template(more: &str) -> TemplateText {
    let text = format!(
        "
heat_template_version: 2018-08-31
parameters:
  LbImageId: {{type: string, default: cirros}}
  LbFlavor: {{type: string, default: m1.nano}}
resources:
  one: {{type: AWS::EC2::Instance, properties: {{ImageId: cirros, InstanceType: m1.tiny}}}}
  balancer:
    type: AWS::ElasticLoadBalancing::LoadBalancer
    properties:
      AvailabilityZones: [nova]
      Listeners: [{{LoadBalancerPort: 80, InstancePort: 8080, Protocol: HTTP}}]
{more}"
    );
    TemplateText::parse(&text, &Limits::default()).expect("a template")
}

const GROUP: &str = "
  group:
    type: AWS::AutoScaling::AutoScalingGroup
    properties:
      AvailabilityZones: [nova]
      InstanceId: {get_resource: one}
      MinSize: 1
      MaxSize: 3
      LoadBalancerNames: [{get_resource: balancer}]
  up:
    type: AWS::AutoScaling::ScalingPolicy
    properties: {AutoScalingGroupName: {get_resource: group}, AdjustmentType: ChangeInCapacity, ScalingAdjustment: 1}
  launch:
    type: AWS::AutoScaling::LaunchConfiguration
    properties: {InstanceId: {get_resource: one}, InstanceType: m1.nano}
  fixed:
    type: OS::Heat::InstanceGroup
    properties: {AvailabilityZones: [nova], LaunchConfigurationName: {get_resource: launch}, Size: 1}
outputs:
  list: {value: {get_attr: [group, InstanceList]}}
  fixed: {value: {get_attr: [fixed, InstanceList]}}
";

impl World {
    /// Waits until the load balancer has exactly these servers.
    async fn balances(&self, nested: StackId, addresses: &str) {
        let expected: Vec<String> = addresses
            .split(',')
            .filter(|address| !address.is_empty())
            .zip(1..)
            .map(|(address, at)| format!("    server server{at} {address}:8080"))
            .collect();
        let mut seen = String::new();
        for _ in 0..2_000 {
            seen = self.configuration(nested).await;
            let servers: Vec<&str> = seen.lines().filter(|line| line.trim_start().starts_with("server ")).collect();
            let settled = self.settled(nested).await;
            if servers == expected && settled.state.status == Status::Complete {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not {expected:?}: {seen}");
    }
}

#[tokio::test]
async fn the_members_of_a_group_are_behind_its_load_balancer() {
    let world = world().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let store = Arc::clone(&world.service.backends.store);
    let id = world.create_of(&alice, "s", group_template(GROUP)).await.expect("a stack").id;
    let nested = world.waiting_balancer(id).await;
    let done = value!({"Status": "SUCCESS", "Reason": "", "Data": "", "UniqueId": "1"});
    let done = Signal { resource: "WaitHandle".to_owned(), details: done };
    world.service.signal(store.stack(nested).await.expect("read").expect("there"), &done).await.expect("sent");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    let list = async |stack: &Stack| text::str(&world.output(stack, "list").await);
    let one = list(&stack).await;
    assert!(!one.is_empty() && !one.contains(','), "{one}");
    world.balances(nested, &one).await;
    // The settings are those of the server, and the launch configuration takes precedence.
    let flavors = async |group: &str| {
        let child = world.row(id, group).await.child.expect("a nested stack");
        let rows = store.resources(child).await.expect("read");
        rows.iter().map(|row| text::str(row.properties().get("InstanceType").expect("a flavor"))).collect::<Vec<_>>()
    };
    let id_of = async |name: &str| {
        let cloud = world.service.backends.clouds.cloud(&stack).await.expect("a cloud");
        cloud.find("nova.flavor", name).await.expect("a flavor")
    };
    assert_eq!(flavors("group").await, [id_of("m1.tiny").await]);
    assert_eq!(flavors("fixed").await, [id_of("m1.nano").await]);

    let up = Signal { resource: "up".to_owned(), details: Value::Null };
    world.service.signal(stack.clone(), &up).await.expect("sent");
    let mut two = one.clone();
    for _ in 0..2_000 {
        two = list(&stack).await;
        if two.contains(',') && !two.contains("0.0.0.0") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(two.starts_with(&format!("{one},")), "{two}");
    world.balances(nested, &two).await;

    // Without the group, the load balancer has no servers.
    let update = UpdateStack { template: Some(group_template("")), ..UpdateStack::default() };
    world.service.update_stack(&alice, &stack, update).await.expect("accepted");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Update), "{}", stack.reason);
    world.balances(nested, "").await;
    let request = StackRequest::new(Action::Delete, kiln_stack::SystemClock.now());
    store.request(id, request).await.expect("asked");
    let stack = world.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete), "{}", stack.reason);
    assert_eq!(world.cloud.snapshot().count("servers"), 0);
}
