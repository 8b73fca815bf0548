//! A separate simulated cloud, and stacks in it without a service.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::run::{Folder, Ran};

/// Stops the cloud at the end of the test.
struct Cloud(Child);

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Folder, args: &[&str]) -> (Cloud, Vec<(String, String)>) {
    let mut command = folder.kiln(&[&["testcloud", "--port", "0", "--build-time", "0.1"], args].concat());
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
fn faults_are_given_by_option() {
    let folder = Folder::new("faults");
    let fault = r#"{"service": "network", "method": "POST", "path": "/networks", "action": {"status": 409}}"#;
    let (_cloud, variables) = start(&folder, &["--fault", fault, "--latency", "0.01"]);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let mut command = folder.kiln(&["--local", "stack", "create", "-t", "t.yaml", "one"]);
    let ran = Ran::from(command.envs(variables).output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.err);
    let wrong = folder.run(&["testcloud", "--fault", "{}"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
}
