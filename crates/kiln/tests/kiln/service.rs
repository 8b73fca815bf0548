//! `kiln serve` beside a Keystone, asked by `kiln stack`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::Folder;

/// A resource type of the operator's own.
const NET: &str = "
type: My::Net
summary: A network with a label.
service: network
rest: {collection: /v2.0/networks, member: network, name: label}
properties:
  label: {type: string, as: name}
attributes:
  label: {type: string, as: name}
";

/// A template that the operator's environment maps a type to.
const LABELLED: &str = "
heat_template_version: 2018-08-31
description: A network that is called by what it is for.
parameters:
  purpose: {type: string, description: What it is for.}
resources:
  net: {type: My::Net, properties: {label: {get_param: purpose}}}
outputs:
  label: {description: What it is called., value: {get_attr: [net, label]}}
";

/// A running `kiln serve`, ended at the end of the test if not before.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(folder: &Folder, cloud: &Testcloud) -> Self {
        let heat = cloud.users().heat;
        let config = format!(
            "[database]\nconnection = sqlite://{here}/serve.db?mode=rwc\n\
             [DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\n\
             unknown_option = 1\nenvironment_dir = {here}/environment.d\n\
             [keystone_authtoken]\nauth_url = {}\nusername = {}\npassword = {}\nproject_name = {}\n\
             [heat_api]\nbind_host = 127.0.0.1\nbind_port = 0\n[kiln]\nresource_types_dir = {here}/types\n",
            cloud.auth_url(),
            heat.user,
            heat.password,
            heat.project,
            here = folder.path().display(),
        );
        let config = folder.write("kiln.conf", &config);
        let mut command = folder.kiln(&["serve", "--log-format", "json", "--config-file", config.to_str().unwrap()]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // The log tells which port it got.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("the service ended").unwrap();
            let told: serde_json::Value = serde_json::from_str(&line).unwrap();
            if let Some(address) = told["fields"]["address"].as_str() {
                break format!("http://{address}");
            }
        };
        // Someone must read on, or the service would stop at a full pipe.
        std::thread::spawn(move || lines.count());
        Self { child, url }
    }

    /// Asks it to end, and gives the exit code.
    fn stop(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_asked_and_drained() {
    let folder = Folder::new("service");
    let cloud = Testcloud::builder().start().await.unwrap();
    folder.write("types/My/Net.yaml", NET);
    let url = format!("file://{}", folder.write("labelled.yaml", LABELLED).display());
    folder.write("environment.d/ours.yaml", &format!("resource_registry: {{'My::Labelled': '{url}'}}\n"));
    let service = Service::start(&folder, &cloud);
    let demo = cloud.users().demo;
    let endpoint = format!("{}/v1/%(project_id)s", service.url);
    let kiln = |args: &[&str]| {
        let mut command = folder.kiln(args);
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", demo.user).env("OS_PASSWORD", demo.password);
        command.env("OS_PROJECT_NAME", demo.project).env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", &endpoint);
        crate::run::Ran::from(command.output().unwrap())
    };
    let text = "heat_template_version: 2018-08-31\nresources: {net: {type: My::Labelled, properties: {purpose: mine}}}\n\
                outputs: {label: {value: {get_attr: [net, label]}}}\n";
    folder.write("t.yaml", text);
    let made = kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", "one", "-f", "json"]).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE");
    let label = kiln(&["stack", "output", "show", "one", "label", "-f", "value", "-c", "output_value"]).ok();
    assert_eq!(label, "mine\n");
    let listed = kiln(&["resource-type", "list", "-f", "value"]).ok();
    assert!(["My::Labelled", "My::Net"].iter().all(|ours| listed.lines().any(|name| name == *ours)), "{listed}");
    let shown = kiln(&["resource-type", "show", "My::Labelled", "-f", "json"]).json();
    assert_eq!(shown["properties"]["purpose"]["description"], "What it is for.", "{shown}");
    assert_eq!(shown["attributes"]["label"]["description"], "What it is called.", "{shown}");
    let wrong = kiln(&["--os-password", "wrong", "stack", "list"]);
    assert_eq!(wrong.code, 1, "{}", wrong.err);
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "one"]).ok();
    assert_eq!(service.stop(), 0);
}
