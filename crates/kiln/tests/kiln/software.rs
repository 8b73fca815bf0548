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
    assert_eq!(folder.local(&["software", "deployment", "list", "-f", "json"]).json(), json!([]));
    assert_eq!(folder.local(&["software", "deployment", "metadata", "show", "s"]).json(), json!({"metadata": []}));
    let missing = folder.local(&["software", "deployment", "output", "show", "none", "--all"]);
    assert!(missing.err.contains("Deployment not found: none"), "{}", missing.err);
    let missing = folder.local(&["software", "deployment", "show", "none"]);
    assert!(missing.err.contains("Software Deployment not found: none"), "{}", missing.err);
}
