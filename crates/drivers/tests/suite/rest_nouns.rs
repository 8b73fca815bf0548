//! The types without code: create, read, update and delete on the real OpenStack of the `OS_*` variables (of an
//! administrator): `cargo test -p kiln-drivers --test suite rest_nouns -- --ignored`.

use std::sync::Arc;

use kiln_cloud::{Connector, Credentials, Options, SharedClient, TlsOptions};
use kiln_resource::translation::{self, Answers};
use kiln_resource::{
    Cloud, Comparison, Context, Driver, Facts, Found, NoSoftware, Operation, Progress, ResourceType, Step, change,
    properties, shipped,
};
use kiln_value::{Map, Path, Value, value};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

async fn cloud() -> Arc<dyn Cloud> {
    let client = SharedClient::new(&TlsOptions::default()).unwrap();
    let connector = Connector::new(Arc::new(client), Options::new(variable("OS_AUTH_URL").parse().unwrap()));
    let domain = variable("OS_USER_DOMAIN_NAME");
    let (user, password) = (variable("OS_USERNAME"), variable("OS_PASSWORD"));
    let credentials = Credentials::password(&user, &password, &variable("OS_PROJECT_NAME"), &domain);
    connector.cloud(&credentials).await
}

/// A resource in the cloud.
struct Live {
    cloud: Arc<dyn Cloud>,
    resource_type: ResourceType,
    driver: Arc<dyn Driver>,
    facts: Facts,
}

impl Live {
    async fn create(cloud: &Arc<dyn Cloud>, name: &str, given: Value) -> Self {
        let resource_type = shipped::types().unwrap().into_iter().find(|t| t.name == name).unwrap();
        let driver = kiln_drivers::driver_for(&resource_type).unwrap();
        #[expect(clippy::disallowed_methods, reason = "every run requires unique names in a shared cloud")]
        let token = uuid::Uuid::new_v4().to_string();
        let facts = Facts {
            name: "noun".to_owned(),
            resource_type: name.to_owned(),
            physical_name: format!("kiln-noun-{}", &token[..8]),
            token,
            ..Facts::default()
        };
        let mut live = Self { cloud: Arc::clone(cloud), resource_type, driver, facts };
        live.facts.properties = live.properties(given).await;
        live.run(Operation::Create).await;
        live
    }

    async fn properties(&self, given: Value) -> Map {
        let given = given.as_map().unwrap().clone();
        let rules = &self.resource_type.translation;
        let mut answers = Answers::new();
        for lookup in translation::lookups(rules, &given).into_keys() {
            let id = self.cloud.find(&lookup.finder, &lookup.value).await.unwrap();
            answers.insert(lookup, id);
        }
        let translated = translation::apply(rules, given, &answers, &Path::root()).unwrap();
        properties::resolve(&self.resource_type.properties, &translated).unwrap()
    }

    async fn run(&mut self, operation: Operation) {
        let mut step =
            self.driver.start(&self.context(), &operation).await.unwrap_or_else(|e| self.fail(&operation, &e));
        loop {
            self.keep(&step);
            match step.progress {
                Progress::Done => return,
                Progress::Replace | Progress::Prepared => panic!("{} requests a replacement", self.resource_type.name),
                Progress::Wait { state, after } => {
                    tokio::time::sleep(after).await;
                    let next = self.driver.poll(&self.context(), &operation, &state).await;
                    step = next.unwrap_or_else(|e| self.fail(&operation, &e));
                }
            }
        }
    }

    fn fail(&self, operation: &Operation, failure: &kiln_resource::Failure) -> ! {
        panic!("{} {operation:?}: {failure}", self.resource_type.name)
    }

    fn context(&self) -> Context<'_> {
        Context { cloud: &*self.cloud, software: &NoSoftware, facts: &self.facts, now: 0.0, seed: [7; 32], polls: 0 }
    }

    fn keep(&mut self, step: &Step) {
        if let Some(id) = &step.physical_id {
            self.facts.physical_id = Some(id.clone());
        }
        self.facts.data.extend(step.data.clone());
    }

    fn id(&self) -> &str {
        self.facts.physical_id.as_deref().unwrap()
    }

    async fn show(&self) -> Value {
        self.driver.attributes(&self.context(), &["show"]).await.unwrap().shift_remove("show").unwrap()
    }

    /// Updates it in place and checks that the service has these values afterwards.
    async fn update(&mut self, given: Value, expected: Value) {
        let after = self.properties(given).await;
        let before = std::mem::replace(&mut self.facts.properties, after);
        let decision = change::compare_resolved(&self.resource_type, "noun", &before, &self.facts.properties);
        let Comparison::Update { changed } = decision else { panic!("{decision:?}") };
        self.run(Operation::Update { before, changed }).await;
        self.has(expected).await;
    }

    async fn has(&self, expected: Value) {
        let object = self.show().await;
        for (key, value) in expected.as_map().unwrap() {
            assert_eq!(object.get(key), Some(value), "{} {key} of {object:?}", self.resource_type.name);
        }
    }

    /// Checks that the object of a lost create of this attempt is found.
    async fn is_found(&self) {
        let mut lost = self.facts.clone();
        lost.physical_id = None;
        let cx = Context { facts: &lost, ..self.context() };
        let found = self.driver.find(&cx).await.unwrap();
        let Found::Made(step) = found else { panic!("{}: {found:?}", self.resource_type.name) };
        assert_eq!(step.physical_id.as_deref(), Some(self.id()), "{}", self.resource_type.name);
    }

    async fn delete(mut self) {
        self.run(Operation::Delete).await;
        assert_eq!(self.show().await, Value::Null, "{} still exists", self.resource_type.name);
        // The delete of a missing object succeeds.
        self.run(Operation::Delete).await;
    }
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn address_scope_and_subnet_pool() {
    let cloud = cloud().await;
    let mut scope = Live::create(&cloud, "OS::Neutron::AddressScope", value!({})).await;
    scope.is_found().await;
    scope.has(value!({"name": (scope.facts.physical_name.as_str()), "shared": false, "ip_version": 4})).await;
    let renamed = format!("{}-renamed", scope.facts.physical_name);
    let renamed = renamed.as_str();
    scope.update(value!({"name": renamed}), value!({"name": renamed})).await;
    let given = value!({"prefixes": ["10.90.0.0/16"], "address_scope": renamed, "tags": ["a"]});
    let mut pool = Live::create(&cloud, "OS::Neutron::SubnetPool", given).await;
    // By its name: the mark of an object with a name of the user's ends with the create.
    pool.is_found().await;
    pool.has(value!({"address_scope_id": (scope.id()), "tags": ["a"]})).await;
    let given =
        value!({"prefixes": ["10.90.0.0/15"], "address_scope": renamed, "tags": ["b", "c"], "name": "kiln-pool"});
    pool.update(given, value!({"prefixes": ["10.90.0.0/15"], "tags": ["b", "c"]})).await;
    pool.delete().await;
    scope.delete().await;
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn quality_of_service() {
    let cloud = cloud().await;
    let policy = Live::create(&cloud, "OS::Neutron::QoSPolicy", value!({"description": "d"})).await;
    policy.is_found().await;
    let name = policy.facts.physical_name.as_str();
    let mut limit =
        Live::create(&cloud, "OS::Neutron::QoSBandwidthLimitRule", value!({"policy": name, "max_kbps": 100})).await;
    limit.is_found().await;
    limit.update(value!({"policy": name, "max_kbps": 200}), value!({"max_kbps": 200})).await;
    let mark = Live::create(&cloud, "OS::Neutron::QoSDscpMarkingRule", value!({"policy": name, "dscp_mark": 8})).await;
    mark.is_found().await;
    assert_eq!(
        policy.driver.attributes(&policy.context(), &["rules"]).await.unwrap()["rules"].as_list().map(<[_]>::len),
        Some(2)
    );
    mark.delete().await;
    limit.delete().await;
    let least =
        Live::create(&cloud, "OS::Neutron::QoSMinimumBandwidthRule", value!({"policy": name, "min_kbps": 9})).await;
    least.delete().await;
    let rate =
        Live::create(&cloud, "OS::Neutron::QoSMinimumPacketRateRule", value!({"policy": name, "min_kpps": 9})).await;
    rate.delete().await;
    policy.delete().await;
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn metering_and_sharing() {
    let cloud = cloud().await;
    let label = Live::create(&cloud, "OS::Neutron::MeteringLabel", value!({"description": "d"})).await;
    let given = value!({"metering_label_id": (label.id()), "remote_ip_prefix": "10.91.0.0/24", "direction": "egress"});
    let rule = Live::create(&cloud, "OS::Neutron::MeteringRule", given).await;
    rule.is_found().await;
    rule.delete().await;
    label.delete().await;
    let network = Live::create(
        &cloud,
        "OS::Neutron::ProviderNet",
        value!({"network_type": "vxlan", "segmentation_id": "4242", "shared": false, "tags": ["t"]}),
    )
    .await;
    network.is_found().await;
    network.has(value!({"provider:segmentation_id": 4242, "provider:network_type": "vxlan", "tags": ["t"]})).await;
    let given = value!({
        "object_type": "network",
        "object_id": (network.facts.physical_name.as_str()),
        "action": "access_as_shared",
        "target_tenant": "*"
    });
    let sharing = Live::create(&cloud, "OS::Neutron::RBACPolicy", given).await;
    sharing.is_found().await;
    sharing.has(value!({"object_id": (network.id())})).await;
    sharing.delete().await;
    network.delete().await;
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn catalog_of_keystone() {
    let cloud = cloud().await;
    let mut role = Live::create(&cloud, "OS::Keystone::Role", value!({})).await;
    role.is_found().await;
    role.update(value!({"name": "kiln-role"}), value!({"name": "kiln-role"})).await;
    role.delete().await;
    let mut region =
        Live::create(&cloud, "OS::Keystone::Region", value!({"id": "kiln-region", "description": "d"})).await;
    region.update(value!({"id": "kiln-region", "description": "e"}), value!({"description": "e"})).await;
    let service = Live::create(&cloud, "OS::Keystone::Service", value!({"type": "kiln-thing"})).await;
    service.is_found().await;
    let given = |url: &str| {
        value!({
            "service": (service.facts.physical_name.as_str()),
            "region": "kiln-region",
            "interface": "public",
            "url": url
        })
    };
    let mut endpoint = Live::create(&cloud, "OS::Keystone::Endpoint", given("http://127.0.0.1:1")).await;
    endpoint.is_found().await;
    endpoint
        .update(given("http://127.0.0.1:2"), value!({"url": "http://127.0.0.1:2", "service_id": (service.id())}))
        .await;
    endpoint.delete().await;
    service.delete().await;
    region.delete().await;
}

#[tokio::test]
#[ignore = "needs a real OpenStack with an orchestration service"]
async fn remote_stack() {
    let cloud = cloud().await;
    let given = |text: &str| {
        let template = "heat_template_version: 2016-10-14\nparameters: {p: {type: string}}\nresources:\n  v: {type: \
                        OS::Heat::Value, properties: {value: {get_param: p}}}\noutputs: {o: {value: {get_attr: [v, \
                        value]}}}\n";
        value!({"template": template, "parameters": {"p": text}, "timeout": 3})
    };
    let mut stack = Live::create(&cloud, "OS::Heat::Stack", given("one")).await;
    stack.is_found().await;
    let attributes = stack.driver.attributes(&stack.context(), &["outputs", "stack_name"]).await.unwrap();
    assert_eq!(attributes["outputs"], value!({"o": "one"}));
    assert_eq!(attributes["stack_name"], stack.facts.physical_name.as_str().into());
    stack.update(given("two"), value!({"stack_status": "UPDATE_COMPLETE"})).await;
    let attributes = stack.driver.attributes(&stack.context(), &["outputs"]).await.unwrap();
    assert_eq!(attributes["outputs"], value!({"o": "two"}));
    stack.run(Operation::Check).await;
    stack.run(Operation::Suspend).await;
    stack.run(Operation::Resume).await;
    stack.run(Operation::Delete).await;
}
