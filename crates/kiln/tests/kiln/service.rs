//! `kiln serve` beside a Keystone, asked by `kiln stack`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};

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

/// A running `kiln serve` with the operator's types above, ended at the end of the test if not before.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(folder: &Folder, cloud: &Testcloud) -> Self {
        folder.write("types/My/Net.yaml", NET);
        let url = format!("file://{}", folder.write("labelled.yaml", LABELLED).display());
        folder.write("environment.d/ours.yaml", &format!("resource_registry: {{'My::Labelled': '{url}'}}\n"));
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

    /// Runs a command of the client, as the user demo.
    fn asked(&self, folder: &Folder, cloud: &Testcloud, args: &[&str]) -> Ran {
        let demo = cloud.users().demo;
        let mut command = folder.kiln(args);
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", demo.user).env("OS_PASSWORD", demo.password);
        command.env("OS_PROJECT_NAME", demo.project);
        command.env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", format!("{}/v1/%(project_id)s", self.url));
        Ran::from(command.output().unwrap())
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
    let service = Service::start(&folder, &cloud);
    let kiln = |args: &[&str]| service.asked(&folder, &cloud, args);
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

#[tokio::test(flavor = "multi_thread")]
async fn objects_stay_that_are_retained_or_were_there_before() {
    let folder = Folder::new("retained");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    let kiln = |args: &[&str]| service.asked(&folder, &cloud, args);
    let create = |name, rest: &str| {
        let outputs = "outputs: {id: {value: {get_resource: net}}, name: {value: {get_attr: [net, name]}}}";
        let text = format!(
            "heat_template_version: 2018-08-31\nresources: {{net: {{type: OS::Neutron::Net, {rest}}}}}\n{outputs}\n"
        );
        folder.write("t.yaml", &text);
        kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", name, "-f", "json"])
    };
    let output = |stack, name| {
        kiln(&["stack", "output", "show", stack, name, "-f", "value", "-c", "output_value"]).ok().trim().to_owned()
    };
    let before = cloud.snapshot().counts()["networks"];
    create("kept", "deletion_policy: Retain, properties: {name: mine}").ok();
    let id = output("kept", "id");
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "kept"]).ok();
    assert_eq!(cloud.snapshot().counts()["networks"], before + 1);

    let made = create("adopted", &format!("external_id: {id}")).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE");
    assert_eq!((output("adopted", "id"), output("adopted", "name")), (id.clone(), "mine".to_owned()));
    let events = kiln(&["stack", "event", "list", "adopted", "-f", "json"]).json();
    let states: Vec<_> = events.as_array().unwrap().iter().map(|event| &event["resource_status"]).collect();
    let wanted = ["CREATE_IN_PROGRESS", "ADOPT_IN_PROGRESS", "ADOPT_COMPLETE", "CHECK_IN_PROGRESS", "CHECK_COMPLETE"];
    assert_eq!(states[..5], wanted);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let refused = kiln(&["stack", "update", "-t", "t.yaml", "--wait", "--poll", "0.1", "adopted"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    let reason = kiln(&["stack", "show", "adopted", "-f", "value", "-c", "stack_status_reason"]).ok();
    let text = "Update to property external_id of net (OS::Neutron::Net) is not supported.";
    assert!(reason.contains(text), "{reason}");
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "adopted"]).ok();
    assert_eq!(cloud.snapshot().counts()["networks"], before + 1);

    let absent = create("absent", "external_id: nowhere");
    let text = "Invalid external resource: Resource nowhere (OS::Neutron::Net) can not be found.";
    assert!(absent.code == 1 && absent.err.contains(text), "{}", absent.err);
    assert!(kiln(&["stack", "show", "absent"]).code != 0);
}
