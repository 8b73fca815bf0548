//! The pre-flight: each cause is found before the first call that changes something, and nothing else is.

use std::time::Duration;

use kiln_resource::Method;
use kiln_testcloud::{Action, Fault, Quota, RecordedCall, Service, Testcloud, When};
use kiln_value::value;
use serde_json::Value;

use crate::cloud_user::CloudUser;
use crate::plan::local;
use crate::run::{Folder, Ran};
use crate::service::{Service as Kiln, config};
use crate::terminal::answered;

/// What there is before: a server on a port of a network with six addresses, and a key.
const BEFORE: &str = "\
heat_template_version: 2018-08-31
resources:
  net: {type: OS::Neutron::Net, properties: {name: small}}
  subnet:
    type: OS::Neutron::Subnet
    properties: {name: small, network: {get_resource: net}, cidr: 10.77.0.0/29, enable_dhcp: false}
  port:
    type: OS::Neutron::Port
    properties: {name: taken, network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: subnet}, ip_address: 10.77.0.4}]}
  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny, networks: [{port: {get_resource: port}}]}
  key: {type: OS::Nova::KeyPair, properties: {name: mine, save_private_key: true}}
";

struct World {
    cloud: Testcloud,
    folder: Folder,
}

impl World {
    async fn new(name: &str) -> Self {
        let quota = Quota { instances: Some(3), gigabytes: Some(50), security_groups: Some(4), ..Quota::default() };
        let (cloud, folder) =
            (Testcloud::builder().compute_minor(90).quota(quota).start().await.unwrap(), Folder::new(name));
        let world = Self { cloud, folder };
        world.create(BEFORE, "before").ok();
        world
    }

    fn stack(&self, args: &[&str]) -> Ran {
        local(&self.cloud, &self.folder, &[&["stack"], args].concat())
    }

    fn create(&self, template: &str, name: &str) -> Ran {
        self.folder.write("t.yaml", template);
        self.stack(&["create", "-t", "t.yaml", name])
    }

    /// What the pre-flight of the create of a stack with these resources finds, without what has passed.
    fn found(&self, resources: &str) -> Vec<String> {
        self.found_for(resources, "new")
    }

    /// The same for the update of a stack.
    fn found_for(&self, resources: &str, stack: &str) -> Vec<String> {
        self.folder.write("t.yaml", &format!("heat_template_version: 2018-08-31\nresources:\n{resources}"));
        let plan = self.stack(&["plan", "-t", "t.yaml", "-f", "json", stack]).json();
        let checks = plan["preflight"].as_array().unwrap_or_else(|| panic!("{resources}: {plan}")).iter();
        let text = |one: &Value| format!("{} {}: {}", one["verdict"], one["check"], one["message"]).replace('"', "");
        checks.filter(|one| one["verdict"] != "passed").map(text).collect()
    }

    /// The calls that change something.
    fn changes(&self) -> usize {
        let calls = self.cloud.journal().list();
        let calls = calls.iter().map(RecordedCall::call);
        calls.filter(|call| !call.starts_with("GET ") && !call.contains("/auth/")).count()
    }
}

const SERVER: &str = "image: cirros, flavor: m1.tiny";

#[tokio::test(flavor = "multi_thread")]
async fn each_cause_is_found_before_the_first_change() {
    let world = World::new("preflight").await;
    let user = CloudUser::of(&world.cloud, world.cloud.users().demo).await;
    let large = value!({"name": "large", "disk_format": "raw", "container_format": "bare", "min_ram": 100_000, "min_disk": 900});
    user.call("image", Method::Post, "/v2/images", Some(large)).await;
    let before = world.changes();
    let server = |name: &str, more: &str| format!("  {name}: {{type: OS::Nova::Server, properties: {{{more}}}}}\n");
    let network = "networks: [{network: private}]";
    let servers: String = ["a", "b", "c"].map(|name| server(name, &format!("{SERVER}, {network}"))).concat();
    let port = |name: &str, more: &str| format!("  {name}: {{type: OS::Neutron::Port, properties: {{{more}}}}}\n");
    let small = |address: &str| format!("network: small, fixed_ips: [{{ip_address: {address}}}]");
    let planned = "  net: {type: OS::Neutron::Net}
  subnet:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: net}, cidr: 10.5.0.0/29}
";
    let on_planned = "network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: subnet}}]";
    let many: String = (0..6).map(|n| port(&format!("p{n}"), on_planned)).collect();
    let on_small: String = (0..5).map(|n| port(&format!("p{n}"), "network: small")).collect();
    world
        .create(
            "heat_template_version: 2018-08-31\nresources: {v: {type: OS::Heat::Value, properties: {value: none}}}\n",
            "known",
        )
        .ok();
    let volume = |size: u32| format!("  v{size}: {{type: OS::Cinder::Volume, properties: {{size: {size}}}}}\n");
    let groups =
        ["g0", "g1", "g2", "g3"].map(|name| format!("  {name}: {{type: OS::Neutron::SecurityGroup}}\n")).concat();
    let key = |name: &str| format!("  {name}: {{type: OS::Nova::KeyPair, properties: {{name: mine}}}}\n");
    let twice = "  one: {type: OS::Nova::KeyPair, properties: {name: new}}
  two: {type: OS::Nova::KeyPair, properties: {name: new}}
";
    for (resources, expected) in [
        (servers, "fail quotas: compute allows 3 instances, 1 are used, and a, b and 1 more would need 3 more"),
        (
            volume(30) + &volume(21),
            "fail quotas: block-storage allows 50 gigabytes, 0 are used, and v30 and v21 would need 51 more",
        ),
        (groups, "fail quotas: network allows 4 security_group, 1 are used, and g0, g1 and 2 more would need 4 more"),
        (key("k"), "fail names: k: the name mine is taken by mine"),
        (twice.to_owned(), "fail names: one and two would both be named new, and OS::Nova::KeyPair allows a name once"),
        (
            server("a", &format!("image: large, flavor: m1.tiny, {network}")),
            "fail flavors: a: the image is queued, not active",
        ),
        (
            server("a", &format!("image: large, flavor: m1.tiny, {network}")),
            "fail flavors: a: the image needs 100000 MiB of memory",
        ),
        (
            server("a", &format!("image: large, flavor: m1.tiny, {network}")),
            "fail flavors: a: the image needs 900 GiB of disk",
        ),
        (
            "  v: {type: OS::Cinder::Volume, properties: {size: 2, image: large}}\n".to_owned(),
            "fail flavors: v: the image needs 900 GiB, and the volume has 2",
        ),
        (
            server("a", &format!("{SERVER}, {network}, availability_zone: 'mars:host'")),
            "fail zones: compute has no availability zone mars",
        ),
        (
            "  v: {type: OS::Cinder::Volume, properties: {size: 1, availability_zone: mars}}\n".to_owned(),
            "warn zones: block-storage has no availability zone mars",
        ),
        (
            planned.to_owned() + &many,
            "fail addresses: the subnet subnet has 5 free addresses, and p0, p1 and 4 more would need 6",
        ),
        (on_small, "has 4 free addresses, and p0, p1 and 3 more would need 5"),
        (port("p", &small("10.78.0.4")), "fail fixed addresses: p: the address 10.78.0.4 is not in 10.77.0.0/29"),
        (port("p", &small("10.77.0.4")), "fail fixed addresses: p: the address 10.77.0.4 is used by the port "),
        (
            port("p", &small("10.77.0.5")) + &port("q", &small("10.77.0.5")),
            "fail fixed addresses: p and q would both have the address 10.77.0.5",
        ),
        (server("a", &format!("{SERVER}, networks: [{{port: taken}}]")), "fail ports: a: the port "),
    ] {
        let found = world.found(&resources);
        assert!(found.iter().any(|one| one.contains(expected)), "{expected}: {found:?}\n{resources}");
    }
    // What a plan knows, and the validation of a template does not: the value of a resource that exists.
    let known = "  v: {type: OS::Heat::Value, properties: {value: none}}\n  a: {type: OS::Nova::Server, properties: {image: {get_attr: [v, value]}, flavor: m1.tiny}}\n";
    let found = world.found_for(known, "known");
    assert!(found.iter().any(|one| one.starts_with("fail definitions: a: ") && one.contains("none")), "{found:?}");
    let found = world.found("  r: {type: OS::Keystone::Role, properties: {name: r}}\n");
    assert_eq!(found, ["warn rights: identity does not allow to list /v3/roles: a create will hardly be allowed"]);
    assert_eq!(world.changes(), before, "a pre-flight only reads");
    // What is possible has no findings.
    let fine = server("a", &format!("{SERVER}, {network}, availability_zone: nova"))
        + &volume(50)
        + &port("p", &small("10.77.0.5"));
    let fine = fine + "  other: {type: OS::Nova::KeyPair, properties: {name: other}}\n";
    let found = world.found(&fine);
    assert!(found.iter().all(|one| one.starts_with("skipped")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_would_fail_is_refused_and_executed_once_the_cause_is_gone() {
    let world = World::new("preflight-plan").await;
    world.folder.write(
        "t.yaml",
        "heat_template_version: 2018-08-31\nresources:\n  k: {type: OS::Nova::KeyPair, properties: {name: mine}}\n",
    );
    let saved = world.stack(&["plan", "--save", "-f", "json", "-t", "t.yaml", "new"]).json();
    let plan = saved["id"].as_str().unwrap();
    let before = world.changes();
    let text = world.stack(&["plan", "-t", "t.yaml", "new"]).ok();
    assert!(text.contains("Pre-flight:\n  FAIL    names: k: the name mine is taken by mine\n"), "{text}");
    let applied = world.stack(&["apply", plan]);
    let said = format!("{}{}", applied.out, applied.err);
    assert!(applied.code != 0 && said.contains("names: k: the name mine is taken by mine"), "{applied:?}");
    assert_eq!(world.changes(), before);
    world.stack(&["delete", "--yes", "before"]).ok();
    world.stack(&["apply", plan]).ok();
    // An update: a server more than the quota allows side by side.
    let template = |image: &str, count: u32| {
        let server = |n| {
            format!(
                "  s{n}: {{type: OS::Nova::Server, properties: {{image: cirros, flavor: m1.tiny, key_name: {image}, networks: [{{network: private}}]}}}}\n"
            )
        };
        format!(
            "heat_template_version: 2018-08-31\nresources:\n  k: {{type: OS::Nova::KeyPair, properties: {{name: k2}}}}\n{}",
            (0..count).map(server).collect::<String>()
        )
    };
    world.create(&template("mine", 3), "web").ok();
    world.folder.write("t.yaml", &template("k2", 3));
    let text = world.stack(&["plan", "-t", "t.yaml", "web"]).ok();
    assert!(text.contains("FAIL    quotas: compute allows 3 instances, 3 are used"), "{text}");
    let updated = world.stack(&["update", "--preflight", "-t", "t.yaml", "web"]);
    let said = format!("{}{}", updated.out, updated.err);
    assert!(updated.code == 3 && said.contains("The pre-flight failed, and nothing was changed"), "{updated:?}");
    // Fewer servers need no more.
    world.folder.write("t.yaml", &template("mine", 1));
    world.stack(&["update", "--yes", "-t", "t.yaml", "web"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_plan_is_checked_only_if_it_asks_for_it() {
    let world = World::new("preflight-request").await;
    let template = "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Neutron::Net}\n  k: {type: OS::Nova::KeyPair, properties: {name: mine}}\n";
    let before = world.changes();
    world.folder.write("t.yaml", template);
    let ran = world.stack(&["create", "--preflight", "-t", "t.yaml", "checked"]);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(
        ran.code != 0 && said.contains("The pre-flight failed, and nothing was changed: names: k: the name mine"),
        "{ran:?}"
    );
    assert_eq!(world.changes(), before, "the network is not created either");
    // It is checked again when it is continued.
    let ran = world.stack(&["continue", "checked"]);
    assert!(ran.code == 3 && ran.err.contains("names: k: the name mine"), "{ran:?}");
    assert_eq!(world.changes(), before);
    let ran = world.create(template, "unchecked");
    assert!(ran.code != 0 && world.changes() > before, "{ran:?}");
    // A check that cannot be made is an event.
    world.folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources:\n  f: {type: OS::Neutron::FloatingIP, properties: {floating_network: public}}\n");
    world.stack(&["create", "--preflight", "-t", "t.yaml", "public"]).ok();
    let events = world.stack(&["event", "list", "public", "-f", "json"]).ok();
    assert!(events.contains("Pre-flight SKIPPED addresses: "), "{events}");
    // A template.
    let validate =
        |more: &[&str]| local(&world.cloud, &world.folder, &[&["template", "validate", "--preflight"], more].concat());
    let valid = validate(&["t.yaml", "-f", "json"]).json();
    assert!(valid["preflight"].as_array().is_some_and(|checks| !checks.is_empty()), "{valid}");
    world.folder.write("t.yaml", template);
    let ran = validate(&["t.yaml"]);
    assert!(ran.code == 1 && ran.err.contains("the pre-flight failed: names: k: the name mine"), "{ran:?}");
}

/// A hidden parameter is the name of a key, and the name is taken: the findings do not show it.
#[tokio::test(flavor = "multi_thread")]
async fn findings_do_not_show_hidden_values() {
    const SECRET: &str = "planted-secret-4711";
    let world = World::new("preflight-hidden").await;
    let template = |name: &str| {
        format!(
            "heat_template_version: 2018-08-31\nparameters: {{name: {{type: string, hidden: true, default: {name}}}}}\n\
             resources:\n  k: {{type: OS::Nova::KeyPair, properties: {{name: {{get_param: name}}}}}}\n"
        )
    };
    world.create(&template(SECRET), "first").ok();
    let saved = world.stack(&["plan", "--save", "-f", "json", "-t", "t.yaml", "second"]).json();
    let plan = saved["id"].as_str().unwrap();
    for args in [
        &["stack", "plan", "-t", "t.yaml", "second"][..],
        &["stack", "plan", "-t", "t.yaml", "second", "-f", "json"],
        &["stack", "plan", "-t", "t.yaml", "second", "-f", "markdown"],
        &["plan", "show", plan, "-f", "json"],
        &["stack", "apply", plan],
        &["template", "validate", "--preflight", "t.yaml"],
        &["stack", "create", "--preflight", "-t", "t.yaml", "third"],
        &["stack", "show", "third"],
        &["stack", "event", "list", "third"],
        &["stack", "operation", "show", "third", "last"],
    ] {
        let ran = local(&world.cloud, &world.folder, args);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(!said.contains(SECRET), "{args:?}: {said}");
        assert!(said.contains("k: the name "), "{args:?}: {said}");
    }
    world.stack(&["plan", "-t", "t.yaml", "second", "--html", "plan.html"]).ok();
    let page = std::fs::read_to_string(world.folder.path().join("plan.html")).unwrap();
    assert!(page.contains("k: the name ") && page.contains("Pre-flight") && !page.contains(SECRET), "{page}");
}

/// On a terminal, an update whose plan would fail is not asked about.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_would_fail_stops_before_the_question() {
    let world = World::new("preflight-terminal").await;
    world.create("heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n", "web").ok();
    let before = world.changes();
    let keys =
        "heat_template_version: 2018-08-31\nresources: {k: {type: OS::Nova::KeyPair, properties: {name: mine}}}\n";
    world.folder.write("t.yaml", keys);
    let update = ["--local", "stack", "update", "-t", "t.yaml", "web"];
    let command = world.folder.client(&world.cloud, "http://localhost", &update);
    let ran = answered(&command, "[y/N]? ", || panic!("it is not asked"), "y\n");
    assert!(
        ran.code == 1
            && ran.out.contains("The pre-flight failed, and nothing was changed: names: k: the name mine is taken"),
        "{ran:?}"
    );
    assert_eq!(world.changes(), before);
}

/// `[kiln] preflight`: also requests without a plan, or not even plans.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_decides_what_is_checked() {
    let world = World::new("preflight-operator").await;
    let servers = || world.cloud.journal().list().iter().filter(|call| call.call() == "POST compute /servers").count();
    let far = format!("{SERVER}, networks: [{{network: private}}], availability_zone: mars");
    let far = format!(
        "heat_template_version: 2018-08-31\nresources: {{a: {{type: OS::Nova::Server, properties: {{{far}}}}}}}\n"
    );
    // The number of members is known only once the other resource exists.
    let sized = "heat_template_version: 2018-08-31\nresources:\n  v: {type: OS::Heat::Value, properties: {value: 3}}\n";
    let group = format!(
        "{sized}  g: {{type: OS::Heat::ResourceGroup, properties: {{count: {{get_attr: [v, value]}}, resource_def: {{type: OS::Heat::RandomString}}}}}}\n"
    );
    world.folder.write("sized.yaml", sized);
    world.folder.write("far.yaml", &far);
    world.folder.write("group.yaml", &group);
    for (word, is_checked) in [("always", true), ("never", false)] {
        let config = config(&world.folder, &world.cloud) + "preflight = " + word + "\n";
        let config = config.replacen("[DEFAULT]", "[DEFAULT]\nmax_resources_per_stack = 3", 1);
        let mut service = Kiln::start_with(&world.folder, &config, "serve", "0");
        let asked = |args: &[&str]| service.asked(&world.folder, &world.cloud, args);
        let before = servers();
        asked(&["stack", "create", "-t", "sized.yaml", "--wait", "sized"]).ok();
        let plan = |template: &str, stack: &str| asked(&["stack", "plan", "-t", template, "-f", "json", stack]).json();
        let failed = |plan: &Value, check: &str, why: &str| {
            let failed = plan["preflight"].as_array().into_iter().flatten().filter(|one| one["verdict"] == "fail");
            failed.filter(|one| one["check"] == check).any(|one| one["message"].as_str().unwrap().contains(why))
        };
        let (zone, most) = ("has no availability zone mars", "5 resources, and max_resources_per_stack is 3");
        let (far, group) = (plan("far.yaml", word), plan("group.yaml", "sized"));
        assert_eq!(failed(&far, "zones", zone), is_checked, "{word}: {far}");
        assert_eq!(failed(&group, "limits", most), is_checked, "{word}: {group}");
        let ran = asked(&["stack", "create", "-t", "far.yaml", "--wait", word]);
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(
            said.contains("The pre-flight failed, and nothing was changed: zones"),
            is_checked,
            "{word}: {ran:?}"
        );
        assert!(ran.code != 0 && (servers() == before) == is_checked, "{word}: {ran:?}");
        asked(&["stack", "delete", "--yes", "--wait", word, "sized"]).ok();
        service.stop();
    }
}

/// A service that never answers delays a plan by the limit of the pre-flight, and stops nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_service_is_skipped() {
    let world = World::new("preflight-silent").await;
    world.cloud.faults().add(Fault::new(Service::Compute, "GET", "/limits", Action::Hang).when(When::Always));
    let server =
        format!("  a: {{type: OS::Nova::Server, properties: {{{SERVER}, networks: [{{network: private}}]}}}}\n");
    let began = tokio::time::Instant::now();
    let found = world.found(&server);
    assert!(found.iter().any(|one| one.starts_with("skipped quotas: the services did not answer")), "{found:?}");
    assert!(!found.iter().any(|one| one.starts_with("fail")) && began.elapsed() < Duration::from_mins(1), "{found:?}");
    let key = world.found("  k: {type: OS::Nova::KeyPair, properties: {name: mine}}\n");
    assert!(key.iter().any(|one| one.starts_with("fail names")), "the other checks are made: {key:?}");
}

/// The plan of the manual ends as the manual says.
#[tokio::test(flavor = "multi_thread")]
async fn the_plan_in_the_manual_is_what_kiln_prints() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/preflight.md"));
    let block = |begin: &str| {
        let start = page.find(begin).expect(begin);
        page[start..].split("```").next().unwrap()
    };
    let world = World::new("preflight-manual").await;
    world.folder.write("far-away.yaml", block("# far-away.yaml"));
    let plan = world.stack(&["plan", "-t", "far-away.yaml", "far-away"]).ok();
    // On a slow machine, the times of the stack above are there already.
    let plan = plan.split_inclusive('\n').filter(|line| !line.starts_with("Time: ")).collect::<String>();
    assert!(plan.ends_with(block("Pre-flight:\n")), "{plan}");
    // Every check is in the table.
    for check in [
        "definitions",
        "limits",
        "names",
        "quotas",
        "flavors",
        "zones",
        "addresses",
        "fixed addresses",
        "ports",
        "rights",
    ] {
        assert!(page.contains(&format!("| `{check}` |")), "{check}");
    }
}
