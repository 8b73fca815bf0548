//! Others change objects: their properties differ from those of the resource, and only those.

use kiln_resource::{Cloud as _, CloudRequest, Method};
use kiln_value::{Map, Value, value};

use crate::openstack::ground::Ground;
use crate::openstack::neutron::network;
use crate::scenarios;

scenarios!(a_volume, an_image, a_server, a_floating_address_and_a_gateway, quotas);

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
    let given = value!({
        "image": "cirros", "flavor": "m1.nano", "networks": [{"network": net.id()}], "availability_zone": "nova",
        "metadata": {"a": "1"},
    });
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
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
