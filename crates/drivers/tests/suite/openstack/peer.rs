//! Attributes compared with those of the cloud's own orchestration service for the same objects.

use std::time::Duration;

use kiln_resource::{Cloud, CloudRequest, Method, shipped};
use kiln_value::{Map, Value, value};

use crate::openstack::ground::Ground;

/// Attributes that differ between two reads.
const VOLATILE: [&str; 3] = ["console_urls", "os_collect_config", "private_key"];

fn resources() -> Map {
    let net = || value!({"get_resource": "net"});
    let resources = value!({
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {"type": "OS::Neutron::Subnet", "properties": {"network": net(), "cidr": "10.95.0.0/24"}},
        "router": {"type": "OS::Neutron::Router", "properties": {"external_gateway_info": {"network": "public"}}},
        "interface": {"type": "OS::Neutron::RouterInterface", "properties": {
            "router": {"get_resource": "router"}, "subnet": {"get_resource": "subnet"}}},
        "group": {"type": "OS::Neutron::SecurityGroup", "properties": {"rules": [{"protocol": "tcp"}]}},
        "port": {"type": "OS::Neutron::Port", "properties": {
            "network": net(), "security_groups": [{"get_resource": "group"}]}},
        "address": {"type": "OS::Neutron::FloatingIP", "properties": {
            "floating_network": "public", "port_id": {"get_resource": "port"}}},
        "key": {"type": "OS::Nova::KeyPair", "properties": {
            "name": "kilntest-peer",
            "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0 kiln"}},
        "servers": {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["affinity"]}},
        "server": {"type": "OS::Nova::Server", "properties": {
            "image": "cirros", "flavor": "m1.nano", "key_name": {"get_resource": "key"},
            "networks": [{"port": {"get_resource": "port"}}], "metadata": {"a": 1}}},
        "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1, "metadata": {"b": "2"}}},
    });
    resources.as_map().unwrap().clone()
}

fn attributes(type_name: &str) -> Vec<String> {
    let types = shipped::types().unwrap();
    let known = types.into_iter().find(|t| t.name == type_name).unwrap();
    let names = known.attributes.into_iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
    names.map(|(name, _)| name).chain(["show".to_owned()]).collect()
}

/// Attributes that the peer stores when the resource is created, while Kiln reads them.
const REMEMBERED: [&str; 5] =
    ["net subnets", "port device_id", "port device_owner", "port status", "port dns_assignment"];

/// Removes values that a service changes on its own.
fn settled(value: &Value) -> Value {
    match value {
        Value::Map(entries) => {
            let volatile = ["updated_at", "updated", "status", "revision_number", "OS-EXT-STS:task_state", "progress"];
            let kept = entries.iter().filter(|(key, _)| !volatile.contains(&key.as_str()));
            kept.map(|(key, value)| (key.clone(), settled(value))).collect()
        }
        Value::List(items) => items.iter().map(settled).collect(),
        other => other.clone(),
    }
}

async fn get(ground: &Ground, path: &str) -> Value {
    ground.cloud.call(CloudRequest::new("orchestration", Method::Get, path)).await.unwrap().body
}

/// The value of an output of a stack.
fn output(stack: &Value, key: &str) -> Value {
    let outputs = stack.get("outputs").and_then(Value::as_list).unwrap();
    let output = outputs.iter().find(|output| output.str_at("output_key") == Some(key)).unwrap();
    output.get("output_value").cloned().unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs a real OpenStack with an orchestration service"]
async fn attributes_are_those_of_the_peer() {
    let ground = Ground::real().await;
    let resources = resources();
    let mut outputs = Map::new();
    for (name, definition) in &resources {
        for attribute in attributes(definition.str_at("type").unwrap()) {
            let value = value!({"get_attr": vec![name.as_str(), attribute.as_str()]});
            outputs.insert(format!("{name} {attribute}"), value!({"value": value}));
        }
    }
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources.clone(), "outputs": outputs});
    let body = value!({"stack_name": "kilntest-peer", "template": template, "timeout_mins": 10});
    let made = ground.cloud.call(CloudRequest::new("orchestration", Method::Post, "/stacks").body(body)).await.unwrap();
    let id = made.body.get("stack").and_then(|s| s.str_at("id")).unwrap().to_owned();
    let path = format!("/stacks/kilntest-peer/{id}");
    let stack = loop {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let body = get(&ground, &path).await;
        let stack = body.get("stack").cloned().unwrap();
        match stack.str_at("stack_status") {
            Some("CREATE_IN_PROGRESS") => {}
            // Nova learns of the floating address some time later.
            Some("CREATE_COMPLETE") => {
                let address = output(&stack, "address floating_ip_address");
                if kiln_value::text::repr(&output(&stack, "server networks")).contains(address.as_str().unwrap()) {
                    break stack;
                }
            }
            _ => panic!("{}", stack.str_at("stack_status_reason").unwrap_or_default()),
        }
    };
    let theirs = |key: &str| output(&stack, key);
    let listed = get(&ground, &format!("{path}/resources")).await;
    let listed = listed.get("resources").and_then(Value::as_list).unwrap().to_vec();
    let (mut differences, mut told) = (Vec::new(), 0);
    for (name, definition) in &resources {
        let type_name = definition.str_at("type").unwrap();
        let row = listed.iter().find(|row| row.str_at("resource_name") == Some(name)).unwrap();
        let mut resource = ground.resource(type_name, name);
        resource.facts.physical_id = row.str_at("physical_resource_id").map(str::to_owned);
        let names = attributes(type_name);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(own) = theirs(&format!("{name} show")).str_at("name") {
            resource.facts.physical_name = own.to_owned();
        }
        let ours = resource.attributes(&names).await;
        for attribute in names {
            let (their, our) = (settled(&theirs(&format!("{name} {attribute}"))), settled(&ours[attribute]));
            told += usize::from(!their.is_null());
            if their != our && !REMEMBERED.contains(&format!("{name} {attribute}").as_str()) {
                differences.push(format!("{name} {attribute}\n  peer {their:?}\n  kiln {our:?}"));
            }
        }
    }
    ground.cloud.call(CloudRequest::new("orchestration", Method::Delete, &path)).await.unwrap();
    while get(&ground, &path).await.get("stack").and_then(|s| s.str_at("stack_status")) != Some("DELETE_COMPLETE") {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert!(told > 60, "the peer returned only {told} attributes");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
