//! What an engine sends to the cloud, request by request, for stacks without plans. A snapshot has them all, so that no
//! feature adds one for those who do not use it.

use std::fmt::Write as _;
use std::sync::Arc;

use kiln_plan::Sources;
use kiln_resource::{Action, StackId, Status};
use kiln_store::{Stack, StackRequest};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_testcloud::{Action as Effect, Fault, Service};
use kiln_value::{Value, value};
use uuid::Uuid;

use crate::plan::{Bench, types};
use crate::recorder::Recorded;

/// Each resource waits for the one before it, so the order of the requests is determined.
const CHAIN: &str = "
heat_template_version: 2018-08-31
parameters:
  name: {type: string, default: ant}
  size: {type: number, default: 1}
  flavor: {type: string, default: tiny}
  image: {type: string, default: golden}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
  subnet: {type: OS::Neutron::Subnet, properties: {name: sub, network: {get_resource: net}, cidr: 10.9.0.0/24}}
  port:
    type: OS::Neutron::Port
    depends_on: subnet
    properties: {name: {get_param: name}, network: {get_resource: net}}
  volume:
    type: OS::Cinder::Volume
    depends_on: port
    properties: {name: {get_param: name}, size: {get_param: size}}
  server:
    type: OS::Nova::Server
    depends_on: volume
    properties:
      name: web
      image: {get_param: image}
      image_update_policy: REPLACE
      flavor: {get_param: flavor}
      networks: [{port: {get_resource: port}}]
      metadata: {name: {get_param: name}}
      user_data_format: RAW
outputs:
  address: {value: {get_attr: [server, first_address]}}
";

/// The members are created together, and updated one after the other.
const GROUP: &str = "
heat_template_version: 2018-08-31
parameters: {name: {type: string, default: ant}, count: {type: number, default: 3}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    update_policy: {rolling_update: {max_batch_size: 1}}
    properties:
      count: {get_param: count}
      resource_def:
        type: OS::Neutron::Port
        properties: {name: {list_join: ['-', [{get_param: name}, '%index%']]}, network: lan}
";

const NEST: &str = "
heat_template_version: 2018-08-31
parameters: {name: {type: string, default: ant}}
resources:
  one: {type: nested.yaml, properties: {name: {get_param: name}}}
  two: {type: nested.yaml, depends_on: one, properties: {name: {get_attr: [one, name]}}}
";

const NESTED: &str = "
heat_template_version: 2018-08-31
parameters: {name: {type: string}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
outputs:
  name: {value: {get_attr: [net, name]}}
";

fn sources(template: &str, parameters: Value) -> Sources {
    let template = kiln_template::source::parse(template, "t.yaml", usize::MAX).expect("YAML").value;
    let environment = Environment::from_value(&value!({"parameters": parameters})).expect("an environment");
    Sources {
        template: Arc::new(template),
        environment: Arc::new(environment),
        files: Arc::new(Files([("nested.yaml".to_owned(), NESTED.to_owned())].into())),
    }
}

/// A stack whose requests are written down.
struct Record {
    bench: Bench,
    id: StackId,
    /// Whether requests are sent at the same time: then their order means nothing.
    is_parallel: bool,
    text: String,
}

impl Record {
    async fn of(template: &str, is_parallel: bool) -> Self {
        let bench = Bench::new(1, &types()).await;
        bench.recorder.take();
        let id = bench.create(&sources(template, value!({}))).await;
        Self { bench, id, is_parallel, text: String::new() }
    }

    /// Writes down the requests until the stack has settled.
    async fn until_settled(&mut self, title: &str, status: Status) -> Stack {
        let stack = self.bench.settled(self.id).await;
        assert_eq!(stack.state.status, status, "{title}: {}", stack.reason);
        _ = writeln!(self.text, "# {title}");
        let mut lines: Vec<String> = self.bench.recorder.take().into_iter().map(written).collect();
        if self.is_parallel {
            lines.sort();
        }
        let mut lines = lines.into_iter().peekable();
        while let Some(line) = lines.next() {
            let mut count = 1;
            while lines.next_if_eq(&line).is_some() {
                count += 1;
            }
            let times = if count > 1 { format!("{count} x ") } else { String::new() };
            _ = writeln!(self.text, "{times}{line}");
        }
        stack
    }

    async fn asked(&mut self, title: &str, request: StackRequest, status: Status) -> Stack {
        self.bench.backends.store.request(self.id, request).await.expect("stored");
        self.until_settled(title, status).await
    }

    fn request(&self, action: Action) -> StackRequest {
        StackRequest::new(action, self.bench.backends.clock.now())
    }

    fn update(&self, template: &str, parameters: Value) -> StackRequest {
        let desired = Some(kiln_stack::load::texts(&sources(template, parameters)));
        StackRequest { desired, disable_rollback: Some(true), ..self.request(Action::Update) }
    }
}

/// A request without what differs from run to run: IDs.
fn written(request: Recorded) -> String {
    let Recorded { method, service, path, mut body, .. } = request;
    if service == "identity" {
        body = serde_json::Value::Null;
    }
    let body = if body.is_null() { String::new() } else { format!(" {body}") };
    let mut shown = String::new();
    for word in
        format!("{method} {service}{path}{body}").split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-')
    {
        let (word, end) = word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len());
        let start = word.len().saturating_sub(if word.contains('-') { 36 } else { 32 });
        let is_id = word.is_char_boundary(start) && Uuid::try_parse(&word[start..]).is_ok();
        shown += if is_id { &word[..start] } else { word };
        shown += if is_id { "{id}" } else { "" };
        shown += end;
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn a_stack_without_plans_sends_what_it_always_sent() {
    let mut record = Record::of(CHAIN, false).await;
    record.until_settled("create", Status::Complete).await;
    let names = value!({"name": "bee", "size": 2});
    let update = record.update(CHAIN, names);
    record.asked("update in place", update, Status::Complete).await;
    let flavor = record.update(CHAIN, value!({"name": "bee", "size": 2, "flavor": "small"}));
    record.asked("update with a restart", flavor, Status::Complete).await;
    let image = value!({"name": "bee", "size": 2, "flavor": "small", "image": "plain"});
    let replacement = record.update(CHAIN, image.clone());
    record.asked("replacement", replacement, Status::Complete).await;
    let check = record.request(Action::Check);
    record.asked("check", check, Status::Complete).await;
    let suspend = record.request(Action::Suspend);
    record.asked("suspend", suspend, Status::Complete).await;
    let resume = record.request(Action::Resume);
    record.asked("resume", resume, Status::Complete).await;
    let refused = Fault::new(Service::Compute, "POST", "/servers$", Effect::Status(400));
    record.bench.cloud.faults().add(refused);
    let failing = record.update(CHAIN, value!({"name": "cat", "size": 2, "flavor": "small", "image": "golden"}));
    let failing = StackRequest { disable_rollback: Some(false), ..failing };
    record.asked("failed update, rolled back", failing, Status::Complete).await;
    record.bench.cloud.faults().clear();
    let delete = record.request(Action::Delete);
    record.asked("delete", delete, Status::Complete).await;
    record.bench.engine.abort();
    insta::assert_snapshot!("chain", record.text);
}

#[tokio::test(start_paused = true)]
async fn a_group_without_plans_sends_what_it_always_sent() {
    let mut record = Record::of(GROUP, true).await;
    record.until_settled("create", Status::Complete).await;
    let rolling = record.update(GROUP, value!({"name": "bee"}));
    record.asked("rolling update", rolling, Status::Complete).await;
    let fewer = record.update(GROUP, value!({"name": "bee", "count": 1}));
    record.asked("fewer members", fewer, Status::Complete).await;
    let delete = record.request(Action::Delete);
    record.asked("delete", delete, Status::Complete).await;
    record.bench.engine.abort();
    insta::assert_snapshot!("group", record.text);
}

#[tokio::test(start_paused = true)]
async fn nested_stacks_without_plans_send_what_they_always_sent() {
    let mut record = Record::of(NEST, false).await;
    record.until_settled("create", Status::Complete).await;
    let update = record.update(NEST, value!({"name": "bee"}));
    record.asked("update", update, Status::Complete).await;
    let delete = record.request(Action::Delete);
    record.asked("delete", delete, Status::Complete).await;
    record.bench.engine.abort();
    insta::assert_snapshot!("nested", record.text);
}
