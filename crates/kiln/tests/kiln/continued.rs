//! Failed operations that are continued.

use crate::run::{Folder, Ran};

const WEB: &str = "\
heat_template_version: 2018-08-31
resources:
  good: {type: OS::Heat::RandomString}
  bad: {type: OS::Heat::TestResource, properties: {fail: true}}
  needing: {type: OS::Heat::RandomString, depends_on: bad}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: member.yaml, properties: {number: '%index%'}}}
";
/// The second member fails.
const MEMBER: &str = "\
heat_template_version: 2018-08-31
parameters: {number: {type: string}}
conditions: {second: {equals: [{get_param: number}, '1']}}
resources:
  test: {type: OS::Heat::TestResource, properties: {fail: {if: [second, true, false]}}}
";

#[track_caller]
fn fails(ran: &Ran, code: i32, why: &str) {
    assert!(ran.code == code && ran.err.contains(why), "{why}: {ran:?}");
}

#[test]
fn a_create_is_continued_without_what_cannot_be_made() {
    let folder = Folder::new("continued");
    folder.write("web.yaml", WEB);
    folder.write("member.yaml", MEMBER);
    let stack = |args: &[&str]| folder.local(&[&["stack"], args].concat());
    let rows = || {
        let listed = stack(&["resource", "list", "web", "-n", "3", "-f", "json"]).json();
        let of =
            |row: &serde_json::Value| format!("{} {}", row["resource_name"], row["resource_status"]).replace('"', "");
        let mut rows: Vec<String> = listed.as_array().unwrap().iter().map(of).collect();
        rows.sort();
        rows
    };
    fails(&stack(&["create", "-t", "web.yaml", "web"]), 3, "run 'kiln --local stack continue web'");
    fails(&stack(&["continue", "--skip", "good", "web"]), 1, "good is CREATE_COMPLETE: there is nothing to skip");
    // The cause is still there.
    fails(&stack(&["continue", "web"]), 3, "CREATE_FAILED");
    let status = |what: &str| stack(&["show", "web", "-f", "value", "-c", what]).ok().trim().to_owned();
    assert_eq!(status("stack_status"), "CREATE_FAILED");

    fails(&stack(&["continue", "--skip", "none", "web"]), 1, "The Resource (none) could not be found");
    fails(&stack(&["continue", "--skip", "bad", "web"]), 1, "the resource needing needs bad: skip it too");
    let two = ["continue", "--skip", "bad", "--skip", "needing"];
    fails(&stack(&[&two[..], &["web"]].concat()), 3, "group/1/test");
    stack(&[&two[..], &["--skip", "group/1/test", "web"]].concat()).ok();
    assert_eq!(status("stack_status"), "CREATE_COMPLETE");
    let reason = "Stack CREATE completed successfully; skipped: bad, needing, group/1/test";
    assert_eq!(status("stack_status_reason"), reason);
    let expected = [
        "0 UPDATE_COMPLETE",
        "1 UPDATE_COMPLETE",
        "bad CREATE_FAILED",
        "good CREATE_COMPLETE",
        "group UPDATE_COMPLETE",
        // It has not begun.
        "needing INIT_COMPLETE",
        "test CREATE_COMPLETE",
        "test CREATE_FAILED",
    ];
    assert_eq!(rows(), expected);
    fails(&stack(&["continue", "web"]), 1, "Continuing a stack in the state CREATE_COMPLETE");

    // The next update brings the skipped resources back.
    folder.write("web.yaml", &WEB.replace("fail: true", "fail: false").replace("'%index%'", "none"));
    stack(&["update", "-t", "web.yaml", "web"]).ok();
    assert!(rows().iter().all(|row| row.ends_with("COMPLETE")), "{:?}", rows());
    assert_eq!(rows().len(), 8);
    stack(&["delete", "--yes", "web"]).ok();
}
