//! Lifecycle plug-ins that are programs.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use kiln_client::{Bundle, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::value;
use serde_json::Value;

use crate::processes::cluster::{Cluster, Limits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_before_and_after_operations_and_can_refuse_them() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let folder = tempfile::tempdir().expect("a folder");
    let (program, told) = (folder.path().join("guard"), folder.path().join("told"));
    let script = format!(
        "#!/bin/sh\ninput=$(cat)\necho \"$input\" >>{}\ncase $input in *before*refused*) echo not today >&2; exit 1 ;; esac\n",
        told.display()
    );
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let options = format!("[kiln]\nlifecycle_plugins = {}\nlifecycle_timeout = 5\n", program.display());
    let cluster = Cluster::start_with(cloud, "sqlite", 1, Limits::default(), &options).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let template = value!({
        "heat_template_version": "2018-08-31", "resources": {"net": {"type": "OS::Neutron::Net"}},
    });
    let request =
        StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() };
    for name in ["allowed", "refused"] {
        client.create_stack(name, &request).await.expect("a create");
    }
    let start = Instant::now();
    let ended = loop {
        let (one, other) = (client.stack("allowed", false).await, client.stack("refused", false).await);
        let (one, other) = (one.expect("a stack"), other.expect("a stack"));
        if !one.status().ends_with("_IN_PROGRESS") && !other.status().ends_with("_IN_PROGRESS") {
            break [one, other].map(|stack| format!("{}: {}", stack.status(), stack.reason()));
        }
        assert!(start.elapsed() < Duration::from_secs(30), "stuck");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let reasons = [
        "CREATE_COMPLETE: Stack CREATE completed successfully",
        "CREATE_FAILED: Lifecycle plug-in guard failed: not today",
    ];
    assert_eq!(ended, reasons);
    let lines = loop {
        let text = std::fs::read_to_string(&told).expect("read");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        if lines.len() == 3 {
            break lines;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let after = lines.iter().find(|line| line["phase"] == "after").expect("a run after");
    assert_eq!(
        (&after["stack"]["name"], &after["failed"], &after["action"]),
        (&"allowed".into(), &false.into(), &"CREATE".into())
    );
    let before = lines.iter().find(|line| line["phase"] == "before" && line["stack"]["name"] == "allowed");
    assert_eq!(before.expect("a run before")["operation"], after["operation"]);
    assert_eq!(after["stack"]["status"], "CREATE_COMPLETE");
    cluster.end().await;
}
