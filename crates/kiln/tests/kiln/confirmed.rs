//! Every command either obeys `--require-yes` or has a reason why it need not.

use std::collections::BTreeSet;

use crate::run::{Folder, Ran};

/// What destroys or interrupts something: it stops before it does anything.
const DEMANDS: [&[&str]; 15] = [
    &["stack", "update", "one", "-t", "empty.yaml"],
    &["stack", "rollback", "one", "--to", "1"],
    &["stack", "delete", "one"],
    &["stack", "abandon", "one"],
    &["stack", "cancel", "one"],
    &["stack", "cancel", "--no-rollback", "one", "other"],
    &["stack", "snapshot", "delete", "one", "SNAPSHOT"],
    &["stack", "snapshot", "restore", "one", "SNAPSHOT"],
    &["stack", "resource", "forget", "one", "secret"],
    &["orphan", "delete", "some"],
    &["software", "config", "delete", "some"],
    &["software", "deployment", "delete", "some"],
    &["manage", "purge-deleted", "--days", "0", "--config-file", "kiln.conf"],
    &["heat-manage", "--config-file", "kiln.conf", "purge_deleted", "0"],
    &["heat-manage", "--config-file", "kiln.conf", "purge_deleted", "-p", "p", "-b", "5", "1"],
];

/// The other commands that change something, each with the reason.
const UNASKED: [(&str, &str); 27] = [
    ("stack create", "adds"),
    ("stack adopt", "adds"),
    ("stack check", "reads the objects"),
    ("stack suspend", "keeps everything; resume is the way back"),
    ("stack resume", "the way back of suspend"),
    ("stack snapshot create", "adds"),
    ("stack hook clear", "continues what waits"),
    ("stack resource signal", "tells a resource what it waits for"),
    ("stack resource metadata", "reads"),
    ("stack resource mark unhealthy", "a mark; the update that follows it asks"),
    ("software config create", "adds"),
    ("software deployment create", "adds"),
    ("template fmt", "a file, as told"),
    ("template upgrade", "a file, as told"),
    ("api", "a service"),
    ("engine", "a service"),
    ("serve", "a service"),
    ("demo", "a cloud and a database of its own"),
    ("testcloud", "a cloud of its own"),
    ("manage db sync", "the schema only grows"),
    ("manage update-params", "stores the same in another form"),
    ("manage setup-domain", "adds"),
    ("heat-manage db_sync", "the schema only grows"),
    ("heat-manage service clean", "removes the entries of engines that have ended"),
    ("heat-manage reset_stack_status", "always asks, as in Heat"),
    ("heat-manage migrate_convergence_1", "does nothing"),
    ("heat-manage update_params", "stores the same in another form"),
];

/// Commands that only read.
const READS: &str = "
    stack list, stack show, stack export, stack drift, stack wait, stack snapshot list, stack snapshot show,
    stack hook poll, stack event list, stack event show, stack operation list,
    stack operation show, stack revision list, stack revision show, stack revision diff, stack resource list, stack resource show, stack output list,
    stack output show, stack template show, stack environment show, stack file list, stack failures list,
    template validate, template version list, template function list, template function show,
    template lint, template graph, template lower, resource-type list,
    resource-type show, software config list, software config show, software deployment list, software deployment show,
    software deployment metadata show, software deployment output show, orphan list, manage service list,
    manage policy check, manage doctor, manage report, heat-manage db_version, heat-manage service list,
    heat-manage resource_data_list, heat-manage migrate_properties_data, heat-status upgrade check, config reference,
    config check, config show, lsp, completion, man";

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
    folder.local(&["stack", "create", "-t", "one.yaml", "one"]).ok();
    let snapshot = folder.local(&["stack", "snapshot", "create", "one", "-f", "value", "-c", "id"]).ok();

    let all = commands(&folder, "");
    let demands: BTreeSet<String> = DEMANDS.iter().map(|command| named(command, &all)).collect();
    let unasked: BTreeSet<String> = UNASKED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let reads: BTreeSet<String> = READS.split(',').map(|name| name.trim().to_owned()).collect();
    for name in &all {
        let decisions = [&demands, &unasked, &reads].iter().filter(|names| names.contains(name)).count();
        assert_eq!(decisions, 1, "kiln {name}: decide whether it destroys something, in confirmed.rs");
    }
    let gone: Vec<&String> = [&demands, &unasked, &reads].into_iter().flatten().filter(|n| !all.contains(*n)).collect();
    assert!(gone.is_empty(), "no such commands: {gone:?}");

    for command in DEMANDS {
        let words = command.iter().map(|word| if *word == "SNAPSHOT" { snapshot.trim() } else { word });
        let local = if ["manage", "heat-manage"].contains(&command[0]) { None } else { Some("--local") };
        let words: Vec<&str> = local.into_iter().chain(words).collect();
        let ran: Ran = folder.kiln(&words).env("KILN_REQUIRE_YES", "1").output().unwrap().into();
        // The commands of Heat print no hints.
        let is_told = ran.err.contains("nothing was changed") && (ran.err.contains("use --yes") || local.is_none());
        assert!(ran.code == 1 && is_told, "{command:?}: {ran:?}");
    }
    assert!(folder.local(&["stack", "resource", "list", "one"]).ok().contains("secret"));
    folder.local(&["stack", "snapshot", "show", "one", snapshot.trim()]).ok();
}
