//! Objects of lost responses are found, and nothing is created twice.

use kiln_testcloud::{Action, Fault, Service, When};
use kiln_value::{Class, Value, value};

use crate::openstack::ground::Ground;
use crate::openstack::neutron::network;
use crate::resource::Resource;

/// Creates an object while the first response to the POST is lost, and checks that it exists once.
async fn create_through(
    ground: &Ground,
    service: Service,
    path: &str,
    mut resource: Resource,
    given: Value,
) -> Resource {
    let testcloud = ground.testcloud.as_ref().unwrap();
    let posts = |path: &str| {
        testcloud.journal().count(|call| {
            call.method == "POST" && call.path.ends_with(path) && call.service == service && call.status < 300
        })
    };
    let before = posts(path);
    testcloud.faults().add(Fault::new(service, "POST", path, Action::LostReply).when(When::Nth(1)));
    resource.create(given).await.unwrap_or_else(|failure| panic!("{}: {failure}", resource.facts.name));
    testcloud.faults().clear();
    assert_eq!(posts(path) - before, 1, "{} was created more than once", resource.facts.name);
    assert!(!resource.id().is_empty());
    resource
}

/// Neither name nor description can contain a mark.
fn described() -> Value {
    value!({"name": "given", "value_specs": {"description": "d"}})
}

#[tokio::test]
async fn networks_and_their_parts() {
    let ground = Ground::simulated().await;
    for given in [value!({}), value!({"name": "given"}), described()] {
        let net = ground.resource("OS::Neutron::Net", "net");
        let mut net = create_through(&ground, Service::Network, "/networks", net, given.clone()).await;
        if given == described() {
            assert_eq!(net.attribute("show").await.str_at("description"), Some("d"), "the mark is replaced");
        }
        net.delete().await;
    }
    let (mut net, mut subnet) = network(&ground, "10.60.0.0/24").await;
    for given in [value!({"network": net.id()}), value!({"network": net.id(), "name": "given"})] {
        let port = ground.resource("OS::Neutron::Port", "port");
        let mut port = create_through(&ground, Service::Network, "/ports", port, given).await;
        port.delete().await;
    }
    let address = ground.resource("OS::Neutron::FloatingIP", "address");
    let given = value!({"floating_network": "public"});
    let mut address = create_through(&ground, Service::Network, "/floatingips", address, given).await;
    let group = ground.resource("OS::Neutron::SecurityGroup", "group");
    let given = value!({"name": "given", "rules": [{"protocol": "tcp"}]});
    let mut group = create_through(&ground, Service::Network, "/security-groups", group, given).await;
    let rule = ground.resource("OS::Neutron::SecurityGroupRule", "rule");
    let given = value!({"security_group": group.id(), "protocol": "udp"});
    let mut rule = create_through(&ground, Service::Network, "/security-group-rules", rule, given).await;
    for resource in [&mut rule, &mut group, &mut address, &mut subnet, &mut net] {
        resource.delete().await;
    }
    ground.assert_clean();
}

/// Neutron's answer to the create says which rules a new group has, also when the rules have to be sent again.
#[tokio::test]
async fn a_new_security_group_is_not_read_for_its_rules() {
    let ground = Ground::simulated().await;
    let testcloud = ground.testcloud.as_ref().unwrap();
    for (given, wanted) in [
        (value!([{"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}, {"protocol": "icmp"}]), 4),
        (value!([{"direction": "egress", "protocol": "tcp"}, {"protocol": "icmp"}]), 2),
    ] {
        testcloud
            .faults()
            .add(Fault::new(Service::Network, "POST", "/security-group-rules", Action::LostReply).when(When::Nth(1)));
        let mut group = ground.made("OS::Neutron::SecurityGroup", "group", value!({ "rules": given })).await;
        testcloud.faults().clear();
        let path = format!("/security-groups/{}", group.id());
        assert_eq!(testcloud.journal().count(|call| call.method == "GET" && call.path == path), 0);
        let rules = group.attribute("show").await;
        assert_eq!(rules.get("security_group_rules").and_then(Value::as_list).unwrap().len(), wanted);
        group.delete().await;
    }
}

#[tokio::test]
async fn an_interface() {
    let ground = Ground::simulated().await;
    let testcloud = ground.testcloud.as_ref().unwrap();
    let (mut net, mut subnet) = network(&ground, "10.61.0.0/24").await;
    let mut router = ground.made("OS::Neutron::Router", "router", value!({})).await;
    let path = "/routers/*/add_router_interface";
    testcloud.faults().add(Fault::new(Service::Network, "PUT", path, Action::LostReply).when(When::Nth(1)));
    let ends = value!({"router": router.id(), "subnet": subnet.id()});
    let mut interface = ground.made("OS::Neutron::RouterInterface", "interface", ends).await;
    for resource in [&mut interface, &mut router, &mut subnet, &mut net] {
        resource.delete().await;
    }
    ground.assert_clean();
}

#[tokio::test]
async fn servers_with_their_ports() {
    let ground = Ground::simulated().await;
    let (mut net, mut subnet) = network(&ground, "10.62.0.0/24").await;
    for name in [Value::Null, "web (1)".into()] {
        let server = ground.resource("OS::Nova::Server", "server");
        let given = value!({
            "name": name, "image": "cirros", "flavor": "m1.nano", "networks": [{"subnet": subnet.id()}],
        });
        let mut server = create_through(&ground, Service::Compute, "/servers", server, given).await;
        assert!(server.facts.data.contains_key("internal_ports"));
        server.delete().await;
    }
    // The lost response may be that of the port.
    let server = ground.resource("OS::Nova::Server", "server");
    let given = value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"subnet": subnet.id()}]});
    let mut server = create_through(&ground, Service::Network, "/ports", server, given).await;
    server.delete().await;
    subnet.delete().await;
    net.delete().await;
    ground.assert_clean();
}

#[tokio::test]
async fn volumes_and_attachments() {
    let ground = Ground::simulated().await;
    for given in [
        value!({"size": 1}),
        value!({"size": 1, "name": "given"}),
        value!({"size": 1, "name": "given", "description": "d"}),
    ] {
        let volume = ground.resource("OS::Cinder::Volume", "volume");
        let mut volume = create_through(&ground, Service::Volume, "/volumes", volume, given).await;
        volume.delete().await;
    }
    let (mut net, mut subnet) = network(&ground, "10.63.0.0/24").await;
    let given = value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"network": net.id()}]});
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    let mut volume = ground.made("OS::Cinder::Volume", "volume", value!({"size": 1})).await;
    let attachment = ground.resource("OS::Cinder::VolumeAttachment", "attachment");
    let ends = value!({"instance_uuid": server.id(), "volume_id": volume.id()});
    let path = format!("/servers/{}/os-volume_attachments", server.id());
    let mut attachment = create_through(&ground, Service::Compute, &path, attachment, ends).await;
    for resource in [&mut attachment, &mut volume, &mut server, &mut subnet, &mut net] {
        resource.delete().await;
    }
    ground.assert_clean();
}

/// As `create_through`, for a key pair whose first object is unusable.
async fn saved_through(ground: &Ground, mut key: Resource, given: Value) -> Resource {
    let faults = ground.testcloud.as_ref().unwrap().faults();
    faults.add(Fault::new(Service::Compute, "POST", "/os-keypairs", Action::LostReply).when(When::Nth(1)));
    key.create(given).await.unwrap();
    faults.clear();
    key
}

/// Two server groups with the same name cannot be distinguished: a lost create is not repeated.
#[tokio::test]
async fn unidentifiable_objects_are_not_created_again() {
    let ground = Ground::simulated().await;
    let testcloud = ground.testcloud.as_ref().unwrap();
    let path = "/os-server-groups";
    testcloud.faults().add(Fault::new(Service::Compute, "POST", path, Action::Status(503)).when(When::Nth(1)));
    let mut group = ground.resource("OS::Nova::ServerGroup", "group");
    let failure = group.create(value!({"name": "given"})).await.unwrap_err();
    assert_eq!(failure.class, Class::of("Unknown"));
    assert_eq!(testcloud.journal().count(|call| call.path == path && call.method == "POST"), 1);
}

#[tokio::test]
async fn flavors_and_images_with_ids() {
    let ground = Ground::simulated().await;
    for id in [Value::Null, "auto".into(), "chosen".into()] {
        let flavor = ground.admin_resource("OS::Nova::Flavor", "flavor");
        let given = value!({"name": "given", "flavorid": id, "ram": 64, "vcpus": 1});
        let mut flavor = create_through(&ground, Service::Compute, "/flavors", flavor, given).await;
        flavor.delete().await;
    }
    for id in [Value::Null, "5c1e42a5-9c22-4c4a-8a8f-6fbb5e0c8a11".into()] {
        let image = ground.resource("OS::Glance::WebImage", "image");
        let given = value!({
            "name": "given", "id": id, "location": "http://localhost/image", "disk_format": "raw",
            "container_format": "bare",
        });
        let mut image = create_through(&ground, Service::Image, "/images", image, given).await;
        image.delete().await;
    }
    ground.assert_clean();
}

#[tokio::test]
async fn keys_groups_and_images() {
    let ground = Ground::simulated().await;
    let key = ground.made("OS::Nova::KeyPair", "source", value!({"name": "source"})).await;
    let public = key.attribute("public_key").await;
    let mut source = key;
    source.delete().await;
    let key = ground.resource("OS::Nova::KeyPair", "key");
    let given = value!({"name": "key", "public_key": public});
    let mut key = create_through(&ground, Service::Compute, "/os-keypairs", key, given).await;
    // A private key that was only in the lost response.
    let saved = ground.resource("OS::Nova::KeyPair", "saved");
    let given = value!({"name": "saved", "save_private_key": true});
    let mut saved = saved_through(&ground, saved, given).await;
    assert!(saved.attribute("private_key").await.as_str().unwrap().contains("PRIVATE KEY"));
    saved.delete().await;
    let group = ground.resource("OS::Nova::ServerGroup", "group");
    let mut group = create_through(&ground, Service::Compute, "/os-server-groups", group, value!({})).await;
    key.delete().await;
    group.delete().await;
    ground.assert_clean();
}

#[tokio::test]
async fn projects() {
    let ground = Ground::simulated().await;
    for given in [value!({}), value!({"name": "given"})] {
        let project = ground.admin_resource("OS::Keystone::Project", "project");
        let mut project = create_through(&ground, Service::Identity, "/projects", project, given).await;
        project.delete().await;
    }
    ground.assert_clean();
}

/// An object of another owner with the same name is never adopted.
#[tokio::test]
async fn objects_of_others_are_not_touched() {
    let ground = Ground::simulated().await;
    let testcloud = ground.testcloud.as_ref().unwrap();
    let mut foreign = ground.made("OS::Neutron::Net", "foreign", value!({"name": "shared-name"})).await;
    testcloud.faults().add(Fault::new(Service::Network, "POST", "/networks", Action::Status(503)).when(When::Nth(1)));
    let mut own = ground.made("OS::Neutron::Net", "own", value!({"name": "shared-name"})).await;
    assert_ne!(own.id(), foreign.id());
    own.delete().await;
    foreign.delete().await;

    // Nor is an identical one, if the refusal was lost.
    let mut foreign = ground.made("OS::Nova::KeyPair", "foreign", value!({"name": "alike"})).await;
    let given = value!({"name": "alike", "public_key": foreign.attribute("public_key").await});
    testcloud.faults().clear();
    let fault = Fault::new(Service::Compute, "POST", "/os-keypairs", Action::LostReply);
    testcloud.faults().add(fault.when(When::Nth(1)));
    let mut own = ground.resource("OS::Nova::KeyPair", "own");
    assert_eq!(own.create(given).await.unwrap_err().class, Class::Conflict);
    own.delete().await;
    assert!(foreign.check().await.is_ok(), "it must not be deleted");
    foreign.delete().await;
    ground.assert_clean();
}

/// A failed build results in an error, and the remaining server can be deleted.
#[tokio::test]
async fn a_failed_build() {
    let ground = Ground::simulated().await;
    let testcloud = ground.testcloud.as_ref().unwrap();
    testcloud.faults().add(Fault::new(Service::Compute, "POST", "/servers", Action::FailBuild));
    let (mut net, mut subnet) = network(&ground, "10.64.0.0/24").await;
    let mut server = ground.resource("OS::Nova::Server", "server");
    let given = value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"network": net.id()}]});
    let failure = server.create(given).await.unwrap_err();
    assert_eq!(failure.kind, kiln_resource::FailureKind::InError);
    assert!(failure.to_string().starts_with("ResourceInError: Went to status ERROR due to \"Message: "), "{failure}");
    assert!(server.needs_replace_failed().await);
    server.delete().await;
    subnet.delete().await;
    net.delete().await;
    ground.assert_clean();
}

/// However long a build takes, its polls result in nothing to store.
#[tokio::test]
async fn polls_without_a_change_store_nothing() {
    let ground = Ground::simulated().await;
    let testcloud = ground.testcloud.as_ref().unwrap();
    let slow = || Action::SlowBuild(std::time::Duration::from_millis(1500));
    testcloud.faults().add(Fault::new(Service::Compute, "POST", "/servers", slow()));
    testcloud.faults().add(Fault::new(Service::Volume, "POST", "/volumes", slow()));
    let (mut net, mut subnet) = network(&ground, "10.65.0.0/24").await;
    let given = value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"network": net.id()}]});
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    let polls = testcloud.journal().count(|call| call.method == "GET" && call.path.ends_with(server.id()));
    assert!(polls > 2, "the build took {polls} polls");
    assert_eq!(server.stored.len(), 2, "its ID and its end");
    let mut volume = ground.made("OS::Cinder::Volume", "volume", value!({"size": 1})).await;
    assert_eq!(volume.stored.len(), 2);
    for resource in [&mut server, &mut volume, &mut subnet, &mut net] {
        resource.delete().await;
    }
    ground.assert_clean();
}
