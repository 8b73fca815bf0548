//! The user data of a server, run on this machine: the operations run in their order, and the result is reported.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use kiln_topology::lower::{by_cloud_init, lower};
use kiln_topology::tosca;
use kiln_value::{Map, Value};

const TEMPLATE: &str = "\
tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  node_templates:
    app:
      type: tosca.nodes.SoftwareComponent
      requirements: [{host: server}, {dependency: base}]
      interfaces:
        Standard:
          create: {implementation: second.sh, inputs: {word: \"it's $HOME\", me: {get_attribute: [HOST, private_address]}}}
    base:
      type: tosca.nodes.SoftwareComponent
      requirements: [{host: server}]
      interfaces: {Standard: {start: first.sh}}
    server: {type: tosca.nodes.Compute}
";

/// Runs the user data with these scripts; returns what was reported.
fn run(name: &str, scripts: &[(&str, &str)]) -> (PathBuf, Value) {
    let files = HashMap::from([("t.yaml".to_owned(), TEMPLATE.to_owned())]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals).unwrap().graph;
    let lowered = by_cloud_init(lower(&graph, "t.yaml").unwrap()).unwrap();
    let resources = lowered.template.get("resources").unwrap();
    assert!(resources.as_map().unwrap().values().all(|r| !r.str_at("type").unwrap().contains("SoftwareDeployment")));
    let replace = resources.get("server").unwrap().get("properties").unwrap().get("user_data").unwrap();
    let replace = replace.get("str_replace").unwrap();
    // As the service resolves it.
    let mut steps = replace.get("params").unwrap().get("@KILN_STEPS@").unwrap().clone();
    let Value::List(items) = &mut steps else { panic!("a list") };
    for step in items {
        let script = step.as_map_mut().unwrap().get_mut("script").unwrap();
        let file = script.str_at("get_file").unwrap().to_owned();
        *script = scripts.iter().find(|(name, _)| *name == file).unwrap().1.into();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/signal", listener.local_addr().unwrap());
    let user_data = replace.str_at("template").unwrap();
    let user_data = user_data.replace("@KILN_URL@", &url).replace("@KILN_TOKEN@", "secret");
    let user_data = user_data.replace("@KILN_STEPS@", &kiln_value::text::json(&steps));

    let folder = std::env::temp_dir().join(format!("kiln-guest-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("user-data"), user_data).unwrap();
    let mut guest = Command::new("sh").arg(folder.join("user-data")).env("KILN_FOLDER", &folder).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut has_token) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        has_token |= lower.trim() == "x-auth-token: secret";
        if line.trim().is_empty() {
            break;
        }
    }
    assert!(has_token);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop((reader, stream));
    guest.wait().unwrap();
    (folder, kiln_yaml::json::parse(std::str::from_utf8(&body).unwrap()).unwrap())
}

#[test]
fn operations_run_in_their_order_with_their_inputs() {
    let second = "#!/bin/sh\nprintf '%s|%s\\n' \"$word\" \"$me\" >> \"$KILN_FOLDER/out\"\n";
    let (folder, report) =
        run("order", &[("first.sh", "#!/bin/sh\necho first >> \"$KILN_FOLDER/out\"\n"), ("second.sh", second)]);
    assert_eq!(report.str_at("status"), Some("SUCCESS"), "{report:?}");
    let out = std::fs::read_to_string(folder.join("out")).unwrap();
    assert_eq!(out, "first\nit's $HOME|127.0.0.1\n");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_failure_names_the_operation_its_exit_code_and_the_end_of_its_output() {
    let first = "#!/bin/sh\necho 'no such package'\nexit 3\n";
    let (folder, report) =
        run("failure", &[("first.sh", first), ("second.sh", "#!/bin/sh\ntouch \"$KILN_FOLDER/out\"\n")]);
    assert_eq!(report.str_at("status"), Some("FAILURE"));
    assert_eq!(report.str_at("reason"), Some("base_start failed with exit code 3: no such package"));
    assert!(!folder.join("out").exists());
    std::fs::remove_dir_all(folder).unwrap();
}
