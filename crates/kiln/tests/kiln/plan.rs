//! Plans, and the questions before something is destroyed.

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::terminal::answered;

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 8}}
resources:
  secret: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
";

const UPDATE: [&str; 7] = ["--local", "stack", "update", "--existing", "--parameter", "length=9", "one"];
const UPDATE_ASKS: &str = "Update the stack [y/N]? ";

fn created(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("t.yaml", TEMPLATE);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    folder
}

fn length(folder: &Folder) -> String {
    folder.local(&["stack", "show", "one", "-f", "json"]).json()["parameters"]["length"].to_string()
}

#[test]
fn what_runs_is_the_plan_that_was_shown() {
    let folder = created("plan-stale");
    let other = || {
        folder.local(&["stack", "update", "--existing", "--tags", "another", "one"]).ok();
    };
    let ran = answered(&folder.kiln(&UPDATE), UPDATE_ASKS, other, "y\n");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("-/+ secret  (OS::Heat::RandomString)\n        length: 8 → 9"), "{}", ran.out);
    let stale = "The plan is out of date: the stack one has changed since.";
    assert!(ran.out.contains(stale) && ran.out.contains("run the command again"), "{}", ran.out);
    assert_eq!(length(&folder), "\"8\"", "nothing was changed");
    let ran = answered(&folder.kiln(&UPDATE), UPDATE_ASKS, || (), "y\n");
    assert_eq!((ran.code, length(&folder).as_str()), (0, "\"9\""), "{}", ran.out);
}

#[test]
fn a_plan_says_how_a_renamed_resource_keeps_its_object() {
    let folder = created("plan-renamed");
    let renamed = TEMPLATE.replace("secret:", "token:");
    folder.write("t.yaml", &renamed);
    let plan = || folder.local(&["stack", "plan", "-t", "t.yaml", "one"]).ok();
    let section = "moved: [{from: secret, to: token}]";
    let ran = plan();
    let hint =
        format!("Hint: token has the definition of secret: to keep its object, add to the template  {section}\n");
    assert!(ran.contains(&hint), "{ran}");
    let json = folder.local(&["stack", "plan", "-t", "t.yaml", "-f", "json", "one"]).json();
    assert_eq!(json["renamed"], serde_json::json!([{"from": "secret", "to": "token"}]));
    folder.write("t.yaml", &format!("{renamed}{section}\n"));
    let ran = plan();
    assert!(ran.contains("moved from secret") && !ran.contains("Hint"), "{ran}");
}

/// What scaling or a mark changes after the plan was shown is no part of it either.
#[test]
fn a_plan_is_out_of_date_if_a_nested_stack_or_a_resource_has_changed() {
    let folder = Folder::new("plan-stale-nested");
    let template = "\
heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 8}}
resources:
  secret: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
  other: {type: OS::Heat::RandomString}
  group:
    type: OS::Heat::AutoScalingGroup
    properties: {min_size: 1, max_size: 3, resource: {type: OS::Heat::RandomString}}
  more:
    type: OS::Heat::ScalingPolicy
    properties: {adjustment_type: change_in_capacity, auto_scaling_group_id: {get_resource: group}, scaling_adjustment: 1}
";
    folder.write("t.yaml", template);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let stack = |args: &[&str]| folder.local(&[&["stack", "resource"], args].concat());
    let listed = |args: &[&str]| stack(&[&["list", "one", "-f", "json"], args].concat()).json();
    let wait = |is_done: &dyn Fn() -> bool| {
        assert!((0..100).any(|_| is_done() || folder.local(&["stack", "wait", "one"]).code > 9));
    };
    let scale = || {
        let members = listed(&["-n", "2"]).as_array().unwrap().len();
        stack(&["signal", "one", "more"]).ok();
        wait(&|| listed(&["-n", "2"]).as_array().unwrap().len() > members);
    };
    let mark = || {
        stack(&["mark", "unhealthy", "one", "other"]).ok();
        wait(&|| listed(&[]).as_array().unwrap().iter().any(|row| row["resource_status"] == "CHECK_FAILED"));
    };
    for change in [&scale as &dyn Fn(), &mark] {
        let ran = answered(&folder.kiln(&UPDATE), UPDATE_ASKS, change, "y\n");
        assert_eq!(ran.code, 1, "{}", ran.out);
        assert!(ran.out.contains("The plan is out of date: the stack one has changed since."), "{}", ran.out);
        assert_eq!(length(&folder), "\"8\"", "nothing was changed");
    }
    let ran = answered(&folder.kiln(&UPDATE), UPDATE_ASKS, || (), "y\n");
    assert_eq!((ran.code, length(&folder).as_str()), (0, "\"9\""), "{}", ran.out);
}

#[test]
fn no_and_an_interrupt_change_nothing_and_say_so() {
    let folder = created("plan-no");
    let delete = ["--local", "stack", "delete", "one"];
    for (command, asked, answer, code) in [
        (&UPDATE[..], UPDATE_ASKS, "n\n", 1),
        (&UPDATE[..], UPDATE_ASKS, "\u{3}", 130),
        (&delete[..], "this stack [y/N]? ", "\n", 1),
        (&delete[..], "this stack [y/N]? ", "\u{3}", 130),
    ] {
        let ran = answered(&folder.kiln(command), asked, || (), answer);
        assert_eq!(ran.code, code, "{}", ran.out);
        assert!(ran.out.contains("nothing was changed") && !ran.out.contains("stack wait"), "{}", ran.out);
    }
    assert_eq!(length(&folder), "\"8\"");
    let ran = answered(&folder.kiln(&delete), "this stack [y/N]? ", || (), "y\n");
    let listed = "  - secret  (OS::Heat::RandomString)\n        length: 8\n\none: 1 to delete\n";
    assert!(ran.code == 0 && ran.out.contains(listed), "a delete says what it deletes: {}", ran.out);
}

#[test]
fn a_script_is_stopped_only_if_it_wants_to_be() {
    let folder = created("plan-script");
    let stopped = |args: &[&str]| -> Ran { folder.kiln(args).env("KILN_REQUIRE_YES", "1").output().unwrap().into() };
    let delete = ["--local", "stack", "delete", "one"];
    for command in [&UPDATE[..], &delete[..]] {
        let ran = stopped(command);
        assert!(ran.code == 1 && ran.err.contains("use --yes"), "{}", ran.err);
    }
    assert_eq!(length(&folder), "\"8\"");
    let snapshot = ["stack", "snapshot", "create", "one", "-f", "value", "-c", "id"];
    let snapshot = folder.local(&snapshot).ok();
    let restore = ["--local", "stack", "snapshot", "restore", "one", snapshot.trim()];
    assert_eq!(stopped(&restore).code, 1);
    stopped(&[&restore[..], &["--yes"]].concat()).ok();
    stopped(&["--local", "stack", "update", "--existing", "--tags", "a", "one"]).ok();
    stopped(&[&UPDATE[..], &["--yes"]].concat()).ok();
    assert_eq!(length(&folder), "\"9\"");
    folder.run(&delete).ok();
}

#[test]
fn the_exit_code_says_whether_something_would_change() {
    let folder = created("plan-code");
    let code = |more: &[&str]| {
        let update = ["stack", "update", "--existing", "--dry-run", "--detailed-exitcode", "one"];
        folder.local(&[&update[..], more].concat()).code
    };
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--parameter", "length=9"]), 2);
    assert_eq!(code(&["--parameter", "length=9", "-f", "json"]), 2);
    assert_eq!(code(&["--parameter", "length=x"]), 1);
    let create = ["stack", "create", "-t", "t.yaml", "--dry-run", "--detailed-exitcode", "two"];
    assert_eq!(folder.local(&create).code, 2);
    let code = |args: &[&str]| folder.local(&[&["stack"], args].concat()).code;
    assert_eq!(code(&["plan", "--existing", "--detailed-exitcode", "one"]), 0);
    assert_eq!(code(&["plan", "--delete", "--detailed-exitcode", "one"]), 2);
    assert_eq!(code(&["plan", "--delete", "one"]), 0);
    // 2 would say that something changes.
    assert_eq!(code(&["delete", "--detailed-exitcode", "one"]), 1, "no such option");
    assert_eq!(code(&["update", "--existing", "--detailed-exitcode", "one"]), 1, "only with --dry-run");
    assert_eq!(code(&["plan", "--detailed-exitcode", "one"]), 1, "no template");
    assert_eq!(code(&["delete", "--no-such-option", "one"]), 2);
}

/// A stack with a volume and a server, and a client of it.
pub(crate) async fn with_a_volume(name: &str) -> (Testcloud, Folder) {
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new(name));
    folder.write("t.yaml", VOLUME);
    local(&cloud, &folder, &["stack", "create", "-t", "t.yaml", "one"]).ok();
    (cloud, folder)
}

const VOLUME: &str = "\
heat_template_version: 2018-08-31
parameters: {flavor: {type: string, default: m1.tiny}, zone: {type: string, default: nova}, text: {type: string, default: a}}
resources:
  volume: {type: OS::Cinder::Volume, properties: {size: 1, availability_zone: {get_param: zone}}}
  port: {type: OS::Neutron::Port, properties: {network: private}}
  server:
    type: OS::Nova::Server
    depends_on: volume
    properties: {image: cirros, flavor: {get_param: flavor}, networks: [{port: {get_resource: port}}]}
  config:
    type: OS::Heat::Value
    properties: {value: {list_join: [\"\\n\", [one, {get_param: text}, three]]}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Heat::RandomString, properties: {length: 4}}}
outputs:
  volume: {value: {get_resource: volume}}
";

pub(crate) fn local(cloud: &Testcloud, folder: &Folder, args: &[&str]) -> Ran {
    folder.client(cloud, "http://localhost", &[&["--local"], args].concat()).output().unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_a_document_with_everything_in_it() {
    let (cloud, folder) = with_a_volume("plan-document").await;
    let plan = |more: &[&str]| {
        let args = [&["stack", "plan", "--existing", "-f", "json", "one"], more].concat();
        let ran = local(&cloud, &folder, &args);
        serde_json::from_str::<serde_json::Value>(&ran.ok()).unwrap()
    };
    let entry = |plan: &serde_json::Value, path: &str| {
        let entries = plan["resources"].as_array().unwrap();
        entries.iter().find(|entry| entry["path"] == path).unwrap_or_else(|| panic!("{path}: {plan}")).clone()
    };
    let nothing = plan(&[]);
    assert_eq!(nothing["resources"].as_array().unwrap().len(), 7, "those that do not change are there: {nothing}");
    assert_eq!(nothing["totals"]["none"], 7);
    let changed = plan(&["--parameter", "flavor=m1.small", "--parameter", "zone=east", "--parameter", "text=b"]);
    let volume = entry(&changed, "volume");
    assert_eq!((&volume["risk"], &volume["downtime"]), (&"data_loss".into(), &"replace".into()));
    assert_eq!(volume["lost"][0]["kind"], "volume");
    assert_eq!(volume["source"]["path"], "resources.volume");
    assert_eq!(volume["decision"], serde_json::json!({"at_least": "replace", "at_most": "replace"}));
    let server = entry(&changed, "server");
    assert_eq!((&server["risk"], &server["downtime"]), (&"interruption".into(), &"restart".into()));
    assert_eq!(server["waits_for"], serde_json::json!(["port", "volume"]));
    assert_eq!(server["properties"][0]["before"]["names"]["flavor"], "m1.tiny");
    assert_eq!(changed["outputs"][0]["after"]["known_after"], "volume");
    assert_eq!(
        changed["totals"],
        serde_json::json!({
            "data_loss": 1, "replacement": 0, "interruption": 1, "change": 1, "none": 4,
        })
    );
    assert_eq!(entry(&changed, "group/0")["parent"], "group");
    let shown = local(&cloud, &folder, &["stack", "plan", "--existing", "--parameter", "text=b", "one"]).ok();
    assert!(
        shown.contains("        value:\n            one\n          - a\n          + b\n            three"),
        "{shown}"
    );
    let lost = |more: &[&str]| {
        let args = [&["stack", "plan", "--detailed-exitcode", "one"], more].concat();
        local(&cloud, &folder, &args).code
    };
    assert_eq!((lost(&["--existing", "--parameter", "zone=east"]), lost(&["--delete"])), (5, 5));
}

/// The plan of a delete: everything that goes, and what is lost with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_shows_what_goes_and_deletes_what_was_shown() {
    let (cloud, folder) = with_a_volume("plan-delete").await;
    let shown = local(&cloud, &folder, &["stack", "plan", "--delete", "one"]).ok();
    let volume = "  - volume  (OS::Cinder::Volume)\n        availability_zone: \"nova\"\n        size: 1\n        lost: the volume's data\n";
    assert!(shown.contains(volume) && shown.contains("      - 0  (OS::Heat::RandomString)"), "{shown}");
    assert!(shown.ends_with("\none: 7 to delete\n"), "{shown}");
    let json = local(&cloud, &folder, &["stack", "plan", "--delete", "-f", "json", "one"]).json();
    let of =
        |path: &str| json["resources"].as_array().unwrap().iter().find(|entry| entry["path"] == path).unwrap().clone();
    assert_eq!(of("volume")["waits_for"], serde_json::json!(["server"]), "it goes after what requires it");
    let delete = || folder.client(&cloud, "http://localhost", &["--local", "stack", "delete", "one"]);
    let other = || {
        local(&cloud, &folder, &["stack", "update", "--existing", "--tags", "another", "one"]).ok();
    };
    let ran = answered(&delete(), "delete this stack [y/N]? ", other, "y\n");
    assert!(ran.code == 1 && ran.out.contains("The plan is out of date"), "{}", ran.out);
    let ran = answered(&delete(), "delete this stack [y/N]? ", || (), "y\n");
    assert!(
        ran.code == 0 && ran.out.contains(volume.trim_end_matches('\n').split('\n').next().unwrap()),
        "{}",
        ran.out
    );
}

/// A healthy resource is replaced in the plan alone; nothing is marked.
#[tokio::test(flavor = "multi_thread")]
async fn the_replacement_of_a_healthy_resource_can_be_planned() {
    let (cloud, folder) = with_a_volume("plan-replace").await;
    let plan = |paths: &[&str]| {
        let replace = paths.iter().flat_map(|path| ["--replace", path]);
        let args: Vec<&str> = ["stack", "plan", "one"].into_iter().chain(replace).collect();
        local(&cloud, &folder, &args)
    };
    let shown = plan(&["volume", "group/1"]).ok();
    assert!(
        shown.contains("-/+ volume  (OS::Cinder::Volume)\n        because: a replacement is asked for\n"),
        "{shown}"
    );
    assert!(shown.contains("lost: the volume's data"), "{shown}");
    assert!(shown.contains("    -/+ 1  (OS::Heat::RandomString)") && !shown.contains(" 0  ("), "{shown}");
    assert!(shown.contains("  ~ volume: \""), "outputs follow: {shown}");
    let unknown = plan(&["group/7"]);
    assert!(unknown.code == 1 && unknown.err.contains("group/7"), "{unknown:?}");
    assert_eq!(local(&cloud, &folder, &["stack", "plan", "--existing", "one"]).ok(), "one: 7 unchanged\n");
}

#[test]
fn a_plan_is_one_of_a_create_if_there_is_no_stack() {
    let folder = created("plan-new");
    let plan = |args: &[&str]| folder.local(&[&["stack", "plan"], args].concat());
    assert!(plan(&["-t", "t.yaml", "two"]).ok().ends_with("\ntwo: 1 to create\n"));
    assert_eq!(plan(&["-t", "t.yaml", "one"]).ok(), "one: 1 unchanged\n");
    let missing = plan(&["--existing", "two"]);
    assert!(missing.code == 1 && missing.err.contains("Stack not found: two"), "{missing:?}");
    let dry = folder.local(&["stack", "create", "-t", "t.yaml", "--dry-run", "two"]).ok();
    assert_eq!(plan(&["-t", "t.yaml", "two"]).ok(), dry);
    let page = plan(&["-t", "t.yaml", "--html", "plan.html", "-f", "markdown", "two"]).ok();
    assert!(page.starts_with("## Plan: create `two`\n\n**1 to create**\n"), "{page}");
    let html = std::fs::read_to_string(folder.path().join("plan.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<strong>secret</strong>"), "{html}");
}

/// A new group whose members are known later has one entry with the reason; a nested stack that is kept, all of its resources.
#[test]
fn no_resource_is_left_out() {
    let folder = Folder::new("plan-all");
    let template = "\
heat_template_version: 2018-08-31
resources:
  digit: {type: OS::Heat::RandomString, properties: {length: 1, salt: a, character_classes: [{class: digits, min: 1}]}}
  nested: {type: child.yaml, deletion_policy: Retain, properties: {length: 4}}
GROUP";
    let group = "  group: {type: OS::Heat::ResourceGroup, properties: {count: {get_attr: [digit, value]}, resource_def: {type: OS::Heat::Value}}}\n";
    folder.write(
        "child.yaml",
        "heat_template_version: 2018-08-31\nparameters: {length: {type: number}}\nresources:\n  inner: {type: \
         OS::Heat::RandomString, properties: {length: {get_param: length}}}\n",
    );
    folder.write("t.yaml", &template.replace("GROUP", ""));
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let plan = || folder.local(&["stack", "plan", "-t", "t.yaml", "-f", "json", "one"]).json();
    folder.write("t.yaml", &template.replace("GROUP", group).replace("salt: a", "salt: b"));
    let planned = plan();
    let of = |plan: &serde_json::Value, path: &str| {
        plan["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["path"] == path)
            .cloned()
            .unwrap_or_else(|| panic!("{path}: {plan}"))
    };
    assert_eq!(of(&planned, "group")["content"]["known_after"], "digit.value", "{planned}");
    // A nested stack that stays in the cloud keeps its resources.
    let kept = "heat_template_version: 2018-08-31\nresources: {}\n";
    folder.write("t.yaml", kept);
    let planned = plan();
    let inner = of(&planned, "nested/inner");
    assert_eq!((&inner["decision"]["at_most"], &of(&planned, "nested")["retained"]), (&"keep".into(), &true.into()));
}

/// Data is lost by a replacement, a rebuild, a change of the type and a delete, but not if the object is kept, or if
/// there never was one.
#[tokio::test(flavor = "multi_thread")]
async fn lost_data_is_announced() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("plan-lost");
    let template = "\
heat_template_version: 2018-08-31
resources:
  replaced: {type: OS::Cinder::Volume, properties: {size: 1, availability_zone: ZONE}}
  kept: {type: OS::Cinder::Volume, deletion_policy: Retain, properties: {size: 1, availability_zone: ZONE}}
  other: {type: TYPE, PROPERTIES}
  gone: {type: OS::Cinder::Volume, properties: {size: 1}}
  left: {type: OS::Cinder::Volume, deletion_policy: Retain, properties: {size: 1}}
  server: {type: OS::Nova::Server, properties: {image: IMAGE, flavor: m1.small, networks: [{network: private}]}}
  random: {type: OS::Heat::RandomString, properties: {length: LENGTH}}
  waits: {type: OS::Swift::Container, properties: {name: {get_attr: [random, value]}}}
";
    let properties = "properties: {size: 1}";
    let before =
        template.replace("ZONE", "nova").replace("TYPE", "OS::Cinder::Volume").replace("PROPERTIES", properties);
    folder.write("t.yaml", &before.replace("IMAGE", "cirros").replace("LENGTH", "8"));
    let local = |args: &[&str]| -> Ran {
        folder.client(&cloud, "http://localhost", &[&["--local"], args].concat()).output().unwrap().into()
    };
    local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let after = template.replace("ZONE", "east").replace("TYPE", "OS::Heat::TestResource").replace(", PROPERTIES", "");
    let after: Vec<&str> = after.lines().filter(|line| !line.contains("gone:") && !line.contains("left:")).collect();
    folder.write("t.yaml", &after.join("\n").replace("IMAGE", "fedora-coreos").replace("LENGTH", "9"));
    let update = ["stack", "update", "-t", "t.yaml", "--dry-run", "one"];
    let shown = local(&update).ok();
    let lost = |sign: &str, what: &str| {
        let part = shown.split_once(sign).unwrap_or_else(|| panic!("{sign}: {shown}")).1;
        let lines: Vec<&str> = part.lines().skip(1).take_while(|line| line.starts_with("        ")).collect();
        assert_eq!(lines.contains(&format!("        lost: {what}").as_str()), !what.is_empty(), "{sign}: {shown}");
    };
    lost("-/+ replaced", "the volume's data");
    lost("-/+ other", "the volume's data");
    lost("  - gone", "the volume's data");
    lost("  ~ server", "the server's own disk");
    lost("?-+ waits", "the container's objects");
    lost("-/+ kept", "");
    lost("  - left", "");
    assert_eq!(shown.matches("kept: the object is not deleted").count(), 2, "{shown}");
    let json = local(&[&update[..], &["-f", "json"]].concat()).json();
    let of_json: Vec<_> = ["replaced", "deleted", "updated"]
        .iter()
        .flat_map(|list| json[list].as_array().unwrap())
        .filter(|entry| entry["change"]["lost"].is_string())
        .map(|entry| entry["resource_name"].as_str().unwrap())
        .collect();
    assert_eq!(of_json.len(), 5, "{of_json:?}");
}

/// A shrink is refused, so it is not planned as possible; after it has failed, the volume has its size.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_refused_is_planned_as_refused() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("plan-shrink");
    let local = |args: &[&str]| -> Ran {
        folder.client(&cloud, "http://localhost", &[&["--local", "stack"], args].concat()).output().unwrap().into()
    };
    let write = |size: &str| {
        let volume = format!("type: OS::Cinder::Volume, properties: {{size: {size}, name: data}}");
        folder.write(
            "t.yaml",
            &format!(
                "heat_template_version: 2018-08-31\nresources:\n  volume: {{{volume}}}\noutputs:\n  size: {{value: {{get_attr: \
                 [volume, size]}}}}\n"
            ),
        );
    };
    write("2");
    local(&["create", "-t", "t.yaml", "one"]).ok();
    // As in Heat, the attribute is a text in values; where attributes are shown, it is the number of the service.
    assert_eq!(local(&["output", "show", "one", "size", "-f", "json"]).json()["output_value"], "2");
    assert_eq!(local(&["resource", "show", "one", "volume", "-f", "json"]).json()["attributes"]["size"], 2);
    write("1");
    let plan = local(&["update", "-t", "t.yaml", "--dry-run", "one"]);
    assert!(plan.out.contains("  ! volume") && plan.out.contains("Shrinking volume is not supported."), "{}", plan.out);
    assert_eq!(local(&["update", "-t", "t.yaml", "--yes", "one"]).code, 3);
    write("2");
    let plan = local(&["update", "-t", "t.yaml", "--dry-run", "one"]).ok();
    assert_eq!(plan.trim(), "one: 1 unchanged");
    write("3");
    let plan = local(&["update", "-t", "t.yaml", "--dry-run", "one"]).ok();
    assert!(plan.contains("size: 2 → 3"), "{plan}");
    local(&["update", "-t", "t.yaml", "--yes", "one"]).ok();
}

/// With `--converge`, the values before a change are those of the object, also if it is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn the_values_before_a_change_are_those_of_the_object() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("plan-live");
    let local = |args: &[&str]| -> Ran {
        folder.client(&cloud, "http://localhost", &[&["--local", "stack"], args].concat()).output().unwrap().into()
    };
    let template = "\
heat_template_version: 2018-08-31
resources:
  same: {type: OS::Cinder::Volume, properties: {size: 1, description: mine}}
  replaced: {type: OS::Cinder::Volume, properties: {size: 1, description: mine, availability_zone: ZONE}}
";
    folder.write("t.yaml", &template.replace("ZONE", "nova"));
    local(&["create", "-t", "t.yaml", "one"]).ok();
    let demo = cloud.users().demo;
    let options = kiln_cloud::Options::new(cloud.auth_url().parse().unwrap());
    let credentials = kiln_cloud::Credentials::password(demo.user, demo.password, demo.project, "Default");
    let user = kiln_cloud::Connector::new(cloud.transport(), options).cloud(&credentials).await;
    for name in ["same", "replaced"] {
        let id = local(&["resource", "show", "one", name, "-f", "json"]).json()["physical_resource_id"].clone();
        let path = format!("/v3/volumes/{}", id.as_str().unwrap());
        let request = kiln_resource::CloudRequest::new("volumev3", kiln_resource::Method::Put, path);
        let body = kiln_value::value!({"volume": {"description": "other"}});
        kiln_resource::Cloud::call(&*user, request.body(body)).await.unwrap();
    }
    folder.write("t.yaml", &template.replace("ZONE", "east"));
    let shown = local(&["update", "-t", "t.yaml", "--converge", "--dry-run", "one"]).ok();
    for sign in ["  ~ same", "-/+ replaced"] {
        let part = shown.split_once(sign).unwrap_or_else(|| panic!("{sign}: {shown}")).1;
        let lines: Vec<&str> = part.lines().skip(1).take_while(|line| line.starts_with("        ")).collect();
        assert!(lines.contains(&"        description: \"other\" → \"mine\""), "{sign}: {shown}");
    }
}

/// A value that is known shows what it refers to, as one that is not known does.
#[test]
fn references_are_shown_in_updates_too() {
    let folder = Folder::new("plan-references");
    let template = "\
heat_template_version: 2018-08-31
resources:
  held: {type: OS::Heat::Value, properties: {value: one}}
  random: {type: OS::Heat::RandomString}
  reads: {type: OS::Heat::Value, properties: {value: READ}}
";
    let write = |read: &str| folder.write("t.yaml", &template.replace("READ", read));
    let plan = || folder.local(&["stack", "update", "-t", "t.yaml", "--dry-run", "one"]).ok();
    let read = "[plain, {deep: {get_resource: random}}, {get_attr: [held, value]}]";
    write(read);
    let created = folder.local(&["stack", "create", "-t", "t.yaml", "--dry-run", "one"]).ok();
    let expected = r#"value: ["plain", {"deep": (known after random)}, "one" (from held.value)]"#;
    assert!(created.contains(expected), "{created}");
    write("none");
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    write(read);
    let updated = plan();
    let start = r#"value: "none" → ["plain", {"deep": ""#;
    assert!(updated.contains(start), "{updated}");
    assert!(updated.contains(r#"" (from random)}, "one" (from held.value)]"#), "{updated}");
    folder.local(&["stack", "update", "-t", "t.yaml", "one"]).ok();
    write("none");
    let updated = plan();
    assert!(updated.contains(r#"" (from random)}, "one" (from held.value)] → "none""#), "{updated}");
}

/// If the number of members is known only later, those that there are may be deleted.
#[test]
fn members_of_a_group_of_unknown_size_are_in_the_plan() {
    let folder = Folder::new("plan-open");
    let template = "\
heat_template_version: 2018-08-31
resources:
  digit:
    type: OS::Heat::RandomString
    properties: {length: 1, salt: SALT, character_classes: [{class: digits, min: 1}]}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_attr: [digit, value]}, resource_def: {type: OS::Heat::RandomString}}
";
    let write = |salt: &str| folder.write("t.yaml", &template.replace("SALT", salt));
    let members = || {
        let listed = folder.local(&["stack", "resource", "list", "-n", "2", "one", "-f", "json"]).json();
        listed.as_array().unwrap().len() - 2
    };
    write("a");
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let salts = ["b", "c", "d", "e", "f", "g", "h"];
    let count = salts.into_iter().find_map(|salt| {
        let count = members();
        write(salt);
        (count > 0).then_some(count).or_else(|| {
            folder.local(&["stack", "update", "-t", "t.yaml", "--yes", "one"]).ok();
            None
        })
    });
    let count = count.unwrap();
    let shown = folder.local(&["stack", "update", "-t", "t.yaml", "--dry-run", "one"]).ok();
    assert_eq!(shown.matches("     ?- ").count(), count, "{shown}");
    assert!(shown.contains(&format!("{count} may be deleted")) && shown.contains("known after digit.value"), "{shown}");
}

/// What is wrong with a value by a part of a JSON schema, as far as `docs/plan.schema.json` needs it.
fn mistakes(value: &serde_json::Value, schema: &serde_json::Value, root: &serde_json::Value, at: &str) -> Vec<String> {
    use serde_json::Value as Json;
    let mut wrong = Vec::new();
    if let Some(place) = schema["$ref"].as_str() {
        let part = root.pointer(place.trim_start_matches('#')).unwrap_or_else(|| panic!("no {place}"));
        wrong.extend(mistakes(value, part, root, at));
    }
    let is_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        other => panic!("no type {other}"),
    };
    if schema["type"].as_str().is_some_and(|name| !is_type(name)) {
        wrong.push(format!("{at} is no {}: {value}", schema["type"]));
    }
    if schema.get("const").is_some_and(|only| only != value)
        || schema["enum"].as_array().is_some_and(|all| !all.contains(value))
    {
        wrong.push(format!("{at}: {value}"));
    }
    if let Some(any) = schema["anyOf"].as_array()
        && !any.iter().any(|one| mistakes(value, one, root, at).is_empty())
    {
        wrong.push(format!("{at} is none of these: {value}"));
    }
    if let Json::Object(map) = value {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !map.contains_key(name) {
                wrong.push(format!("{at} has no {name}"));
            }
        }
        for (name, value) in map {
            let at = format!("{at}.{name}");
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (None, Json::Bool(false)) => wrong.push(format!("{at} is unknown")),
                (Some(part), _) | (None, part @ Json::Object(_)) => wrong.extend(mistakes(value, part, root, &at)),
                _ => {}
            }
        }
    }
    if let (Json::Array(items), part @ Json::Object(_)) = (value, &schema["items"]) {
        wrong.extend(
            items.iter().enumerate().flat_map(|(index, item)| mistakes(item, part, root, &format!("{at}[{index}]"))),
        );
    }
    wrong
}

/// Plans of all kinds are as the schema says, and the schema refuses what is not a plan.
#[tokio::test(flavor = "multi_thread")]
async fn plans_are_as_their_schema_says() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plan.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let (cloud, folder) = with_a_volume("plan-schema").await;
    folder.write(
        "other.yaml",
        &VOLUME
            .replace("count: 2", "count: {get_attr: [server, name]}")
            .replace("{port: {get_resource: port}}", "{network: private}"),
    );
    let update =
        ["-t", "t.yaml", "--parameter", "flavor=m1.small", "--parameter", "zone=east", "--parameter", "text=b", "one"];
    let plans: [&[&str]; 6] = [
        &["-t", "t.yaml", "two"],
        &update,
        &["-t", "other.yaml", "one"],
        &["-t", "other.yaml", "two"],
        &["--delete", "one"],
        &["--replace", "volume", "--replace", "group/0", "one"],
    ];
    for args in plans {
        let mut plan = local(&cloud, &folder, &[&["stack", "plan", "-f", "json"], args].concat()).json();
        let wrong = mistakes(&plan, &schema, &schema, "plan");
        assert!(wrong.is_empty(), "{args:?}: {wrong:?}");
        plan["resources"][0]["risk"] = "some".into();
        plan["resources"][0]["decision"]["more"] = 1.into();
        plan["totals"].as_object_mut().unwrap().remove("none");
        assert_eq!(mistakes(&plan, &schema, &schema, "plan").len(), 3);
    }
}

/// The plans in the manual are what its commands print, apart from IDs.
#[tokio::test(flavor = "multi_thread")]
async fn the_plans_in_the_manual_are_what_kiln_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reading-a-plan.md");
    let page = std::fs::read_to_string(page).unwrap();
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("plan-manual");
    let mut printed: Option<String> = None;
    let (mut shown, mut plans) = (None::<String>, 0);
    for line in page.lines() {
        match (&mut shown, line) {
            (None, "```" | "```yaml") => shown = Some(String::new()),
            (Some(text), "```") => {
                if let Some(name) = text.strip_prefix("# ").and_then(|text| text.lines().next()) {
                    folder.write(name, text);
                } else {
                    assert_eq!(without_ids(text), without_ids(&printed.take().unwrap()));
                    plans += 1;
                }
                shown = None;
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, line) => {
                if let Some(command) = line.strip_prefix("    kiln ") {
                    let mut words = vec!["--local"];
                    words.extend(command.split(' '));
                    printed = Some(Ran::from(folder.client(&cloud, "http://localhost", &words).output().unwrap()).ok());
                }
            }
        }
    }
    assert_eq!(plans, 3);
}

/// The column of Kiln in the table of ten changes has parts of the plans.
#[tokio::test(flavor = "multi_thread")]
async fn the_comparison_in_the_manual_is_from_a_run() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reading-a-plan.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, compared) = page.split_once("```yaml\n# compared.yaml").unwrap();
    let (template, table) = compared.split_once("```").unwrap();
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("plan-compared"));
    folder.write("compared.yaml", template);
    local(&cloud, &folder, &["stack", "create", "-t", "compared.yaml", "--parameter", "password=first", "compared"])
        .ok();
    let code = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(" | ").collect()).collect();
    let mut changes = 0;
    for row in rows.iter().filter(|row| row[0].contains("`--parameter ")) {
        let parameter = code(row[0]).remove(0);
        let plan = ["stack", "plan", "--existing", "compared"];
        let args: Vec<&str> = plan.into_iter().chain(parameter.split(' ')).collect();
        let shown = without_ids(&local(&cloud, &folder, &args).ok());
        let parts = code(row[1]);
        assert!(
            !parts.is_empty() && parts.iter().all(|part| shown.contains(part)),
            "{parameter}: {parts:?} in {shown}"
        );
        changes += 1;
    }
    assert_eq!(changes, 10);
}

/// A text with `ID` in the place of each UUID.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    text.split_inclusive('"').map(|part| if is_id(part.trim_end_matches('"')) { "ID\"" } else { part }).collect()
}
