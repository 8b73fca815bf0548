//! A VPC with a route table and an internet gateway, on the simulated cloud.

use kiln_resource::{Cloud, CloudRequest, Method, Observed, Sibling, Siblings};
use kiln_value::{Map, Value, value};

use crate::openstack::ground::Ground;

/// The subnets in which a router has an interface, and its external network.
async fn ends(ground: &Ground, router: &str) -> (Vec<String>, Value) {
    let get = async |path: String| {
        let request = CloudRequest::new("network", Method::Get, path);
        ground.cloud.call(request).await.unwrap().body
    };
    let ports = get("/v2.0/ports".to_owned()).await;
    let ports = ports.get("ports").and_then(Value::as_list).unwrap_or_default().to_vec();
    let own = ports.iter().filter(|port| port.str_at("device_id") == Some(router));
    let own = own.filter(|port| port.str_at("device_owner") == Some("network:router_interface"));
    let subnets = own.filter_map(|port| port.get("fixed_ips")?.as_list()).flatten();
    let subnets = subnets.filter_map(|address| address.str_at("subnet_id").map(str::to_owned)).collect();
    let shown = get(format!("/v2.0/routers/{router}")).await;
    let gateway = shown.get("router").and_then(|router| router.get("external_gateway_info")).cloned();
    (subnets, gateway.unwrap_or_default())
}

#[tokio::test]
async fn a_route_table_takes_a_subnet_and_gets_the_gateway() {
    let ground = Ground::simulated().await;
    let mut vpc = ground.made("AWS::EC2::VPC", "vpc", value!({})).await;
    let network = vpc.id().to_owned();
    let own = vpc.facts.data.get("router_id").and_then(Value::as_str).unwrap().to_owned();
    let given = value!({"VpcId": (network.as_str()), "CidrBlock": "10.74.0.0/24", "AvailabilityZone": "z"});
    let mut subnet = ground.made("AWS::EC2::Subnet", "subnet", given).await;
    assert_eq!(subnet.attribute("AvailabilityZone").await.as_str(), Some("z"));
    for resource in [&vpc, &subnet] {
        assert_eq!(resource.attribute("show").await, Value::Null, "it would replace the attributes in a list");
    }
    let in_subnet = vec![subnet.id().to_owned()];
    assert_eq!(ends(&ground, &own).await.0, in_subnet);

    let mut table = ground.made("AWS::EC2::RouteTable", "table", value!({"VpcId": (network.as_str())})).await;
    let moved = value!({"RouteTableId": (table.id()), "SubnetId": (subnet.id())});
    let mut association = ground.made("AWS::EC2::SubnetRouteTableAssociation", "move", moved).await;
    assert_eq!(ends(&ground, &own).await.0, Vec::<String>::new());
    assert_eq!(ends(&ground, table.id()).await.0, in_subnet);

    let mut attachment = ground.resource("AWS::EC2::VPCGatewayAttachment", "attachment");
    let seen = |vpc: &str, id: &str| Observed {
        resource_type: "AWS::EC2::RouteTable".to_owned(),
        physical_id: Some(id.to_owned()),
        properties: Map::from([("VpcId".to_owned(), vpc.into())]),
        ..Observed::default()
    };
    attachment.facts.observed = vec![seen(&network, table.id()), seen("other", "missing")];
    attachment.create(value!({"VpcId": (network.as_str())})).await.unwrap();
    let gateway = ends(&ground, table.id()).await.1;
    assert!(gateway.get("network_id").is_some_and(Value::is_truthy), "{gateway:?}");

    attachment.delete().await;
    assert!(!ends(&ground, table.id()).await.1.is_truthy());
    association.delete().await;
    assert_eq!(ends(&ground, &own).await.0, in_subnet);
    table.delete().await;
    subnet.delete().await;
    vpc.delete().await;
    ground.assert_clean();
}

#[test]
fn an_attachment_follows_the_route_tables_of_its_vpc() {
    let types = kiln_resource::shipped::types().unwrap();
    let kind = types.iter().find(|kind| kind.name == "AWS::EC2::VPCGatewayAttachment").unwrap();
    let vpc = |name: &str| Map::from([("VpcId".to_owned(), value!({"get_resource": name}))]);
    let (own, other) = (vpc("vpc"), vpc("other"));
    let sibling = |name: &'static str, properties: &Map| {
        let (resource_type, properties) =
            (if name == "it" { &kind.name } else { "AWS::EC2::RouteTable" }, properties.clone());
        Sibling::new(name, resource_type, &[], move || properties)
    };
    let siblings = Siblings::from_iter([sibling("one", &own), sibling("two", &other)]);
    let driver = kiln_drivers::driver_for(kind).unwrap();
    assert_eq!(driver.dependencies(&sibling("it", &own), &siblings), ["one"]);
}

#[tokio::test]
async fn a_bucket_is_for_its_owner_unless_it_is_public() {
    let ground = Ground::simulated().await;
    for (access, read, write) in [
        ("Private", "demo:demo", "demo:demo"),
        ("PublicRead", ".r:*", "demo:demo"),
        ("PublicReadWrite", ".r:*", ".r:*"),
        ("AuthenticatedRead", "demo", "demo:demo"),
    ] {
        let mut bucket = ground.made("AWS::S3::Bucket", "bucket", value!({"AccessControl": access})).await;
        let rows = ground.testcloud.as_ref().unwrap().snapshot().objects.remove("nouns").unwrap();
        let row = rows.iter().find(|row| row.get("name").and_then(|name| name.as_str()) == Some(bucket.id())).unwrap();
        assert_eq!((row["x-container-read"].as_str(), row["x-container-write"].as_str()), (Some(read), Some(write)));
        let url = bucket.attribute("WebsiteURL").await;
        assert!(url.as_str().unwrap().ends_with(&format!("/{}", bucket.id())), "{url:?}");
        bucket.delete().await;
    }
    ground.assert_clean();
}

#[tokio::test]
async fn an_instance_shows_its_tags() {
    let ground = Ground::simulated().await;
    let given = value!({
        "ImageId": "cirros", "InstanceType": "m1.nano", "Tags": [{"Key": "a", "Value": "b"}],
    });
    let mut instance = ground.made("AWS::EC2::Instance", "instance", given.clone()).await;
    assert!(instance.driver().refreshes_metadata());
    let live = instance.live().await;
    assert_eq!(live.get("Tags"), given.get("Tags"));
    let id = instance.id().to_owned();
    let change = CloudRequest::new("compute", Method::Post, format!("/servers/{id}/metadata"));
    ground.cloud.call(change.body(value!({"metadata": {"a": "other", "own": "x"}}))).await.unwrap();
    let live = instance.live().await;
    assert_eq!(live.get("Tags"), Some(&value!([{"Key": "a", "Value": "other"}])));
    instance.delete().await;
    ground.assert_clean();
}
