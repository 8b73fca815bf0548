//! The world moves between a plan and its execution: the plan is refused, with the name of what has moved, and no request that
//! changes anything is sent.

use kiln_resource::Method;
use kiln_testcloud::{RecordedCall, Testcloud};
use kiln_value::{Value, value};

use crate::cloud_user::CloudUser;
use crate::plan::local;
use crate::run::{Folder, Ran};

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
parameters: {word: {type: string, default: one}, image: {type: string, default: cirros}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: ours, tags: [{get_param: word}]}}
  group: {type: OS::Neutron::SecurityGroup, properties: {name: doors, description: {get_param: word}}}
  port:
    type: OS::Neutron::Port
    properties: {network: private, name: {get_param: word}}
  server:
    type: OS::Nova::Server
    properties: {image: {get_param: image}, flavor: m1.tiny, networks: [{port: {get_resource: port}}]}
  members:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def: {type: OS::Neutron::Port, properties: {network: private, name: {get_param: word}}}
";

const NEW_SERVER: &str = "\
heat_template_version: 2018-08-31
resources:
  server: {type: OS::Nova::Server, properties: {image: golden, flavor: m1.tiny, networks: [{network: private}]}}
";

struct World {
    cloud: Testcloud,
    folder: Folder,
    user: CloudUser,
    admin: CloudUser,
}

impl World {
    async fn new(name: &str) -> Self {
        let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new(name));
        folder.write("t.yaml", TEMPLATE);
        let user = CloudUser::of(&cloud, cloud.users().demo).await;
        let admin = CloudUser::of(&cloud, cloud.users().admin).await;
        let world = Self { cloud, folder, user, admin };
        world.stack(&["create", "-t", "t.yaml", "web"]).ok();
        world
    }

    fn stack(&self, args: &[&str]) -> Ran {
        local(&self.cloud, &self.folder, &[&["stack"], args].concat())
    }

    /// Saves a plan; its ID.
    fn saved(&self, args: &[&str]) -> String {
        let saved = self.stack(&[&["plan", "--save", "-f", "json"], args].concat()).json();
        saved["id"].as_str().unwrap().to_owned()
    }

    /// The ID of the object of a resource.
    fn object(&self, resource: &str) -> String {
        let args = ["resource", "show", "web", resource, "-f", "value", "-c", "physical_resource_id"];
        self.stack(&args).ok().trim().to_owned()
    }

    /// Requests that change something, other than those for tokens.
    fn writes(&self) -> Vec<String> {
        let calls = self.cloud.journal().list();
        let calls = calls.iter().map(RecordedCall::call);
        calls.filter(|call| !call.starts_with("GET ") && !call.contains("/auth/")).collect()
    }

    /// Applies a plan, which is refused for a reason without a request that changes anything.
    #[track_caller]
    fn is_refused(&self, plan: &str, why: &[&str]) {
        self.cloud.journal().clear();
        let ran = self.stack(&["apply", "--yes", plan]);
        assert_eq!(ran.code, 1, "{ran:?}");
        for why in why {
            assert!(ran.err.contains(why), "{why}: {}", ran.err);
        }
        assert_eq!(self.writes(), Vec::<String>::new());
    }

    async fn put(&self, path: &str, body: Value) {
        self.user.call("network", Method::Put, path, Some(body)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_refused_if_others_have_changed_what_it_touches() {
    let world = World::new("moved-objects").await;
    let update = ["--existing", "--parameter", "word=two", "web"];
    let (port, group) = (world.object("port"), world.object("group"));

    let plan = world.saved(&update);
    world.put(&format!("/v2.0/ports/{port}"), value!({"port": {"name": "theirs"}})).await;
    world.is_refused(&plan, &["port: others have changed name from \"one\" to \"theirs\""]);
    // A new plan is of what there is now.
    let plan = world.saved(&update);
    world.put(&format!("/v2.0/ports/{port}"), value!({"port": {"name": "one"}})).await;
    world.is_refused(&plan, &["port: others have changed name from \"theirs\" to \"one\""]);

    let plan = world.saved(&update);
    let member = world.object("members");
    let nested = world.stack(&["resource", "list", &member, "-f", "json"]).json();
    let member = nested[0]["physical_resource_id"].as_str().unwrap();
    world.user.call("network", Method::Delete, &format!("/v2.0/ports/{member}"), None).await;
    world.is_refused(&plan, &["members/0: its object does not exist any more"]);

    let plan = world.saved(&["--delete", "web"]);
    let open = value!({"security_group": {"description": "open to all"}});
    world.put(&format!("/v2.0/security-groups/{group}"), open).await;
    world.is_refused(&plan, &["group: others have changed description from \"one\" to \"open to all\""]);
    world.stack(&["apply", "--yes", &world.saved(&["--delete", "web"])]).ok();
    assert_eq!(world.stack(&["list", "-f", "json"]).json(), serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_refused_if_a_name_in_it_means_another_object() {
    let world = World::new("moved-names").await;
    let first = world.admin.image("golden").await;
    let plan = world.saved(&["--existing", "--parameter", "image=golden", "web"]);
    world.admin.call("image", Method::Delete, &format!("/v2/images/{first}"), None).await;
    let second = world.admin.image("golden").await;
    assert_ne!(first, second);
    world.is_refused(&plan, &["server: image has another value, or a name in it means another object"]);
    world.stack(&["apply", "--yes", &world.saved(&["--existing", "--parameter", "image=golden", "web"])]).ok();

    // The same in a server that does not exist yet.
    world.folder.write("new.yaml", NEW_SERVER);
    let plan = world.saved(&["-t", "new.yaml", "new"]);
    world.admin.call("image", Method::Delete, &format!("/v2/images/{second}"), None).await;
    world.admin.image("golden").await;
    world.is_refused(&plan, &["server: image has another value, or a name in it means another object"]);
}

/// Without the object, the update turns into a replacement, which the plan must say.
#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_an_update_replaces_what_does_not_exist_any_more() {
    let world = World::new("moved-missing").await;
    let gone = world.object("group");
    world.user.call("network", Method::Delete, &format!("/v2.0/security-groups/{gone}"), None).await;
    let nested = world.stack(&["resource", "list", &world.object("members"), "-f", "json"]).json();
    let member = nested[0]["physical_resource_id"].as_str().unwrap().to_owned();
    world.user.call("network", Method::Delete, &format!("/v2.0/ports/{member}"), None).await;
    let update = ["--existing", "--parameter", "word=two", "web"];
    let entry = |plan: &serde_json::Value, path: &str| {
        let resources = plan["document"]["resources"].as_array().unwrap().clone();
        resources.into_iter().find(|entry| entry["path"] == path).unwrap()
    };
    let plan = world.saved(&update);
    let shown = local(&world.cloud, &world.folder, &["plan", "show", &plan, "-f", "json"]).json();
    for path in ["group", "members/0"] {
        let entry = entry(&shown, path);
        assert_eq!(entry["decision"]["at_most"], "replace", "{entry}");
        assert_eq!(entry["reasons"], serde_json::json!(["its object does not exist any more"]));
    }
    assert_eq!(entry(&shown, "port")["decision"]["at_most"], "update");
    world.stack(&["apply", "--yes", &plan]).ok();
    assert_ne!(world.object("group"), gone);
}

/// What others have changed is shown apart from what the plan changes, with what the plan does about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_reads_the_objects_shows_what_others_have_changed() {
    let world = World::new("moved-outside").await;
    let (net, port, group) = (world.object("net"), world.object("port"), world.object("group"));
    world.put(&format!("/v2.0/networks/{net}"), value!({"network": {"name": "theirs"}})).await;
    world.put(&format!("/v2.0/ports/{port}"), value!({"port": {"name": "theirs"}})).await;
    let open = value!({"security_group": {"name": "open"}});
    world.put(&format!("/v2.0/security-groups/{group}"), open).await;

    let update = ["plan", "--existing", "--parameter", "word=two", "web"];
    assert!(!world.stack(&update).ok().contains("theirs"), "nobody has asked for the objects");
    let shown = world.stack(&[&update[..], &["--refresh"]].concat()).ok();
    for (head, change) in [
        ("net  (OS::Neutron::Net)", "name: \"ours\" → \"theirs\" (it stays)"),
        ("port  (OS::Neutron::Port)", "name: \"one\" → \"theirs\" (the plan overwrites it)"),
        ("group  (OS::Neutron::SecurityGroup)", "name: \"doors\" → \"open\" (it stays)"),
    ] {
        let entry = shown.split_once(head).expect(&shown).1;
        let entry = entry.split("  (OS::").next().unwrap();
        assert!(entry.contains("changed outside of Kiln:") && entry.contains(change), "{change}: {shown}");
    }
    let deleted = world.stack(&["plan", "--delete", "--refresh", "web", "-f", "markdown"]).ok();
    assert!(deleted.contains("(it goes with the object)"), "{deleted}");

    let plan = world.saved(&update[1..]);
    world.stack(&["apply", "--yes", &plan]).ok();
    let name = |kind: &str, id: &str| {
        let snapshot = world.cloud.snapshot();
        let object = snapshot.objects[kind].iter().find(|object| object["id"] == id).expect("an object");
        object["name"].as_str().unwrap().to_owned()
    };
    assert_eq!([name("networks", &net), name("ports", &port)], ["theirs", "two"], "as the plan says");
}

/// Also of a member of a group, and without a comparison with the objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_saved_plan_replaces_healthy_resources_on_request() {
    let world = World::new("moved-replaced").await;
    let ids = || {
        let nested = world.stack(&["resource", "list", &world.object("members"), "-f", "json"]).json();
        let member = |number: usize| nested[number]["physical_resource_id"].as_str().unwrap().to_owned();
        ([world.object("port"), member(0)], [world.object("net"), world.object("group"), member(1)])
    };
    let replace = ["--replace", "port", "--replace", "members/0", "web"];
    for more in [&[][..], &["--no-refresh"]] {
        let (replaced, kept) = ids();
        let plan = world.saved(&[more, &replace].concat());
        world.stack(&["apply", "--yes", &plan]).ok();
        let (after, still) = ids();
        assert!(after.iter().zip(&replaced).all(|(new, old)| new != old), "{after:?} {replaced:?}");
        assert_eq!(still, kept);
    }
    // The replacement is compared like every other one.
    let plan = world.saved(&replace);
    let port = world.object("port");
    world.put(&format!("/v2.0/ports/{port}"), value!({"port": {"name": "theirs"}})).await;
    world.is_refused(&plan, &["port: others have changed name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_delete_names_the_snapshots_that_go_with_the_stack() {
    let world = World::new("moved-snapshots").await;
    world.stack(&["snapshot", "create", "--name", "first", "--wait", "web"]).ok();
    let planned = world.stack(&["plan", "--delete", "--detailed-exitcode", "web"]);
    assert_eq!(planned.code, 5, "{planned:?}");
    assert!(planned.out.contains("\nSnapshots:\n  - ") && planned.out.contains("  (first)\n"), "{planned:?}");
    assert!(planned.out.contains(", 1 snapshot to delete\n"), "{planned:?}");
    for form in ["markdown", "json"] {
        let planned = world.stack(&["plan", "--delete", "-f", form, "web"]).ok();
        assert!(planned.contains("first"), "{planned}");
    }
    let plan = world.saved(&["--delete", "web"]);
    world.stack(&["snapshot", "create", "--name", "second", "--wait", "web"]).ok();
    world.is_refused(&plan, &["has changed since"]);
    world.stack(&["apply", "--yes", &world.saved(&["--delete", "web"])]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_refused_if_a_nested_stack_has_changed() {
    let world = World::new("moved-nested").await;
    let plan = world.saved(&["--existing", "--parameter", "word=two", "web"]);
    let nested = world.object("members");
    let template = world.stack(&["template", "show", &nested, "-f", "json"]).ok();
    world.folder.write("nested.json", &template.replace("one", "three"));
    world.stack(&["update", "-t", "nested.json", &nested]).ok();
    world.is_refused(&plan, &["the stack web-members-", "has changed since"]);
}

/// The plan is applied, and the next one is empty. Others may change what it does not touch.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_world_stays_is_applied() {
    let world = World::new("moved-nothing").await;
    let plan = world.saved(&["--existing", "--parameter", "word=two", "web"]);
    let server = world.object("server");
    let renamed = value!({"server": {"name": "theirs"}});
    world.user.call("compute", Method::Put, &format!("/servers/{server}"), Some(renamed)).await;
    world.cloud.journal().clear();
    world.stack(&["apply", "--yes", &plan]).ok();
    assert_eq!(world.writes().len(), 5, "net, its tags, group, port and two members: {:?}", world.writes());
    let again = world.stack(&["plan", "--detailed-exitcode", "--existing", "web"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(world.object("server"), server);
}
