//! `kiln serve` beside a Keystone, asked by `kiln stack`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::Folder;

/// A running `kiln serve`, ended at the end of the test if not before.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(folder: &Folder, cloud: &Testcloud) -> Self {
        let heat = cloud.users().heat;
        let config = format!(
            "[database]\nconnection = sqlite://{}/serve.db?mode=rwc\n[DEFAULT]\nauth_encryption_key = {}\n\
             unknown_option = 1\n[keystone_authtoken]\nauth_url = {}\nusername = {}\npassword = {}\nproject_name = {}\n\
             [heat_api]\nbind_host = 127.0.0.1\nbind_port = 0\n",
            folder.path().display(),
            "0123456789abcdef0123456789abcdef",
            cloud.auth_url(),
            heat.user,
            heat.password,
            heat.project,
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
    let service = Service::start(&folder, &cloud);
    let demo = cloud.users().demo;
    let endpoint = format!("{}/v1/%(project_id)s", service.url);
    let kiln = |args: &[&str]| {
        let mut command = folder.kiln(args);
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", demo.user).env("OS_PASSWORD", demo.password);
        command.env("OS_PROJECT_NAME", demo.project).env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", &endpoint);
        crate::run::Ran::from(command.output().unwrap())
    };
    let text = "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n";
    folder.write("t.yaml", text);
    let made = kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", "one", "-f", "json"]).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE");
    let wrong = kiln(&["--os-password", "wrong", "stack", "list"]);
    assert_eq!(wrong.code, 1, "{}", wrong.err);
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "one"]).ok();
    assert_eq!(service.stop(), 0);
}
