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
    assert_eq!(folder.local(&["stack", "delete", "--detailed-exitcode", "one"]).code, 2, "no such option");
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
    assert_eq!(shown.matches("deletion_policy: Retain").count(), 2, "{shown}");
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

/// A text with `ID` in the place of each UUID.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    text.split_inclusive('"').map(|part| if is_id(part.trim_end_matches('"')) { "ID\"" } else { part }).collect()
}
