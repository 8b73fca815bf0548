//! The first command of the README.

use std::collections::HashMap;

use crate::run::{Folder, Ran};

#[test]
fn the_stack_of_the_demo_comes_up() {
    let folder = Folder::new("demo");
    let ran: Ran = folder.run(&["demo", "--exit", "--build-time", "0.2", "--progress", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut created: HashMap<String, u32> = HashMap::new();
    let mut stack = Vec::new();
    for line in ran.err.lines().filter(|line| line.starts_with('{')) {
        let told: serde_json::Value = serde_json::from_str(line).unwrap();
        match told["resource"].as_str() {
            Some(name) if told["status"] == "CREATE_COMPLETE" => *created.entry(name.to_owned()).or_default() += 1,
            Some(_) => {}
            None => stack.push(told["status"].as_str().unwrap().to_owned()),
        }
    }
    assert_eq!(created.len(), 14, "{created:?}");
    assert!(created.values().all(|times| *times == 1), "{created:?}");
    assert_eq!(stack.last().map(String::as_str), Some("CREATE_COMPLETE"));
    let url = ran.out.lines().find(|line| line.trim_start().starts_with("url ")).unwrap();
    assert!(url.contains("http://172.24."), "{url}");
    // Nothing is left.
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_template_of_ones_own_with_nested_stacks() {
    let folder = Folder::new("own");
    let farm = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/farm.yaml");
    let environment = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/farm-environment.yaml");
    let args = ["demo", "--exit", "--build-time", "0.1", "-t", farm, "-e", environment, "--progress", "plain"];
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("nodes/2/server (OS::Nova::Server) created"), "{}", ran.err);
    assert!(ran.out.contains("192.168.78."), "{}", ran.out);
}

#[test]
fn a_kept_demo_is_opened_again() {
    let folder = Folder::new("kept");
    folder.write(
        "t.yaml",
        "heat_template_version: 2018-08-31\nparameters: {n: {type: number}}\n\
                            resources: {r: {type: OS::Heat::RandomString, properties: {length: {get_param: n}}}}\n\
                            outputs: {o: {value: {get_attr: [r, value]}}}\n",
    );
    let args = ["demo", "--exit", "--keep", "demo.db", "-t", "t.yaml", "--parameter", "n=17", "--progress", "none"];
    let first = folder.run(&args);
    assert_eq!(first.code, 0, "{}", first.err);
    let value = first.out.lines().find_map(|line| line.trim().strip_prefix("o ")).unwrap().trim().to_owned();
    assert_eq!(value.len(), 17);
    let again = folder.run(&args);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.contains("exists from an earlier demo"), "{}", again.err);
}
