//! The Python package for plug-ins: its own tests, the example of the manual, and a class of a Heat plug-in in stacks.

use std::path::Path;
use std::process::Command;

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/python");
const MANUAL: &str = include_str!("../../../../../docs/plugins.md");
const EXAMPLE: &str = include_str!("../../../../../plugins/python/examples/note.py");

/// `kiln --local` with a plug-in whose objects are in a folder.
struct Local {
    cloud: Testcloud,
    folder: Folder,
    objects: tempfile::TempDir,
    program: String,
}

impl Local {
    /// `variable` is that of the folder, `arguments` are those of Python.
    async fn new(name: &str, variable: &str, arguments: &str) -> Self {
        let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
        let objects = tempfile::tempdir().expect("a folder");
        let place = objects.path().display();
        let program = format!("/usr/bin/env PYTHONPATH={PACKAGE} {variable}={place} python3 {arguments}");
        Self { cloud, folder: Folder::new(name), objects, program }
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.folder.client(&self.cloud, "http://127.0.0.1:9", &[&["--local"], args].concat());
        let path = std::env::var_os("PATH").expect("a path");
        Ran::from(command.env("KILN_PLUGINS", &self.program).env("PATH", path).output().expect("kiln runs"))
    }

    /// Creates or updates the stack with these resources, and returns an output.
    #[track_caller]
    fn stack(&self, action: &str, resources: &str, output: &str) -> String {
        let text = format!(
            "heat_template_version: 2018-08-31\nresources:\n{resources}\noutputs: {{it: {{value: {output}}}}}\n"
        );
        self.folder.write("t.yaml", &text);
        self.run(&["stack", action, "--wait", "-t", "t.yaml", "it"]).ok();
        self.run(&["stack", "output", "show", "it", "it", "-f", "value", "-c", "output_value"]).ok()
    }

    /// The contents of the objects.
    fn objects(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.objects.path()).expect("a folder");
        let read = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry?.path());
        entries.map(|entry| read(entry).expect("an object")).collect()
    }
}

#[test]
fn the_tests_of_the_package_pass() {
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "discover", "-s", "tests", "-t", "."]).current_dir(PACKAGE);
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nOK"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_the_manual_is_a_type() {
    let code: String = MANUAL.split("```").filter_map(|part| part.strip_prefix("python\n")).take(1).collect();
    assert_eq!(code, EXAMPLE, "docs/plugins.md does not show plugins/python/examples/note.py");
    let example = Path::new(PACKAGE).join("examples/note.py");
    let local = Local::new("plugin-note", "NOTES", &example.display().to_string()).await;
    let note = |text: &str| format!("  it: {{type: 'Acme::Note', properties: {{text: {text}}}}}");
    let length = "{get_attr: [it, length]}";
    assert_eq!(local.stack("create", &note("abc"), length).trim(), "3");
    assert_eq!(local.objects(), ["abc"]);
    assert_eq!(local.stack("update", &note("abcdef"), length).trim(), "6");
    assert_eq!(local.objects(), ["abcdef"]);
    local.run(&["stack", "check", "--wait", "it"]).ok();
    local.run(&["stack", "delete", "--yes", "--wait", "it"]).ok();
    assert!(local.objects().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_of_a_heat_plugin_lives_in_a_stack() {
    let arguments =
        format!("-m kiln_plugin.heat --clients {PACKAGE}/tests/heat_clients.py {PACKAGE}/tests/heat_plugin.py");
    let local = Local::new("plugin-heat", "CRATES", &arguments).await;
    let crate_of = |properties: &str| format!("  it: {{type: 'Warehouse::Crate', properties: {properties}}}");
    let weight = "{get_attr: [it, weight]}";
    let parts = crate_of("{parts: [{kind: nail, count: 5}, {kind: screw}], zone: a}");
    assert_eq!(local.stack("create", &parts, weight).trim(), "6");
    let size = |size: i32| format!("\"size\": {size}, ");
    assert!(local.objects()[0].contains(&size(10)), "{:?}", local.objects());
    let larger = crate_of("{parts: [{kind: nail, count: 5}, {kind: screw}], zone: b, size: 20}");
    assert_eq!(local.stack("update", &larger, weight).trim(), "6");
    assert!(local.objects()[0].contains(&size(20)), "{:?}", local.objects());

    // Texts of the class, of its constraints, and of the schema.
    for (properties, text) in [
        ("{size: 13}", "Crates of 13 litres are bad luck."),
        ("{zone: z}", "Error validating value 'z': 'z'"),
        ("{size: 5000}", "5000 is out of range (min: 1, max: 1000)"),
    ] {
        let template = format!("heat_template_version: 2018-08-31\nresources:\n{}\n", crate_of(properties));
        local.folder.write("wrong.yaml", &template);
        let ran = local.run(&["stack", "create", "-t", "wrong.yaml", "wrong"]);
        assert!(ran.code == 1 && ran.err.contains(text), "{properties}: {}", ran.err);
    }
    local.folder.write(
        "bad.yaml",
        &format!("heat_template_version: 2018-08-31\nresources:\n{}\n", crate_of("{outcome: worse, name: other}")),
    );
    let ran = local.run(&["stack", "create", "--wait", "-t", "bad.yaml", "bad"]);
    assert!(ran.code != 0 && ran.err.contains("Error: resources.it: There are no more crates."), "{}", ran.err);

    for name in ["it", "bad"] {
        local.run(&["stack", "delete", "--yes", "--wait", name]).ok();
    }
    assert_eq!(local.objects(), Vec::<String>::new());
}
