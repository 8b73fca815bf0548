//! Deployments to a server whose agent does not ask Kiln for its metadata and does not send its results to Kiln: by objects
//! of Swift and by queues of Zaqar.

use http::HeaderMap;
use kiln_cloud::{HttpRequest, Named, Transport as _};
use kiln_resource::Cloud;
use kiln_testcloud::{self as testcloud, Fault};
use kiln_value::{Map, value};

use super::cut::killed_in;
use super::users::{quiet_world, world};
use super::*;

/// How the agent collects and how it reports.
const TRANSPORTS: [(&str, &str); 2] = [("POLL_TEMP_URL", "TEMP_URL_SIGNAL"), ("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")];

fn template(collect: &str, report: &str) -> TemplateText {
    let text = format!(
        "
heat_template_version: 2018-08-31
parameters:
  size: {{type: number, default: 1}}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: echo
      inputs: [{{name: size, type: Number}}]
      outputs: [{{name: result}}]
  server: {{type: OS::Heat::DeployedServer, properties: {{software_config_transport: {collect}}}, metadata: {{own: 1}}}}
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      name: first
      config: {{get_resource: config}}
      server: {{get_resource: server}}
      signal_transport: {report}
      input_values: {{size: {{get_param: size}}}}
outputs:
  result: {{value: {{get_attr: [deployment, result]}}}}
"
    );
    TemplateText::parse(&text, &Limits::default()).expect("a template")
}

/// The agent in a server: it knows only what its metadata say.
struct Agent<'a> {
    world: &'a World,
    collect: Map,
}

impl<'a> Agent<'a> {
    async fn of(world: &'a World, stack: &Stack) -> Self {
        for _ in 0..2_000 {
            let rows = world.service.backends.store.resources(stack.id).await.expect("read");
            let server = rows.iter().find(|row| row.name == "server" && row.state.status == Status::Complete);
            if let Some(collect) = server.and_then(|row| row.data.get("os_collect_config")?.as_map()) {
                return Self { world, collect: collect.clone() };
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server is not created");
    }

    /// The metadata, if there are new ones.
    async fn collect(&self) -> Option<Value> {
        if let Some(request) = self.collect.get("request") {
            let (status, metadata) = self.world.send(http::Method::GET, request.str_at("metadata_url")?, None).await;
            assert_eq!(status, 200);
            return Some(metadata);
        }
        let own = self.collect.get("zaqar")?.as_map()?;
        let path = format!("/v2/queues/{}/messages", own.get("queue_id")?.as_str()?);
        let pop = CloudRequest::new("messaging", Method::Delete, path).query("pop", "20");
        let popped = self.world.cloud_of(own, "").await.call(pop).await.expect("messages").body;
        popped.get("messages")?.as_list()?.last()?.get("body").cloned()
    }

    /// Waits for a deployment with this value of its input; returns its inputs.
    async fn deployment(&self, size: i64) -> Map {
        let mut seen = None;
        for _ in 0..2_000 {
            seen = self.collect().await.or(seen);
            let deployed = seen.as_ref().and_then(|metadata| metadata.get("deployments")?.as_list()?.last());
            let inputs = deployed.and_then(|config| config.get("inputs")?.as_list());
            let pair = |input: &Value| Some((input.str_at("name")?.to_owned(), input.get("value")?.clone()));
            let inputs: Map = inputs.unwrap_or_default().iter().filter_map(pair).collect();
            if inputs.get("size") == Some(&value!(size)) {
                assert_eq!(seen.as_ref().and_then(|metadata| metadata.get("own")), Some(&value!(1)));
                return inputs;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no deployment {size}: {seen:?}");
    }

    async fn report(&self, inputs: &Map, details: Value) {
        if let Some(url) = inputs.get("deploy_signal_id").and_then(Value::as_str) {
            assert_eq!(inputs.get("deploy_signal_verb"), Some(&value!("PUT")));
            let (status, _) = self.world.send(http::Method::PUT, url, Some(kiln_value::text::json(&details))).await;
            assert_eq!(status, 201);
            return;
        }
        let queue = inputs.get("deploy_queue_id").and_then(Value::as_str).expect("a queue");
        let body = value!({"messages": [{"ttl": 600, "body": details}]});
        let path = format!("/v2/queues/{queue}/messages");
        let post = CloudRequest::new("messaging", Method::Post, path).body(body);
        self.world.cloud_of(inputs, "deploy_").await.call(post).await.expect("posted");
    }
}

impl World {
    /// A request without a token, as a server sends it; status and body.
    pub(super) async fn send(&self, method: http::Method, url: &str, body: Option<String>) -> (u16, Value) {
        let client = SharedClient::new(&TlsOptions::default()).expect("a client");
        let (timeout, headers) = (Duration::from_secs(9), HeaderMap::default());
        let url = url.parse().expect("a URL");
        let response = client.send(HttpRequest { method, url, headers, body: body.map(Into::into), timeout }).await;
        let response = response.expect("a response");
        (response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// The cloud for the user whom the map describes.
    pub(super) async fn cloud_of(&self, user: &Map, prefix: &str) -> Arc<kiln_cloud::StackCloud> {
        let text =
            |key: &str| user.get(&format!("{prefix}{key}")).and_then(Value::as_str).unwrap_or_default().to_owned();
        let credentials = Credentials::Password {
            user: Named::Id(text("user_id")),
            password: Secret::new(text("password")),
            scope: Scope::Project(Named::Id(text("project_id"))),
        };
        self.connector.cloud(&credentials).await
    }

    /// Objects of Swift and Zaqar, users and projects.
    pub(super) fn left(&self) -> (usize, (usize, usize)) {
        (self.cloud.snapshot().count("nouns"), self.counts())
    }

    /// Deletes a stack, after which there must be as much as `before` it was created. `case` is for messages.
    pub(super) async fn deleted_whole(&self, stack: &Stack, before: (usize, (usize, usize)), case: &str) {
        self.delete(stack).await;
        let stack = self.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Delete), "{case}: {}", stack.reason);
        self.sweep().round().await;
        assert_eq!(self.left(), before, "{case}: nothing is left");
    }
}

#[tokio::test]
async fn metadata_and_results_are_left_at_their_places() {
    for (collect, report) in TRANSPORTS {
        let world = world().await;
        world.add_to_catalog().await;
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        let before = world.left();
        let stack = world.create_of(&alice, "s", template(collect, report)).await.expect("a stack");
        let agent = Agent::of(&world, &stack).await;
        let inputs = agent.deployment(1).await;
        assert_eq!(inputs.get("deploy_signal_transport"), Some(&value!(report)));
        agent.report(&inputs, value!({"result": "fine", "deploy_status_code": 0})).await;
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
        assert_eq!(world.output(&stack, "result").await, value!("fine"));

        // The result of the create is not that of the update.
        world.resize(&alice, &stack, 2).await;
        let inputs = agent.deployment(2).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let stack = world.service.backends.store.stack(stack.id).await.expect("read").expect("there");
        assert!(stack.is_pending(), "{}", stack.reason);
        agent.report(&inputs, value!({"deploy_status_code": 3})).await;
        let stack = world.settled(stack.id).await;
        assert_eq!(stack.state, State::new(Action::Update, Status::Failed));
        assert!(stack.reason.contains("Deployment exited with non-zero status code: 3"), "{}", stack.reason);

        // A failed deployment is replaced.
        world.resize(&alice, &stack, 3).await;
        let inputs = agent.deployment(3).await;
        agent.report(&inputs, value!({"result": "again"})).await;
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Update), "{}", stack.reason);
        assert_eq!(world.output(&stack, "result").await, value!("again"));
        let metadata = agent.collect().await.expect("the deleted deployment is gone");
        assert_eq!(metadata.get("deployments").and_then(Value::as_list).map(<[Value]>::len), Some(1));

        world.deleted_whole(&stack, before, collect).await;
    }
}

/// No engine works at a deployment of a user: the service writes the metadata, and reads the result with the deployment.
#[tokio::test]
async fn deployments_of_users_reach_the_agent_too() {
    let world = world().await;
    world.add_to_catalog().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let (collect, report) = TRANSPORTS[0];
    let stack = world.create_of(&alice, "s", template(collect, report)).await.expect("a stack");
    let agent = Agent::of(&world, &stack).await;
    let inputs = agent.deployment(1).await;
    let server = world.row(stack.id, "server").await.physical_id.expect("an ID");
    // The same place as that of the stack's deployment.
    let config = kiln_service::NewConfig {
        name: Some("second".to_owned()),
        inputs: inputs.iter().map(|(name, value)| value!({"name": name, "value": value})).collect(),
        ..kiln_service::NewConfig::default()
    };
    let config = world.service.create_config(&alice, config).await.expect("a config");
    let new = kiln_service::NewDeployment {
        config: config.id,
        server,
        status: Some("IN_PROGRESS".to_owned()),
        ..kiln_service::NewDeployment::default()
    };
    let made = world.service.create_deployment(&alice, new.clone()).await.expect("a deployment");
    let count = async || {
        let metadata = agent.collect().await.expect("metadata");
        metadata.get("deployments").and_then(Value::as_list).map(<[Value]>::len)
    };
    assert_eq!(count().await, Some(2), "the agent gets it at once");
    let found = world.service.current_deployment(&alice, &made.id).await.expect("read");
    assert!(found.is_in_progress());
    agent.report(&inputs, value!({"deploy_status_code": 2})).await;
    let found = world.service.current_deployment(&alice, &made.id).await.expect("read");
    assert_eq!(found.body.status.as_deref(), Some("FAILED"), "{found:?}");
    assert_eq!(world.service.deployment(&alice, &made.id).await.expect("read").body, found.body);
    world.service.delete_deployment(&alice, &made.id).await.expect("deleted");
    assert_eq!(count().await, Some(1));

    // A service that dies after it has stored a deployment, or cannot reach Swift: an engine writes the metadata.
    let lost = Fault::new(testcloud::Service::ObjectStore, "PUT", "", testcloud::Action::Status(503));
    world.cloud.faults().add(lost.when(testcloud::When::Count(1)));
    world.service.create_deployment(&alice, new).await.expect("a deployment");
    assert_eq!(count().await, Some(1), "the write has failed");
    let start = tokio::time::Instant::now();
    while count().await != Some(2) {
        assert!(start.elapsed() < Duration::from_secs(30), "the agent learns nothing of the deployment");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_read_fails_the_deployment() {
    let world = world().await;
    world.add_to_catalog().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let (collect, report) = TRANSPORTS[0];
    let stack = world.create_of(&alice, "s", template(collect, report)).await.expect("a stack");
    let agent = Agent::of(&world, &stack).await;
    let inputs = agent.deployment(1).await;
    let url = inputs.get("deploy_signal_id").and_then(Value::as_str).expect("a URL");
    assert_eq!(world.send(http::Method::PUT, url, Some("{odd".to_owned())).await.0, 201);
    let stack = world.settled(stack.id).await;
    assert_eq!(stack.state, State::new(Action::Create, Status::Failed));
    assert!(stack.reason.ends_with("Failed to parse JSON data: {odd"), "{}", stack.reason);
}

/// The first engine is killed at some access to its store, and another one goes on.
#[tokio::test]
async fn an_engine_that_is_killed_anywhere_leaves_nothing() {
    let runs = (4..130).step_by(9).zip(TRANSPORTS.into_iter().cycle());
    let killed = killed_in(runs.map(async |(at, (collect, report))| {
        let world = quiet_world().await;
        world.add_to_catalog().await;
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        let before = world.left();
        let (engines, steps) = world.run_engines(at);
        let stack = world.create_of(&alice, "s", template(collect, report)).await.expect("a stack");
        let agent = Agent::of(&world, &stack).await;
        for size in [1, 2] {
            if size > 1 {
                world.resize(&alice, &stack, size).await;
            }
            let inputs = agent.deployment(size).await;
            agent.report(&inputs, value!({ "result": size })).await;
            let stack = world.settled(stack.id).await;
            assert_eq!(stack.state.status, Status::Complete, "at {at}: {}", stack.reason);
            assert_eq!(world.output(&stack, "result").await, value!(size), "at {at}");
        }
        world.deleted_whole(&stack, before, &format!("{collect} at {at}")).await;
        engines.abort();
        steps.disarm() > at
    }))
    .await;
    assert!(killed > 8, "{killed} engines were killed");
}
