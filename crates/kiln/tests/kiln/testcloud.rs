//! A separate simulated cloud, and stacks in it without a service.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::run::{Folder, Ran};

/// Stops the cloud at the end of the test.
struct Cloud(Child);

impl Cloud {
    /// Stops it as Ctrl-C does.
    fn stop(mut self) {
        let stopped = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().unwrap();
        assert!(stopped.success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Folder, args: &[&str]) -> (Cloud, Vec<(String, String)>) {
    start_at("0", folder, args)
}

fn start_at(port: &str, folder: &Folder, args: &[&str]) -> (Cloud, Vec<(String, String)>) {
    let mut command = folder.kiln(&[&["testcloud", "--port", port, "--build-time", "0.1"], args].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3).map(Result::unwrap);
    let exports: Vec<String> = lines.collect();
    let pairs = exports.iter().flat_map(|line| line.strip_prefix("export ").unwrap().split(' '));
    let variables = pairs.map(|pair| pair.split_once('=').unwrap()).map(|(k, v)| (k.to_owned(), v.to_owned()));
    let variables = variables.collect();
    (Cloud(child), variables)
}

#[test]
fn local_stacks_live_in_a_simulated_cloud() {
    let folder = Folder::new("testcloud");
    let (_cloud, variables) = start(&folder, &["--exports", "cloud.sh"]);
    assert!(std::fs::read_to_string(folder.path().join("cloud.sh")).unwrap().contains("export OS_AUTH_URL=http"));
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let local = |args: &[&str]| {
        let mut command = folder.kiln(&[&["--local", "stack"], args].concat());
        Ran::from(command.envs(variables.iter().cloned()).output().unwrap())
    };
    let made = local(&["create", "-t", "t.yaml", "one", "-f", "json"]).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE");
    local(&["delete", "--yes", "one"]).ok();
}

#[test]
fn a_cloud_is_kept_in_a_file() {
    let folder = Folder::new("kept");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let run = |variables: &[(String, String)], args: &[&str]| {
        let mut command = folder.kiln(&[&["--local", "stack"], args].concat());
        Ran::from(command.envs(variables.iter().cloned()).output().unwrap())
    };
    let (cloud, variables) = start(&folder, &["--state", "cloud.json"]);
    run(&variables, &["create", "-t", "t.yaml", "one"]).ok();
    cloud.stop();
    // The next objects have other IDs.
    let port = variables.iter().find_map(|(_, value)| value.strip_suffix("/identity/v3")?.rsplit(':').next()).unwrap();
    let (cloud, variables) = start_at(port, &folder, &["--state", "cloud.json"]);
    run(&variables, &["check", "one"]).ok();
    assert_eq!(run(&variables, &["show", "one", "-f", "json"]).json()["stack_status"], "CHECK_COMPLETE");
    run(&variables, &["create", "-t", "t.yaml", "two"]).ok();
    run(&variables, &["delete", "--yes", "one"]).ok();
    run(&variables, &["delete", "--yes", "two"]).ok();
    cloud.stop();
    folder.write("cloud.json", "{}");
    let refused = folder.run(&["testcloud", "--port", "0", "--state", "cloud.json"]);
    assert!(refused.err.contains("cloud.json: not a state of a simulated cloud: missing field"), "{}", refused.err);
}

/// A stack of an earlier cloud must not seem to own objects of the next one.
#[test]
fn a_cloud_that_is_not_kept_starts_with_other_ids() {
    let folder = Folder::new("other-ids");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let network = |options: &[&str]| {
        let (_cloud, variables) = start(&folder, options);
        let run = |args: &[&str]| {
            let mut command = folder.kiln(&[&["--local", "stack"], args].concat());
            Ran::from(command.envs(variables.iter().cloned()).output().unwrap())
        };
        run(&["create", "-t", "t.yaml", "one"]).ok();
        let shown = run(&["resource", "show", "one", "net", "-f", "json"]).json();
        run(&["delete", "--yes", "one"]).ok();
        shown["physical_resource_id"].as_str().unwrap().to_owned()
    };
    assert_ne!(network(&[]), network(&[]));
    assert_eq!(network(&["--seed", "7"]), network(&["--seed", "7"]));
}

#[test]
fn faults_are_given_by_option() {
    let folder = Folder::new("faults");
    let fault = r#"{"service": "network", "method": "POST", "path": "/networks", "action": {"status": 403}}"#;
    let (_cloud, variables) = start(&folder, &["--fault", fault, "--latency", "0.01"]);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let mut command = folder.kiln(&["--local", "stack", "create", "-t", "t.yaml", "one"]);
    let ran = Ran::from(command.envs(variables).output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.err);
    let wrong = folder.run(&["testcloud", "--fault", "{}"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
}

#[test]
fn a_resource_that_cannot_be_deleted_is_forgotten() {
    let folder = Folder::new("forget");
    let fault = r#"{"service": "network", "method": "DELETE", "path": "/networks", "action": {"status": 403}}"#;
    let (_cloud, variables) = start(&folder, &["--fault", fault]);
    folder.write("in.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {below: {type: in.yaml}}\n");
    let local = |args: &[&str]| {
        let mut command = folder.kiln(&[&["--local"], args].concat());
        Ran::from(command.envs(variables.iter().cloned()).output().unwrap())
    };
    local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let early = local(&["stack", "resource", "forget", "one", "below/net"]);
    assert!(early.code == 1 && early.err.contains("CREATE_COMPLETE: delete it first"), "{}", early.err);
    let failed = local(&["stack", "delete", "--yes", "one"]);
    assert_eq!(failed.code, 3, "{}", failed.err);
    assert!(failed.err.contains("below/net"), "what blocks it: {}", failed.err);
    let wrong = local(&["stack", "resource", "forget", "one", "below/nit"]);
    assert!(wrong.code == 1 && wrong.err.contains("did you mean net?"), "{}", wrong.err);
    let told = local(&["stack", "resource", "forget", "one", "below/net", "--reason", "no rights"]).ok();
    assert!(told.starts_with("Forgot below/net; its object "), "{told}");
    local(&["stack", "delete", "--yes", "one"]).ok();
    let orphans = local(&["orphan", "list", "--long", "-f", "json"]).json();
    let orphan = &orphans[0];
    assert_eq!((&orphan["Stack Name"], &orphan["Resource"]), (&"one".into(), &"below/net".into()), "{orphans}");
    assert_eq!((&orphan["Resource Type"], &orphan["Region"]), (&"OS::Neutron::Net".into(), &"RegionOne".into()));
    assert!(told.contains(orphan["Physical Resource ID"].as_str().unwrap()), "{orphans}");
    assert!(orphan["Reason"].as_str().unwrap().starts_with("no rights: "), "{orphans}");
    local(&["orphan", "delete", orphan["ID"].as_str().unwrap()]).ok();
    assert_eq!(local(&["orphan", "list", "-f", "json"]).json(), serde_json::json!([]));
}

/// A flavor, an image and a network for a server are chosen from those of the cloud; an update keeps them while they fit.
#[test]
fn a_topology_gets_what_the_cloud_has() {
    let folder = Folder::new("questions");
    let (_cloud, variables) = start(&folder, &[]);
    let write = |memory: &str, os: &str| {
        let text = format!(
            "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n    web:\n      \
             type: tosca.nodes.Compute\n      capabilities:\n        host: {{properties: {{mem_size: {memory}}}}}\n        \
             os: {{properties: {{{os}}}}}\n"
        );
        folder.write("web.yaml", &text);
    };
    let local = |args: &[&str]| {
        let mut command = folder.kiln(&[&["--local", "stack"], args].concat());
        Ran::from(command.envs(variables.iter().cloned()).output().unwrap())
    };
    let flavor = || {
        let shown = local(&["show", "web", "-f", "json"]).json();
        assert!(["web_image", "web_network"].iter().all(|name| shown["parameters"][name].is_string()), "{shown}");
        shown["parameters"]["web_flavor"].as_str().unwrap().to_owned()
    };
    write("600 MB", "distribution: Fedora-CoreOS");
    local(&["create", "-t", "web.yaml", "web", "--wait"]).ok();
    assert_eq!(flavor(), "m1.small", "the smallest that fits");
    let original = local(&["template", "show", "--original", "web"]);
    assert_eq!(original.out, std::fs::read_to_string(folder.path().join("web.yaml")).unwrap());
    // With the parameters of the stack too, an answer is kept while it fits, but a value of the user always.
    let existing = |parameters: &[&str]| {
        local(&[&["update", "--existing", "-t", "web.yaml"], parameters, &["--yes", "--wait", "web"]].concat()).ok();
        flavor()
    };
    assert_eq!(existing(&[]), "m1.small");
    write("3 GB", "distribution: Fedora-CoreOS");
    assert_eq!(existing(&[]), "m1.medium");
    assert_eq!(existing(&["--parameter", "web_flavor=m1.small"]), "m1.small");
    assert_eq!(existing(&[]), "m1.small");
    write("600 MB", "distribution: Fedora-CoreOS");
    // A value that was given is kept although a smaller flavor fits too, until it does not fit any longer.
    local(&["update", "-t", "web.yaml", "--parameter", "web_flavor=m1.medium", "--yes", "--wait", "web"]).ok();
    local(&["update", "-t", "web.yaml", "--yes", "--wait", "web"]).ok();
    assert_eq!(flavor(), "m1.medium");
    write("6 GB", "distribution: Fedora-CoreOS");
    local(&["update", "-t", "web.yaml", "--yes", "--wait", "web"]).ok();
    assert_eq!(flavor(), "m1.large");
    write("64 GB", "distribution: none");
    let refused = local(&["update", "-t", "web.yaml", "--yes", "web"]);
    assert_ne!(refused.code, 0);
    for text in [
        "m1.large has 8192 MiB of memory",
        "has no os_distro",
        " --> web.yaml:7:9",
        "Specify the parameter web_flavor.",
    ] {
        assert!(refused.err.contains(text), "{text}: {}", refused.err);
    }
}

/// An update does not undo what scaling has done.
#[test]
fn an_update_keeps_the_number_of_members() {
    let folder = Folder::new("members");
    let (_cloud, variables) = start(&folder, &[]);
    let write = |memory: &str| {
        let text = format!(
            "components:\n  shop:\n    type: tier\n    initialSize: 1\n    nodespec: {{type: server, requires: {{os: \
             Fedora-CoreOS, minRam: {memory}}}}}\n"
        );
        folder.write("shop.yaml", &text);
    };
    let local = |args: &[&str]| {
        let mut command = folder.kiln(&[&["--local", "stack"], args].concat());
        Ran::from(command.envs(variables.iter().cloned()).output().unwrap())
    };
    let members = || {
        let listed = local(&["resource", "list", "-n", "5", "shop", "-f", "json"]).json();
        listed.as_array().unwrap().iter().filter(|row| row["resource_type"] == "OS::Nova::Server").count()
    };
    // The signal is processed after the command.
    let scale_out = || {
        local(&["resource", "signal", "shop", "shop_scale_out"]).ok();
        let grown = (0..60).any(|_| {
            local(&["wait", "shop"]).ok();
            members() == 2
        });
        assert!(grown);
    };
    write("512mb");
    local(&["create", "-t", "shop.yaml", "--wait", "shop"]).ok();
    scale_out();
    write("600mb");
    local(&["update", "-t", "shop.yaml", "--yes", "--wait", "shop"]).ok();
    assert_eq!(members(), 2);
    local(&["update", "-t", "shop.yaml", "--parameter", "shop_group_size=1", "--yes", "--wait", "shop"]).ok();
    assert_eq!(members(), 1);
    scale_out();
    local(&["update", "-t", "shop.yaml", "--yes", "--wait", "shop"]).ok();
    write("700mb");
    local(&["update", "--existing", "-t", "shop.yaml", "--yes", "--wait", "shop"]).ok();
    assert_eq!(members(), 2);
}
