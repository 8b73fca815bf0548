//! Others change objects: their properties differ from those of the resource, and only those.

use kiln_resource::{Cloud as _, CloudRequest, Method, Operation};
use kiln_value::{Map, Value, value};

use crate::openstack::ground::Ground;
use crate::openstack::neutron::network;
use crate::scenarios;

scenarios!(
    a_volume,
    an_image,
    a_server,
    interfaces_of_a_server,
    a_floating_address_and_a_gateway,
    quotas,
    an_instance_of_amazon,
    a_container_of_objects,
    a_container_of_secrets,
    a_workflow,
    users_of_a_database
);

/// A request of somebody else.
async fn ask(ground: &Ground, service: &str, method: Method, path: &str, body: Value) {
    ground
        .admin
        .call(CloudRequest::new(service, method, path).body(body))
        .await
        .unwrap_or_else(|f| panic!("{path}: {f}"));
}

fn names(drift: &Map) -> Vec<&str> {
    let mut names: Vec<&str> = drift.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

async fn a_volume(ground: &Ground) {
    let given = value!({"size": 1, "metadata": {"a": 1}, "read_only": true, "availability_zone": "nova"});
    let mut volume = ground.made("OS::Cinder::Volume", "volume", given).await;
    assert_eq!(names(&volume.drift().await), [""; 0]);
    let path = format!("/v3/volumes/{}/action", volume.id());
    let writable = value!({"os-update_readonly_flag": {"readonly": false}});
    ask(ground, "block-storage", Method::Post, &path, writable).await;
    assert_eq!(names(&volume.drift().await), ["read_only"]);
    volume.delete().await;
}

async fn an_image(ground: &Ground) {
    let given = value!({
        "name": "kilntest-seen", "disk_format": "raw", "container_format": "bare", "min_ram": 64,
        "location": "http://192.0.2.1/nothing", "os_distro": "a", "tags": ["t", "s"], "extra_properties": {"x": "1"},
    });
    let mut image = ground.resource("OS::Glance::WebImage", "image");
    // Nothing can be fetched from there, but the image exists.
    drop(tokio::time::timeout(std::time::Duration::from_secs(3), image.create(given)).await);
    assert_eq!(names(&image.drift().await), [""; 0]);
    let changes = value!([
        {"op": "replace", "path": "/x", "value": "2"}, {"op": "replace", "path": "/protected", "value": true},
        {"op": "add", "path": "/y", "value": "of others"}, {"op": "replace", "path": "/os_distro", "value": "b"},
        {"op": "replace", "path": "/tags", "value": ["t"]},
    ]);
    patch(ground, image.id(), changes).await;
    assert_eq!(names(&image.drift().await), ["extra_properties", "os_distro", "protected", "tags"]);
    patch(ground, image.id(), value!([{"op": "replace", "path": "/protected", "value": false}])).await;
    image.delete().await;
}

async fn patch(ground: &Ground, image: &str, changes: Value) {
    let mut request = CloudRequest::new("image", Method::Patch, format!("/v2/images/{image}")).body(changes);
    request.headers.push(("content-type".into(), "application/openstack-images-v2.1-json-patch".into()));
    ground.cloud.call(request).await.unwrap();
}

async fn a_server(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.93.0.0/24").await;
    let given = |flavor: &str| {
        value!({
            "image": "cirros", "flavor": flavor, "networks": [{"network": net.id()}], "availability_zone": "nova",
            "metadata": {"a": "1"}, "diskConfig": "AUTO",
        })
    };
    let mut server = ground.made("OS::Nova::Server", "server", given("m1.nano")).await;
    assert_eq!(names(&server.drift().await), [""; 0]);
    server.update(given("m1.micro")).await.unwrap();
    assert_eq!(names(&server.drift().await), [""; 0]);
    let path = format!("/servers/{}", server.id());
    ask(ground, "compute", Method::Put, &path, value!({"server": {"name": "kilntest-renamed"}})).await;
    ask(ground, "compute", Method::Put, &format!("{path}/metadata"), value!({"metadata": {"a": "2"}})).await;
    // The template gives no name.
    assert_eq!(names(&server.drift().await), ["metadata"]);
    server.delete().await;
    subnet.delete().await;
    net.delete().await;
}

async fn interfaces_of_a_server(ground: &Ground) {
    let (mut net, subnet) = network(ground, "10.97.0.0/24").await;
    let (mut other, other_subnet) = network(ground, "10.98.0.0/24").await;
    let mut group = ground.made("OS::Neutron::SecurityGroup", "group", value!({})).await;
    let given = value!({
        "image": "cirros", "flavor": "m1.nano", "tags": ["a"], "security_groups": [(group.id())],
        "networks": [{"subnet": subnet.id(), "port_extra_properties": {"port_security_enabled": true}}],
    });
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    assert_eq!(names(&server.drift().await), [""; 0]);
    let request = CloudRequest::new("network", Method::Get, "/v2.0/ports").query("device_id", server.id());
    let ports = ground.cloud.call(request).await.unwrap().body;
    let port = ports.get("ports").and_then(|ports| ports.at(0)?.str_at("id")).unwrap().to_owned();
    let port = format!("/v2.0/ports/{port}");
    let open = |groups: Value| value!({"port": {"security_groups": groups}});
    ask(ground, "network", Method::Put, &port, open(value!([]))).await;
    assert_eq!(names(&server.drift().await), ["security_groups"]);
    ask(ground, "network", Method::Put, &port, open(value!([(group.id())]))).await;
    let unsafe_port = value!({"port": {"port_security_enabled": false, "security_groups": []}});
    ask(ground, "network", Method::Put, &port, unsafe_port).await;
    assert_eq!(names(&server.drift().await), ["networks", "security_groups"]);
    // The update of a repair.
    let before = server.facts.properties.clone();
    let changed = Map::from([("networks".to_owned(), before.get("networks").cloned().unwrap())]);
    server.act(Operation::Update { before, changed }).await.unwrap();
    assert_eq!(names(&server.drift().await), ["security_groups"]);
    ask(ground, "network", Method::Put, &port, open(value!([(group.id())]))).await;
    let path = format!("/servers/{}", server.id());
    let tags = CloudRequest::new("compute", Method::Put, format!("{path}/tags")).microversion("2.26");
    ground.cloud.call(tags.body(value!({"tags": ["b"]}))).await.unwrap();
    let attach = value!({"interfaceAttachment": {"net_id": other.id()}});
    ask(ground, "compute", Method::Post, &format!("{path}/os-interface"), attach).await;
    assert_eq!(names(&server.drift().await), ["networks", "tags"]);
    // A repair detaches what others have attached.
    let before = server.facts.properties.clone();
    let changed = ["networks", "tags"].map(|name| (name.to_owned(), before.get(name).cloned().unwrap()));
    server.act(Operation::Update { before, changed: changed.into() }).await.unwrap();
    assert_eq!(names(&server.drift().await), [""; 0]);
    server.delete().await;
    group.delete().await;
    for mut one in [other_subnet, subnet] {
        one.delete().await;
    }
    other.delete().await;
    net.delete().await;
}

async fn a_floating_address_and_a_gateway(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.94.0.0/24").await;
    let mut router = ground.made("OS::Neutron::Router", "router", value!({})).await;
    let given = value!({"router_id": router.id(), "network": "public"});
    let mut gateway = ground.made("OS::Neutron::RouterGateway", "gateway", given).await;
    let given = value!({"router": router.id(), "subnet": subnet.id()});
    let mut interface = ground.made("OS::Neutron::RouterInterface", "interface", given).await;
    let mut port = ground.made("OS::Neutron::Port", "port", value!({"network": net.id()})).await;
    let mut address = ground.made("OS::Neutron::FloatingIP", "address", value!({"floating_network": "public"})).await;
    let given = value!({"floatingip_id": address.id(), "port_id": port.id()});
    let mut tie = ground.made("OS::Neutron::FloatingIPAssociation", "tie", given).await;
    assert_eq!((names(&tie.drift().await), names(&gateway.drift().await)), (vec![], vec![]));
    let given = value!({"router": router.id(), "routes": [
        {"destination": "10.95.0.0/24", "nexthop": "10.94.0.77"}, {"destination": "10.96.0.0/24", "nexthop": "10.94.0.77"},
    ]});
    let mut extra = ground.made("OS::Neutron::ExtraRouteSet", "routes", given).await;
    assert_eq!((names(&extra.drift().await), names(&interface.drift().await)), (vec![], vec![]));
    let one = value!({"router": {"routes": [{"destination": "10.96.0.0/24", "nexthop": "10.94.0.77"}]}});
    ask(ground, "network", Method::Put, &format!("/v2.0/routers/{}/remove_extraroutes", router.id()), one).await;
    assert_eq!(names(&extra.drift().await), ["routes"]);
    extra.delete().await;
    let path = format!("/v2.0/floatingips/{}", address.id());
    ask(ground, "network", Method::Put, &path, value!({"floatingip": {"port_id": null}})).await;
    assert_eq!(names(&tie.drift().await), ["port_id"]);
    let path = format!("/v2.0/routers/{}", router.id());
    tie.delete().await;
    address.delete().await;
    ask(ground, "network", Method::Put, &path, value!({"router": {"external_gateway_info": {}}})).await;
    assert_eq!(names(&gateway.drift().await), ["network"]);
    port.delete().await;
    interface.delete().await;
    gateway.delete().await;
    router.delete().await;
    subnet.delete().await;
    net.delete().await;
}

async fn quotas(ground: &Ground) {
    let project = ground.admin.project_id().await.unwrap();
    for (kind, service, path, member, limit, other) in [
        ("OS::Nova::Quota", "compute", "/os-quota-sets", "quota_set", "cores", "ram"),
        ("OS::Cinder::Quota", "block-storage", "/v3/os-quota-sets", "quota_set", "volumes", "snapshots"),
        ("OS::Neutron::Quota", "network", "/v2.0/quotas", "quota", "port", "subnet"),
    ] {
        let given = Map::from([
            ("project".to_owned(), project.as_str().into()),
            (limit.to_owned(), 77.into()),
            (other.to_owned(), 88_000.into()),
        ]);
        let mut quota = ground.admin_resource(kind, "quota");
        quota.create(given.into()).await.unwrap_or_else(|failure| panic!("{kind}: {failure}"));
        assert_eq!(names(&quota.drift().await), [""; 0], "{kind}");
        let body = Value::from_iter([(member.to_owned(), Value::from_iter([(limit.to_owned(), Value::from(78))]))]);
        ask(ground, service, Method::Put, &format!("{path}/{project}"), body).await;
        assert_eq!(names(&quota.drift().await), [limit], "{kind}");
        quota.delete().await;
    }
}

async fn an_instance_of_amazon(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.97.0.0/24").await;
    let given = value!({"network": net.id(), "cidr": "10.98.0.0/24"});
    let mut other = ground.made("OS::Neutron::Subnet", "other", given).await;
    let mut group = ground.made("OS::Neutron::SecurityGroup", "group", value!({})).await;
    let given = value!({
        "ImageId": "cirros", "InstanceType": "m1.nano", "SubnetId": subnet.id(), "SecurityGroups": [(group.id())],
        "Tags": [{"Key": "a", "Value": "1"}],
    });
    let mut instance = ground.made("AWS::EC2::Instance", "instance", given).await;
    assert_eq!(names(&instance.drift().await), [""; 0]);
    let request = CloudRequest::new("network", Method::Get, "/v2.0/ports").query("device_id", instance.id());
    let ports = ground.admin.call(request).await.unwrap().body;
    let port = ports.get("ports").and_then(|ports| ports.at(0)?.str_at("id")).unwrap();
    let path = format!("/v2.0/ports/{port}");
    ask(ground, "network", Method::Put, &path, value!({"port": {"security_groups": []}})).await;
    assert_eq!(names(&instance.drift().await), ["SecurityGroups"]);
    let addresses = value!([{"subnet_id": other.id()}]);
    ask(ground, "network", Method::Put, &path, value!({"port": {"fixed_ips": addresses}})).await;
    let path = format!("/servers/{}/metadata", instance.id());
    ask(ground, "compute", Method::Put, &path, value!({"metadata": {"a": "2"}})).await;
    assert_eq!(names(&instance.drift().await), ["SecurityGroups", "SubnetId", "Tags"]);
    instance.delete().await;
    for resource in [&mut group, &mut other, &mut subnet, &mut net] {
        resource.delete().await;
    }
}

async fn a_container_of_objects(ground: &Ground) {
    if !ground.offers("object-store").await {
        return;
    }
    let given = value!({
        "X-Container-Read": ".referrer:*, .rlistings", "X-Container-Meta": {"Web_Index": "a.html", "b": "1"},
    });
    let mut container = ground.made("OS::Swift::Container", "container", given).await;
    assert_eq!(names(&container.drift().await), [""; 0]);
    let path = format!("/{}", container.id());
    let change = |headers: [(&str, &str); 2]| {
        let mut request = CloudRequest::new("object-store", Method::Post, path.as_str());
        request.headers.extend(headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
        ground.cloud.call(request)
    };
    change([("X-Container-Meta-Web-Index", "b.html"), ("X-Container-Meta-Of-Others", "1")]).await.unwrap();
    assert_eq!(names(&container.drift().await), ["X-Container-Meta"]);
    change([("X-Container-Meta-Web-Index", "a.html"), ("X-Container-Read", ".r:example.org")]).await.unwrap();
    assert_eq!(names(&container.drift().await), ["X-Container-Read"]);
    container.delete().await;
}

async fn a_container_of_secrets(ground: &Ground) {
    if !ground.offers("key-manager").await {
        return;
    }
    let mut one = ground.made("OS::Barbican::Secret", "one", value!({"payload": "a"})).await;
    let mut two = ground.made("OS::Barbican::Secret", "two", value!({"payload": "b"})).await;
    let given = value!({"secrets": [{"name": "a", "ref": one.id()}]});
    let mut container = ground.made("OS::Barbican::GenericContainer", "container", given).await;
    assert_eq!((names(&container.drift().await), names(&one.drift().await)), (vec![], vec![]));
    let id = container.id().rsplit('/').next().unwrap();
    let request = CloudRequest::new("key-manager", Method::Post, format!("/v1/containers/{id}/secrets"));
    ground.cloud.call(request.body(value!({"name": "b", "secret_ref": two.id()}))).await.unwrap();
    assert_eq!(names(&container.drift().await), ["secrets"]);
    for resource in [&mut container, &mut one, &mut two] {
        resource.delete().await;
    }
}

async fn a_workflow(ground: &Ground) {
    if !ground.offers("workflowv2").await {
        return;
    }
    let given = value!({
        "name": "kilntest_flow", "type": "direct", "description": "d", "input": {"a": 1}, "task_defaults": {"timeout": 5},
        "tasks": [{"name": "one", "action": "std.noop", "on_success": ["two"]}, {"name": "two", "action": "std.noop"}],
    });
    let mut workflow = ground.made("OS::Mistral::Workflow", "workflow", given).await;
    assert_eq!(names(&workflow.drift().await), [""; 0]);
    let definition = "version: '2.0'\nkilntest_flow:\n  description: d\n  input: [a]\n  task-defaults: {timeout: 6}\n  \
                      tasks:\n    two: {action: std.noop}\n    one: {action: std.fail, on-success: [two]}\n";
    let mut request = CloudRequest::new("workflowv2", Method::Put, "/v2/workflows").body(definition.into());
    for (name, value) in [("content-type", "text/plain"), ("accept", "*/*")] {
        request.headers.push((name.to_owned(), value.to_owned()));
    }
    ground.cloud.call(request).await.unwrap();
    assert_eq!(names(&workflow.drift().await), ["task_defaults", "tasks"]);
    workflow.delete().await;
}

async fn users_of_a_database(ground: &Ground) {
    if !ground.offers("database").await {
        return;
    }
    let given = value!({
        "flavor": "m1.nano", "size": 1, "databases": [{"name": "one"}, {"name": "two"}],
        "users": [{"name": "user", "password": "secret", "databases": ["one"]}],
    });
    let mut instance = ground.made("OS::Trove::Instance", "instance", given).await;
    assert_eq!(names(&instance.drift().await), [""; 0]);
    let path = format!("/instances/{}/users", instance.id());
    let grant = value!({"databases": [{"name": "two"}]});
    let request = CloudRequest::new("database", Method::Put, format!("{path}/user/databases")).body(grant);
    ground.cloud.call(request).await.unwrap();
    assert_eq!(names(&instance.drift().await), ["users"]);
    let request = CloudRequest::new("database", Method::Delete, format!("{path}/user/databases/two"));
    ground.cloud.call(request).await.unwrap();
    assert_eq!(names(&instance.drift().await), [""; 0]);
    let other = value!({"users": [{"name": "other", "password": "secret", "databases": [{"name": "one"}]}]});
    ground.cloud.call(CloudRequest::new("database", Method::Post, path).body(other)).await.unwrap();
    assert_eq!(names(&instance.drift().await), ["users"]);
    instance.delete().await;
}
