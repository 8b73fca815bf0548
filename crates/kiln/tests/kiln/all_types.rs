//! Creates, updates, checks and deletes every type with a driver in a stack, through API, engine and simulated cloud.
//! The cases are those of the sweep of the drivers, and some for types that need no cloud.
//!
//! It is the longest test, so its name is the first: tests start in the order of their names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kiln_client::{Bundle, Client, StackAction, StackRequest};
use kiln_resource::DriverKind;
use kiln_testcloud::{Quota, Testcloud};
use kiln_value::{Map, Value, value};

use self::cases::Case;
use crate::processes::cluster::{Cluster, Limits};

#[path = "../../../drivers/tests/suite/sweep/cases/mod.rs"]
mod cases;

macro_rules! listed {
    ($($name:ident),* $(,)?) => {
        vec![$((stringify!($name), cases::$name())),*]
    };
}

const INNER: &str = "heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources: {value: {type: OS::Heat::Value, properties: {value: {get_param: word}}}}
";

/// What is not in a stack of its own, by type, with the place of the tests.
const ELSEWHERE: [(&str, &str); 17] = [
    ("AWS::ElasticLoadBalancing::LoadBalancer", "needs signals: crates/credentials/tests/suite/load_balancer.rs"),
    ("OS::Heat::SwiftSignal", "needs signals: crates/drivers/tests/suite/openstack/swift.rs"),
    ("OS::Heat::WaitCondition", "needs signals: crates/credentials/tests/suite"),
    ("AWS::CloudFormation::WaitCondition", "needs signals: crates/engine/tests/suite/timers/waits.rs"),
    ("OS::Heat::InstanceGroup", "needs a launch configuration: crates/engine/tests/suite/groups/instances.rs"),
    (
        "AWS::AutoScaling::AutoScalingGroup",
        "needs a launch configuration: crates/engine/tests/suite/groups/instances.rs",
    ),
    ("OS::Heat::DeployedServer", "has no object: crates/drivers/tests/suite/sweep"),
    ("OS::Heat::SoftwareDeployment", "needs signals: crates/credentials/tests/suite/deployments.rs"),
    ("OS::Heat::StructuredDeployment", "needs signals: crates/drivers/tests/suite/sweep"),
    ("OS::Heat::SoftwareDeploymentGroup", "needs signals: crates/credentials/tests/suite/deployments.rs"),
    ("OS::Heat::StructuredDeploymentGroup", "needs signals: crates/drivers/tests/suite/sweep"),
    ("OS::Heat::SoftwareDeployments", "former name of a group"),
    ("OS::Heat::StructuredDeployments", "former name of a group"),
    ("OS::Designate::RecordSet", "names an existing zone: crates/drivers/tests/suite/sweep"),
    ("OS::Mistral::CronTrigger", "names an existing workflow: crates/drivers/tests/suite/sweep"),
    ("OS::Zaqar::MistralTrigger", "names an existing workflow: crates/drivers/tests/suite/sweep"),
    ("OS::Blazar::Lease", "needs an existing host: crates/drivers/tests/suite/sweep"),
];

/// The types of `OS::Heat`: name of the case, type, properties, properties after an update.
fn of_heat() -> Vec<(&'static str, &'static str, Value, Value)> {
    let inner = |word: &str| value!({"template": INNER, "parameters": {"word": word}});
    let group = |count: i64| value!({"count": count, "resource_def": {"type": "OS::Heat::Value", "properties": {"value": "%index%"}}});
    let scaling = |min: i64| value!({"min_size": min, "max_size": 3, "resource": {"type": "OS::Heat::Value", "properties": {"value": "a"}}});
    let launch = |data: &str| value!({"ImageId": "cirros", "InstanceType": "m1.nano", "UserData": data});
    let chain = |word: &str| value!({"resources": ["OS::Heat::Value", "OS::Heat::Value"], "resource_properties": {"value": word}});
    let component = |text: &str| value!({"configs": [{"actions": ["CREATE"], "config": text, "tool": "script"}]});
    vec![
        ("value", "OS::Heat::Value", value!({"value": "a"}), value!({"value": "b"})),
        ("random", "OS::Heat::RandomString", value!({"length": 4}), value!({"length": 5})),
        ("test", "OS::Heat::TestResource", value!({"value": "a"}), value!({"value": "b"})),
        ("delay", "OS::Heat::Delay", value!({"min_wait": 0.1}), value!({"min_wait": 0.2})),
        ("none", "OS::Heat::None", value!({"any": "a"}), value!({"any": "b"})),
        ("group", "OS::Heat::ResourceGroup", group(2), group(3)),
        ("scaling", "OS::Heat::AutoScalingGroup", scaling(1), scaling(2)),
        ("launch", "AWS::AutoScaling::LaunchConfiguration", launch("a"), launch("b")),
        ("chain", "OS::Heat::ResourceChain", chain("a"), chain("b")),
        ("stack", "OS::Heat::Stack", inner("a"), inner("b")),
        ("config", "OS::Heat::SoftwareConfig", value!({"config": "a"}), value!({"config": "b"})),
        (
            "cloud-config",
            "OS::Heat::CloudConfig",
            value!({"cloud_config": {"a": 1}}),
            value!({"cloud_config": {"a": 2}}),
        ),
        ("structured", "OS::Heat::StructuredConfig", value!({"config": {"a": 1}}), value!({"config": {"a": 2}})),
        ("component", "OS::Heat::SoftwareComponent", component("a"), component("b")),
        ("mime", "OS::Heat::MultipartMime", value!({"parts": [{"config": "a"}]}), value!({"parts": [{"config": "b"}]})),
    ]
}

/// Types that read other resources: they have no case in the sweep.
fn of_amazon() -> Vec<Scenario> {
    let scenario = |name: &str, type_name, needs: Value, create, update| Scenario {
        name: format!("amazon-{name}"),
        type_name,
        needs: needs.as_map().cloned().unwrap_or_default(),
        create,
        update,
        is_admin: false,
    };
    let user = value!({"user": {"type": "AWS::IAM::User"}});
    let inner = |word: &str| value!({"TemplateURL": "inner.yaml", "Parameters": {"word": word}, "TimeoutInMinutes": 5});
    vec![
        scenario("key", "AWS::IAM::AccessKey", user, value!({"UserName": {"get_resource": "user"}}), None),
        scenario("policy", "OS::Heat::AccessPolicy", value!({}), value!({"AllowedResources": ["it"]}), None),
        scenario("gateway", "AWS::EC2::InternetGateway", value!({}), value!({}), None),
        scenario("stack", "AWS::CloudFormation::Stack", value!({}), inner("a"), Some(inner("b"))),
    ]
}

/// A resource with its dependencies in its own stack.
struct Scenario {
    name: String,
    type_name: &'static str,
    /// Resources in addition to the tested one.
    needs: Map,
    create: Value,
    update: Option<Value>,
    is_admin: bool,
}

impl Scenario {
    fn of(name: &str, case: &Case) -> Self {
        let needs = case.needs.iter().map(|(name, kind, given)| {
            ((*name).to_owned(), value!({"type": (*kind), "properties": (referring(given))}))
        });
        Self {
            name: name.replace('_', "-"),
            type_name: case.type_name,
            needs: needs.collect(),
            create: referring(&case.create),
            update: case.update.as_ref().map(referring),
            is_admin: case.is_admin,
        }
    }

    /// The request for the stack; all resources have this `metadata`.
    fn request(&self, properties: &Value, metadata: &str) -> StackRequest {
        let mut resources = self.needs.clone();
        resources.insert("it".to_owned(), value!({"type": (self.type_name), "properties": properties}));
        for resource in resources.values_mut().filter_map(Value::as_map_mut) {
            resource.insert("metadata".to_owned(), value!({"note": metadata}));
        }
        let template = value!({
            "heat_template_version": "2018-08-31",
            "resources": resources,
            "outputs": {"show": {"value": {"get_attr": ["it", "show"]}}},
        });
        let files = value!({"inner.yaml": INNER}).as_map().cloned().unwrap_or_default();
        let bundle = Bundle { template: Some(template), files, ..Bundle::default() };
        StackRequest { bundle, ..StackRequest::default() }
    }

    async fn play(&self, client: &Client) -> Result<(), String> {
        let stack = self.name.as_str();
        let failed = |what: &str, why: &str| format!("{stack} ({}): {what}: {why}", self.type_name);
        let first = self.request(&self.create, "first");
        client.create_stack(stack, &first).await.map_err(|error| failed("create", &error.to_string()))?;
        self.settled(client, "CREATE").await?;
        let made = self.ids(client).await;
        // As in Heat, they have no ID.
        let is_without = ["OS::Heat::Delay", "OS::Heat::AccessPolicy"].contains(&self.type_name);
        let has_none = |(_, id): &(&String, &String)| id.is_empty() && !is_without;
        if let Some((name, _)) = made.iter().find(has_none) {
            return Err(failed("create", &format!("{name} has no id")));
        }

        // Changes outside of the properties: nothing is replaced.
        let noted = self.request(&self.create, "second");
        client.update_stack(stack, &noted).await.map_err(|error| failed("metadata", &error.to_string()))?;
        self.settled(client, "UPDATE").await?;
        let after = self.ids(client).await;
        if after != made && self.type_name != "OS::Heat::UpdateWaitConditionHandle" {
            return Err(failed("metadata", &format!("{made:?} became {after:?}")));
        }

        if let Some(update) = &self.update {
            let request = self.request(update, "second");
            client.update_stack(stack, &request).await.map_err(|error| failed("update", &error.to_string()))?;
            self.settled(client, "UPDATE").await?;
        }
        let asked = client.stack_action(stack, StackAction::Check).await;
        asked.map_err(|error| failed("check", &error.to_string()))?;
        self.settled(client, "CHECK").await?;
        client.delete_stack(stack).await.map_err(|error| failed("delete", &error.to_string()))?;
        self.settled(client, "DELETE").await
    }

    /// Waits until an action is complete.
    async fn settled(&self, client: &Client, action: &str) -> Result<(), String> {
        let start = Instant::now();
        // Longer and longer: most of the work of the service would be answers.
        let mut pause = Duration::from_millis(150);
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(800));
            let (status, reason) = match client.stack(&self.name, false).await {
                Ok(stack) => (stack.status().to_owned(), stack.reason().to_owned()),
                Err(error) if error.is_not_found() => ("DELETE_COMPLETE".to_owned(), String::new()),
                Err(error) => return Err(format!("{}: {error}", self.name)),
            };
            if status == format!("{action}_COMPLETE") {
                return Ok(());
            }
            if !status.ends_with("_IN_PROGRESS") || start.elapsed() > Duration::from_secs(90) {
                return Err(format!("{} ({}): {action}: {status} {reason}", self.name, self.type_name));
            }
        }
    }

    /// The physical IDs of the resources.
    async fn ids(&self, client: &Client) -> BTreeMap<String, String> {
        let resources = client.resources(&self.name, 0, false, &vec![]).await.expect("resources");
        resources.iter().map(|resource| (resource.name().to_owned(), resource.physical_id().to_owned())).collect()
    }
}

/// A value of a case with `{name}` replaced by references to resources.
fn referring(value: &Value) -> Value {
    match value {
        Value::Str(text) => match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(name) if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                value!({"get_resource": name})
            }
            _ => value.clone(),
        },
        Value::List(items) => items.iter().map(referring).collect(),
        Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), referring(value))).collect::<Map>().into(),
        other => other.clone(),
    }
}

fn scenarios() -> Vec<Scenario> {
    let swept = cases::every_case!(listed).into_iter().map(|(name, case)| Scenario::of(name, &case));
    let of_heat = of_heat().into_iter().map(|(name, type_name, create, update)| Scenario {
        name: format!("heat-{name}"),
        type_name,
        needs: Map::new(),
        create,
        update: Some(update),
        is_admin: false,
    });
    let is_here = |scenario: &Scenario| ELSEWHERE.iter().all(|(name, _)| *name != scenario.type_name);
    swept.chain(of_heat).chain(of_amazon()).filter(is_here).collect()
}

#[test]
fn every_type_with_a_driver_is_tried() {
    let mut tried: BTreeSet<&str> = scenarios().iter().map(|scenario| scenario.type_name).collect();
    tried.extend(ELSEWHERE.map(|(name, _)| name));
    for kind in kiln_resource::shipped::types().expect("definitions") {
        let is_placeholder = kind.driver == DriverKind::Placeholder;
        if is_placeholder || kiln_drivers::driver_for(&kind).is_none_or(|driver| !driver.is_implemented()) {
            continue;
        }
        assert!(tried.contains(kind.name.as_str()), "no stack is made of {}", kind.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_lives_in_a_stack() {
    let quota = Quota {
        networks: None,
        subnets: None,
        ports: None,
        routers: None,
        floating_ips: None,
        security_groups: None,
        security_group_rules: None,
        volumes: None,
        gigabytes: None,
        ..Quota::default()
    };
    let cloud = Testcloud::builder()
        .quota(quota)
        .build_time(Duration::from_millis(50))
        .compute_minor(91)
        .start()
        .await
        .expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    cluster.cloud.add_service("orchestration", &cluster.url());
    cluster.cloud.add_service("cloudformation", &cluster.url());
    let users = cluster.cloud.users();
    let (demo, admin) = (cluster.client(users.demo), cluster.client(users.admin));
    let before = cluster.cloud.snapshot();

    // Cases of the same type use the same names for objects.
    let mut by_type: BTreeMap<&str, Vec<Scenario>> = BTreeMap::new();
    // Quotas of the project concern all the others.
    let (quotas, others): (Vec<_>, Vec<_>) =
        scenarios().into_iter().partition(|one| one.type_name.ends_with("::Quota"));
    for scenario in others {
        by_type.entry(scenario.type_name).or_default().push(scenario);
    }
    // Types with many cases first: the test takes as long as the last one.
    let mut by_type: Vec<Vec<Scenario>> = by_type.into_values().collect();
    by_type.sort_by_key(|scenarios| std::cmp::Reverse(scenarios.len()));
    let lives = by_type.iter().map(async |scenarios| {
        let mut wrong = Vec::new();
        for scenario in scenarios {
            wrong.extend(scenario.play(if scenario.is_admin { &admin } else { &demo }).await.err());
        }
        wrong
    });
    // Some at once: more clients that poll only delay each other.
    let lives = stream::iter(lives).buffer_unordered(64);
    let mut wrong: Vec<String> = lives.collect::<Vec<_>>().await.into_iter().flatten().collect();
    for scenario in &quotas {
        wrong.extend(scenario.play(if scenario.is_admin { &admin } else { &demo }).await.err());
    }
    assert!(wrong.is_empty(), "{} failed:\n{}", wrong.len(), wrong.join("\n"));
    let left: Vec<String> =
        before.added_in(&cluster.cloud.snapshot()).into_iter().filter(|left| !left.starts_with("trusts ")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    cluster.end().await;
}
