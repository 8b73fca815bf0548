//! Software deployments from the create to the delete, with an engine on the simulated cloud and the agent of a server.

use kiln_resource::{Cloud, SoftwareDeployment};
use kiln_service::Signal;
use kiln_store::DeploymentQuery;
use kiln_value::{Map, value};

use super::cut::killed_in;
use super::users::{quiet_world, world};
use super::*;

const TEMPLATE: &str = "
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 1}
  actions: {type: comma_delimited_list, default: 'CREATE,UPDATE,DELETE'}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: echo
      inputs: [{name: size, type: Number}, {name: other, default: 5}]
      outputs: [{name: result}, {name: oops, error_output: true}]
  server: {type: OS::Heat::DeployedServer}
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      name: first
      config: {get_resource: config}
      server: {get_resource: server}
      actions: {get_param: actions}
      input_values: {size: {get_param: size}, undeclared: x}
outputs:
  result: {value: {get_attr: [deployment, result]}}
  stdout: {value: {get_attr: [deployment, deploy_stdout]}}
  shown: {value: {get_attr: [deployment, show]}}
  shown_config: {value: {get_attr: [config, show]}}
";

impl World {
    /// Waits until the deployments are these, by their statuses.
    async fn deployed(&self, statuses: &[&str]) -> Vec<SoftwareDeployment> {
        let store = &self.service.backends.store;
        let mut found = Vec::new();
        for _ in 0..2_000 {
            found = store.software_deployments(&DeploymentQuery::default()).await.expect("read");
            if found.iter().map(|one| one.body.status.as_deref().unwrap_or_default()).eq(statuses.iter().copied()) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not {statuses:?}: {found:?}");
    }

    /// The deployments in the metadata of the server, as its agent reads them.
    async fn collected(&self, stack: &Stack) -> Vec<Value> {
        let server = self.row(stack.id, "server").await;
        let metadata = self.service.metadata_of(stack, &server).await.expect("read");
        let own = metadata.get("os-collect-config").and_then(|own| own.get("cfn")).expect("a way to collect");
        assert_eq!(own.str_at("path"), Some("server.Metadata"));
        assert_eq!(own.str_at("access_key_id"), server.data.get("access_key").and_then(Value::as_str));
        metadata.get("deployments").and_then(Value::as_list).expect("a list").to_vec()
    }

    async fn signal(&self, stack: &Stack, details: Value) {
        let signal = Signal { resource: "deployment".to_owned(), details };
        let stack = self.service.backends.store.stack(stack.id).await.expect("read").expect("there");
        self.service.signal(stack, &signal).await.expect("sent");
    }

    /// Adds the CFN API to the catalog.
    pub(super) async fn add_to_catalog(&self) {
        let admin = self.cloud.users().admin;
        let admin = Credentials::password(admin.user, admin.password, admin.project, "Default");
        let cloud = self.connector.cloud(&admin).await;
        let post = async |path: &str, body: Value| {
            let request = CloudRequest::new("identity", Method::Post, path).body(body);
            cloud.call(request).await.expect("created").body
        };
        let service = post("/v3/services", value!({"service": {"type": "cloudformation", "name": "heat-cfn"}})).await;
        let id = service.get("service").and_then(|service| service.str_at("id")).expect("an ID");
        let endpoint = value!({
            "service_id": id, "interface": "public", "region_id": "RegionOne", "url": "http://heat:8000/v1",
        });
        post("/v3/endpoints", value!({ "endpoint": endpoint })).await;
    }

    pub(super) async fn output(&self, stack: &Stack, name: &str) -> Value {
        let view = self.service.view(stack.clone()).await.expect("a view");
        view.outputs(Some(name)).await.into_iter().next().map(|output| output.value).unwrap_or_default()
    }

    pub(super) async fn resize(&self, caller: &Caller, stack: &Stack, size: i64) {
        let sections = Map::from([("parameters".to_owned(), value!({ "size": size }))]);
        let content = StackContent { sections, ..StackContent::default() };
        let update = UpdateStack { existing: true, content, ..UpdateStack::default() };
        let stack = self.service.backends.store.stack(stack.id).await.expect("read").expect("there");
        self.service.update_stack(caller, &stack, update).await.expect("accepted");
    }

    pub(super) async fn delete(&self, stack: &Stack) {
        let request = StackRequest::new(Action::Delete, kiln_stack::SystemClock.now());
        self.service.backends.store.request(stack.id, request).await.expect("asked");
    }
}

/// The value of an input of a config.
fn input<'a>(config: &'a Value, name: &str) -> &'a Value {
    let inputs = config.get("inputs").and_then(Value::as_list).expect("inputs");
    let found = inputs.iter().find(|input| input.str_at("name") == Some(name));
    found.and_then(|input| input.get("value")).unwrap_or(&Value::Null)
}

fn names(deployed: &[Value]) -> Vec<(&str, &str)> {
    let pair = |config| Some((Value::str_at(config, "name")?, input(config, "deploy_action").as_str()?));
    deployed.iter().filter_map(pair).collect()
}

/// The config is stored before a resource that depends on it is created.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_contains_the_configs_of_its_stack() {
    let world = world().await;
    world.add_to_catalog().await;
    let template = "
heat_template_version: 2018-08-31
resources:
  script: {type: OS::Heat::SoftwareConfig, properties: {config: echo hello}}
  cloud: {type: OS::Heat::CloudConfig, properties: {cloud_config: {hostname: here}}}
  mime:
    type: OS::Heat::MultipartMime
    properties: {parts: [{config: {get_resource: script}}, {config: {get_resource: cloud}}]}
outputs: {message: {value: {get_attr: [mime, config]}}}
";
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let template = TemplateText::parse(template, &Limits::default()).expect("a template");
    let stack = world.create_of(&alice, "s", template).await.expect("a stack");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    let message = world.output(&stack, "message").await;
    let message = message.as_str().expect("a text");
    assert!(message.contains("\n\necho hello\n") && message.contains("#cloud-config\nhostname: here\n"), "{message}");
}

#[tokio::test]
async fn a_deployment_from_create_to_delete() {
    let world = world().await;
    world.add_to_catalog().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let store = Arc::clone(&world.service.backends.store);
    let before = world.counts();
    let template = TemplateText::parse(TEMPLATE, &Limits::default()).expect("a template");
    let stack = world.create_of(&alice, "s", template).await.expect("a stack");

    let deployments = world.deployed(&["IN_PROGRESS"]).await;
    let row = world.row(stack.id, "deployment").await;
    assert_eq!(row.physical_id.as_ref(), Some(&deployments[0].id));
    assert_eq!(deployments[0].body.inputs, value!({"size": 1, "undeclared": "x"}));
    let stack = store.stack(stack.id).await.expect("read").expect("there");
    assert!(stack.is_pending(), "the stack waits for the signal");
    let collected = world.collected(&stack).await;
    assert_eq!(names(&collected), [("first", "CREATE")]);
    let config = &collected[0];
    assert_eq!((config.str_at("group"), config.str_at("config")), (Some("script"), Some("echo")));
    assert_eq!((input(config, "size"), input(config, "other")), (&value!(1), &value!("5")));
    assert_eq!(input(config, "undeclared"), &value!("x"));
    assert_eq!(input(config, "deploy_stack_id"), &value!(format!("s/{}", stack.id)));
    assert_eq!(input(config, "deploy_signal_verb"), &value!("POST"));
    let url = input(config, "deploy_signal_id").as_str().expect("a URL");
    assert!(url.starts_with("http://heat:8000/v1/signal/arn%3A"), "{url}");
    let server = world.row(stack.id, "server").await.physical_id.expect("an ID");
    assert_eq!(deployments[0].server, server);

    world.signal(&stack, value!({"result": "fine", "deploy_stdout": "out", "deploy_status_code": 0})).await;
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    assert_eq!(world.output(&stack, "result").await, value!("fine"));
    assert_eq!(world.output(&stack, "stdout").await, value!("out"));
    // As Heat: the attribute `show` is what the API says of the deployment and of the config.
    assert_eq!(world.output(&stack, "shown").await, world.deployed(&["COMPLETE"]).await[0].view());
    let id = world.row(stack.id, "config").await.physical_id.expect("an ID");
    let stored = store.software_config(&id).await.expect("read").expect("there");
    assert_eq!(world.output(&stack, "shown_config").await, Value::from(stored.view()));

    // An update that fails, and a later one that succeeds with a new deployment.
    world.resize(&alice, &stack, 2).await;
    world.deployed(&["IN_PROGRESS"]).await;
    let collected = world.collected(&stack).await;
    assert_eq!(names(&collected), [("first", "UPDATE")]);
    assert_eq!(input(&collected[0], "size"), &value!(2));
    world.signal(&stack, value!({"deploy_status_code": 3, "oops": "broken"})).await;
    let stack = world.settled(stack.id).await;
    assert_eq!(stack.state, State::new(Action::Update, Status::Failed));
    let text = "Deployment to server failed: deploy_status_code : Deployment exited with non-zero status code: 3, oops : broken";
    assert!(stack.reason.ends_with(text), "{}", stack.reason);
    world.resize(&alice, &stack, 3).await;
    world.deployed(&["FAILED", "IN_PROGRESS"]).await;
    world.signal(&stack, value!({"result": "again"})).await;
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Update), "{}", stack.reason);
    assert_eq!(world.output(&stack, "result").await, value!("again"));
    // The config of the template, and one for the deployment.
    assert_eq!(store.count_software_configs(&stack.project).await.expect("read"), 2);

    // The delete waits for a signal only while the server exists: this one was never in Nova.
    world.delete(&stack).await;
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Delete), "{}", stack.reason);
    assert_eq!(store.count_software_configs(&stack.project).await.expect("read"), 0);
    world.deployed(&[]).await;
    world.sweep().round().await;
    assert_eq!(world.counts(), before, "users and projects are gone");
}

/// As in Heat: nothing is deployed before the delete, which makes the deployment and waits for its signal.
#[tokio::test]
async fn a_deployment_for_the_delete_alone() {
    let world = world().await;
    world.add_to_catalog().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let server = "type: OS::Nova::Server, properties: {image: cirros, flavor: m1.nano, \
                  user_data_format: SOFTWARE_CONFIG, networks: [{allocate_network: none}]}";
    let template = TEMPLATE.replace("type: OS::Heat::DeployedServer", server).replace("CREATE,UPDATE,DELETE", "DELETE");
    let template = TemplateText::parse(&template, &Limits::default()).expect("a template");
    let stack = world.create_of(&alice, "s", template).await.expect("a stack");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    world.deployed(&[]).await;

    let request = StackRequest::new(Action::Check, kiln_stack::SystemClock.now());
    world.service.backends.store.request(stack.id, request).await.expect("asked");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Check), "{}", stack.reason);

    world.delete(&stack).await;
    let deployments = world.deployed(&["IN_PROGRESS"]).await;
    assert_eq!(deployments[0].body.action.as_deref(), Some("DELETE"));
    world.signal(&stack, value!({"deploy_status_code": 0})).await;
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Delete), "{}", stack.reason);
    world.deployed(&[]).await;
}

/// The first engine is killed at some access to its store, and another one goes on.
#[tokio::test]
async fn an_engine_that_is_killed_anywhere_loses_no_deployment() {
    let killed = killed_in((3..90).step_by(6).map(async |at| {
        let world = quiet_world().await;
        world.add_to_catalog().await;
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        let before = world.counts();
        let (engines, steps) = world.run_engines(at);
        let template = TemplateText::parse(TEMPLATE, &Limits::default()).expect("a template");
        let stack = world.create_of(&alice, "s", template).await.expect("a stack");
        world.deployed(&["IN_PROGRESS"]).await;
        world.signal(&stack, value!({"result": "fine"})).await;
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Create), "at {at}: {}", stack.reason);
        assert_eq!(world.output(&stack, "result").await, value!("fine"), "at {at}");
        world.deployed(&["COMPLETE"]).await;
        world.resize(&alice, &stack, 2).await;
        world.deployed(&["IN_PROGRESS"]).await;
        world.signal(&stack, value!({"result": "again"})).await;
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Update), "at {at}: {}", stack.reason);
        assert_eq!(world.output(&stack, "result").await, value!("again"), "at {at}");
        let store = &world.service.backends.store;
        assert_eq!(store.count_software_configs(&stack.project).await.expect("read"), 2, "at {at}");
        let events = kiln_store::EventQuery {
            stacks: vec![stack.id],
            resource: Some("deployment".to_owned()),
            actions: vec!["SIGNAL".to_owned()],
            ..kiln_store::EventQuery::default()
        };
        assert_eq!(store.events(&events).await.expect("read").len(), 2, "at {at}: each signal has one event");
        world.delete(&stack).await;
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Delete), "at {at}: {}", stack.reason);
        assert_eq!(store.count_software_configs(&stack.project).await.expect("read"), 0, "at {at}");
        world.sweep().round().await;
        assert_eq!(world.counts(), before, "at {at}: users and projects are gone");
        engines.abort();
        steps.disarm() > at
    }))
    .await;
    assert!(killed > 8, "{killed} engines were killed");
}
