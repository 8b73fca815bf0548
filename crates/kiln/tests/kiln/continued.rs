//! Failed operations that are continued.

use kiln_testcloud::{Account, Action, Fault, Service, Testcloud, When};

use crate::plan::local;
use crate::run::{Folder, Ran};
use crate::service;

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

/// A rollback that has failed is continued: when its cause is gone, or without the resource that cannot be restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_rollback_is_continued() {
    const NETS: &str = "\
heat_template_version: 2018-08-31
resources:
  one: {type: OS::Neutron::Net, properties: {name: former}}
  two: {type: OS::Neutron::Net, properties: {name: former}}
";
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("continued-rollback"));
    folder.write("nets.yaml", NETS);
    let failing = "  bad: {type: OS::Heat::TestResource, depends_on: [one, two], properties: {fail: true}}\n";
    folder.write("bad.yaml", &(NETS.replace("former", "newer") + failing));
    let stack = |args: &[&str]| local(&cloud, &folder, &[&["stack"], args].concat());
    let name = |resource: &str| {
        let shown = stack(&["resource", "show", "web", resource, "-f", "json"]).json();
        shown["attributes"]["name"].as_str().unwrap().to_owned()
    };
    let status = |what: &str| stack(&["show", "web", "-f", "value", "-c", what]).ok().trim().to_owned();
    stack(&["create", "-t", "nets.yaml", "web"]).ok();
    for (skip, names) in [(None, ["former", "former"]), (Some("one"), ["newer", "former"])] {
        // The updates of both networks work, but not the first two of the rollback.
        let (service, method, path) = (Some(Service::Network), Some("PUT".to_owned()), "/networks/*".to_owned());
        let fault = |nth| Fault {
            service,
            method: method.clone(),
            path: path.clone(),
            when: When::Nth(nth),
            action: Action::Status(400),
        };
        for nth in [3, 4] {
            cloud.faults().add(fault(nth));
        }
        let failed = stack(&["update", "-t", "bad.yaml", "--rollback", "enabled", "web"]);
        fails(&failed, 3, "ROLLBACK_FAILED");
        assert_eq!([name("one"), name("two")], ["newer", "newer"]);
        cloud.faults().clear();
        let skipped: Vec<&str> = skip.iter().flat_map(|path| ["--skip", path]).collect();
        stack(&[&["continue"], &skipped[..], &["web"]].concat()).ok();
        assert_eq!(status("stack_status"), "ROLLBACK_COMPLETE");
        assert_eq!([name("one"), name("two")], names);
        assert_eq!(status("stack_status_reason").contains("skipped: one"), skip.is_some());
    }
    stack(&["update", "-t", "nets.yaml", "web"]).ok();
    assert_eq!([name("one"), name("two")], ["former", "former"]);
    stack(&["delete", "--yes", "web"]).ok();
}

/// After an outage of the cloud: with one command, for the users' stacks in all projects, and with their credentials.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_continues_what_has_failed_in_all_projects() {
    const NET: &str = "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n";
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("continued-all"));
    let rules = folder.write("policy.yaml", "'stacks:global_index': 'role:admin'\n");
    let config = format!("{}[oslo_policy]\npolicy_file = {}\n", service::config(&folder, &cloud), rules.display());
    let mut service = service::Service::start_with(&folder, &config, "serve", "0");
    let users = cloud.users();
    let run = |account: Account, args: &[&str]| {
        let mut command = folder.client(&cloud, &service.url, &[&["stack"], args].concat());
        command.env("OS_USERNAME", account.user).env("OS_PASSWORD", account.password);
        Ran::from(command.env("OS_PROJECT_NAME", account.project).output().unwrap())
    };
    folder.write("net.yaml", NET);
    cloud.faults().add(Fault {
        service: Some(Service::Network),
        method: Some("POST".to_owned()),
        path: "/networks".to_owned(),
        when: When::Always,
        action: Action::Status(400),
    });
    let made = [(users.demo, "one"), (users.demo, "two"), (users.alt_demo, "one")];
    for (account, name) in made {
        fails(&run(account, &["create", "-t", "net.yaml", "--wait", "--poll", "0.1", name]), 3, "CREATE_FAILED");
    }
    let all = ["continue", "--all", "--all-projects", "--wait", "--poll", "0.1"];
    fails(&run(users.demo, &all), 1, "You are not authorized to use stacks:global_index");
    fails(&run(users.admin, &[&all[..], &["--require-yes"]].concat()), 1, "use --yes to confirm it");
    fails(&run(users.admin, &all), 1, "Unable to continue 3 of the 3 stacks");
    cloud.faults().clear();
    fails(&run(users.admin, &[&all[..], &["--property", "name=none"]].concat()), 1, "no stack is in such a state");
    run(users.admin, &[&all[..], &["--property", "name=two"]].concat()).ok();
    run(users.admin, &[&all[..], &["--yes", "--require-yes"]].concat()).ok();
    fails(&run(users.admin, &all), 1, "no stack is in such a state");
    for (account, name) in made {
        let status = run(account, &["show", name, "-f", "value", "-c", "stack_status"]).ok();
        assert_eq!(status.trim(), "CREATE_COMPLETE");
    }
    fails(&run(users.admin, &["cancel", "--all", "--all-projects"]), 1, "no stack is in such a state");
    assert_eq!(service.stop(), 0);
}
