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
    let stale = "The plan is out of date: another request has changed the stack one since.";
    assert!(ran.out.contains(stale) && ran.out.contains("run the command again"), "{}", ran.out);
    assert_eq!(length(&folder), "\"8\"", "nothing was changed");
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
        (&delete[..], "stack(s) [y/N]? ", "\n", 1),
        (&delete[..], "stack(s) [y/N]? ", "\u{3}", 130),
    ] {
        let ran = answered(&folder.kiln(command), asked, || (), answer);
        assert_eq!(ran.code, code, "{}", ran.out);
        assert!(ran.out.contains("nothing was changed") && !ran.out.contains("stack wait"), "{}", ran.out);
    }
    assert_eq!(length(&folder), "\"8\"");
    let ran = answered(&folder.kiln(&delete), "stack(s) [y/N]? ", || (), "y\n");
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
    // What asks for nothing by default, as the `openstack` client does not, is stopped as well.
    let snapshot = ["stack", "snapshot", "create", "one", "-f", "value", "-c", "id"];
    let snapshot = folder.local(&snapshot).ok();
    let snapshot = snapshot.trim();
    for command in [
        &["stack", "snapshot", "restore", "one", snapshot][..],
        &["stack", "snapshot", "delete", "one", snapshot],
        &["stack", "abandon", "one"],
        &["stack", "resource", "forget", "one", "secret"],
        &["orphan", "delete", "some"],
        &["software", "config", "delete", "some"],
        &["software", "deployment", "delete", "some"],
    ] {
        let ran = stopped(&[&["--local"], command].concat());
        assert!(ran.code == 1 && ran.err.contains("use --yes"), "{command:?}: {}", ran.err);
    }
    stopped(&["--local", "stack", "snapshot", "restore", "--yes", "one", snapshot]).ok();
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
