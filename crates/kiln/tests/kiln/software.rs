//! `kiln software …`.

use serde_json::json;

use crate::run::Folder;

#[test]
fn configs_and_deployments() {
    let folder = Folder::new("software");
    folder.write("install.sh", "#!/bin/sh\necho $size\n");
    folder.write("definition.yaml", "inputs: [{name: size, type: Number, default: '3'}]\noptions: {a: 1}\n");
    let definition = ["--definition-file", "definition.yaml", "--config-file", "install.sh", "--group", "script"];
    let create = [&["software", "config", "create", "install"][..], &definition].concat();
    let made = folder.local(&create).json();
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["name"], &made["group"]), (&json!("install"), &json!("script")));
    assert_eq!(made["inputs"], json!([{"name": "size", "type": "Number", "default": 3}]));
    let listed = folder.local(&["software", "config", "list", "-f", "value", "-c", "id", "-c", "name"]).ok();
    assert_eq!(listed, format!("{id} install\n"));
    assert_eq!(folder.local(&["software", "config", "list", "--limit", "0", "-f", "json"]).json(), json!([]));
    let shown = folder.local(&["software", "config", "show", id, "-f", "json"]).json();
    assert_eq!(shown, made);
    let script = folder.local(&["software", "config", "show", id, "--config-only"]).ok();
    assert_eq!(script.trim_end(), "#!/bin/sh\necho $size");
    folder.local(&["software", "config", "delete", id]).ok();
    for args in [["software", "config", "delete", id], ["software", "config", "show", id]] {
        let missing = folder.local(&args);
        assert_eq!(missing.code, 1);
        assert!(missing.err.contains(&format!("Configuration not found: {id}")), "{}", missing.err);
    }
    let made = folder.local(&create).json();
    let config = made["id"].as_str().unwrap();
    let deploy = ["software", "deployment", "create", "first", "--config", config, "--server", "s", "-f", "json"];
    let unsent = ["--signal-transport", "NO_SIGNAL", "--input-value", "size=4", "--input-value", "more=x=y"];
    let deployed = folder.local(&[&deploy[..], &unsent].concat()).json();
    assert_eq!((&deployed["server_id"], &deployed["action"]), (&json!("s"), &json!("UPDATE")));
    let metadata = folder.local(&["software", "deployment", "metadata", "show", "s"]).json();
    let inputs = metadata["metadata"][0]["inputs"].as_array().unwrap();
    let value = |name: &str| &inputs.iter().find(|input| input["name"] == name).unwrap()["value"];
    assert_eq!((value("size"), value("more")), (&json!("4"), &json!("x=y")));
    assert_eq!((value("deploy_server_id"), value("deploy_signal_transport")), (&json!("s"), &json!("NO_SIGNAL")));
    assert_eq!(metadata["metadata"][0]["config"].as_str().unwrap().trim_end(), "#!/bin/sh\necho $size");
    let without_cloud = folder.local(&deploy);
    assert_eq!(without_cloud.code, 1, "the result needs an object of Swift");
    folder.local(&["software", "deployment", "delete", deployed["id"].as_str().unwrap()]).ok();
    assert_eq!(folder.local(&["software", "deployment", "list", "-f", "json"]).json(), json!([]));
    assert_eq!(folder.local(&["software", "deployment", "metadata", "show", "s"]).json(), json!({"metadata": []}));
    let missing = folder.local(&["software", "deployment", "output", "show", "none", "--all"]);
    assert!(missing.err.contains("Deployment not found: none"), "{}", missing.err);
    let missing = folder.local(&["software", "deployment", "show", "none"]);
    assert!(missing.err.contains("Software Deployment not found: none"), "{}", missing.err);
}
