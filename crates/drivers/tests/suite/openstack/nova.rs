//! OS::Nova::*

use std::time::Duration;

use kiln_resource::Operation;
use kiln_value::{Class, Value, value};

use crate::openstack::ground::Ground;
use crate::openstack::neutron::network;
use crate::resource::Outcome;
use crate::scenarios;

scenarios!(
    a_server,
    a_server_whose_networks_change,
    a_server_with_a_port_of_ours,
    a_server_from_a_volume,
    a_key,
    a_server_group,
    a_flavor,
    refusals,
);

async fn a_server(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.81.0.0/24").await;
    let given = |flavor: &str, metadata: Value| {
        value!({
            "image": "cirros", "flavor": flavor, "networks": [{"network": net.id()}],
            "metadata": metadata, "user_data": "#!/bin/sh\necho hello\n",
        })
    };
    let mut server = ground.made("OS::Nova::Server", "server", given("m1.nano", value!({"a": 1}))).await;
    let shown = server.attributes(&["name", "networks", "first_address", "addresses", "show", "accessIPv4"]).await;
    assert_eq!(shown["name"], server.facts.physical_name.as_str().into());
    let first = shown["first_address"].as_str().unwrap();
    assert!(first.starts_with("10.81.0."), "{first}");
    let label = net.facts.physical_name.as_str();
    assert_eq!(shown["networks"].get(label), Some(&value!([first])));
    assert_eq!(shown["networks"].get(net.id()), Some(&value!([first])));
    let address = shown["addresses"].get(label).and_then(|list| list.at(0)).unwrap();
    assert_eq!(address.str_at("addr"), Some(first));
    assert_eq!(address.get("subnets").and_then(|s| s.at(0)).and_then(|s| s.str_at("id")), Some(subnet.id()));
    assert_eq!(shown["show"].get("metadata"), Some(&value!({"a": "1"})));
    assert_eq!(shown["show"].get("description"), Some(&Value::Null), "Nova does not choose it");
    assert_eq!(shown["accessIPv4"], "".into());
    server.check().await.unwrap();

    assert_eq!(server.update(given("m1.nano", value!({"b": "2"}))).await.unwrap(), Outcome::Updated);
    assert_eq!(server.attribute("show").await.get("metadata"), Some(&value!({"b": "2"})));
    assert_eq!(server.update(given("m1.micro", value!({"b": "2"}))).await.unwrap(), Outcome::Updated);
    assert_eq!(server.attribute("show").await.get("flavor").and_then(|f| f.str_at("original_name")), Some("m1.micro"));
    let mut rebuilt = given("m1.micro", value!({"b": "2"}));
    rebuilt.as_map_mut().unwrap().insert("image".into(), "fedora-coreos".into());
    let image = server.attribute("show").await.get("image").cloned();
    match server.update(rebuilt).await {
        Ok(outcome) => {
            assert_eq!(outcome, Outcome::Updated);
            assert_ne!(server.attribute("show").await.get("image").cloned(), image);
        }
        // The real image may be too large for the flavor.
        Err(failure) => assert!(ground.testcloud.is_none(), "{failure}"),
    }

    server.act(Operation::Suspend).await.unwrap();
    assert_eq!(server.attribute("show").await.str_at("status"), Some("SUSPENDED"));
    server.act(Operation::Resume).await.unwrap();
    assert_eq!(server.attribute("show").await.str_at("status"), Some("ACTIVE"));

    // The compute driver of devcloud never uploads an image.
    if ground.testcloud.is_some() {
        server.act(Operation::Snapshot).await.unwrap();
        let image = server.facts.data.get("snapshot_image_id").cloned().unwrap();
        server.act(Operation::Snapshot).await.unwrap();
        assert_eq!(server.facts.data.get("snapshot_image_id"), Some(&image), "a repeated call finds the image");
        assert_eq!(
            server.driver().restored(&server.facts.data).unwrap(),
            [("image".to_owned(), image)].into_iter().collect()
        );
        server.delete_snapshot().await;
        server.delete_snapshot().await;
    }

    server.delete().await;
    assert!(server.needs_replace_failed().await);
    assert_eq!(server.attribute("accessIPv4").await, "".into());
    subnet.delete().await;
    net.delete().await;
}

async fn a_server_whose_networks_change(ground: &Ground) {
    let (mut one, mut one_subnet) = network(ground, "10.82.0.0/24").await;
    let (mut two, mut two_subnet) = network(ground, "10.83.0.0/24").await;
    let given = |networks: Value| value!({"image": "cirros", "flavor": "m1.nano", "networks": networks});
    let mut server = ground.made("OS::Nova::Server", "server", given(value!([{"network": one.id()}]))).await;
    let first = server.attribute("first_address").await;
    let both = value!([{"network": one.id()}, {"network": two.id()}]);
    assert_eq!(server.update(given(both)).await.unwrap(), Outcome::Updated);
    let networks = server.attribute("networks").await;
    assert_eq!(networks.get(one.id()), Some(&value!([first])), "the first interface is kept");
    assert!(networks.get(two.id()).is_some());
    let last = value!([{"subnet": two_subnet.id()}]);
    assert_eq!(server.update(given(last)).await.unwrap(), Outcome::Updated);
    let mut networks = server.attribute("networks").await;
    // Nova's cached addresses are updated a moment later.
    for _ in 0..20 {
        if networks.get(one.id()).is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        networks = server.attribute("networks").await;
    }
    assert!(networks.get(one.id()).is_none() && networks.get(two.id()).is_some(), "{networks:?}");
    let other = value!([{"subnet": one_subnet.id(), "fixed_ip": "10.82.0.77"}]);
    assert_eq!(server.update(given(other)).await.unwrap(), Outcome::Updated);
    assert_eq!(server.attribute("first_address").await, "10.82.0.77".into());
    server.delete().await;
    for resource in [&mut one_subnet, &mut one, &mut two_subnet, &mut two] {
        resource.delete().await;
    }
}

async fn a_server_with_a_port_of_ours(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.84.0.0/24").await;
    let given = value!({
        "name": "kilntest-named", "image": "cirros", "flavor": "m1.nano", "user_data_format": "RAW",
        "networks": [{"subnet": subnet.id(), "fixed_ip": "10.84.0.20"}],
        "security_groups": ["default"], "tags": ["x"],
    });
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    assert_eq!(server.attribute("first_address").await, "10.84.0.20".into());
    assert_eq!(server.attribute("tags").await, value!(["x"]));
    assert_eq!(server.attribute("name").await, "kilntest-named".into());
    assert!(server.facts.data.contains_key("internal_ports"));
    server.delete().await;
    assert!(!server.facts.data.contains_key("internal_ports"));
    subnet.delete().await;
    net.delete().await;
}

async fn a_server_from_a_volume(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.85.0.0/24").await;
    let mut volume = ground.made("OS::Cinder::Volume", "volume", value!({"size": 1, "image": "cirros"})).await;
    let given = value!({
        "flavor": "m1.nano", "networks": [{"network": net.id()}],
        "block_device_mapping_v2": [{"volume_id": volume.id(), "delete_on_termination": false}],
    });
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    let attachments = volume.attribute("attachments_list").await;
    assert_eq!(attachments.at(0).and_then(|a| a.str_at("server_id")), Some(server.id()));
    server.delete().await;
    volume.delete().await;
    subnet.delete().await;
    net.delete().await;
}

async fn a_key(ground: &Ground) {
    let given = value!({"name": "kilntest-key", "save_private_key": true});
    let mut key = ground.made("OS::Nova::KeyPair", "key", given.clone()).await;
    assert_eq!(key.id(), "kilntest-key");
    let shown = key.attributes(&["public_key", "private_key"]).await;
    assert!(shown["public_key"].as_str().unwrap().starts_with("ssh-"));
    assert!(shown["private_key"].as_str().unwrap().contains("PRIVATE KEY"));
    let twice = ground.resource("OS::Nova::KeyPair", "key").create(given).await.unwrap_err();
    assert_eq!(twice.class, Class::Conflict);
    let public = shown["public_key"].clone();
    key.delete().await;

    let mut key = ground.made("OS::Nova::KeyPair", "key", value!({"name": "kilntest-key", "public_key": public})).await;
    assert_eq!(key.attribute("private_key").await, "".into());
    assert_eq!(key.update(value!({"name": "kilntest-other"})).await.unwrap(), Outcome::Replaced);
    key.delete().await;
}

async fn a_server_group(ground: &Ground) {
    let mut group = ground.made("OS::Nova::ServerGroup", "group", value!({"policies": ["soft-anti-affinity"]})).await;
    let shown = group.attribute("show").await;
    assert_eq!(shown.str_at("name"), Some(group.facts.physical_name.as_str()));
    assert_eq!(shown.str_at("policy"), Some("soft-anti-affinity"));
    let (mut net, mut subnet) = network(ground, "10.86.0.0/24").await;
    let given = value!({
        "image": "cirros", "flavor": "m1.nano", "networks": [{"network": net.id()}],
        "scheduler_hints": {"group": group.id()},
    });
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    assert_eq!(group.attribute("show").await.get("members"), Some(&vec![server.id()].into()));
    for resource in [&mut server, &mut group, &mut subnet, &mut net] {
        resource.delete().await;
    }
}

async fn a_flavor(ground: &Ground) {
    let mut flavor = ground.admin_resource("OS::Nova::Flavor", "flavor");
    let given = |specs: Value| value!({"ram": 64, "vcpus": 1, "disk": 1, "is_public": false, "extra_specs": specs, "tenants": ["demo"]});
    flavor.create(given(value!({"hw:cpu_policy": "shared"}))).await.unwrap();
    let shown = flavor.attributes(&["is_public", "extra_specs"]).await;
    assert_eq!(shown["is_public"], false.into());
    assert_eq!(shown["extra_specs"], value!({"hw:cpu_policy": "shared"}));
    let changed = given(value!({"hw:numa_nodes": 1}));
    assert_eq!(flavor.update(changed).await.unwrap(), Outcome::Updated);
    assert_eq!(flavor.attribute("extra_specs").await, value!({"hw:numa_nodes": "1"}));
    flavor.delete().await;
}

async fn refusals(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.87.0.0/24").await;
    let given = value!({
        "image": "cirros", "flavor": "m1.nano", "networks": [{"subnet": subnet.id()}], "key_name": "kiln-no-such-key",
    });
    let mut server = ground.resource("OS::Nova::Server", "server");
    let failure = server.create(given).await.unwrap_err();
    let text = failure.to_string();
    assert!(text.starts_with("BadRequest: Invalid key_name provided. (HTTP 400)"), "{text}");
    assert!(server.facts.physical_id.is_none());
    // The port that was created for it is deleted: otherwise the subnet could not be deleted.
    subnet.delete().await;
    net.delete().await;
}
