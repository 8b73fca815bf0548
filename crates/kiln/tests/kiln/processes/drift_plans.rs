//! Plans that end drift: a repair writes into the objects, an acceptance into the template.

use std::time::Duration;

use kiln_client::Client;
use kiln_resource::Method;
use kiln_testcloud::{RecordedCall, Testcloud};
use kiln_value::{Value, value};

use crate::processes::cluster::{Cluster, Limits, end_of};
use crate::processes::converge::Other;
use crate::run::{Folder, Ran};

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
# The networks of a shop
parameters:
  port_name: {type: string, default: first}
  shared_name: {type: string, default: both}
resources:
  net:
    type: OS::Neutron::Net
    properties:
      name: mine     # as in the book
      tags: [a, b]

  # Its address space
  subnet:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: net}, cidr: 10.76.0.0/24, enable_dhcp: true}
  port:
    type: OS::Neutron::Port
    depends_on: subnet
    properties:
      network: {get_resource: net}
      name: {get_param: port_name}
  one: {type: OS::Neutron::Net, properties: {name: {get_param: shared_name}}}
  other: {type: OS::Neutron::Net, properties: {name: {get_param: shared_name}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Neutron::Net, properties: {name: 'member-%index%'}}}
";

/// A stack `web`, made of a file of a user.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) folder: Folder,
    url: String,
    pub(crate) client: Client,
    other: Other,
    /// IDs by the names of resources, also those of nested stacks.
    pub(crate) ids: kiln_value::Map,
}

impl World {
    async fn new(name: &str) -> Self {
        Self::with(name, TEMPLATE).await
    }

    /// A service with this stack; `name` is that of its folder.
    pub(crate) async fn with(name: &str, template: &str) -> Self {
        Self::of_files(name, template, &[]).await
    }

    /// The same with files that the template uses.
    async fn of_files(name: &str, template: &str, files: &[(&str, &str)]) -> Self {
        let cloud = Testcloud::builder().build_time(Duration::from_millis(20)).start().await.expect("a cloud");
        let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
        let (folder, client) = (Folder::new(name), cluster.client(cluster.cloud.users().demo));
        let other = Other::of(&cluster).await;
        for (name, text) in files.iter().chain(&[("web.yaml", template)]) {
            folder.write(name, text);
        }
        let url = cluster.url().replace("/v1/%(project_id)s", "");
        let mut world = Self { cluster, folder, url, client, other, ids: kiln_value::Map::new() };
        world.run(&["stack", "create", "-t", "web.yaml", "--wait", "web"]).ok();
        world.ids = world.ids_now().await;
        world
    }

    pub(crate) async fn ids_now(&self) -> kiln_value::Map {
        let resources = self.client.resources("web", 2, false, &vec![]).await.expect("resources");
        resources.iter().map(|resource| (resource.name().to_owned(), resource.physical_id().into())).collect()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.folder.client(&self.cluster.cloud, &self.url, args);
        command.current_dir(self.folder.path()).output().expect("it runs").into()
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("web.yaml")).expect("there")
    }

    pub(crate) async fn rename(&self, kind: &str, name: &str, new: &str) {
        let id = self.ids[name].as_str().expect("an ID");
        let body = Value::from_iter([(kind.to_owned(), value!({"name": new}))]);
        self.other.call("network", Method::Put, format!("/v2.0/{kind}s/{id}"), Some(body)).await;
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let id = self.ids[name].as_str().expect("an ID");
        self.other.call("network", Method::Delete, format!("/v2.0/{kind}s/{id}"), None).await;
    }

    pub(crate) async fn delete_trust(&self, id: &str) {
        self.other.call("identity", Method::Delete, format!("/v3/OS-TRUST/trusts/{id}"), None).await;
    }

    /// The plan that a command has saved, by the text that it printed.
    fn saved(printed: &str) -> String {
        let line = printed.lines().find(|line| line.contains("kiln stack apply")).expect("a plan");
        line.rsplit(' ').next().unwrap_or_default().trim_matches('\'').to_owned()
    }

    /// Executes a plan; what was sent to the cloud that changes something.
    pub(crate) async fn apply(&self, printed: &str) -> Vec<String> {
        self.cluster.cloud.journal().clear();
        self.run(&["stack", "apply", "--yes", &Self::saved(printed)]).ok();
        let (status, reason) = end_of(&self.client, "web", Duration::from_mins(1)).await;
        assert_eq!(status, "UPDATE_COMPLETE", "{reason}");
        let calls = self.cluster.cloud.journal().list();
        let is_write =
            |call: &&RecordedCall| !call.method.eq_ignore_ascii_case("GET") && !call.call().contains("/auth/");
        calls.iter().filter(is_write).map(RecordedCall::call).collect()
    }

    pub(crate) fn drift(&self, resources: &[&str]) -> Vec<(String, String)> {
        let mut args = vec!["stack", "drift", "web", "-f", "json"];
        args.extend(resources.iter().flat_map(|resource| ["--resource", *resource]));
        let listed = self.run(&args).json();
        let all = listed.as_array().expect("a list").iter();
        let of = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let drifted =
            all.filter(|one| ["MODIFIED", "DELETED"].contains(&one["drift_status"].as_str().unwrap_or_default()));
        drifted.map(|one| (of(one, "resource_name"), of(one, "differences"))).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_restores_only_what_has_drifted() {
    let world = World::new("repaired").await;
    let nothing = world.run(&["stack", "drift", "web", "--repair"]);
    assert!(nothing.code == 0 && nothing.err.contains("web: nothing has drifted"), "{nothing:?}");

    world.rename("network", "net", "theirs").await;
    world.rename("network", "1", "theirs").await;
    world.rename("port", "port", "theirs").await;
    let before = world.cluster.cloud.snapshot();
    let printed = world.run(&["stack", "drift", "web", "--repair", "--resource", "net", "--resource", "group"]).ok();
    assert!(printed.contains("~ net") && printed.contains("theirs"), "{printed}");
    assert_eq!(world.cluster.cloud.snapshot().objects, before.objects, "a plan changes nothing");
    let sent = world.apply(&printed).await;
    let puts: Vec<&String> = sent.iter().filter(|call| call.contains("PUT")).collect();
    assert!(sent.len() == 2 && puts.len() == 2, "only the two networks: {sent:?}");
    assert_eq!(world.drift(&[]), [("port".to_owned(), "name: \"first\" is \"theirs\"".to_owned())], "not chosen");

    // What was deleted is created again, and what is chosen in a nested stack is repaired alone.
    world.rename("network", "0", "theirs").await;
    let id = world.ids["one"].as_str().expect("an ID").to_owned();
    world.other.call("network", Method::Delete, format!("/v2.0/networks/{id}"), None).await;
    let printed = world.run(&["stack", "drift", "web", "--repair", "--resource", "group/0", "--resource", "one"]).ok();
    world.apply(&printed).await;
    assert_eq!(world.drift(&["net", "one", "group"]), []);
    assert_eq!(world.drift(&[]).len(), 1);
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_changes_the_template_and_no_object() {
    let world = World::new("accepted").await;
    world.rename("network", "net", "theirs: #1").await;
    world.rename("port", "port", "second").await;
    let id = world.ids["subnet"].as_str().expect("an ID").to_owned();
    let body = value!({"subnet": {"enable_dhcp": false}});
    world.other.call("network", Method::Put, format!("/v2.0/subnets/{id}"), Some(body)).await;

    let ran = world.run(&["stack", "drift", "web", "--accept", "-t", "web.yaml"]);
    let told = ran.err.clone();
    let printed = ran.ok();
    assert!(told.contains("net.name: \"theirs: #1\" (in web.yaml)"), "{told}");
    assert!(told.contains("port.name: \"second\" (in parameter port_name"), "{told}");
    let expected =
        TEMPLATE.replace("name: mine ", "name: 'theirs: #1' ").replace("enable_dhcp: true}", "enable_dhcp: false}");
    let lines = |text: &str| text.lines().map(|line| line.replace("  ", " ")).collect::<Vec<_>>();
    assert_eq!(lines(&world.file()), lines(&expected));
    assert_eq!(world.apply(&printed).await, Vec::<String>::new(), "no object changes");
    assert_eq!(world.drift(&[]), []);
    // The file is the template of the stack, and the parameter stays: an update of everything has nothing to do.
    let plan = world.run(&[
        "stack",
        "plan",
        "-t",
        "web.yaml",
        "--parameter",
        "port_name=second",
        "--detailed-exitcode",
        "web",
    ]);
    assert_eq!(plan.code, 0, "{plan:?}");
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_accepted_is_refused_by_name_and_nothing_is_written() {
    let world = World::new("refused-drift").await;
    let refused = |resource: &str, why: &str| {
        let ran = world.run(&["stack", "drift", "web", "--accept", "-t", "web.yaml", "--resource", resource]);
        assert!(ran.code == 1 && ran.err.contains(why), "{resource}: {ran:?}");
    };
    world.rename("network", "one", "theirs").await;
    refused("one", "one.name cannot be accepted: it is the parameter shared_name, which is used elsewhere or hidden");
    world.rename("network", "0", "theirs").await;
    refused("group", "group/0.name cannot be accepted: its value is computed for each member of the group");
    let id = world.ids["other"].as_str().expect("an ID").to_owned();
    world.other.call("network", Method::Delete, format!("/v2.0/networks/{id}"), None).await;
    refused("other", "other cannot be accepted: its object does not exist any more");
    world.rename("network", "net", "theirs").await;
    world.folder.write("web.yaml", "heat_template_version: 2018-08-31\n");
    refused("net", "it has no resource net whose properties can be changed; nothing was changed");
    assert_eq!(world.run(&["plan", "list", "-f", "json"]).json(), serde_json::json!([]));
    world.cluster.end().await;
}

const NESTED: &str = "\
heat_template_version: 2018-08-31
resources:
  app:
    type: app.yaml
    properties: {port_name: first}   # of the shop
  one: {type: pair.yaml}
  two: {type: pair.yaml}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def:
        type: OS::Neutron::Net
        properties: {name: member, tags: [a]}
  apps:
    type: OS::Heat::ResourceGroup
    properties: {count: 1, resource_def: {type: member.yaml, properties: {name: deep}}}
";

const APP: &str = "\
heat_template_version: 2018-08-31
parameters:
  port_name: {type: string}
resources:
  # The network of the shop
  inner: {type: OS::Neutron::Net, properties: {name: own, tags: [x]}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: inner}, cidr: 10.77.0.0/24}}
  port:
    type: OS::Neutron::Port
    depends_on: subnet
    properties: {network: {get_resource: inner}, name: {get_param: port_name}}
";

const PAIR: &str = "\
heat_template_version: 2018-08-31
resources:
  shared: {type: OS::Neutron::Net, properties: {name: both}}
";

const MEMBER: &str = "\
heat_template_version: 2018-08-31
parameters: {name: {type: string}}
resources:
  deep: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
";

/// A value is written where the template has it: in the file of the nested stack, in the property of the parent that is a
/// parameter there, or in the definition of all members of a group.
#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_reaches_into_nested_stacks() {
    let files = [("app.yaml", APP), ("pair.yaml", PAIR), ("member.yaml", MEMBER)];
    let world = World::of_files("accepted-nested", NESTED, &files).await;
    let refused = |resources: &[&str], why: &str| {
        let mut args = vec!["stack", "drift", "web", "--accept", "-t", "web.yaml"];
        args.extend(resources.iter().flat_map(|resource| ["--resource", *resource]));
        let ran = world.run(&args);
        assert!(ran.code == 1 && ran.err.contains(why), "{resources:?}: {ran:?}");
    };
    let read = |name: &str| std::fs::read_to_string(world.folder.path().join(name)).expect("there");
    // A second user of the template, and a second member of the group, have the old value.
    world.rename("network", "shared", "theirs").await;
    refused(&["one", "two"], "have the same template");
    world.rename("network", "0", "renamed").await;
    refused(&["group"], "group/1 cannot be accepted: its object would still be changed");
    world.rename("network", "1", "other").await;
    refused(&["group"], "other resources with the same definition have other values");
    assert_eq!(files.map(|(name, text)| (name, read(name) == text)), files.map(|(name, _)| (name, true)));

    world.rename("network", "1", "renamed").await;
    world.rename("network", "inner", "theirs").await;
    world.rename("port", "port", "second").await;
    world.rename("network", "deep", "deeper").await;
    let chosen = ["app", "group", "apps"].iter().flat_map(|name| ["--resource", *name]);
    let args: Vec<&str> = ["stack", "drift", "web", "--accept", "-t", "web.yaml"].into_iter().chain(chosen).collect();
    let ran = world.run(&args);
    let told = ran.err.clone();
    let printed = ran.ok();
    assert!(told.contains("app/inner.name: \"theirs\" (in app.yaml)"), "{told}");
    assert!(told.contains("app/port.name: \"second\" (in web.yaml)"), "{told}");
    assert_eq!(read("app.yaml"), APP.replace("name: own", "name: theirs"));
    let expected = NESTED.replace("port_name: first", "port_name: second").replace("name: member", "name: renamed");
    assert_eq!(read("web.yaml"), expected.replace("name: deep", "name: deeper"));
    assert_eq!((read("pair.yaml").as_str(), read("member.yaml").as_str()), (PAIR, MEMBER));
    assert_eq!(world.apply(&printed).await, Vec::<String>::new(), "no object changes");
    assert_eq!(world.drift(&["app", "group", "apps"]), []);
    let plan = world.run(&["stack", "plan", "-t", "web.yaml", "--detailed-exitcode", "web"]);
    assert_eq!(plan.code, 0, "the files are the template of the stack: {plan:?}");
    world.cluster.end().await;
}

const MANY: &str = "\
heat_template_version: 2018-08-31
resources:
  nets:
    type: OS::Heat::ResourceGroup
    properties: {count: 60, resource_def: {type: OS::Neutron::Net, properties: {name: many-%index%}}}
  groups: {type: OS::Heat::ResourceGroup, properties: {count: 60, resource_def: {type: OS::Neutron::SecurityGroup}}}
";

/// Many objects are read by lists; what a list does not have is asked for once more.
#[tokio::test(flavor = "multi_thread")]
async fn many_objects_are_read_by_few_requests_and_nothing_is_changed() {
    let world = World::with("many-objects", MANY).await;
    let networks: Vec<String> = {
        let all = world.cluster.cloud.snapshot().objects["networks"].clone();
        let named =
            all.into_iter().filter(|network| network["name"].as_str().is_some_and(|name| name.starts_with("many-")));
        named.map(|network| network["id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(networks.len(), 60);
    let theirs = value!({"network": {"name": "theirs"}});
    world.other.call("network", Method::Put, format!("/v2.0/networks/{}", networks[7]), Some(theirs)).await;
    world.other.call("network", Method::Delete, format!("/v2.0/networks/{}", networks[9]), None).await;
    world.cluster.cloud.journal().clear();
    let drifted = world.client.drift("web", &[]).await.expect("a comparison");
    let calls = world.cluster.cloud.journal().list();
    let calls: Vec<&RecordedCall> = calls.iter().filter(|call| !call.path.contains("/auth/")).collect();
    assert!(calls.iter().all(|call| call.method == "GET"), "{calls:#?}");
    let reads: Vec<&str> =
        calls.iter().map(|call| call.path.as_str()).filter(|path| path.contains("/networks")).collect();
    let groups = calls.iter().filter(|call| call.path.contains("/security-groups")).count();
    // Three by themselves, the list, and the one that it does not have, unless that is one of the three.
    assert!((4..=5).contains(&reads.len()) && groups == 4, "{calls:#?}");
    let of = |status: &str| {
        let all = drifted.get("resources").and_then(Value::as_list).unwrap_or_default().iter();
        let own = all.filter(|one| one.str_at("drift_status") == Some(status));
        own.filter_map(|one| one.str_at("physical_resource_id"))
            .filter(|id| networks.iter().any(|net| net == id))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("MODIFIED"), of("DELETED"), of("IN_SYNC").len()),
        (vec![networks[7].as_str()], vec![networks[9].as_str()], 58)
    );
    assert!(
        reads.iter().any(|call| call.contains(&networks[9])),
        "the deleted one was asked for by itself: {reads:#?}"
    );
    world.cluster.end().await;
}

/// The time and the requests for a stack of the size that the service allows.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some minutes; prints what it has measured"]
async fn a_thousand_objects_are_compared() {
    let kinds = [
        ("nets", "OS::Neutron::Net", "name: many-%index%"),
        ("groups", "OS::Neutron::SecurityGroup", "description: many"),
        ("routers", "OS::Neutron::Router", "name: many-%index%"),
        ("volumes", "OS::Cinder::Volume", "size: 1"),
        ("ports", "OS::Neutron::Port", "network: {get_resource: lan}"),
    ];
    let groups = kinds.map(|(name, kind, properties)| {
        let member = format!("{{type: {kind}, properties: {{{properties}}}}}");
        format!("  {name}: {{type: OS::Heat::ResourceGroup, properties: {{count: 190, resource_def: {member}}}}}\n")
    });
    let template = "heat_template_version: 2018-08-31\nresources:\n  lan: {type: OS::Neutron::Net}\n".to_owned()
        + &groups.concat();
    let world = World::with("thousand", &template).await;
    for _ in 0..5 {
        world.cluster.cloud.journal().clear();
        let since = std::time::Instant::now();
        let compared = world.client.drift("web", &[]).await.expect("a comparison");
        let (took, sent) = (since.elapsed(), world.cluster.cloud.journal().list());
        let calls = sent.len();
        let mut kinds: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for call in &sent {
            *kinds.entry(call.call()).or_default() += 1;
        }
        println!("{kinds:?}");
        println!(
            "{calls} requests, {took:.2?}: {}",
            kiln_value::text::json(&compared.get("extent").cloned().unwrap_or_default())
        );
    }
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_guard_ignores_is_no_drift_and_what_it_leaves_is_not_written() {
    let world = World::with("ignored-drift", TEMPLATE).await;
    let name = |world: &World| {
        let networks = world.cluster.cloud.snapshot().objects["networks"].clone();
        let id = world.ids["net"].as_str().unwrap_or_default().to_owned();
        let network = networks.into_iter().find(|network| network["id"] == id).expect("there");
        network["name"].as_str().unwrap_or_default().to_owned()
    };
    let converge = |world: &World| world.run(&["stack", "update", "--existing", "--converge", "--wait", "web"]).ok();
    let ignore = |world: &World, more: &[&str]| {
        let args = [&["stack", "drift", "web", "--ignore", "net.name", "--ignore", "group/*.name"], more].concat();
        let printed = world.run(&args).ok();
        printed.split(' ').nth(1).unwrap_or_default().to_owned()
    };

    // Ignored: drift does not show it, and an update that compares writes it all the same.
    let guard = ignore(&world, &["--reason", "set by the monitoring"]);
    world.rename("network", "net", "theirs").await;
    world.rename("network", "0", "theirs").await;
    assert_eq!(world.drift(&[]), []);
    let shown = world.run(&["stack", "drift", "web", "--resource", "net"]).ok();
    assert!(shown.contains("name: ignored"), "{shown}");
    assert!(world.run(&["stack", "drift", "web", "--repair"]).err.contains("nothing has drifted"));
    converge(&world);
    assert_eq!(name(&world), "mine");
    world.run(&["guard", "lift", &guard]).ok();

    // Left: nobody writes it, whatever the template says.
    let guard = ignore(&world, &["--leave"]);
    world.rename("network", "net", "theirs").await;
    converge(&world);
    assert_eq!(name(&world), "theirs");
    world.folder.write("web.yaml", &TEMPLATE.replace("name: mine ", "name: ours ").replace("[a, b]", "[a, b, c]"));
    let saved = world.run(&["stack", "plan", "-t", "web.yaml", "web", "--save"]).ok();
    assert!(saved.contains("~ net") && saved.contains("name: stays as it is, says the guard "), "{saved}");
    assert!(!saved.contains("ours"), "{saved}");
    let sent = world.apply(&saved).await;
    assert!(!sent.is_empty() && sent.iter().all(|call| call.contains("/tags")), "only the tags: {sent:?}");
    assert_eq!(name(&world), "theirs");
    world.run(&["guard", "lift", &guard]).ok();
    assert_eq!(world.drift(&["net"]), [("net".to_owned(), "name: \"mine\" is \"theirs\"".to_owned())]);
    world.run(&["stack", "update", "-t", "web.yaml", "--wait", "web"]).ok();
    assert_eq!(name(&world), "ours");

    let wrong = world.run(&["stack", "drift", "web", "--ignore", "net"]);
    assert!(wrong.code == 1 && wrong.err.contains("a property is named by the path of its resource"), "{wrong:?}");
    world.cluster.end().await;
}
