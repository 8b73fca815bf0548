//! Resources move between stacks: no object changes, and all stacks are changed or none.

use kiln_testcloud::Testcloud;

use crate::plan::local;
use crate::run::{Folder, Ran};

const NET: &str = "  net: {type: OS::Neutron::Net, properties: {tags: [blue]}}\n";
const SUBNET: &str =
    "  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.7.0.0/24}}\n";
const REST: &str = "  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny, networks: [{port: {get_resource: port}}]}
  volume: {type: OS::Cinder::Volume, properties: {size: 2}}
  attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {instance_uuid: {get_resource: server}, volume_id: {get_resource: volume}}
";

fn template(parts: &[&str]) -> String {
    format!("heat_template_version: 2018-08-31\n{}", parts.concat())
}

/// The whole in one stack.
fn whole() -> String {
    let port = "  port: {type: OS::Neutron::Port, properties: {network: {get_resource: net}}, depends_on: sub}\n";
    template(&["resources:\n", NET, SUBNET, port, REST])
}

/// What is left when the network is elsewhere.
fn without_network() -> String {
    let port = "  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}\n";
    template(&["parameters: {network: {type: string}}\n", "resources:\n", port, REST])
}

/// The network, with other names.
fn network() -> String {
    let net = NET.replace("  net:", "  backend:");
    let outputs = "outputs: {network: {value: {get_resource: backend}}}\n";
    template(&["resources:\n", &net, &SUBNET.replace("get_resource: net", "get_resource: backend"), outputs])
}

struct World {
    cloud: Testcloud,
    folder: Folder,
}

impl World {
    async fn new(name: &str) -> Self {
        let world = Self { cloud: Testcloud::builder().start().await.unwrap(), folder: Folder::new(name) };
        world.folder.write("web.yaml", &whole());
        world.folder.write("web-new.yaml", &without_network());
        world.folder.write("base.yaml", &network());
        world.folder.write("empty.yaml", "heat_template_version: 2018-08-31\n");
        world.kiln(&["stack", "create", "-t", "web.yaml", "web"]).ok();
        world.kiln(&["stack", "create", "-t", "empty.yaml", "base"]).ok();
        world.split_file();
        world.cloud.journal().clear();
        world
    }

    fn split_file(&self) {
        let network = self.id("web", "net");
        let split = format!(
            "stacks:\n  web: {{template: web-new.yaml, parameters: {{network: {network}}}}}\n  \
             base: {{template: base.yaml}}\nmoves:\n  - {{from: web/net, to: base/backend}}\n"
        );
        self.folder.write("split.yaml", &split);
    }

    fn kiln(&self, args: &[&str]) -> Ran {
        local(&self.cloud, &self.folder, args)
    }

    fn refactor(&self, file: &str) -> Ran {
        self.kiln(&["stack", "refactor", "--moves", file])
    }

    /// Requests that change something, other than those for tokens and trusts.
    fn writes(&self) -> Vec<String> {
        self.cloud.journal().writes()
    }

    fn id(&self, stack: &str, resource: &str) -> String {
        let ran = self.kiln(&["stack", "resource", "show", stack, resource, "-f", "json"]).json();
        ran["physical_resource_id"].as_str().unwrap().to_owned()
    }

    fn shown(&self) -> String {
        self.kiln(&["stack", "show", "web", "-f", "value", "-c", "stack_status", "-c", "updated_time"]).ok()
    }

    fn names(&self, stack: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .kiln(&["stack", "resource", "list", stack, "-f", "value", "-c", "resource_name"])
            .ok()
            .lines()
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    }

    /// Neither an update nor a comparison with the objects finds anything to do.
    fn is_at_rest(&self, stack: &str) {
        self.kiln(&["stack", "update", "--existing", "--converge", "--dry-run", "--detailed-exitcode", stack]).ok();
        let drift = self.kiln(&["stack", "drift", "--detailed-exitcode", stack]);
        assert!(drift.code == 0 || drift.code == 5, "{drift:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_is_split_and_merged_again_without_a_request() {
    let world = World::new("refactor-split").await;
    let ids = ["net", "sub", "port", "server"].map(|name| world.id("web", name));
    world.cloud.journal().clear();
    let plan = world.kiln(&["stack", "refactor", "--moves", "split.yaml", "--plan", "-f", "value"]);
    let moves: Vec<&str> = plan.out.lines().collect();
    let net = format!("web/net base/backend OS::Neutron::Net {}", ids[0]);
    let sub = format!("web/sub base/sub OS::Neutron::Subnet {}", ids[1]);
    assert_eq!((moves, plan.code), (vec![net.as_str(), sub.as_str()], 0), "{plan:?}");
    assert_eq!(world.names("web"), ["attachment", "net", "port", "server", "sub", "volume"]);

    world.refactor("split.yaml").ok();
    assert_eq!(world.names("web"), ["attachment", "port", "server", "volume"]);
    assert_eq!(world.names("base"), ["backend", "sub"]);
    assert_eq!([world.id("base", "backend"), world.id("base", "sub")], [ids[0].clone(), ids[1].clone()]);
    let output = world.kiln(&["stack", "output", "show", "base", "network", "-f", "value", "-c", "output_value"]).ok();
    assert_eq!(output.trim(), ids[0]);
    world.is_at_rest("web");
    world.is_at_rest("base");
    assert_eq!(world.writes(), Vec::<String>::new());
    let events = world.kiln(&["stack", "event", "list", "base", "-f", "value"]).ok();
    assert!(events.contains("moved from web/net") && events.contains("UPDATE_COMPLETE"), "{events}");
    let events = world.kiln(&["stack", "event", "list", "web", "-f", "value"]).ok();
    assert!(events.contains("moved to base/backend"), "{events}");
    let operations = world.kiln(&["stack", "operation", "list", "base", "-f", "value"]).ok();
    assert!(operations.contains("UPDATE") && operations.contains("COMPLETE"), "{operations}");
    // A repetition moves nothing.
    let again = world.refactor("split.yaml");
    assert!(again.code != 0 && again.err.contains("web/net does not exist"), "{again:?}");

    // The names of the objects are those that they were made with, also after a change.
    world.folder.write("base-red.yaml", &network().replace("blue", "red"));
    world.kiln(&["stack", "update", "-t", "base-red.yaml", "base"]).ok();
    let changed = world.writes();
    assert!(changed.len() == 1 && changed[0].contains("/tags"), "{changed:?}");
    world.is_at_rest("base");

    // Back into one stack: what left it is deleted before what it needs.
    world.folder.write("web.yaml", &whole().replace("blue", "red"));
    let back = "stacks:\n  web: {template: web.yaml}\n  base: {template: empty.yaml}\nmoves:\n  \
                - {from: base/backend, to: web/net}\n";
    world.folder.write("back.yaml", back);
    world.cloud.journal().clear();
    world.refactor("back.yaml").ok();
    assert_eq!(world.names("web"), ["attachment", "net", "port", "server", "sub", "volume"]);
    assert_eq!(world.names("base"), Vec::<String>::new());
    assert_eq!(["net", "sub", "port", "server"].map(|name| world.id("web", name)), ids);
    world.is_at_rest("web");
    assert_eq!(world.writes(), Vec::<String>::new());
    world.kiln(&["stack", "delete", "--yes", "--wait", "base"]).ok();
    assert_eq!(world.writes(), Vec::<String>::new(), "nothing is left in it");
    world.kiln(&["stack", "delete", "--yes", "--wait", "web"]).ok();
    let deletes: Vec<String> = world.writes().into_iter().filter(|call| call.starts_with("DELETE ")).collect();
    let place = |kind: &str| deletes.iter().position(|call| call.ends_with(kind)).unwrap();
    let places = ["servers/{id}", "ports/{id}", "subnets/{id}", "networks/{id}"].map(place);
    assert!(places.is_sorted(), "{deletes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_change_something_is_refused_and_nothing_moves() {
    let world = World::new("refactor-refused").await;
    let before = (world.names("web"), world.shown());
    let split = std::fs::read_to_string(world.folder.path().join("split.yaml")).unwrap();
    let refused = |why: &str| {
        let ran = world.refactor("split.yaml");
        assert!(ran.code == 1 && ran.err.contains(why), "{why}: {ran:?}");
        let now = (world.names("web"), world.shown());
        assert_eq!(now, before);
        assert_eq!(world.names("base"), Vec::<String>::new());
        assert_eq!(world.writes(), Vec::<String>::new());
    };
    // Another definition.
    world.folder.write("base.yaml", &network().replace("blue", "red").replace("10.7", "10.8"));
    refused("Nothing was moved. base/backend would be updated: tags; base/sub would be replaced: ");
    // More, or less, than what moves.
    world.folder.write("base.yaml", &(network().replace("outputs:", "  more: {type: OS::Neutron::Net}\noutputs:")));
    refused("base/more would be created");
    world.folder.write("base.yaml", &template(&["resources:\n", &NET.replace("  net:", "  backend:")]));
    refused("web/sub would be deleted");
    world.folder.write("base.yaml", &network());
    // A wrong value of the parameter.
    let port = world.id("web", "port");
    world.folder.write("split.yaml", &split.replace(&world.id("web", "net"), &port));
    refused("port");
    world.folder.write("split.yaml", &split);
    // The resource is in both templates.
    world.folder.write("web-new.yaml", &whole());
    refused("web/net is still in the template of its stack");
    world.folder.write("web-new.yaml", &without_network());
    // A name that the template does not have.
    world.folder.write("split.yaml", &split.replace("base/backend", "base/front"));
    refused("the template of base has no resource front");
    world.folder.write("split.yaml", &split.replace("template: base.yaml", "tags: a"));
    let unknown = world.refactor("split.yaml");
    assert!(unknown.err.contains("stacks.base.tags is not known"), "{unknown:?}");
    world.folder.write("split.yaml", &split);
    // Guards.
    world.kiln(&["stack", "protect", "web", "--resource", "net", "--from", "delete", "--reason", "ours"]).ok();
    refused("ours");
    world.kiln(&["stack", "unprotect", "web", "--resource", "net"]).ok();
    let ignored = world.kiln(&["stack", "drift", "web", "--ignore", "net.tags", "--reason", "theirs"]).ok();
    refused("it would leave the stack, and ");
    refused("theirs");
    // Nor does it hold for another name in the same stack.
    world
        .folder
        .write("renamed.yaml", &whole().replace("  net:", "  lan:").replace("get_resource: net", "get_resource: lan"));
    let rename = "stacks: {web: {template: renamed.yaml}}\nmoves: [{from: web/net, to: web/lan}]\n";
    world.folder.write("split.yaml", rename);
    refused("it would move to lan, where ");
    world.kiln(&["guard", "lift", ignored.split(' ').nth(1).unwrap()]).ok();
    let plan = world.kiln(&["stack", "refactor", "--moves", "split.yaml", "--plan", "-f", "value"]).ok();
    assert!(plan.starts_with("web/net web/lan OS::Neutron::Net "), "{plan}");
    world.folder.write("split.yaml", &split);
    // A snapshot, which would bring it back.
    world.kiln(&["stack", "snapshot", "create", "--name", "s", "web"]).ok();
    let ran = world.refactor("split.yaml");
    assert!(ran.code == 1 && ran.err.contains("web/net is in the snapshot "), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_stack_stay_in_it() {
    let world = World::new("refactor-stays").await;
    let resources = "  random: {type: OS::Heat::RandomString}\n  \
                     policy: {type: OS::Heat::AccessPolicy, properties: {AllowedResources: []}}\n  \
                     group: {type: OS::Heat::ResourceGroup, properties: {count: 1, resource_def: {type: OS::Heat::AccessPolicy, properties: {AllowedResources: []}}}}\n";
    world.folder.write("parts.yaml", &template(&["resources:\n", resources]));
    world.kiln(&["stack", "create", "-t", "parts.yaml", "parts"]).ok();
    let mut left = resources.to_owned();
    for (name, why) in [
        ("policy", "parts/policy is a part of its stack (OS::Heat::AccessPolicy)"),
        ("group", "parts/group/0 is a part of its stack (OS::Heat::AccessPolicy)"),
        ("random", ""),
    ] {
        let start = left.find(&format!("  {name}:")).unwrap();
        let length = left[start..].find('\n').unwrap() + 1;
        let moved = left[start..start + length].to_owned();
        let kept = left.replacen(&moved, "", 1);
        world.folder.write("kept.yaml", &template(&["resources:\n", &kept]));
        world.folder.write("moved.yaml", &template(&["resources:\n", &moved]));
        world.folder.write("one.yaml", "stacks:\n  parts: {template: kept.yaml}\n  base: {template: moved.yaml}\n");
        let ran = world.refactor("one.yaml");
        if why.is_empty() {
            ran.ok();
            assert_eq!(world.names("base"), [name]);
            left = kept;
        } else {
            assert!(ran.code == 1 && ran.err.contains(why), "{ran:?}");
            assert_eq!(world.names("base"), Vec::<String>::new());
        }
    }
    assert_eq!(left.lines().count(), 2);
    // A scaling group numbers its members itself.
    let scaled = "  scaled: {type: OS::Heat::AutoScalingGroup, properties: {min_size: 1, max_size: 2, resource: {type: OS::Neutron::Net}}}\n";
    world.folder.write("scaled.yaml", &template(&["resources:\n", scaled]));
    world.kiln(&["stack", "create", "-t", "scaled.yaml", "scaled"]).ok();
    let out = "stacks: {scaled: {template: scaled.yaml}}\nmoves: [{from: scaled/scaled/a, to: scaled/net}]\n";
    world.folder.write("one.yaml", out);
    let ran = world.refactor("one.yaml");
    let why = "scaled/scaled is a part of its stack (OS::Heat::AutoScalingGroup)";
    assert!(ran.code == 1 && ran.err.contains(why), "{ran:?}");
}

/// A network and a group of networks: two levels of nested stacks.
const APP: &str = "heat_template_version: 2018-08-31
parameters: {tag: {type: string}}
resources:
  inner: {type: OS::Neutron::Net, properties: {tags: [{get_param: tag}]}}
  more:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Neutron::Net, properties: {tags: [{get_param: tag}]}}}
outputs: {network: {value: {get_resource: inner}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn nested_stacks_and_groups_move_with_all_that_is_in_them() {
    let world = World { cloud: Testcloud::builder().start().await.unwrap(), folder: Folder::new("refactor-nested") };
    let app = "  app: {type: app.yaml, properties: {tag: blue}}\n";
    let group = |count: u32| {
        format!(
            "  nets: {{type: OS::Heat::ResourceGroup, properties: {{count: {count}, resource_def: {{type: OS::Neutron::Net}}}}}}\n"
        )
    };
    let port =
        "  sub: {type: OS::Neutron::Subnet, properties: {network: {get_attr: [app, network]}, cidr: 10.8.0.0/24}}\n";
    world.folder.write("app.yaml", APP);
    world.folder.write("all.yaml", &template(&["resources:\n", app, &group(2), port]));
    world.folder.write("none.yaml", &template(&["resources:\n", "  random: {type: OS::Heat::RandomString}\n"]));
    world.kiln(&["stack", "create", "-t", "all.yaml", "web"]).ok();
    world.kiln(&["stack", "create", "-t", "none.yaml", "base"]).ok();
    let objects = |stack: &str| {
        let listed = world.kiln(&["stack", "resource", "list", stack, "--nested-depth", "5", "-f", "json"]).json();
        let one = |row: &serde_json::Value| {
            (row["resource_type"] == "OS::Neutron::Net")
                .then(|| row["physical_resource_id"].as_str().unwrap().to_owned())
        };
        let mut ids: Vec<String> = listed.as_array().unwrap().iter().filter_map(one).collect();
        ids.sort();
        ids
    };
    let ids = objects("web");
    assert_eq!(ids.len(), 5);
    world.cloud.journal().clear();

    world.folder.write(
        "base.yaml",
        &template(&[
            "resources:\n",
            "  random: {type: OS::Heat::RandomString}\n",
            &app.replace("app:", "shop:"),
            &group(2),
        ]),
    );
    let outside = port.replace(
        "{get_attr: [app, network]}",
        &format!(
            "'{}'",
            world.kiln(&["stack", "resource", "show", "web", "sub", "-f", "json"]).json()["attributes"]["network_id"]
                .as_str()
                .unwrap()
        ),
    );
    world.folder.write("web.yaml", &template(&["resources:\n", &outside]));
    let moves =
        "stacks: {web: {template: web.yaml}, base: {template: base.yaml}}\nmoves: [{from: web/app, to: base/shop}]\n";
    world.folder.write("moves.yaml", moves);
    // A group of another size.
    let larger =
        std::fs::read_to_string(world.folder.path().join("base.yaml")).unwrap().replace("count: 2", "count: 3");
    world.folder.write("base.yaml", &larger);
    let ran = world.refactor("moves.yaml");
    assert!(ran.code == 1 && ran.err.contains("base/nets would be updated: count"), "{ran:?}");
    assert_eq!(objects("web"), ids);
    world.folder.write("base.yaml", &larger.replace("count: 3", "count: 2"));

    world.refactor("moves.yaml").ok();
    assert_eq!((objects("web"), objects("base")), (Vec::new(), ids.clone()));
    assert_eq!(
        (world.names("web"), world.names("base")),
        (vec!["sub".to_owned()], ["nets", "random", "shop"].map(str::to_owned).to_vec())
    );
    world.is_at_rest("web");
    world.is_at_rest("base");
    assert_eq!(world.writes(), Vec::<String>::new());
    // The group and the nested stacks belong to the other stack now.
    world.folder.write("base.yaml", &larger.replace("tag: blue", "tag: green"));
    world.kiln(&["stack", "update", "-t", "base.yaml", "base"]).ok();
    let now = objects("base");
    assert!(now.len() == 6 && ids.iter().all(|id| now.contains(id)), "{now:?}");
    world.kiln(&["stack", "delete", "--yes", "web"]).ok();
    assert_eq!(objects("base"), now);
    world.kiln(&["stack", "delete", "--yes", "base"]).ok();
    let networks = &world.cloud.snapshot().objects["networks"];
    assert!(networks.iter().all(|one| !now.iter().any(|id| one["id"] == id.as_str())), "{networks:?}");
}

/// A group by count, and the same servers and networks by name.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_group_get_names_and_go_back() {
    let world = World { cloud: Testcloud::builder().start().await.unwrap(), folder: Folder::new("refactor-members") };
    let group = |count: u32, more: &str| {
        format!(
            "  nets:\n    type: OS::Heat::ResourceGroup\n    properties:\n      count: {count}\n{more}      resource_def:\n        \
             type: OS::Neutron::Net\n        properties: {{name: net-%index%, tags: [blue]}}\n"
        )
    };
    let net = |name: &str, index: u32| {
        format!("  {name}: {{type: OS::Neutron::Net, properties: {{name: net-{index}, tags: [blue]}}}}\n")
    };
    let subnet = |net: &str| {
        format!("  sub: {{type: OS::Neutron::Subnet, properties: {{network: {net}, cidr: 10.8.0.0/24}}}}\n")
    };
    let write = |file: &str, parts: &[&str]| world.folder.write(file, &template(&[&["resources:\n"], parts].concat()));
    let refactor = |text: &str| {
        world.folder.write("moves.yaml", text);
        world.refactor("moves.yaml")
    };
    write("three.yaml", &[&group(3, ""), &subnet("{get_attr: [nets, resource.1]}")]);
    world.kiln(&["stack", "create", "-t", "three.yaml", "web"]).ok();
    let members = world.kiln(&["stack", "resource", "list", "web", "--nested-depth", "1", "-f", "json"]).json();
    let ids: Vec<String> = ["0", "1", "2"]
        .map(|name| {
            let rows = members.as_array().unwrap().iter().find(|row| row["resource_name"] == name).unwrap();
            rows["physical_resource_id"].as_str().unwrap().to_owned()
        })
        .into();
    world.cloud.journal().clear();

    // The members are still wanted, others would be created, or something else would be made of them: nothing moves.
    let moves = "moves:\n  - {from: web/nets/0, to: web/front}\n  - {from: web/nets/1, to: web/back}\n  - {from: web/nets/2, to: web/spare}\n";
    let all = format!("stacks: {{web: {{template: named.yaml}}}}\n{moves}");
    let named = [net("front", 0), net("back", 1), net("spare", 2)].concat();
    for (parts, why) in [
        (vec![named.clone(), group(3, "")], "web/nets/0 would be created"),
        (vec![net("front", 0), net("back", 1)], "the template of web has no resource spare"),
        (vec![named.replace("net-1", "net-7")], "web/back would be updated: name"),
        (vec![named.clone(), net("more", 9)], "web/more would be created"),
    ] {
        write(
            "named.yaml",
            &parts.iter().map(String::as_str).chain([subnet("{get_resource: back}").as_str()]).collect::<Vec<_>>(),
        );
        let ran = refactor(&all);
        assert!(ran.code == 1 && ran.err.contains(why), "{why}: {ran:?}");
    }
    let one_left = "stacks: {web: {template: named.yaml}}\nmoves: [{from: web/nets/0, to: web/front}]\n";
    write("named.yaml", &[&net("front", 0), &subnet("{get_resource: front}")]);
    let ran = refactor(one_left);
    assert!(ran.code == 1 && ran.err.contains("web/nets/1 would be deleted"), "{ran:?}");
    let plan = world.kiln(&["stack", "refactor", "--moves", "moves.yaml", "--plan"]);
    assert!(plan.code != 0, "{plan:?}");
    assert_eq!(world.names("web"), ["nets", "sub"]);

    // A guard of a member does not hold for the name that it would get.
    write("named.yaml", &[&named, &subnet("{get_resource: back}")]);
    world.kiln(&["stack", "protect", "web", "--resource", "nets/0", "--from", "delete", "--reason", "ours"]).ok();
    let ran = refactor(&all);
    assert!(ran.code == 1 && ran.err.contains("nets/0") && ran.err.contains("ours"), "{ran:?}");
    world.kiln(&["stack", "unprotect", "web", "--resource", "nets/0"]).ok();
    assert_eq!(world.names("web"), ["nets", "sub"]);

    // All become names; the empty group goes.
    let plan = world.kiln(&["stack", "refactor", "--moves", "moves.yaml", "--plan", "-f", "value"]).ok();
    assert!(plan.contains("web/nets/1 web/back OS::Neutron::Net"), "{plan}");
    assert_eq!(world.names("web"), ["nets", "sub"]);
    refactor(&all).ok();
    assert_eq!(world.names("web"), ["back", "front", "spare", "sub"]);
    assert_eq!(["front", "back", "spare"].map(|name| world.id("web", name)).as_slice(), ids);
    assert_eq!(world.writes(), Vec::<String>::new());
    world.is_at_rest("web");

    // An empty group is made, and two of them go back into it, one to another index; the third goes to another stack.
    write("empty-group.yaml", &[&named, &subnet("{get_resource: back}"), &group(0, "")]);
    world.kiln(&["stack", "update", "-t", "empty-group.yaml", "web"]).ok();
    write("empty.yaml", &["  random: {type: OS::Heat::RandomString}\n"]);
    world.kiln(&["stack", "create", "-t", "empty.yaml", "base"]).ok();
    world.cloud.journal().clear();
    write("two.yaml", &[&group(2, ""), &subnet("{get_attr: [nets, resource.1]}")]);
    write("base.yaml", &["  random: {type: OS::Heat::RandomString}\n", &net("spare", 2)]);
    let back = "stacks: {web: {template: two.yaml}, base: {template: base.yaml}}\nmoves:\n  \
                - {from: web/front, to: web/nets/0}\n  - {from: web/back, to: web/nets/1}\n";
    refactor(back).ok();
    assert_eq!(world.names("web"), ["nets", "sub"]);
    assert_eq!(world.id("base", "spare"), ids[2]);
    assert_eq!(world.writes(), Vec::<String>::new());
    world.is_at_rest("web");
    world.is_at_rest("base");

    // One of a group leaves it, and the others keep their names.
    let without_first = group(1, "      removal_policies: [{resource_list: ['0']}]\n");
    write("two.yaml", &[&without_first, &net("alone", 0), &subnet("{get_attr: [nets, resource.1]}")]);
    refactor("stacks: {web: {template: two.yaml}}\nmoves: [{from: web/nets/0, to: web/alone}]\n").ok();
    assert_eq!(world.names("web"), ["alone", "nets", "sub"]);
    assert_eq!(world.id("web", "alone"), ids[0]);
    assert_eq!(world.writes(), Vec::<String>::new());
    world.is_at_rest("web");

    // A snapshot would bring the group back.
    world.kiln(&["stack", "snapshot", "create", "--name", "s", "web"]).ok();
    let ran = refactor("stacks: {web: {template: named.yaml}}\nmoves: [{from: web/nets/1, to: web/back}]\n");
    assert!(ran.code == 1 && ran.err.contains("web/nets is in the snapshot "), "{ran:?}");
    world.kiln(&["stack", "delete", "--yes", "--wait", "web"]).ok();
    assert_eq!(world.writes().iter().filter(|call| call.contains("networks/")).count(), 2, "each is deleted once");
}

/// A resource leaves a nested stack, and another one enters it.
#[tokio::test(flavor = "multi_thread")]
async fn resources_move_out_of_a_nested_stack_and_into_it() {
    let world = World { cloud: Testcloud::builder().start().await.unwrap(), folder: Folder::new("refactor-out") };
    let net = "  net: {type: OS::Neutron::Net, properties: {tags: [blue]}}\n";
    let sub = "  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.8.0.0/24}}\n";
    let disk = "  disk: {type: OS::Cinder::Volume, properties: {size: 1}}\n";
    world.folder.write("app.yaml", &template(&["resources:\n", net, sub]));
    world.folder.write("web.yaml", &template(&["resources:\n", "  app: {type: app.yaml}\n", disk]));
    world.kiln(&["stack", "create", "-t", "web.yaml", "web"]).ok();
    let listed = world.kiln(&["stack", "resource", "list", "web", "--nested-depth", "1", "-f", "json"]).json();
    let id = |name: &str| {
        let row = listed.as_array().unwrap().iter().find(|row| row["resource_name"] == name).unwrap();
        row["physical_resource_id"].as_str().unwrap().to_owned()
    };
    world.cloud.journal().clear();
    // The network leaves, the subnet gets it as a parameter, and the volume enters.
    let inner = template(&[
        "parameters: {network: {type: string}}\n",
        "resources:\n",
        &sub.replace("get_resource: net", "get_param: network"),
        &disk.replace("disk:", "data:"),
    ]);
    world.folder.write("app.yaml", &inner);
    let app = "  app: {type: app.yaml, properties: {network: {get_resource: net}}}\n";
    world.folder.write("web.yaml", &template(&["resources:\n", app, net]));
    let moves = "stacks: {web: {template: web.yaml}}\nmoves:\n  - {from: web/app/net, to: web/net}\n  \
                 - {from: web/disk, to: web/app/data}\n";
    world.folder.write("moves.yaml", moves);
    let plan = world.kiln(&["stack", "refactor", "--moves", "moves.yaml", "--plan", "-f", "value"]).ok();
    assert!(plan.contains("web/app/net web/net OS::Neutron::Net"), "{plan}");
    assert_eq!(world.names("web"), ["app", "disk"]);
    world.refactor("moves.yaml").ok();
    assert_eq!(world.names("web"), ["app", "net"]);
    assert_eq!(world.id("web", "net"), id("net"));
    assert_eq!(world.writes(), Vec::<String>::new());
    world.is_at_rest("web");
    // No former template wants the network in the nested stack: it would be made again.
    let ran = world.refactor("moves.yaml");
    assert!(ran.code == 1 && ran.err.contains("web/app/net does not exist"), "{ran:?}");
    world.folder.write("moves.yaml", &moves.replace("web/app/net, to: web/net", "web/net/inner, to: web/app/net"));
    let ran = world.refactor("moves.yaml");
    assert!(ran.code == 1 && ran.err.contains("web/net is no nested stack"), "{ran:?}");
    world.kiln(&["stack", "delete", "--yes", "--wait", "web"]).ok();
    let mut deleted: Vec<String> = world.writes().into_iter().filter(|call| call.starts_with("DELETE ")).collect();
    deleted.sort();
    assert_eq!(deleted.len(), 3, "{deleted:?}");
}
