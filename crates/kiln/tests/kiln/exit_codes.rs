//! Every exit code in the manual.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::plan::{local, with_a_volume};
use crate::run::Folder;

/// The rows of the table in the manual, which is made from the program: command, exit code.
fn documented() -> Vec<(String, i32)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("| command | exit code | meaning |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0].trim_matches('`').replace("kiln ", ""), cells[1].parse().unwrap())
    };
    rows.map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_exit_code_of_the_manual_is_returned() {
    let (cloud, folder) = with_a_volume("exit-codes").await;
    let text = "heat_template_version: 2018-08-31\nresources:\n  \
                net: {type: OS::Neutron::Net, properties: {name: ours}}\n  \
                word: {type: OS::Heat::RandomString}\n";
    folder.write("net.yaml", text);
    folder.write("renamed.yaml", &text.replace("ours", "theirs"));
    folder.write(
        "failing.yaml",
        &text.replace("OS::Heat::RandomString", "OS::Heat::TestResource, properties: {fail: true}"),
    );
    folder.write("empty.yaml", "heat_template_version: 2018-08-31\n");
    local(&cloud, &folder, &["stack", "create", "-t", "net.yaml", "net"]).ok();
    // Nova does not show the user data.
    let text = "heat_template_version: 2018-08-31\nresources:\n  server:\n    type: OS::Nova::Server\n    \
                properties: {image: cirros, flavor: m1.tiny, user_data: a, networks: [{network: private}]}\n";
    folder.write("script.yaml", text);
    local(&cloud, &folder, &["stack", "create", "-t", "script.yaml", "script"]).ok();
    for (command, code) in documented() {
        let found = returned(&cloud, &folder, &command, code);
        assert_eq!(found, code, "{command}");
    }
}

/// The exit code of an example of a command that is to return a code.
fn returned(cloud: &Testcloud, folder: &Folder, command: &str, code: i32) -> i32 {
    let kiln = |args: &[&str]| local(cloud, folder, args).code;
    let detailed = |args: &[&str]| kiln(&[&["stack"], args, &["--detailed-exitcode"]].concat());
    match (command, code) {
        ("all", 0) => folder.run(&["--version"]).code,
        ("all", 1) => folder.run(&["template", "lint", "missing.yaml"]).code,
        ("all", 2) => folder.run(&["stack", "nonsense"]).code,
        ("all", 3) => kiln(&["stack", "create", "-t", "failing.yaml", "failing"]),
        ("all", 4) => {
            folder.run(&["--os-auth-type", "none", "--os-endpoint", "http://127.0.0.1:1", "stack", "list"]).code
        }
        ("all", 130) => interrupted(folder),
        ("all", 141) => {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            folder.kiln(&["config", "reference"]).stdout(writer).status().unwrap().code().unwrap()
        }
        ("stack create", 0) => detailed(&["create", "-t", "empty.yaml", "--dry-run", "new"]),
        ("stack create", 1) => detailed(&["create", "-t", "missing.yaml", "--dry-run", "new"]),
        ("stack create", 2) => detailed(&["create", "-t", "net.yaml", "--dry-run", "new"]),
        ("stack update", 0) => detailed(&["update", "--existing", "--dry-run", "one"]),
        ("stack update", 1) => detailed(&["update", "--existing", "one"]),
        ("stack update", 2) => detailed(&["update", "--existing", "--parameter", "text=b", "--dry-run", "one"]),
        ("stack update", 5) => detailed(&["update", "--existing", "--parameter", "zone=east", "--dry-run", "one"]),
        ("stack plan", 0) => detailed(&["plan", "--existing", "one"]),
        ("stack plan", 1) => detailed(&["plan", "one"]),
        ("stack plan", 2) => detailed(&["plan", "-t", "net.yaml", "new"]),
        ("stack plan", 5) => detailed(&["plan", "--delete", "one"]),
        ("stack drift", 0) => detailed(&["drift", "net", "--resource", "net"]),
        ("stack drift", 1) => detailed(&["drift", "missing"]),
        ("stack drift", 2) => {
            // Another owner of the same network renames it.
            for (from, to) in [("stacks.db", "theirs.db"), ("stacks.db.key", "theirs.db.key")] {
                std::fs::copy(folder.path().join(from), folder.path().join(to)).unwrap();
            }
            assert_eq!(kiln(&["--database", "theirs.db", "stack", "update", "-t", "renamed.yaml", "net"]), 0);
            detailed(&["drift", "net", "--resource", "net"])
        }
        ("stack drift", 5) => detailed(&["drift", "script"]),
        ("heat-status upgrade check", code) => {
            let config = folder.configured(cloud, "");
            let config = config.as_str();
            match code {
                0 => assert_eq!(folder.run(&["manage", "db", "sync", "--config-file", config]).code, 0),
                1 => std::fs::remove_file(folder.path().join("kiln.db")).unwrap(),
                _ => _ = folder.write("kiln.conf", "[database]\nconnection = nonsense\n"),
            }
            folder.run(&["heat-status", "--config-file", config, "upgrade", "check"]).code
        }
        _ => panic!("{command}: no example returns {code}"),
    }
}

/// The exit code of a create that is interrupted.
fn interrupted(folder: &Folder) -> i32 {
    let slow = "{type: OS::Heat::TestResource, properties: {action_wait_secs: {create: 60}}}";
    folder.write("slow.yaml", &format!("heat_template_version: 2018-08-31\nresources: {{slow: {slow}}}\n"));
    let mut command = folder.kiln(&["--local", "--database", "slow.db", "stack", "create", "-t", "slow.yaml"]);
    let mut child = command.args(["--progress", "json", "slow"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("CREATE_IN_PROGRESS") && line.contains("slow")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    lines.for_each(drop);
    child.wait().unwrap().code().unwrap()
}
