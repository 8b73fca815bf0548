//! What commands show while they wait.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use kiln_testcloud::{Action, Fault, Service, Testcloud, When};

use crate::run::{Folder, Ran};
use crate::running::Running;

/// A template with a resource that takes some seconds, after one that is ready at once and before one that waits.
fn slow(seconds: u32) -> String {
    format!(
        "heat_template_version: 2018-08-31\nparameters: {{length: {{type: number, default: 8}}}}\nresources:\n  \
         first: {{type: OS::Heat::Value, properties: {{value: 1}}}}\n  \
         slow: {{type: OS::Heat::TestResource, depends_on: first, properties: {{action_wait_secs: {{create: \
         {seconds}}}}}}}\n  \
         secret: {{type: OS::Heat::RandomString, depends_on: slow, properties: {{length: {{get_param: length}}}}}}\n"
    )
}

/// Runs a command on a terminal with this number of columns; the rows that it writes, without colors.
fn on_terminal(folder: &Folder, columns: usize, args: &[&str]) -> Vec<String> {
    let line = format!("stty cols {columns} rows 30; exec {} {}", env!("CARGO_BIN_EXE_kiln"), args.join(" "));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path()).stdin(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("TERM", "xterm").env("SHELL", "/bin/sh");
    command.env("HOME", folder.path()).env("KILN_DATABASE", folder.path().join("stacks.db"));
    let ran = Ran::from(command.output().unwrap());
    let mut plain = String::new();
    for (index, part) in ran.out.split('\u{1b}').enumerate() {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        let (code, text) = if index == 0 { ("", part) } else { part.split_at(end) };
        // Colors end in m; after everything else the cursor is at the beginning of a row.
        plain.push_str(if code.is_empty() || code.ends_with('m') { "" } else { "\n" });
        plain.push_str(text);
    }
    // The rows of a tree fill the width.
    let rows = plain.split(['\n', '\r']).flat_map(|line| {
        let characters: Vec<char> = line.chars().collect();
        characters.chunks(columns).map(|row| row.iter().collect::<String>()).collect::<Vec<_>>()
    });
    rows.collect()
}

fn is_of_tree(row: &str) -> bool {
    row.contains("├─ ") || row.contains("└─ ")
}

#[test]
fn a_narrow_terminal_shows_the_tree_and_the_log_beside_it() {
    let folder = Folder::new("narrow");
    folder.write("t.yaml", &slow(1).replace("slow", "a_resource_with_quite_a_long_name_for_it"));
    let rows = on_terminal(&folder, 40, &["-v", "--local", "stack", "create", "-t", "t.yaml", "one"]);
    let tree: Vec<&String> = rows.iter().filter(|row| is_of_tree(row)).collect();
    let begins = |row: &&String| row.starts_with("├─ ") || row.starts_with("└─ ");
    assert!(tree.len() > 3 && tree.iter().all(begins), "{rows:#?}");
    let named: Vec<&&String> = tree.iter().filter(|row| row.contains("a_resource_wi")).collect();
    assert!(named.iter().all(|row| row.contains('…')), "{rows:#?}");
    assert!(named.iter().any(|row| row.contains("creating")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains(" INFO")), "{rows:#?}");
}

#[test]
fn the_tree_shows_what_a_resource_waits_for() {
    let folder = Folder::new("waits-for");
    folder.write("t.yaml", &slow(1));
    let rows = on_terminal(&folder, 120, &["--local", "stack", "create", "-t", "t.yaml", "one"]);
    let waiting =
        |row: &&String| row.contains("secret") && row.contains("waiting") && row.trim_end().ends_with("for slow");
    assert!(rows.iter().filter(|row| is_of_tree(row)).any(|row| waiting(&row)), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("one CREATE_COMPLETE")), "{rows:#?}");
}

#[test]
fn an_update_tells_a_replacement_once_and_totals() {
    let folder = Folder::new("totals");
    folder.write("t.yaml", &slow(0));
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let update = |length: &str, how: &str| {
        let parameter = format!("length={length}");
        let args = ["stack", "update", "--existing", "--parameter", &parameter, "--progress", how, "--yes", "one"];
        let ran = folder.local(&args);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    let plain = update("9", "plain");
    assert_eq!(plain.matches("secret (OS::Heat::RandomString) replaced").count(), 1, "{plain}");
    assert!(plain.contains("UPDATE_COMPLETE (1 done, 2 unchanged, 3 in all)"), "{plain}");
    let json = update("10", "json");
    let told: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let statuses: Vec<&str> =
        told.iter().filter(|line| line["resource"] == "secret").map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["UPDATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"], "{json}");
}

/// The times are those of the operation, not of the command.
#[test]
fn a_waiter_shows_the_operation_from_its_beginning() {
    let folder = Folder::new("from-beginning");
    folder.write("t.yaml", &slow(3));
    let create = Running::start(folder.kiln(&["--local", "stack", "create", "-t", "t.yaml", "one"]));
    create.wait_for("slow (OS::Heat::TestResource) creating");
    create.signal("INT");
    let (code, log) = create.wait();
    assert!(code == 130 && log.contains("run 'kiln --local stack wait one' to continue"), "{log}");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let waited = folder.local(&["stack", "wait", "--progress", "json", "one"]);
    assert_eq!(waited.code, 0, "{}", waited.err);
    let told: Vec<serde_json::Value> = waited.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| told.iter().rfind(|line| line["resource"] == name).unwrap();
    assert_eq!((&of("first")["status"], &of("slow")["status"]), (&"CREATE_COMPLETE".into(), &"CREATE_COMPLETE".into()));
    let end = told.iter().rfind(|line| line["stack"] == "one").unwrap();
    assert!(end["status"] == "CREATE_COMPLETE" && end["seconds"].as_f64().unwrap() >= 1.0, "{}", waited.err);
}

#[test]
fn a_waiter_whose_operation_was_replaced_is_told() {
    let folder = Folder::new("superseded");
    folder.write("t.yaml", &slow(3));
    folder.write("u.yaml", &slow(0));
    let create = Running::start(folder.kiln(&["--local", "stack", "create", "-t", "t.yaml", "one"]));
    create.wait_for("slow (OS::Heat::TestResource) creating");
    folder.local(&["stack", "update", "-t", "u.yaml", "--yes", "one"]).ok();
    let (code, log) = create.wait();
    assert!(log.contains("note: another request has replaced this operation: UPDATE"), "{log}");
    let told = "another request replaced the CREATE of stack one by UPDATE: it is UPDATE_COMPLETE now";
    assert!(code == 3 && log.contains(told), "{code}: {log}");
}

#[test]
fn events_are_followed_to_the_deletion_of_the_stack() {
    let folder = Folder::new("follow-deleted");
    folder.write("t.yaml", &slow(0));
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let mut command = Command::new("timeout");
    command.args(["20", env!("CARGO_BIN_EXE_kiln"), "--local", "stack", "event", "list", "--follow", "one"]);
    command.current_dir(folder.path()).env("KILN_DATABASE", folder.path().join("stacks.db")).env("HOME", folder.path());
    let followed = followed(command, || {
        folder.local(&["stack", "delete", "--yes", "one"]).ok();
    });
    assert!(followed.contains("DELETE_COMPLETE"), "{followed}");
}

/// What a command writes that follows events, where something happens after its first line.
fn followed(mut command: Command, then: impl FnOnce()) -> String {
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap());
    let mut text = String::new();
    lines.read_line(&mut text).unwrap();
    then();
    lines.read_to_string(&mut text).unwrap();
    assert!(follower.wait().unwrap().success(), "{text}");
    text
}

/// The engine tries again and again, and says why. A service of the cloud that answers again is no news.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_told_with_its_reason() {
    let folder = Folder::new("retry");
    let cloud = Testcloud::builder().start().await.unwrap();
    folder.write(
        "t.yaml",
        "heat_template_version: 2018-08-31\nresources: {data: {type: OS::Cinder::Volume, properties: {size: 1}}}\n",
    );
    cloud.faults().add(Fault::new(Service::Volume, "GET", "/volumes/", Action::Status(503)).when(When::Always));
    let create = ["--local", "stack", "create", "-t", "t.yaml", "--progress", "json", "one"];
    let create = Running::start(folder.client(&cloud, "http://localhost", &create));
    tokio::task::block_in_place(|| create.wait_for("trying again after "));
    let shown = folder.client(&cloud, "http://localhost", &["--local", "stack", "resource", "show", "one", "data"]);
    let shown = tokio::task::block_in_place(|| Ran::from({ shown }.args(["-f", "json"]).output().unwrap())).json();
    assert_eq!(shown["resource_status"], "CREATE_IN_PROGRESS");
    let reason = shown["resource_status_reason"].as_str().unwrap();
    assert!(reason.starts_with("trying again after "), "{reason}");
    cloud.faults().clear();
    let (code, log) = tokio::task::block_in_place(|| create.wait());
    assert_eq!(code, 0, "{log}");
    let told: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reasons = told.iter().filter(|line| line["resource"] == "data").map(|line| (&line["status"], &line["reason"]));
    let reasons: Vec<String> = reasons.map(|(status, reason)| format!("{} {}", text(status), text(reason))).collect();
    let [first, retries @ .., last] = reasons.as_slice() else { panic!("{log}") };
    assert_eq!([first, last], ["CREATE_IN_PROGRESS state changed", "CREATE_COMPLETE state changed"]);
    assert!(retries[0].starts_with("CREATE_IN_PROGRESS trying again after ") && retries[0].contains("503"), "{log}");
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap()
}

/// The event of a hook has the status of the resource before the operation, which has not begun.
#[test]
fn a_resource_that_waits_at_a_hook_is_told() {
    let folder = Folder::new("at-hook");
    folder.write("t.yaml", &slow(0));
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let args = ["--local", "stack", "update", "--existing", "--pre-update", "first", "--progress", "plain", "one"];
    let update = Running::start(folder.kiln(&args));
    update.wait_for("first (OS::Heat::Value) waiting: UPDATE paused until Hook pre-update is cleared");
    folder.local(&["stack", "hook", "clear", "one", "first"]).ok();
    let (code, log) = update.wait();
    assert!(code == 0 && !log.contains("replac"), "{code}: {log}");
    assert!(log.contains("UPDATE_COMPLETE (0 done, 3 unchanged, 3 in all)"), "{log}");
}

/// A service that lets nobody wait for events is polled.
#[tokio::test(flavor = "multi_thread")]
async fn without_streams_of_events_the_service_is_polled() {
    let folder = Folder::new("no-streams");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\nmax_event_streams = 0\n");
    tokio::task::block_in_place(|| {
        let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
        let url = service.url();
        let client = |args: &[&str]| folder.client(&cloud, &url, &[&["stack"], args].concat());
        folder.write("t.yaml", &slow(1));
        let create = ["create", "-t", "t.yaml", "--wait", "--poll", "0.1", "--progress", "plain", "one"];
        let ran = Ran::from(client(&create).output().unwrap());
        let told =
            ["slow (OS::Heat::TestResource) creating", "slow (OS::Heat::TestResource) created", "CREATE_COMPLETE"];
        assert!(ran.code == 0 && told.iter().all(|line| ran.err.contains(line)), "{}", ran.err);
        let followed = followed(client(&["event", "list", "--follow", "one"]), || {
            Ran::from(client(&["delete", "--wait", "--poll", "0.1", "one"]).output().unwrap()).ok();
        });
        assert!(followed.contains("DELETE_COMPLETE"), "{followed}");
    });
}

/// The stack of a group that is replaced is deleted at the end: its members are still named by their path.
#[test]
fn members_of_replaced_nested_stacks_have_a_path_and_a_type() {
    let folder = Folder::new("replaced-members");
    let text = "heat_template_version: 2018-08-31\nresources:\n  group:\n    type: OS::Heat::ResourceGroup\n    \
                properties: {count: 2, resource_def: {type: OS::Heat::RandomString}}\n";
    folder.write("t.yaml", text);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    folder.local(&["stack", "resource", "mark", "unhealthy", "one", "group"]).ok();
    let update = folder.local(&["stack", "update", "--existing", "--progress", "plain", "one"]);
    let lines: Vec<&str> = update.err.lines().filter(|line| line.contains("RandomString")).collect();
    assert!(lines.iter().any(|line| line.contains("deleted")), "{}", update.err);
    assert!(lines.iter().all(|line| line.contains("group/")), "{}", update.err);
    assert_eq!(update.code, 0);
}
