//! Software deployments from the create to the delete, with an engine on the simulated cloud and the agent of a server.

use kiln_resource::SoftwareDeployment;
use kiln_service::Signal;
use kiln_store::DeploymentQuery;
use kiln_value::{Map, value};

use super::users::world;
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

    async fn output(&self, stack: &Stack, name: &str) -> Value {
        let view = kiln_engine::View::of(&self.service.backends, stack.clone()).await.expect("a view");
        view.output(name).await.map(|output| output.value).unwrap_or_default()
    }

    async fn update(&self, caller: &Caller, stack: &Stack, size: i64) {
        let content = StackContent { parameters: Map::from([("size".to_owned(), size.into())]), ..content() };
        let update = UpdateStack { content, settings: Settings::default(), patch: false };
        self.service.update_stack(caller, stack, update).await.expect("accepted");
    }

    async fn delete(&self, stack: &Stack) {
        let request = StackRequest::new(Action::Delete, kiln_engine::SystemClock.now());
        self.service.backends.store.request(stack.id, request).await.expect("asked");
    }
}

/// The value of an input of a config.
fn input<'a>(config: &'a Value, name: &str) -> &'a Value {
    let inputs = config.get("inputs").and_then(Value::as_list).expect("inputs");
    let found = inputs.iter().find(|input| input.str_at("name") == Some(name));
    found.and_then(|input| input.get("value")).unwrap_or(&Value::Null)
}
