//! Networks, and errors of Neutron.

use std::time::Duration;

use kiln_testcloud::{Quota, Testcloud};
use serde_json::{Value, json};

use crate::client::{Client, NOBODY, start, text};

const V2: &str = "/network/v2.0";

async fn network(client: &Client, name: &str, cidr: &str) -> (String, String) {
    let network = client.make(&format!("{V2}/networks"), json!({"network": {"name": name}})).await;
    let subnet = json!({"subnet": {"network_id": network, "cidr": cidr, "ip_version": 4}});
    (network.clone(), client.make(&format!("{V2}/subnets"), subnet).await)
}

#[tokio::test]
async fn bodies_are_checked() {
    let (_cloud, demo) = start().await;
    let path = format!("{V2}/networks");
    let cases = [
        (json!({}), 400, "Unable to find 'network' in request body"),
        (json!("{bad"), 400, "Body contains invalid data"),
        (json!({"network": {"bogus": 1}}), 400, "Unrecognized attribute(s) 'bogus'"),
        (json!({"network": {"name": 1}}), 400, "'1' is not a valid string."),
        (json!({"network": {"admin_state_up": "maybe"}}), 400, "cannot be converted to boolean"),
        (json!({"network": {"status": "UP"}}), 400, "Attribute 'status' not allowed in POST"),
        (json!({"network": {"shared": true}}), 403, "rule:create_network:shared"),
        (json!({"network": {"project_id": "other"}}), 400, "requires admin or advsvc privileges"),
        (json!({"network": {"qos_policy_id": NOBODY}}), 404, "QosPolicyNotFound"),
    ];
    for (body, status, part) in cases {
        demo.post(&path, body).await.refused(status, part);
    }
    demo.post(&format!("{V2}/ports"), json!({"port": {}})).await.refused(400, "Required attribute 'network_id'");
    let id = demo.id(&path, "private").await;
    demo.put(&format!("{path}/{id}"), json!({"network": {"status": "x"}})).await.refused(400, "read-only attribute");
    demo.get(&format!("{path}?bogus=1")).await.refused(400, "invalid attribute for filtering");
}

#[tokio::test]
async fn unknown_ids_are_404_with_neutrons_messages() {
    let (_cloud, demo) = start().await;
    for (noun, kind) in [
        ("networks", "NetworkNotFound"),
        ("subnets", "SubnetNotFound"),
        ("ports", "PortNotFound"),
        ("routers", "RouterNotFound"),
        ("floatingips", "FloatingIPNotFound"),
        ("security-groups", "SecurityGroupNotFound"),
        ("security-group-rules", "SecurityGroupRuleNotFound"),
    ] {
        let path = format!("{V2}/{noun}/{NOBODY}");
        assert_eq!(demo.get(&path).await.expect(404)["NeutronError"]["type"], kind);
        assert_eq!(demo.delete(&path).await.expect(404)["NeutronError"]["type"], kind);
    }
}

#[tokio::test]
async fn objects_of_other_projects_are_not_visible() {
    let (cloud, demo) = start().await;
    let other = Client::new(&cloud, cloud.users().alt_demo).await;
    let (network, subnet) = network(&demo, "n", "10.1.0.0/24").await;
    let port = demo.make(&format!("{V2}/ports"), json!({"port": {"network_id": network}})).await;
    for path in [format!("{V2}/networks/{network}"), format!("{V2}/subnets/{subnet}"), format!("{V2}/ports/{port}")] {
        other.get(&path).await.refused(404, "NotFound");
        other.delete(&path).await.refused(404, "NotFound");
    }
    let public = other.id(&format!("{V2}/networks"), "public").await;
    other.delete(&format!("{V2}/networks/{public}")).await.refused(403, "rule:delete_network is disallowed");
    let body = json!({"subnet": {"network_id": public, "cidr": "10.9.0.0/24", "ip_version": 4}});
    other.post(&format!("{V2}/subnets"), body).await.refused(403, "not allowed to create subnet on this network");
}

#[tokio::test]
async fn subnets_are_checked() {
    let (_cloud, demo) = start().await;
    let (network, subnet) = network(&demo, "n", "10.1.0.0/24").await;
    let path = format!("{V2}/subnets");
    let cases = [
        (json!({}), 400, "Required attribute 'ip_version' not specified"),
        (json!({"cidr": "10.1.0.128/25"}), 400, "overlaps with another subnet"),
        (json!({"cidr": "bad"}), 400, "bad is not in a CIDR format"),
        (json!({"cidr": "10.2.0.0/24", "ip_version": 6}), 400, "does not match the ip_version '6'"),
        (json!({"cidr": "10.2.0.0/24", "ip_version": 5}), 400, "5 is not in valid_values"),
        (json!({"cidr": "10.2.0.0/24", "gateway_ip": "10.2.0.0"}), 400, "Gateway is not valid on subnet"),
        (json!({"cidr": "10.2.0.0/24", "gateway_ip": "10.3.0.1"}), 400, "Gateway is not valid on subnet"),
        (
            json!({"cidr": "10.2.0.0/24", "allocation_pools": [{"start": "10.1.9.1", "end": "10.2.0.9"}]}),
            400,
            "OutOfBoundsAllocationPool",
        ),
        (
            json!({"cidr": "10.2.0.0/24", "allocation_pools": [{"start": "10.2.0.9", "end": "10.2.0.2"}]}),
            400,
            "InvalidAllocationPool",
        ),
        (
            json!({"cidr": "10.2.0.0/24", "gateway_ip": "10.2.0.5", "allocation_pools": [{"start": "10.2.0.2", "end": "10.2.0.9"}]}),
            409,
            "GatewayConflictWithAllocationPools",
        ),
        (
            json!({"cidr": "10.2.0.0/24", "allocation_pools": [
                {"start": "10.2.0.2", "end": "10.2.0.9"}, {"start": "10.2.0.9", "end": "10.2.0.12"},
            ]}),
            409,
            "OverlappingAllocationPools",
        ),
        (json!({"cidr": "10.2.0.0/24", "dns_nameservers": ["x y"]}), 400, "is not a valid nameserver"),
    ];
    for (mut body, status, part) in cases {
        let fields = body.as_object_mut().unwrap();
        if !fields.is_empty() {
            fields.insert("network_id".to_owned(), json!(network));
            fields.entry("ip_version").or_insert(json!(4));
        }
        demo.post(&path, json!({"subnet": body})).await.refused(status, part);
    }
    let seen = demo.get(&format!("{path}/{subnet}")).await.expect(200);
    assert_eq!(seen["subnet"]["gateway_ip"], "10.1.0.1");
    assert_eq!(seen["subnet"]["allocation_pools"], json!([{"start": "10.1.0.2", "end": "10.1.0.254"}]));
}

#[tokio::test]
async fn objects_in_use_are_not_deleted() {
    let (_cloud, demo) = start().await;
    let (network, subnet) = network(&demo, "n", "10.1.0.0/24").await;
    let group = demo.make(&format!("{V2}/security-groups"), json!({"security_group": {"name": "g"}})).await;
    let port = json!({"port": {"network_id": network, "security_groups": [group]}});
    let port = demo.make(&format!("{V2}/ports"), port).await;
    demo.delete(&format!("{V2}/networks/{network}")).await.refused(409, "NetworkInUse");
    demo.delete(&format!("{V2}/subnets/{subnet}")).await.refused(409, "SubnetInUse");
    demo.delete(&format!("{V2}/security-groups/{group}")).await.refused(409, "SecurityGroupInUse");
    demo.delete(&format!("{V2}/ports/{port}")).await.expect(204);
    demo.delete(&format!("{V2}/security-groups/{group}")).await.expect(204);
    demo.delete(&format!("{V2}/subnets/{subnet}")).await.expect(204);
    demo.delete(&format!("{V2}/networks/{network}")).await.expect(204);
}

#[tokio::test]
async fn addresses_are_allocated_once_and_can_be_exhausted() {
    let (_cloud, demo) = start().await;
    let (network, subnet) = network(&demo, "n", "10.1.0.0/29").await;
    let path = format!("{V2}/ports");
    let port = |ip: Value| json!({"port": {"network_id": network, "fixed_ips": [ip]}});
    demo.post(&path, port(json!({"ip_address": "1.2.3.4"}))).await.refused(400, "InvalidIpForNetwork");
    demo.post(&path, port(json!({"subnet_id": subnet, "ip_address": "10.1.0.7"})))
        .await
        .refused(400, "InvalidIpForSubnet");
    demo.post(&path, port(json!({"subnet_id": NOBODY}))).await.refused(404, "SubnetNotFound");
    demo.make(&path, port(json!({"ip_address": "10.1.0.4"}))).await;
    demo.post(&path, port(json!({"ip_address": "10.1.0.4"}))).await.refused(409, "IpAddressAlreadyAllocated");
    let any = || json!({"port": {"network_id": network}});
    let mut ports = Vec::new();
    for _ in 0..4 {
        ports.push(demo.make(&path, any()).await);
    }
    demo.post(&path, any()).await.refused(409, "No more IP addresses available");
    demo.delete(&format!("{path}/{}", ports[0])).await.expect(204);
    demo.make(&path, any()).await;
}

#[tokio::test]
async fn router_interfaces_conflict() {
    let (_cloud, demo) = start().await;
    let (_, subnet) = network(&demo, "n", "10.1.0.0/24").await;
    let (_, overlapping) = network(&demo, "m", "10.1.0.0/16").await;
    let (other_network, _) = network(&demo, "o", "10.2.0.0/24").await;
    let router = demo.make(&format!("{V2}/routers"), json!({"router": {"name": "r"}})).await;
    let (add, remove) = (
        format!("{V2}/routers/{router}/add_router_interface"),
        format!("{V2}/routers/{router}/remove_router_interface"),
    );
    demo.put(&add, json!({})).await.refused(400, "Either subnet_id or port_id must be specified");
    demo.put(&add, json!({"subnet_id": NOBODY})).await.refused(404, "SubnetNotFound");
    demo.put(&add, json!({"port_id": NOBODY})).await.refused(404, "PortNotFound");
    let port = text(&demo.put(&add, json!({"subnet_id": subnet})).await.expect(200)["port_id"]);
    demo.put(&add, json!({"subnet_id": subnet})).await.refused(400, "Router already has a port on subnet");
    demo.put(&add, json!({"subnet_id": overlapping})).await.refused(400, "overlaps with cidr");
    demo.put(&add, json!({"port_id": port})).await.refused(409, "PortInUse");
    demo.delete(&format!("{V2}/ports/{port}")).await.refused(409, "ServicePortInUse");
    demo.delete(&format!("{V2}/routers/{router}")).await.refused(409, "RouterInUse");
    let own = demo.make(&format!("{V2}/ports"), json!({"port": {"network_id": other_network}})).await;
    demo.put(&add, json!({"port_id": own})).await.expect(200);
    demo.put(&remove, json!({"subnet_id": overlapping})).await.refused(404, "RouterInterfaceNotFoundForSubnet");
    demo.put(&remove, json!({"port_id": own})).await.expect(200);
    demo.put(&remove, json!({"subnet_id": subnet})).await.expect(200);
    demo.delete(&format!("{V2}/routers/{router}")).await.expect(204);
}

#[tokio::test]
async fn floating_ips_require_a_route_to_the_external_network() {
    let (_cloud, demo) = start().await;
    let (network, subnet) = network(&demo, "n", "10.1.0.0/24").await;
    let public = demo.id(&format!("{V2}/networks"), "public").await;
    let port = demo.make(&format!("{V2}/ports"), json!({"port": {"network_id": network}})).await;
    let path = format!("{V2}/floatingips");
    let ip = |fields: Value| {
        let mut body = json!({"floatingip": {"floating_network_id": public}});
        body["floatingip"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    demo.post(&path, json!({"floatingip": {"floating_network_id": network}}))
        .await
        .refused(400, "is not a valid external network");
    demo.post(&path, ip(json!({"port_id": NOBODY}))).await.refused(404, "PortNotFound");
    demo.post(&path, ip(json!({"port_id": port}))).await.refused(404, "ExternalGatewayForFloatingIPNotFound");
    let router = json!({"router": {"external_gateway_info": {"network_id": network}}});
    demo.post(&format!("{V2}/routers"), router).await.refused(400, "is not an external network");
    let router = json!({"router": {"external_gateway_info": {"network_id": public}}});
    let router = demo.make(&format!("{V2}/routers"), router).await;
    demo.put(&format!("{V2}/routers/{router}/add_router_interface"), json!({"subnet_id": subnet})).await.expect(200);

    let first = demo.post(&path, ip(json!({"port_id": port}))).await.expect(201);
    let first = &first["floatingip"];
    assert_eq!((&first["status"], &first["router_id"]), (&json!("ACTIVE"), &json!(router)));
    demo.post(&path, ip(json!({"port_id": port}))).await.refused(409, "FloatingIPPortAlreadyAssociated");
    let remove = format!("{V2}/routers/{router}/remove_router_interface");
    demo.put(&remove, json!({"subnet_id": subnet})).await.refused(409, "RouterInterfaceInUseByFloatingIP");
    let change = json!({"router": {"external_gateway_info": {}}});
    let refused = demo.put(&format!("{V2}/routers/{router}"), change).await;
    refused.refused(409, "RouterExternalGatewayInUseByFloatingIp");
    demo.delete(&format!("{V2}/ports/{port}")).await.expect(204);
    let seen = demo.get(&format!("{path}/{}", text(&first["id"]))).await.expect(200);
    assert_eq!((&seen["floatingip"]["port_id"], &seen["floatingip"]["status"]), (&Value::Null, &json!("DOWN")));
}

#[tokio::test]
async fn security_group_rules_are_checked() {
    let (_cloud, demo) = start().await;
    let group = demo.post(&format!("{V2}/security-groups"), json!({"security_group": {"name": "g"}})).await.expect(201);
    assert_eq!(
        group["security_group"]["security_group_rules"].as_array().unwrap().len(),
        2,
        "egress for both versions"
    );
    let group = text(&group["security_group"]["id"]);
    let path = format!("{V2}/security-group-rules");
    let rule = |fields: Value| {
        let mut body = json!({"security_group_rule": {"security_group_id": group, "direction": "ingress"}});
        body["security_group_rule"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let cases = [
        (json!({"direction": "egress", "ethertype": "IPv4"}), 409, "SecurityGroupRuleExists"),
        (json!({"direction": "x"}), 400, "x is not in valid_values"),
        (json!({"ethertype": "x"}), 400, "SecurityGroupRuleInvalidEtherType"),
        (json!({"protocol": "foo"}), 400, "SecurityGroupRuleInvalidProtocol"),
        (json!({"port_range_min": 1, "port_range_max": 2}), 400, "SecurityGroupProtocolRequiredWithPorts"),
        (json!({"protocol": "tcp", "port_range_min": 9, "port_range_max": 2}), 400, "SecurityGroupInvalidPortRange"),
        (
            json!({"protocol": "tcp", "port_range_min": 9, "port_range_max": 70000}),
            400,
            "SecurityGroupInvalidPortValue",
        ),
        (json!({"protocol": "icmp", "port_range_min": 500}), 400, "SecurityGroupInvalidIcmpValue"),
        (json!({"remote_ip_prefix": "zz"}), 400, "InvalidCIDR"),
        (json!({"remote_ip_prefix": "10.0.0.0/8", "ethertype": "IPv6"}), 400, "SecurityGroupRuleParameterConflict"),
        (json!({"remote_group_id": NOBODY}), 404, "SecurityGroupNotFound"),
        (
            json!({"remote_group_id": group, "remote_ip_prefix": "10.0.0.0/8"}),
            400,
            "SecurityGroupMultipleRemoteEntites",
        ),
        (json!({"security_group_id": NOBODY}), 404, "SecurityGroupNotFound"),
    ];
    for (fields, status, part) in cases {
        demo.post(&path, rule(fields)).await.refused(status, part);
    }
    let web = json!({"protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_ip_prefix": "0.0.0.0/0"});
    demo.post(&path, rule(web.clone())).await.expect(201);
    demo.post(&path, rule(web)).await.refused(409, "SecurityGroupRuleExists");
    let groups = format!("{V2}/security-groups");
    demo.post(&groups, json!({"security_group": {"name": "default"}}))
        .await
        .refused(409, "SecurityGroupDefaultAlreadyExists");
    let default = demo.id(&groups, "default").await;
    demo.delete(&format!("{groups}/{default}")).await.refused(409, "SecurityGroupCannotRemoveDefault");
}

#[tokio::test]
async fn quotas_are_409() {
    let quota = Quota { networks: Some(2), ports: Some(2), ..Quota::default() };
    let cloud = Testcloud::builder().build_time(Duration::ZERO).quota(quota).start().await.unwrap();
    let demo = Client::new(&cloud, cloud.users().demo).await;
    let path = format!("{V2}/networks");
    let network = demo.make(&path, json!({"network": {}})).await;
    demo.post(&path, json!({"network": {}})).await.refused(409, "Quota exceeded for resources: ['network'].");
    demo.make(&format!("{V2}/ports"), json!({"port": {"network_id": network}})).await;
    demo.post(&format!("{V2}/ports"), json!({"port": {"network_id": network}})).await.refused(409, "OverQuota");
    let admin = Client::new(&cloud, cloud.users().admin).await;
    let quota = format!("{V2}/quotas/{}", demo.project);
    demo.put(&quota, json!({"quota": {"network": 9}})).await.refused(403, "rule:update_quota");
    admin.put(&quota, json!({"quota": {"network": 9}})).await.expect(200);
    demo.make(&path, json!({"network": {}})).await;
}

#[tokio::test]
async fn lists_filter_sort_and_page() {
    let (_cloud, demo) = start().await;
    let path = format!("{V2}/networks");
    for name in ["c", "a", "b"] {
        let id = demo.make(&path, json!({"network": {"name": name}})).await;
        demo.put(&format!("{path}/{id}/tags"), json!({"tags": ["t", name]})).await.expect(200);
    }
    let list = demo.get(&format!("{path}?tags=t&sort_key=name&fields=name")).await.expect(200);
    assert_eq!(list["networks"], json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]));
    let first = demo.get(&format!("{path}?tags=t&limit=2")).await.expect(200);
    let marker = text(&first["networks"][1]["id"]);
    assert!(first["networks_links"][0]["href"].as_str().unwrap().contains(&marker));
    let rest = demo.get(&format!("{path}?tags=t&limit=2&marker={marker}")).await.expect(200);
    assert_eq!(rest["networks"][0]["name"], "b");
}
