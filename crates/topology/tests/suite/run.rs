//! With cloud-init, a change of the software is a new run: its wait condition waits for the reports of that run.

use std::collections::HashMap;
use std::process::Command;

use kiln_topology::lower::{by_cloud_init, lower};
use kiln_topology::tosca;
use kiln_value::{Map, Value, value};

/// The resources of a server with two operations.
fn resources(script: &str, input: &str, file: &str) -> Map {
    let text = format!(
        "tosca_definitions_version: tosca_simple_yaml_1_3\n\
         topology_template:\n  \
           inputs: {{port: {{type: integer}}}}\n  \
           node_templates:\n    \
             server: {{type: tosca.nodes.Compute}}\n    \
             app:\n      \
               type: com.example.App\n      \
               properties: {{port: {input}}}\n      \
               requirements: [{{host: server}}]\n      \
               interfaces: {{Standard: {{create: {{implementation: {file}, inputs: {{port: {{get_property: [SELF, port]}}}}}}}}}}\n    \
             site:\n      type: site\n      requirements: [{{host: server}}]\n\
         node_types:\n  \
           com.example.App:\n    \
             derived_from: tosca.nodes.SoftwareComponent\n    \
             properties: {{port: {{type: integer}}}}\n  \
           site:\n    derived_from: org.openstack.heat.Container\n    properties: {{image: {{type: string, default: {script}}}}}\n"
    );
    let files = HashMap::from([("t.yaml".to_owned(), text)]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals).unwrap().graph;
    let lowered = by_cloud_init(lower(&graph, "t.yaml").unwrap()).unwrap();
    lowered.template.get("resources").and_then(Value::as_map).cloned().unwrap()
}

fn fingerprint(resources: &Map) -> &Value {
    resources["server_software_run"].get("properties").unwrap().get("salt").unwrap()
}

#[test]
fn a_change_of_an_operation_a_file_or_an_input_is_a_new_run() {
    let first = resources("nginx", "1", "a.sh");
    assert_eq!(fingerprint(&first), fingerprint(&resources("nginx", "1", "a.sh")));
    for other in [resources("httpd", "1", "a.sh"), resources("nginx", "2", "a.sh"), resources("nginx", "1", "b.sh")] {
        assert_ne!(fingerprint(&first), fingerprint(&other));
    }
    // Values that are known only when the stack is updated are part of it; names of files are not shortened.
    let long = format!("{}.sh", "scripts/".repeat(20));
    let text = kiln_value::text::json(fingerprint(&resources("nginx", "{get_input: port}", &long)));
    assert!(
        text.contains(r#"{"get_param": "port"}"#) && text.contains(&format!(r#"{{"get_file": "{long}"}}"#)),
        "{text}"
    );
    // The scripts of types are long.
    assert!(text.len() < 1500, "{text}");
}

#[test]
fn a_new_run_removes_the_reports_of_the_one_before_and_is_waited_for() {
    let resources = resources("nginx", "1", "a.sh");
    let number = value!({"get_attr": ["server_software_run", "value"]});
    let begin = resources["server_software_handle"].get("metadata").unwrap().get("begin").unwrap();
    // The metadata of a handle with this change; what is there is a report.
    assert_eq!((begin.str_at("status"), begin.get("data")), (Some("SUCCESS"), Some(&number)));
    let condition = resources["server_software"].get("properties").unwrap();
    // The timeout of a wait condition cannot be updated: another one replaces the condition.
    assert_eq!(condition.get("timeout"), Some(&value!({"list_join": ["", ["3600.", number]]})));
    assert_eq!(condition.get("count"), Some(&value!(2)));
}

#[test]
fn sql_that_cannot_be_downloaded_is_a_failure() {
    let folder = std::env::temp_dir().join(format!("kiln-schema-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (tool, script) in [("mysql", "#!/bin/sh\ncat > ran\n"), ("curl", "#!/bin/sh\nexit 22\n")] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(folder.join(tool), script).unwrap();
        std::fs::set_permissions(folder.join(tool), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = |url: &str, content: &str| {
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", include_str!("../../src/blueprint/scripts/schema.sh")]).current_dir(&folder);
        command.env("PATH", path).env("content_url", url).env("content_base64", content);
        command.env("db_host", "h").env("db_user", "u").env("db_password", "p").env("db_name", "n");
        command.status().unwrap().code()
    };
    assert_eq!(run("http://example.com/a.sql", ""), Some(22));
    assert!(!folder.join("ran").exists());
    assert_eq!(run("", "c2VsZWN0IDE7"), Some(0));
    assert_eq!(std::fs::read_to_string(folder.join("ran")).unwrap(), "select 1;");
    std::fs::remove_dir_all(&folder).unwrap();
}
