//! The types without code: create, read, update and delete, as an administrator.

use kiln_resource::{Found, Operation};
use kiln_value::{Value, value};

use crate::openstack::ground::Ground;
use crate::resource::{Outcome, Resource};
use crate::scenarios;

scenarios!(address_scope_and_subnet_pool, quality_of_service, metering_and_sharing, catalog_of_keystone);

async fn made(ground: &Ground, type_name: &str, given: Value) -> Resource {
    let mut resource = ground.admin_resource(type_name, "noun");
    resource.create(given).await.unwrap_or_else(|failure| panic!("{type_name}: {failure}"));
    resource
}

/// Updates it in place and checks that the service has these values afterwards.
async fn update(resource: &mut Resource, given: Value, expected: Value) {
    assert_eq!(resource.update(given).await.unwrap(), Outcome::Updated);
    has(resource, expected).await;
}

async fn has(resource: &Resource, expected: Value) {
    let object = resource.attribute("show").await;
    for (key, value) in expected.as_map().unwrap() {
        assert_eq!(object.get(key), Some(value), "{} {key} of {object:?}", resource.kind.name);
    }
}

/// Checks that the object of a lost create of this attempt is found.
async fn is_found(resource: &Resource) {
    let found = resource.found().await.unwrap();
    let Found::Made(step) = found else { panic!("{}: {found:?}", resource.kind.name) };
    assert_eq!(step.physical_id.as_deref(), Some(resource.id()), "{}", resource.kind.name);
}

async fn delete(mut resource: Resource) {
    resource.delete().await;
    assert_eq!(resource.attribute("show").await, Value::Null, "{} still exists", resource.kind.name);
    // The delete of a missing object succeeds.
    resource.delete().await;
}

async fn address_scope_and_subnet_pool(ground: &Ground) {
    let mut scope = made(ground, "OS::Neutron::AddressScope", value!({})).await;
    is_found(&scope).await;
    has(&scope, value!({"name": (scope.facts.physical_name.as_str()), "shared": false, "ip_version": 4})).await;
    let renamed = format!("{}-renamed", scope.facts.physical_name);
    let renamed = renamed.as_str();
    update(&mut scope, value!({"name": renamed}), value!({"name": renamed})).await;
    let given = value!({"prefixes": ["10.90.0.0/16"], "address_scope": renamed, "tags": ["a"]});
    let mut pool = made(ground, "OS::Neutron::SubnetPool", given).await;
    // By its name: the mark of an object with a name of the user's ends with the create.
    is_found(&pool).await;
    has(&pool, value!({"address_scope_id": (scope.id()), "tags": ["a"]})).await;
    let given =
        value!({"prefixes": ["10.90.0.0/15"], "address_scope": renamed, "tags": ["b", "c"], "name": "kiln-pool"});
    update(&mut pool, given, value!({"prefixes": ["10.90.0.0/15"], "tags": ["b", "c"]})).await;
    delete(pool).await;
    delete(scope).await;
}

async fn quality_of_service(ground: &Ground) {
    let policy = made(ground, "OS::Neutron::QoSPolicy", value!({"description": "d"})).await;
    is_found(&policy).await;
    let name = policy.facts.physical_name.as_str();
    let mut limit = made(ground, "OS::Neutron::QoSBandwidthLimitRule", value!({"policy": name, "max_kbps": 100})).await;
    is_found(&limit).await;
    update(&mut limit, value!({"policy": name, "max_kbps": 200}), value!({"max_kbps": 200})).await;
    let mark = made(ground, "OS::Neutron::QoSDscpMarkingRule", value!({"policy": name, "dscp_mark": 8})).await;
    is_found(&mark).await;
    assert_eq!(policy.attribute("rules").await.as_list().map(<[_]>::len), Some(2));
    delete(mark).await;
    delete(limit).await;
    let least = made(ground, "OS::Neutron::QoSMinimumBandwidthRule", value!({"policy": name, "min_kbps": 9})).await;
    delete(least).await;
    let rate = made(ground, "OS::Neutron::QoSMinimumPacketRateRule", value!({"policy": name, "min_kpps": 9})).await;
    delete(rate).await;
    delete(policy).await;
}

async fn metering_and_sharing(ground: &Ground) {
    let label = made(ground, "OS::Neutron::MeteringLabel", value!({"description": "d"})).await;
    let given = value!({"metering_label_id": (label.id()), "remote_ip_prefix": "10.91.0.0/24", "direction": "egress"});
    let rule = made(ground, "OS::Neutron::MeteringRule", given).await;
    is_found(&rule).await;
    delete(rule).await;
    delete(label).await;
    let network = made(
        ground,
        "OS::Neutron::ProviderNet",
        value!({"network_type": "vxlan", "segmentation_id": "4242", "shared": false, "tags": ["t"]}),
    )
    .await;
    is_found(&network).await;
    has(&network, value!({"provider:segmentation_id": 4242, "provider:network_type": "vxlan", "tags": ["t"]})).await;
    let given = value!({
        "object_type": "network",
        "object_id": (network.facts.physical_name.as_str()),
        "action": "access_as_shared",
        "target_tenant": "*"
    });
    let sharing = made(ground, "OS::Neutron::RBACPolicy", given).await;
    is_found(&sharing).await;
    has(&sharing, value!({"object_id": (network.id())})).await;
    delete(sharing).await;
    delete(network).await;
}

async fn catalog_of_keystone(ground: &Ground) {
    let mut role = made(ground, "OS::Keystone::Role", value!({})).await;
    is_found(&role).await;
    update(&mut role, value!({"name": "kiln-role"}), value!({"name": "kiln-role"})).await;
    delete(role).await;
    let mut region = made(ground, "OS::Keystone::Region", value!({"id": "kiln-region", "description": "d"})).await;
    update(&mut region, value!({"id": "kiln-region", "description": "e"}), value!({"description": "e"})).await;
    let service = made(ground, "OS::Keystone::Service", value!({"type": "kiln-thing"})).await;
    is_found(&service).await;
    let given = |url: &str| {
        value!({
            "service": (service.facts.physical_name.as_str()),
            "region": "kiln-region",
            "interface": "public",
            "url": url
        })
    };
    let mut endpoint = made(ground, "OS::Keystone::Endpoint", given("http://127.0.0.1:1")).await;
    is_found(&endpoint).await;
    update(
        &mut endpoint,
        given("http://127.0.0.1:2"),
        value!({"url": "http://127.0.0.1:2", "service_id": (service.id())}),
    )
    .await;
    delete(endpoint).await;
    delete(service).await;
    delete(region).await;
}

#[tokio::test]
#[ignore = "needs a real OpenStack with an orchestration service"]
async fn remote_stack() {
    let ground = &Ground::real().await;
    let given = |text: &str| {
        let template = "heat_template_version: 2016-10-14\nparameters: {p: {type: string}}\nresources:\n  v: {type: \
                        OS::Heat::Value, properties: {value: {get_param: p}}}\noutputs: {o: {value: {get_attr: [v, \
                        value]}}}\n";
        value!({"template": template, "parameters": {"p": text}, "timeout": 3})
    };
    let mut stack = made(ground, "OS::Heat::Stack", given("one")).await;
    is_found(&stack).await;
    let attributes = stack.attributes(&["outputs", "stack_name"]).await;
    assert_eq!(attributes["outputs"], value!({"o": "one"}));
    assert_eq!(attributes["stack_name"], stack.facts.physical_name.as_str().into());
    update(&mut stack, given("two"), value!({"stack_status": "UPDATE_COMPLETE"})).await;
    let attributes = stack.attributes(&["outputs"]).await;
    assert_eq!(attributes["outputs"], value!({"o": "two"}));
    stack.act(Operation::Check).await.unwrap();
    stack.act(Operation::Suspend).await.unwrap();
    stack.act(Operation::Resume).await.unwrap();
    stack.act(Operation::Delete).await.unwrap();
}
