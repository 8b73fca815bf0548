//! Objects that exist become resources: as they are, or not at all.

use kiln_resource::Method;
use kiln_testcloud::{Account, Testcloud};
use kiln_value::value;

use crate::cloud_user::CloudUser;
use crate::plan::local;
use crate::run::{Folder, Ran};

/// What a person made by hand, in the words of a template: it is made by Kiln, and forgotten.
const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
resources:
  key: {type: OS::Nova::KeyPair, properties: {name: ours, public_key: ssh-ed25519 AAAAC3Nza ours}}
  net: {type: OS::Neutron::Net, properties: {name: back, tags: [blue]}}
  sub: {type: OS::Neutron::Subnet, properties: {name: back, network: {get_resource: net}, cidr: 10.7.0.0/24}}
  router:
    type: OS::Neutron::Router
    properties: {name: way-out, external_gateway_info: {network: public}}
  interface:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: sub}}
  doors:
    type: OS::Neutron::SecurityGroup
    properties:
      name: doors
      rules:
        - {protocol: tcp, port_range_min: 22, port_range_max: 22, remote_ip_prefix: 10.0.0.0/8}
        - {protocol: icmp}
        - {remote_mode: remote_group_id}
  port:
    type: OS::Neutron::Port
    properties: {network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: sub}}], security_groups: [{get_resource: doors}]}
  server:
    type: OS::Nova::Server
    properties:
      name: web-1
      image: cirros
      flavor: m1.tiny
      key_name: {get_resource: key}
      metadata: {role: web}
      networks: [{port: {get_resource: port}}]
  volume: {type: OS::Cinder::Volume, properties: {name: data, size: 2, description: what we keep}}
  attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {instance_uuid: {get_resource: server}, volume_id: {get_resource: volume}}
  address:
    type: OS::Neutron::FloatingIP
    properties: {floating_network: public, port_id: {get_resource: port}}
    depends_on: interface
";

struct World {
    cloud: Testcloud,
    folder: Folder,
    user: CloudUser,
}

impl World {
    async fn new(name: &str) -> Self {
        let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new(name));
        folder.write("made.yaml", TEMPLATE);
        let user = CloudUser::of(&cloud, cloud.users().demo).await;
        let world = Self { cloud, folder, user };
        world.kiln(&["stack", "create", "-t", "made.yaml", "made"]).ok();
        world
    }

    fn kiln(&self, args: &[&str]) -> Ran {
        local(&self.cloud, &self.folder, args)
    }

    /// Forgets the stack; its objects stay.
    fn release(&self) {
        self.kiln(&["stack", "release", "made", "--yes", "--data", "made.json"]).ok();
        self.cloud.journal().clear();
    }

    /// Requests that change something, other than those for tokens and trusts.
    fn writes(&self) -> Vec<String> {
        self.cloud.journal().writes()
    }

    /// A command of another user, with a database of its own.
    fn other(&self, account: Account, args: &[&str]) -> Ran {
        let mut command = self.folder.client(&self.cloud, "http://localhost", &[&["--local"], args].concat());
        command.env("OS_USERNAME", account.user).env("OS_PROJECT_NAME", account.project);
        command.env("KILN_DATABASE", self.folder.path().join(format!("{}.db", account.user)));
        command.output().unwrap().into()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exists_becomes_a_stack_without_a_change() {
    let world = World::new("imports").await;
    let owned = world.kiln(&["import", "scan", "-f", "json"]).json();
    // The cloud has made a network, a subnet, a router and its interface for the project.
    let owned = owned.as_array().unwrap();
    assert_eq!(owned.len(), 15, "{owned:?}");
    assert_eq!(owned.iter().filter(|one| one["stack"].as_str().unwrap().starts_with("made/")).count(), 11, "{owned:?}");
    let none = world.kiln(&["import", "write", "--name", "web*", "-t", "again.yaml"]);
    assert!(none.code == 1 && none.err.contains("no object fits"), "{none:?}");
    world.release();

    let free = world.kiln(&["import", "scan", "--unmanaged", "-f", "json"]).json();
    assert_eq!(free.as_array().unwrap().len(), 15, "{free}");
    let ran = world.kiln(&["import", "write", "--name", "web*", "--related", "-t", "web.yaml"]);
    assert!(ran.err.contains("11 resources in web.yaml, their objects in web.import.json"), "{ran:?}");
    let written = world.text("web.yaml");
    for line in [
        "  back:\n    type: OS::Neutron::Net\n    properties:\n      name: back\n      tags: [blue]\n",
        "      network: {get_resource: back}\n",
        "      networks: [{port: {get_resource: made-port}}]\n",
        "  back_subnet:\n",
        "  way-out_interface:\n",
        "      key_name: {get_resource: ours}\n",
        "      flavor: {get_param: flavor}\n",
        "remote_mode: remote_group_id",
    ] {
        assert!(written.contains(line), "{line}\n{written}");
    }
    assert!(!written.contains("allocation_pools") && !written.contains("mac_address"), "{written}");
    let linted = world.kiln(&["template", "lint", "web.yaml"]);
    assert_eq!((linted.code, linted.out.as_str()), (0, ""), "{linted:?}\n{written}");
    assert_eq!(world.kiln(&["template", "fmt", "--check", "web.yaml"]).code, 0, "{written}");

    let ran = world.kiln(&["import", "commit", "-t", "web.yaml", "--dry-run", "web"]);
    assert_eq!(ran.code, 0, "{ran:?}\n{written}");
    assert!(ran.err.contains("web: 11 objects are as the template says"), "{ran:?}");
    world.kiln(&["import", "commit", "-t", "web.yaml", "web"]).ok();
    assert_eq!(world.writes(), Vec::<String>::new());

    // It is a stack as any other: nothing has drifted, a change is made in place, and a delete leaves nothing.
    let drift = world.kiln(&["stack", "drift", "web", "--detailed-exitcode"]);
    assert!(drift.code == 0 || drift.code == 5, "{drift:?}");
    let plan = world.kiln(&["stack", "plan", "--existing", "--converge", "web", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    world.folder.write("next.yaml", &written.replace("role: web", "role: shop"));
    let plan = world.kiln(&["stack", "plan", "-t", "next.yaml", "web"]);
    assert!(plan.out.contains("1 to update") || plan.out.contains("1 to change"), "{plan:?}");
    world.kiln(&["stack", "update", "-t", "next.yaml", "web", "--yes"]).ok();
    world.kiln(&["stack", "delete", "web", "--yes"]).ok();
    let left = world.kiln(&["import", "scan", "-f", "json"]).json();
    assert_eq!(left.as_array().unwrap().len(), 4, "{left}");
    // The template makes everything anew, also in another project.
    world.kiln(&["stack", "create", "-t", "web.yaml", "twin"]).ok();
    world.other(world.cloud.users().alt_demo, &["stack", "create", "-t", "web.yaml", "twin"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_terraform_names_the_resources() {
    let world = World::new("imports-state").await;
    world.release();
    let made: serde_json::Value = serde_json::from_str(&world.text("made.json")).unwrap();
    let id = |name: &str| made["resources"][name]["resource_id"].as_str().unwrap();
    let of = |kind: &str, name: &str, id: &str| {
        let instance = value!({"schema_version": 0, "attributes": {"id": id}});
        value!({"mode": "managed", "type": kind, "name": name, "provider": "openstack", "instances": [instance]})
    };
    let state = value!({"version": 4, "terraform_version": "1.9.0", "resources": [
        (of("openstack_networking_network_v2", "backend", id("net"))),
        (of("openstack_networking_subnet_v2", "backend_v4", id("sub"))),
        (of("openstack_blockstorage_volume_v3", "store", id("volume"))),
        (of("openstack_blockstorage_volume_v3", "gone", "00000000-0000-4000-8000-000000000000")),
        (of("openstack_fw_rule_v2", "wall", "f1")),
    ]});
    world.folder.write("terraform.tfstate", &kiln_value::text::json(&state));
    let ran = world.kiln(&["import", "write", "--terraform-state", "terraform.tfstate", "-t", "tf.yaml"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for told in
        ["openstack_fw_rule_v2.wall is left out: Kiln has no type for it", "gone is left out", "3 resources in tf.yaml"]
    {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
    let written = world.text("tf.yaml");
    assert!(written.contains("  backend_v4:\n") && written.contains("network: {get_resource: backend}"), "{written}");
    world.kiln(&["import", "commit", "-t", "tf.yaml", "tf"]).ok();
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_is_named_and_nothing_is_imported() {
    let world = World::new("imports-differ").await;
    world.release();
    world.kiln(&["import", "write", "--all", "-t", "web.yaml"]).ok();
    let commit = |more: &[&str]| world.kiln(&[&["import", "commit", "-t", "web.yaml", "web"], more].concat());
    let written = world.text("web.yaml");
    let changed = written.replace("description: what we keep", "description: another").replace("size: 2", "size: 3");
    world.folder.write("web.yaml", &changed);
    let ran = commit(&[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for why in
        ["Nothing was imported", "data.size: the object has 2, the template says 3", "data.description: the object has"]
    {
        assert!(ran.err.contains(why), "{why}: {ran:?}");
    }
    let ran = commit(&["--dry-run", "-f", "json"]);
    assert!(ran.code == 1 && ran.out.contains("\"property\": \"size\""), "{ran:?}");

    // What cannot be read must be confirmed.
    let server = "    type: OS::Nova::Server\n    properties:\n";
    world.folder.write("web.yaml", &written.replacen(server, &format!("{server}      user_data: mine\n"), 1));
    let ran = commit(&[]);
    assert!(ran.code == 1 && ran.err.contains("web-1.user_data: it cannot be read in the object"), "{ran:?}");
    assert_eq!(commit(&["--confirm", "web-1.user_data", "--dry-run"]).code, 0);
    // The interfaces of the server can.
    let objects = world.text("web.import.json");
    assert!(!objects.contains("networks"), "{objects}");
    world.folder.write("web.yaml", &written);
    // An object that is gone.
    let volume = serde_json::from_str::<serde_json::Value>(&objects).unwrap();
    let volume = volume["objects"]["data"]["resource_id"].as_str().unwrap().to_owned();
    world.folder.write("web.import.json", &objects.replace(&volume, "00000000-0000-4000-8000-000000000000"));
    assert_eq!(commit(&[]).code, 1);
    // A template with more than there is.
    world.folder.write("web.import.json", &objects);
    world.folder.write("web.yaml", &format!("{written}\n  more:\n    type: OS::Neutron::Net\n"));
    let ran = commit(&[]);
    assert!(
        ran.code == 1 && ran.err.contains("Resource more cannot be imported: no object is given for it"),
        "{ran:?}"
    );
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(world.kiln(&["stack", "list", "-f", "json"]).json(), serde_json::json!([]));

    // The values of the objects are taken into the file, which is as it was written first then.
    world.folder.write("web.yaml", &changed);
    let ran = commit(&["--accept"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("data.size: 2 (in web.yaml)"), "{ran:?}");
    assert_eq!(world.text("web.yaml"), written);
    let ran = world.kiln(&["import", "commit", "-t", "web.yaml", "second"]);
    assert!(
        ran.code == 1 && ran.err.contains("it belongs to the resource") && ran.err.contains("of the stack web"),
        "{ran:?}"
    );
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_others_are_neither_seen_nor_taken() {
    let world = World::new("imports-others").await;
    world.release();
    let made: serde_json::Value = serde_json::from_str(&world.text("made.json")).unwrap();
    let volume = made["resources"]["volume"]["resource_id"].as_str().unwrap();
    let net = made["resources"]["net"]["resource_id"].as_str().unwrap();
    let users = world.cloud.users();
    world.folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources:\n  v: {type: OS::Cinder::Volume, properties: {size: 2}}\n  n: {type: OS::Neutron::Net}\n");
    let objects = value!({"objects": {
        "v": {"type": "OS::Cinder::Volume", "resource_id": volume}, "n": {"type": "OS::Neutron::Net", "resource_id": net},
    }});
    world.folder.write("t.import.json", &kiln_value::text::json(&objects));
    for account in [users.alt_demo, users.admin] {
        let seen = world.other(account, &["import", "scan", "-f", "json"]).json();
        let ids = seen.to_string();
        assert!(!ids.contains(volume) && !ids.contains(net), "{}: {ids}", account.user);
        let export = ["import", "write", "--export", "made.json", "-t", "theirs.yaml"];
        let ran = world.other(account, &export);
        assert!(
            ran.code == 1 && ran.err.contains("no object fits") && ran.err.contains("volume is left out"),
            "{ran:?}"
        );
    }
    let ran = world.other(users.alt_demo, &["import", "commit", "-t", "t.yaml", "theirs"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    // An administrator can read everything, and still imports only what is in the project of the token.
    let ran = world.other(users.admin, &["import", "commit", "-t", "t.yaml", "theirs"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("v: the object belongs to another project"), "{ran:?}");
    // What belongs to others in part has no project itself.
    let id = |name: &str| made["resources"][name]["resource_id"].as_str().unwrap();
    let text = format!(
        "heat_template_version: 2018-08-31\nresources:\n  i:\n    type: OS::Neutron::RouterInterface\n    properties: \
         {{router: {}, subnet: {}}}\n  a:\n    type: OS::Cinder::VolumeAttachment\n    properties: {{instance_uuid: {}, \
         volume_id: {volume}}}\n",
        id("router"),
        id("sub"),
        id("server")
    );
    world.folder.write("parts.yaml", &text);
    let objects = value!({"objects": {
        "i": {"type": "OS::Neutron::RouterInterface", "resource_id": (id("interface"))},
        "a": {"type": "OS::Cinder::VolumeAttachment", "resource_id": (id("attachment"))},
    }});
    world.folder.write("parts.import.json", &kiln_value::text::json(&objects));
    let ran = world.other(users.admin, &["import", "commit", "-t", "parts.yaml", "theirs"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for part in ["i: the object belongs to another project", "a: the object belongs to another project"] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_change_meanwhile_stay_as_they_are() {
    let world = World::new("imports-late").await;
    world.release();
    let id = world.user.network("mine").await;
    world.kiln(&["import", "write", &id, "-t", "net.yaml"]).ok();
    world
        .user
        .call("network", Method::Put, &format!("/v2.0/networks/{id}"), Some(value!({"network": {"name": "theirs"}})))
        .await;
    world.cloud.journal().clear();
    let ran = world.kiln(&["import", "commit", "-t", "net.yaml", "late"]);
    assert!(
        ran.code == 1 && ran.err.contains("mine.name: the object has \"theirs\", the template says \"mine\""),
        "{ran:?}"
    );
    assert_eq!(world.writes(), Vec::<String>::new());

    // The engine compares again, when the service has done so before. What it had taken over before stays, too.
    let first = world.user.network("lan").await;
    world.cloud.journal().clear();
    let template = "{heat_template_version: 2018-08-31, resources: {
        first: {type: OS::Neutron::Net, properties: {name: lan}},
        late: {type: OS::Neutron::Net, depends_on: first, properties: {name: mine}}}}";
    let part = |id: &str| value!({"type": "OS::Neutron::Net", "resource_id": id, "import": {"confirmed": []}});
    let parts = value!({"first": (part(&first)), "late": (part(&id))});
    let template = kiln_yaml::parse(template).unwrap().value;
    let data = value!({"name": "late", "template": template, "resources": parts});
    world.folder.write("late.json", &kiln_value::text::json(&data));
    let ran = world.kiln(&["stack", "adopt", "--adopt-file", "late.json", "--enable-rollback", "late"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("the object is not as the template says, and stays as it is: name"), "{ran:?}");
    assert_eq!(world.writes(), Vec::<String>::new());
    let names = ["import", "scan", "--name", "theirs", "--name", "lan", "--type", "net", "--unmanaged", "-f", "json"];
    let left = world.kiln(&names).json();
    assert_eq!(left.as_array().unwrap().len(), 2, "{left}");
    // Another import was faster.
    let data = value!({
        "name": "fast", "template": {"heat_template_version": "2018-08-31", "resources": {
            "lan": {"type": "OS::Neutron::Net", "properties": {"name": "lan"}},
        }},
        "resources": {"lan": (part(&first))},
    });
    world.folder.write("fast.json", &kiln_value::text::json(&data));
    let adopt = |name: &str| world.kiln(&["stack", "adopt", "--adopt-file", "fast.json", name]);
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(|| adopt("fast")), scope.spawn(|| adopt("faster")));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_eq!(one.code + other.code, 1, "one has it, the other is refused: {one:?} {other:?}");
    let winner = if one.code == 0 { "fast" } else { "faster" };
    let ran = adopt("second");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains(&format!("belongs to the resource lan of the stack {winner}")), "{ran:?}");
    assert_eq!(world.kiln(&["stack", "show", "second"]).code, 1, "nothing of it is stored");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// What other objects show of themselves only in part.
const BALANCED: &str = "\
heat_template_version: 2018-08-31
resources:
  disk: {type: OS::Cinder::Volume, properties: {name: disk, size: 1, image: cirros, metadata: {readonly: no, team: blue}}}
  server:
    type: OS::Nova::Server
    properties:
      name: from-disk
      flavor: m1.tiny
      networks: [{network: private}]
      block_device_mapping_v2: [{volume_id: {get_resource: disk}, boot_index: 0}]
  doors:
    type: OS::Neutron::SecurityGroup
    properties: {name: open, rules: [{protocol: tcp, port_range_min: 0, port_range_max: 10, description: why}]}
  balancer: {type: OS::Octavia::LoadBalancer, properties: {name: front, vip_subnet: private-subnet}}
  listener:
    type: OS::Octavia::Listener
    properties: {name: http, protocol: HTTP, protocol_port: 80, loadbalancer: {get_resource: balancer}}
  pool:
    type: OS::Octavia::Pool
    properties: {name: backs, protocol: HTTP, lb_algorithm: ROUND_ROBIN, listener: {get_resource: listener}}
  member:
    type: OS::Octavia::PoolMember
    properties: {pool: {get_resource: pool}, address: 10.0.0.7, protocol_port: 8080, subnet: private-subnet}
  monitor:
    type: OS::Octavia::HealthMonitor
    properties: {pool: {get_resource: pool}, type: HTTP, delay: 5, timeout: 3, max_retries: 2}
  policy:
    type: OS::Octavia::L7Policy
    properties: {listener: {get_resource: listener}, action: REJECT, name: nobody}
";

#[tokio::test(flavor = "multi_thread")]
async fn load_balancers_and_servers_on_volumes_are_imported() {
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("imports-balanced"));
    folder.write("made.yaml", BALANCED);
    let user = CloudUser::of(&cloud, cloud.users().demo).await;
    let world = World { cloud, folder, user };
    world.kiln(&["stack", "create", "-t", "made.yaml", "made"]).ok();
    world.release();
    let choice =
        ["import", "write", "--related", "--name", "from-disk", "--name", "open", "--name", "front", "-t", "b.yaml"];
    world.kiln(&choice).ok();
    let written = world.text("b.yaml");
    for line in [
        "block_device_mapping_v2:\n        - volume_id: {get_resource: disk}\n          boot_index: 0\n",
        "description: why\n",
        "metadata: {team: blue}\n",
        "  backs_member:\n    type: OS::Octavia::PoolMember\n    properties:\n      pool: {get_resource: backs}\n",
        "pool: {get_resource: backs}\n",
        "      loadbalancer: {get_resource: front}\n",
        "      listener: {get_resource: http}\n",
    ] {
        assert!(written.contains(line), "{line}\n{written}");
    }
    assert!(!written.contains("VolumeAttachment"), "{written}");
    // A null is no value, also for a property that cannot be read and has a default.
    let name = "      name: from-disk\n";
    world.folder.write("b.yaml", &written.replace(name, &format!("{name}      user_data_format: null\n")));
    world.kiln(&["import", "commit", "-t", "b.yaml", "b"]).ok();
    assert_eq!(world.writes(), Vec::<String>::new());
    let plan = world.kiln(&["stack", "plan", "--existing", "--converge", "b", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    world.kiln(&["stack", "delete", "b", "--yes"]).ok();
}
