//! A failed create, update, rollback or delete goes on where it stood once the cause is gone: no object twice, and none left.

use kiln_resource::{Action, StackId, State, Status};
use kiln_stack::load;
use kiln_store::{Stack, StackRequest};
use kiln_testcloud::{Action as Effect, Fault, Service};
use kiln_value::value;

use super::{Bench, sources_of, types};

const WEB: &str = "
heat_template_version: 2018-08-31
parameters: {name: {type: string, default: ant}, image: {type: string, default: golden}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.9.0.0/24}}
  group:
    type: OS::Heat::ResourceGroup
    depends_on: subnet
    properties:
      count: 2
      resource_def: {type: OS::Neutron::Port, properties: {name: {get_param: name}, network: {get_resource: net}}}
  volume: {type: OS::Cinder::Volume, depends_on: net, properties: {name: {get_param: name}, size: 1}}
  server:
    type: OS::Nova::Server
    depends_on: [group, volume]
    properties:
      name: web
      image: {get_param: image}
      image_update_policy: REPLACE
      flavor: tiny
      networks: [{network: {get_resource: net}}]
";

/// As the service does.
async fn go_on(bench: &Bench, stack: &Stack) -> Stack {
    let now = bench.backends.clock.now();
    let request = match stack.state.action {
        Action::Delete => StackRequest::delete(stack, now),
        Action::Rollback => StackRequest::rollback(stack.generation, false, now),
        action => StackRequest::new(action, now),
    };
    bench.backends.store.request(stack.id, request).await.expect("stored");
    bench.settled(stack.id).await
}

/// The number of objects in the cloud that are not the world's.
async fn objects(bench: &Bench) -> usize {
    bench.world.objects().await.len()
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_goes_on_once_the_cause_is_gone() {
    let causes = [
        (Service::Network, "POST", "/ports$"),
        (Service::Network, "PUT", "/ports/"),
        (Service::Volume, "POST", "/volumes$"),
        (Service::Volume, "PUT", "/volumes/"),
        (Service::Volume, "DELETE", "/volumes/"),
        (Service::Compute, "POST", "/servers$"),
        (Service::Compute, "DELETE", "/servers/"),
        (Service::Network, "DELETE", "/ports/"),
    ];
    let mut continued = Vec::new();
    for (service, method, path) in causes {
        for action in [Action::Create, Action::Update, Action::Rollback, Action::Delete] {
            let bench = Bench::new(1, &types()).await;
            let before = objects(&bench).await;
            let cause = Fault::new(service, method, path, Effect::Status(400));
            if action == Action::Create {
                bench.cloud.faults().add(cause.clone());
            }
            let id: StackId = bench.create(&sources_of(WEB, value!({}))).await;
            let mut stack = bench.settled(id).await;
            if action != Action::Create {
                let whole = stack.state == State::new(Action::Create, Status::Complete);
                assert!(whole, "{}", stack.reason);
                bench.cloud.faults().add(cause);
                if action == Action::Rollback {
                    // It takes back an update that fails at the end.
                    bench.cloud.faults().add(Fault::new(Service::Compute, "POST", "/servers$", Effect::Status(400)));
                }
                let kind = if action == Action::Delete { Action::Delete } else { Action::Update };
                let change = load::texts(&sources_of(WEB, value!({"name": "bee", "image": "plain"})));
                let request = StackRequest {
                    desired: (kind == Action::Update).then_some(change),
                    disable_rollback: Some(action != Action::Rollback),
                    ..StackRequest::new(kind, bench.backends.clock.now())
                };
                bench.backends.store.request(id, request).await.expect("stored");
                stack = bench.settled(id).await;
            }
            let failed = stack.state == State::new(action, Status::Failed);
            bench.cloud.faults().clear();
            if failed {
                continued.push((action, path));
                let ended = go_on(&bench, &stack).await;
                let complete = State::new(action, Status::Complete);
                assert_eq!(ended.state, complete, "{action} after {method} {path}: {}", ended.reason);
                stack = ended;
            }
            if stack.deleted.is_none() {
                let made = objects(&bench).await - before;
                if stack.state.status == Status::Complete {
                    assert_eq!(
                        made, 7,
                        "{action} after {method} {path}: net, subnet, ports, volume, server and its port"
                    );
                }
                let request = StackRequest::new(Action::Delete, bench.backends.clock.now());
                bench.backends.store.request(id, request).await.expect("stored");
                let deleted = bench.settled(id).await;
                assert_eq!(deleted.state, State::new(Action::Delete, Status::Complete), "{}", deleted.reason);
            }
            assert_eq!(objects(&bench).await, before, "{action} after {method} {path}");
            bench.engine.abort();
        }
    }
    for action in [Action::Create, Action::Update, Action::Rollback, Action::Delete] {
        assert!(continued.iter().filter(|(one, _)| *one == action).count() > 1, "{action}: {continued:?}");
    }
}
