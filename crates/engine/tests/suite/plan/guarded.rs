//! A guard that is added at any moment of an operation: only calls of resources whose operation had begun follow it.

use std::collections::BTreeSet;
use std::time::Duration;

use kiln_resource::{Action, GuardId, GuardRule, Operation, Status};
use kiln_store::{Author, Guard, GuardTerms, StackId, StackRequest};
use kiln_value::value;

use super::{Bench, sources_of, types};
use crate::recorder::Recorded;

const WEB: &str = "
heat_template_version: 2018-08-31
parameters: {name: {type: string, default: ant}, image: {type: string, default: golden}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.9.0.0/24}}
  port:
    type: OS::Neutron::Port
    depends_on: subnet
    properties: {name: {get_param: name}, network: {get_resource: net}}
  volume: {type: OS::Cinder::Volume, depends_on: net, properties: {name: {get_param: name}, size: 1}}
  server:
    type: OS::Nova::Server
    properties:
      name: web
      image: {get_param: image}
      image_update_policy: REPLACE
      flavor: tiny
      networks: [{port: {get_resource: port}}]
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def: {type: OS::Neutron::Port, properties: {name: {get_param: name}, network: {get_resource: net}}}
";

/// The running operations of the tree: the IDs of their objects, and the number of creates.
async fn in_flight(bench: &Bench, root: StackId) -> (BTreeSet<String>, usize) {
    let query = kiln_store::StackQuery { root: Some(root), nested: true, ..kiln_store::StackQuery::default() };
    let stacks = bench.backends.store.stacks(&query).await.expect("read");
    let ids: Vec<StackId> = stacks.iter().map(|stack| stack.id).collect();
    let rows = bench.backends.store.resources_of(&ids).await.expect("read");
    let running: Vec<_> = rows.iter().filter(|row| row.running().is_some() && row.child.is_none()).collect();
    let creates = running.iter().filter(|row| row.running().is_some_and(|one| one.operation == Operation::Create));
    (running.iter().filter_map(|row| row.physical_id.clone()).collect(), creates.count())
}

/// What changes something, except the creates of these many objects and what is about these.
fn others(calls: Vec<Recorded>, mut known: BTreeSet<String>, mut creates: usize) -> Vec<String> {
    let mut found = Vec::new();
    for call in calls.into_iter().filter(|call| call.method != "GET" && call.service != "identity") {
        if known.iter().any(|id| call.path.contains(id.as_str())) {
            continue;
        }
        let made = call.answer.as_object().into_iter().flatten().find_map(|(_, object)| object["id"].as_str());
        match made.filter(|_| call.method == "POST" && creates > 0) {
            Some(id) => {
                creates -= 1;
                known.insert(id.to_owned());
            }
            None => found.push(format!("{} {}{}", call.method, call.service, call.path)),
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn only_what_had_begun_follows_a_guard() {
    let (mut stopped, mut moments) = (BTreeSet::new(), 0);
    for action in [Action::Create, Action::Update, Action::Delete] {
        for moment in 0.. {
            let bench = Bench::new(1, &types()).await;
            let id = bench.create(&sources_of(WEB, value!({}))).await;
            if action != Action::Create {
                let made = bench.settled(id).await;
                assert_eq!(made.state.status, Status::Complete, "{}", made.reason);
                let mut request = StackRequest::new(action, bench.backends.clock.now());
                request.disable_rollback = Some(true);
                let change = sources_of(WEB, value!({"name": "bee", "image": "plain"}));
                request.desired = (action == Action::Update).then(|| kiln_stack::load::texts(&change));
                bench.backends.store.request(id, request).await.expect("stored");
            }
            tokio::time::sleep(Duration::from_millis(70 * moment)).await;
            bench.recorder.take();
            let stack = bench.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                bench.engine.abort();
                break;
            }
            moments += 1;
            let author = Author { user_id: "u".to_owned(), username: "jo".to_owned() };
            let terms =
                GuardTerms { rule: GuardRule::Freeze { signals: false }, until: None, reason: "audit".to_owned() };
            let guard = Guard {
                id: GuardId(bench.backends.chance.uuid()),
                project: stack.project.clone(),
                stack: Some(id),
                terms,
                author: author.clone(),
                created: bench.backends.clock.now(),
            };
            bench.backends.store.add_guard(&guard).await.expect("stored");
            let (known, creates) = in_flight(&bench, id).await;
            let ended = bench.settled(id).await;
            let beyond = others(bench.recorder.take(), known, creates);
            assert_eq!(beyond, [""; 0], "{action} after {moment} steps: {}", ended.reason);
            if ended.state.status == Status::Failed {
                assert!(ended.reason.contains("Guarded") && ended.reason.contains("(audit)"), "{}", ended.reason);
                stopped.insert(action);
            }
            // Once it is lifted, the stack can be deleted, and nothing is left.
            assert!(bench.backends.store.lift_guard(&stack.project, guard.id, &author).await.expect("lifted"));
            if ended.deleted.is_none() {
                let request = StackRequest::new(Action::Delete, bench.backends.clock.now());
                bench.backends.store.request(id, request).await.expect("stored");
                let deleted = bench.settled(id).await;
                assert_eq!(deleted.state.status, Status::Complete, "{action} {moment}: {}", deleted.reason);
            }
            bench.engine.abort();
        }
    }
    assert_eq!(stopped.len(), 3, "{stopped:?}");
    assert!(moments > 40, "{moments}");
}
