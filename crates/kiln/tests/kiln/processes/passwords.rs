//! `deferred_auth_method = password` with the command.

use kiln_testcloud::Testcloud;

use crate::processes::cluster::{Cluster, Limits};
use crate::run::{Folder, Ran};

const TEMPLATE: &str = "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_sends_the_password_on_request_only() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let options = "[DEFAULT]\ndeferred_auth_method = password\n";
    let cluster = Cluster::start_with(cloud, "sqlite", 1, Limits::default(), options).await;
    let folder = Folder::new("passwords");
    folder.write("t.yaml", TEMPLATE);
    let url = cluster.url().replace("/v1/%(project_id)s", "");
    let kiln = |args: &[&str]| Ran::from(folder.client(&cluster.cloud, &url, args).output().expect("a run"));
    let refused = kiln(&["stack", "create", "-t", "t.yaml", "--wait", "web"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("Missing required credential: X-Auth-User"), "{}", refused.err);
    assert!(refused.err.contains("hint: use --include-password"), "{}", refused.err);
    kiln(&["stack", "create", "--include-password", "-t", "t.yaml", "--wait", "web"]).ok();
    // Requests that create no credentials do not require the password.
    kiln(&["stack", "show", "web"]).ok();
    kiln(&["stack", "delete", "--yes", "--wait", "web"]).ok();
    cluster.end().await;
}
