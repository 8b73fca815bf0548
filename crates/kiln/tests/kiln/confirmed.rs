//! Every command with `--require-yes` obeys it. `src/commands/effect.rs` checks which commands have it.

use std::collections::BTreeSet;

use crate::run::{Folder, Ran};

/// The commands with `--require-yes`, which stop before they do anything.
const DEMANDS: [&[&str]; 22] = [
    &["stack", "update", "one", "-t", "empty.yaml"],
    &["stack", "rollback", "one", "--to", "1"],
    &["stack", "apply", "PLAN"],
    &["stack", "delete", "one"],
    &["stack", "abandon", "one"],
    &["stack", "release", "one"],
    &["stack", "continue", "one"],
    &["stack", "cancel", "one"],
    &["stack", "cancel", "--no-rollback", "one", "other"],
    &["stack", "snapshot", "delete", "one", "SNAPSHOT"],
    &["stack", "snapshot", "restore", "one", "SNAPSHOT"],
    &["stack", "resource", "forget", "one", "secret"],
    &["plan", "delete", "PLAN"],
    &["orphan", "delete", "some"],
    &["webhook", "delete", "some"],
    &["software", "config", "delete", "some"],
    &["software", "deployment", "delete", "some"],
    &["manage", "purge-deleted", "--days", "0", "--config-file", "kiln.conf"],
    &["manage", "take-over", "switch", "--project", "p", "--config-file", "kiln.conf"],
    &["manage", "take-over", "finish", "--drop-heat-tables", "heat", "--config-file", "kiln.conf"],
    &["heat-manage", "--config-file", "kiln.conf", "purge_deleted", "0"],
    &["heat-manage", "--config-file", "kiln.conf", "purge_deleted", "-p", "p", "-b", "5", "1"],
];

/// The commands of the program below a path, by its help.
fn commands(folder: &Folder, path: &str) -> BTreeSet<String> {
    let words: Vec<&str> = path.split(' ').filter(|word| !word.is_empty()).chain(["--help"]).collect();
    let help = folder.run(&words).ok();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|name| !name.is_empty());
    let below: Vec<&str> = names.filter(|name| *name != "help").collect();
    if below.is_empty() {
        return BTreeSet::from([path.to_owned()]);
    }
    below.into_iter().flat_map(|name| commands(folder, format!("{path} {name}").trim())).collect()
}

/// The words of a command without its arguments.
fn named(command: &[&str], known: &BTreeSet<String>) -> String {
    let mut words = command.iter().filter(|word| !word.starts_with("--") && **word != "kiln.conf");
    let mut path = Vec::new();
    loop {
        path.push(*words.next().unwrap_or_else(|| panic!("no such command: {command:?}")));
        let path = path.join(" ");
        if known.contains(&path) {
            return path;
        }
    }
}

#[test]
fn every_command_that_destroys_or_interrupts_may_demand_a_confirmation() {
    let folder = Folder::new("confirmed");
    folder.write("empty.yaml", "heat_template_version: 2018-08-31\n");
    folder.write("kiln.conf", "[database]\nconnection = sqlite:///nowhere/kiln.db\n");
    let template = "heat_template_version: 2018-08-31\nresources:\n  secret: {type: OS::Heat::RandomString}\n";
    folder.write("one.yaml", template);
    folder.write("two.yaml", &format!("{template}  more: {{type: OS::Heat::RandomString}}\n"));
    folder.local(&["stack", "create", "-t", "one.yaml", "one"]).ok();
    folder.local(&["stack", "update", "-t", "two.yaml", "one"]).ok();
    let snapshot = folder.local(&["stack", "snapshot", "create", "one", "-f", "value", "-c", "id"]).ok();
    let saved = folder.local(&["stack", "plan", "--save", "-f", "json", "--delete", "one"]).json();
    let plan = saved["id"].as_str().unwrap();

    let all = commands(&folder, "");
    let tried: BTreeSet<String> = DEMANDS.iter().map(|command| named(command, &all)).collect();
    for name in &all {
        let words: Vec<&str> = name.split(' ').chain(["--help"]).collect();
        let obeys = folder.run(&words).ok().contains("--require-yes");
        assert_eq!(tried.contains(name), obeys, "kiln {name}: its arguments in DEMANDS");
    }

    for command in DEMANDS {
        let words = command.iter().map(|word| match *word {
            "SNAPSHOT" => snapshot.trim(),
            "PLAN" => plan,
            word => word,
        });
        let local = if ["manage", "heat-manage"].contains(&command[0]) { None } else { Some("--local") };
        let words: Vec<&str> = local.into_iter().chain(words).collect();
        let ran: Ran = folder.kiln(&words).env("KILN_REQUIRE_YES", "1").output().unwrap().into();
        // The commands of Heat print no hints.
        let is_told = ran.err.contains("nothing was changed") && (ran.err.contains("use --yes") || local.is_none());
        assert!(ran.code == 1 && is_told, "{command:?}: {ran:?}");
    }
    assert!(folder.local(&["stack", "resource", "list", "one"]).ok().contains("secret"));
    folder.local(&["stack", "snapshot", "show", "one", snapshot.trim()]).ok();
    assert_eq!(folder.local(&["plan", "show", plan, "-f", "value", "-c", "status"]).ok(), "READY\n");
}
