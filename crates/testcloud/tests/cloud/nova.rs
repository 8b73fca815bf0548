//! Servers, and errors of Nova.

use std::time::Duration;

use kiln_testcloud::{Quota, Testcloud};
use serde_json::{Value, json};

use crate::client::{Client, NOBODY, start, text};

const V2: &str = "/compute/v2.1";

/// The image and the private network for servers.
pub(crate) async fn parts(client: &Client) -> (String, String) {
    (client.id("/image/v2/images", "cirros").await, client.id("/network/v2.0/networks", "private").await)
}

/// The body of a server with additional fields.
#[expect(clippy::needless_pass_by_value, reason = "callers write the values in place")]
pub(crate) fn server(image: &str, networks: Value, more: Value) -> Value {
    let mut server = json!({"name": "s", "flavorRef": "42", "imageRef": image, "networks": networks});
    for (field, value) in more.as_object().into_iter().flatten() {
        server[field] = value.clone();
    }
    json!({"server": server})
}

#[tokio::test]
async fn bodies_are_checked() {
    let (_cloud, demo) = start().await;
    let (image, network) = parts(&demo).await;
    let path = format!("{V2}/servers");
    let bare = demo.make("/network/v2.0/networks", json!({"network": {}})).await;
    demo.post(&path, json!({})).await.refused(400, "'server' is a required property");
    demo.post(&path, json!({"server": {"name": "x"}})).await.refused(400, "'flavorRef' is a required property");
    let cases = [
        (json!({"bogus": 1}), 400, "Additional properties are not allowed ('bogus' was unexpected)"),
        (json!({"flavorRef": "nope"}), 400, "Flavor nope could not be found."),
        (json!({"imageRef": NOBODY}), 400, "Can not find requested image"),
        (json!({"imageRef": ""}), 400, "Missing imageRef attribute"),
        (json!({"networks": [{"uuid": NOBODY}]}), 400, "could not be found."),
        (json!({"networks": [{"uuid": "nope"}]}), 400, "is not valid under any of the given schemas"),
        (json!({"networks": [{"port": NOBODY}]}), 400, "Port id"),
        (json!({"networks": [{"uuid": bare}]}), 400, "requires a subnet in order to boot instances on"),
        (json!({"key_name": "nope"}), 400, "Invalid key_name provided."),
        (json!({"security_groups": [{"name": "nope"}]}), 400, "Unable to find security_group with name or id 'nope'"),
        (json!({"availability_zone": "nope"}), 400, "The requested availability zone is not available"),
        (json!({"metadata": {"a": 1}}), 400, "1 is not of type 'string'"),
        (
            json!({"block_device_mapping_v2": [{"uuid": NOBODY, "source_type": "volume", "destination_type": "volume"}]}),
            400,
            "Block Device Mapping is Invalid: failed to get volume",
        ),
    ];
    for (more, status, part) in cases {
        demo.post(&path, server(&image, json!([{"uuid": network}]), more)).await.refused(status, part);
    }
    let mut hinted = server(&image, json!("none"), json!({}));
    hinted["os:scheduler_hints"] = json!({"group": NOBODY});
    demo.post(&path, hinted).await.refused(400, "Instance group");
    let missing = format!("{path}/{NOBODY}");
    demo.get(&missing).await.refused(404, "Instance 11111111-2222-4333-8444-555555555555 could not be found.");
    demo.delete(&missing).await.refused(404, "itemNotFound");
    let stop = demo.post(&format!("{missing}/action"), json!({"os-stop": null})).await;
    stop.refused(404, "has no mapping to a cell");
    let version = [("x-openstack-nova-api-version", "2.999")];
    demo.with("GET", &path, Value::Null, &version).await.unwrap().refused(406, "Minimum is 2.1 and maximum is 2.93.");
}

#[tokio::test]
async fn several_networks_are_ambiguous() {
    let (_cloud, demo) = start().await;
    let (image, _) = parts(&demo).await;
    let network = demo.make("/network/v2.0/networks", json!({"network": {"name": "second"}})).await;
    let subnet = json!({"subnet": {"network_id": network, "cidr": "10.1.0.0/24", "ip_version": 4}});
    demo.make("/network/v2.0/subnets", subnet).await;
    let body = server(&image, json!("auto"), json!({}));
    demo.post(&format!("{V2}/servers"), body).await.refused(409, "Multiple possible networks found");
}

#[tokio::test]
async fn a_deleted_server_leaves_nothing() {
    // Long enough to see it in progress.
    let (cloud, demo) = start().await;
    let (image, network) = parts(&demo).await;
    let before = cloud.snapshot();
    let own = demo.make("/network/v2.0/ports", json!({"port": {"network_id": network}})).await;
    let path = format!("{V2}/servers");
    let body =
        server(&image, json!([{"uuid": network}, {"port": own}]), json!({"metadata": {"k": "v"}, "tags": ["t"]}));
    let id = demo.make(&path, body).await;
    let one = format!("{path}/{id}");
    assert_eq!(demo.get(&one).await.expect(200)["server"]["status"], "BUILD");
    demo.wait(&one, "ACTIVE").await;
    let seen = demo.get(&one).await.expect(200);
    assert_eq!(seen["server"]["addresses"]["private"].as_array().unwrap().len(), 2);
    assert_eq!(seen["server"]["tags"], json!(["t"]));
    let port = demo.get(&format!("/network/v2.0/ports/{own}")).await.expect(200);
    assert_eq!((&port["port"]["device_id"], &port["port"]["status"]), (&json!(id), &json!("ACTIVE")));
    let twice = server(&image, json!([{"port": own}]), json!({}));
    demo.post(&path, twice).await.refused(409, "is still in use");
    let found = demo.get(&format!("{path}/detail?name=s")).await.expect(200);
    assert_eq!(found["servers"].as_array().unwrap().len(), 1);

    demo.delete(&one).await.expect(204);
    demo.wait(&one, "").await;
    let port = demo.get(&format!("/network/v2.0/ports/{own}")).await.expect(200);
    assert_eq!(port["port"]["device_id"], "", "an existing port is kept");
    demo.delete(&format!("/network/v2.0/ports/{own}")).await.expect(204);
    assert_eq!(before.added_in(&cloud.snapshot()), Vec::<String>::new());
}

#[tokio::test]
async fn actions_require_the_right_state() {
    let (_cloud, demo) = start().await;
    let (image, _) = parts(&demo).await;
    let id = demo.make(&format!("{V2}/servers"), server(&image, json!("none"), json!({}))).await;
    let (one, action) = (format!("{V2}/servers/{id}"), format!("{V2}/servers/{id}/action"));
    demo.post(&action, json!({"os-stop": null})).await.refused(409, "Cannot 'stop' instance");
    demo.wait(&one, "ACTIVE").await;
    demo.post(&action, json!({"bogus": null})).await.refused(400, "There is no such action: bogus");
    demo.post(&action, json!({"os-start": null})).await.refused(409, "while it is in vm_state active");
    demo.post(&action, json!({"os-stop": null})).await.expect(202);
    demo.wait(&one, "SHUTOFF").await;
    demo.post(&action, json!({"resize": {"flavorRef": "42"}})).await.refused(400, "instances must change flavor!");
    demo.post(&action, json!({"resize": {"flavorRef": "nope"}})).await.refused(400, "Flavor nope could not be found.");
    demo.post(&action, json!({"confirmResize": null})).await.refused(409, "Cannot 'confirmResize'");
    demo.post(&action, json!({"resize": {"flavorRef": "84"}})).await.expect(202);
    demo.wait(&one, "VERIFY_RESIZE").await;
    demo.post(&action, json!({"confirmResize": null})).await.expect(204);
    let seen = demo.get(&one).await.expect(200);
    assert_eq!(
        (&seen["server"]["status"], &seen["server"]["flavor"]["original_name"]),
        (&json!("ACTIVE"), &json!("m1.micro"))
    );
    demo.post(&action, json!({"rebuild": {"imageRef": NOBODY}})).await.refused(400, "Cannot find image for rebuild");
}

#[tokio::test]
async fn volumes_are_attached_once_and_not_deleted_while_attached() {
    let (_cloud, demo) = start().await;
    let (image, _) = parts(&demo).await;
    let volumes = format!("/volume/v3/{}/volumes", demo.project);
    let volume = demo.make(&volumes, json!({"volume": {"size": 1}})).await;
    let server_id = demo.make(&format!("{V2}/servers"), server(&image, json!("none"), json!({}))).await;
    let path = format!("{V2}/servers/{server_id}/os-volume_attachments");
    let attach = json!({"volumeAttachment": {"volumeId": volume}});
    demo.wait(&format!("{V2}/servers/{server_id}"), "ACTIVE").await;
    demo.wait(&format!("{volumes}/{volume}"), "available").await;
    demo.post(&path, json!({"volumeAttachment": {"volumeId": NOBODY}})).await.refused(404, "could not be found");
    demo.post(&path, attach.clone()).await.expect(200);
    demo.post(&path, attach).await.refused(400, "is already attached");
    demo.wait(&format!("{volumes}/{volume}"), "in-use").await;
    demo.delete(&format!("{volumes}/{volume}")).await.refused(400, "must not be migrating, attached");
    let second = demo.make(&format!("{V2}/servers"), server(&image, json!("none"), json!({}))).await;
    demo.wait(&format!("{V2}/servers/{second}"), "ACTIVE").await;
    let other = format!("{V2}/servers/{second}/os-volume_attachments");
    demo.post(&other, json!({"volumeAttachment": {"volumeId": volume}})).await.refused(400, "status must be available");
    demo.delete(&format!("{path}/{NOBODY}")).await.refused(404, "is not attached to volume");
    demo.delete(&format!("{path}/{volume}")).await.expect(202);
    demo.wait(&format!("{volumes}/{volume}"), "available").await;
    demo.delete(&format!("{volumes}/{volume}")).await.expect(202);
    demo.wait(&format!("{volumes}/{volume}"), "").await;
}

#[tokio::test]
async fn a_boot_volume_is_deleted_with_its_server() {
    let (cloud, demo) = start().await;
    let (image, _) = parts(&demo).await;
    let device = json!({
        "boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": image, "volume_size": 2,
        "delete_on_termination": true,
    });
    let more = json!({"block_device_mapping_v2": [device]});
    let id = demo.make(&format!("{V2}/servers"), server("", json!("none"), more)).await;
    let one = format!("{V2}/servers/{id}");
    demo.wait(&one, "ACTIVE").await;
    let seen = demo.get(&one).await.expect(200);
    assert_eq!(seen["server"]["image"], "");
    let volume = text(&seen["server"]["os-extended-volumes:volumes_attached"][0]["id"]);
    let path = format!("{one}/os-volume_attachments/{volume}");
    demo.delete(&path).await.refused(403, "Cannot detach a root device volume");
    demo.delete(&one).await.expect(204);
    demo.wait(&format!("/volume/v3/{}/volumes/{volume}", demo.project), "").await;
    assert_eq!(cloud.snapshot().count("volume_attachments"), 0);
}

#[tokio::test]
async fn interfaces_are_attached_and_detached() {
    let (cloud, demo) = start().await;
    let (image, network) = parts(&demo).await;
    let id = demo.make(&format!("{V2}/servers"), server(&image, json!("none"), json!({}))).await;
    demo.wait(&format!("{V2}/servers/{id}"), "ACTIVE").await;
    let path = format!("{V2}/servers/{id}/os-interface");
    let ports = cloud.snapshot().count("ports");
    demo.post(&path, json!({"interfaceAttachment": {"port_id": NOBODY}})).await.refused(404, "could not be found");
    let made = demo.post(&path, json!({"interfaceAttachment": {"net_id": network}})).await.expect(200);
    let port = text(&made["interfaceAttachment"]["port_id"]);
    demo.post(&path, json!({"interfaceAttachment": {"port_id": port}})).await.refused(400, "still in use");
    demo.delete(&format!("{path}/{port}")).await.expect(202);
    demo.wait(&format!("/network/v2.0/ports/{port}"), "").await;
    assert_eq!(cloud.snapshot().count("ports"), ports);
}

#[tokio::test]
async fn keypairs_and_groups_are_checked() {
    let (_cloud, demo) = start().await;
    let path = format!("{V2}/os-keypairs");
    let newest = [("x-openstack-nova-api-version", "2.92")];
    let body = json!({"keypair": {"name": "k"}});
    let answer = demo.with("POST", &path, body.clone(), &newest).await.unwrap();
    answer.refused(400, "'public_key' is a required property");
    let made = demo.post(&path, body.clone()).await.expect(201);
    assert!(text(&made["keypair"]["private_key"]).contains("PRIVATE KEY"), "older versions generate the key");
    demo.post(&path, body).await.refused(409, "Key pair 'k' already exists.");
    let bad = json!({"keypair": {"name": "b", "public_key": "bad"}});
    demo.post(&path, bad).await.refused(400, "Keypair data is invalid");
    demo.delete(&format!("{path}/k")).await.expect(204);
    demo.delete(&format!("{path}/k")).await.refused(404, "Keypair k not found for user");

    let path = format!("{V2}/os-server-groups");
    demo.post(&path, json!({"server_group": {"name": "g"}})).await.refused(400, "'policy' is a required property");
    let bad = json!({"server_group": {"name": "g", "policy": "bad"}});
    demo.post(&path, bad).await.refused(400, "'bad' is not one of");
    let rules = json!({"server_group": {"name": "g", "policy": "affinity", "rules": {"max_server_per_host": 2}}});
    demo.post(&path, rules).await.refused(400, "Only anti-affinity policy supports rules.");
    demo.get(&format!("{path}/{NOBODY}")).await.refused(404, "Instance group");
}

#[tokio::test]
async fn anti_affinity_runs_out_of_hosts() {
    let (_cloud, demo) = start().await;
    let (image, _) = parts(&demo).await;
    let group = json!({"server_group": {"name": "g", "policy": "anti-affinity"}});
    let group = demo.make(&format!("{V2}/os-server-groups"), group).await;
    let mut servers = Vec::new();
    for _ in 0..5 {
        let mut body = server(&image, json!("none"), json!({}));
        body["os:scheduler_hints"] = json!({"group": group});
        servers.push(demo.make(&format!("{V2}/servers"), body).await);
    }
    for id in &servers[..4] {
        demo.wait(&format!("{V2}/servers/{id}"), "ACTIVE").await;
    }
    demo.wait(&format!("{V2}/servers/{}", servers[4]), "ERROR").await;
    let seen = demo.get(&format!("{V2}/os-server-groups/{group}")).await.expect(200);
    assert_eq!(seen["server_group"]["members"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn flavors_are_for_administrators() {
    let (cloud, demo) = start().await;
    let admin = Client::new(&cloud, cloud.users().admin).await;
    let path = format!("{V2}/flavors");
    let flavor = |name: &str| json!({"flavor": {"name": name, "ram": 64, "vcpus": 1, "disk": 1}});
    demo.post(&path, flavor("f")).await.refused(403, "Policy doesn't allow os_compute_api:os-flavor-manage:create");
    admin.post(&path, flavor("m1.nano")).await.refused(409, "Flavor with name m1.nano already exists.");
    let id = admin.make(&path, flavor("f")).await;
    let specs = format!("{path}/{id}/os-extra_specs");
    admin.post(&specs, json!({"extra_specs": {"a": "b"}})).await.expect(200);
    demo.get(&format!("{specs}/x")).await.refused(404, "has no extra specs with key x");
    admin.delete(&format!("{path}/{id}")).await.expect(202);
    demo.get(&format!("{path}/{id}")).await.refused(404, "could not be found");
}

#[tokio::test]
async fn quotas_are_403() {
    let quota = Quota { instances: Some(1), ..Quota::default() };
    let cloud = Testcloud::builder().build_time(Duration::ZERO).quota(quota).start().await.unwrap();
    let demo = Client::new(&cloud, cloud.users().demo).await;
    let (image, _) = parts(&demo).await;
    demo.make(&format!("{V2}/servers"), server(&image, json!("none"), json!({}))).await;
    let answer = demo.post(&format!("{V2}/servers"), server(&image, json!("none"), json!({}))).await;
    answer.refused(403, "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances");
}

#[tokio::test]
async fn servers_cannot_use_the_external_network() {
    let (_cloud, demo) = start().await;
    let (image, _) = parts(&demo).await;
    let public = demo.id("/network/v2.0/networks", "public").await;
    let id = demo.make(&format!("{V2}/servers"), server(&image, json!([{"uuid": public}]), json!({}))).await;
    demo.wait(&format!("{V2}/servers/{id}"), "ERROR").await;
    let seen = demo.get(&format!("{V2}/servers/{id}")).await.expect(200);
    assert!(text(&seen["server"]["fault"]["message"]).contains("Failed to allocate the network(s)"));
}
