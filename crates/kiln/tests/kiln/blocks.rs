//! Every block of code of the manual is executed, or is in the list of those that cannot be, with the reason.
//!
//! Commands of `kiln` run in `documented`; configurations, templates, definitions and outputs here; other commands in the
//! scripts that the list names.

use std::collections::BTreeSet;
use std::path::Path;

use crate::documented;
use crate::run::{Folder, files};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A block of code of a page.
#[derive(Debug)]
struct Block {
    /// `docs/templates.md:9`.
    place: String,
    page: String,
    /// What follows the fence: `yaml`; empty for indented blocks.
    language: String,
    /// The text without its indentation.
    text: String,
}

/// How a block that has no treatment of its own is executed.
enum Treatment {
    /// By a script that `.ci/run` runs and that reads the page; or by a test of Rust that includes it.
    By(&'static str),
    /// It is the output of this command with these files.
    Output(&'static [&'static str], &'static [(&'static str, &'static str)]),
    /// A definition file with each of these parts is accepted; the first may be a whole definition.
    InDefinition(&'static [&'static str]),
    /// It is part of this file.
    Excerpt(&'static str),
    /// It cannot be executed, for this reason.
    Not(&'static str),
}

use Treatment::{By, Excerpt, InDefinition, Not, Output};

const BROKEN: &str = "\
heat_template_version: 2018-08-31

resources:
  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny}

  other:
    type: OS::Nova::Sever
";
const MISSPELT: &str = "\
components:
  web: {type: server, requires: {run: my_scirpt}}
  my_script: {type: com.example.script.ShellScript, content: setup.sh}
";

/// Blocks by page and begin.
const TAKE_OVER: &str = "crates/kiln/tests/kiln/take_over.rs";

const LISTED: &[(&str, &str, Treatment)] = &[
    ("README.md", "cargo run --release -- demo", By("tests/book.py")),
    ("README.md", "Outputs:", By("tests/book.py")),
    ("README.md", "cargo test --workspace", By(".ci/run")),
    (
        "README.md",
        "$ kiln template validate --offline -t web.yaml",
        Output(&["template", "validate", "--offline", "-t", "web.yaml"], &[("web.yaml", BROKEN)]),
    ),
    (
        "docs/topology.md",
        "error: No component has",
        Output(&["template", "validate", "-t", "app.yaml", "--offline"], &[("app.yaml", MISSPELT)]),
    ),
    (
        "docs/deploy/kubernetes.md",
        "helm install heat",
        Not("it needs a cluster; packaging/helm/check renders the chart"),
    ),
    ("docs/deploy/kubernetes.md", "images:", By("packaging/helm/check")),
    (
        "docs/deploy/kolla.md",
        "podman build",
        Not("it needs images of a registry; packaging/kolla/check runs what they run"),
    ),
    ("docs/deploy/kolla.md", "heat_api_image_full", Not("options of kolla-ansible, which are in its role")),
    ("docs/deploy/kolla.md", "kiln config check", Not("the files of a host with kolla")),
    ("docs/webhooks.md", "{\n  \"specversion\"", By("tests/clients/webhooks.py")),
    (
        "docs/reading-a-plan.md",
        "Time: about",
        Not("the earlier operations of a cloud of its own; operations.rs tests the line"),
    ),
    ("docs/dashboard.md", "kiln dashboard web", Not("it serves until Ctrl-C; dashboard.rs runs it")),
    ("docs/moving-from-heat.md", "kiln manage take-over inventory", By(TAKE_OVER)),
    ("docs/moving-from-heat.md", "+-------", Not("the stacks of a cloud of its own, some of them in progress")),
    ("docs/moving-from-heat.md", "/etc/heat/heat.conf:17", Not("the settings of a Heat of its own")),
    ("docs/moving-from-heat.md", "kiln manage take-over finish", By(TAKE_OVER)),
    ("docs/moving-from-heat.md", "kiln manage take-over import", By(TAKE_OVER)),
    ("docs/moving-from-heat.md", "kiln manage take-over status", By(TAKE_OVER)),
    ("docs/moving-from-heat.md", "kiln manage take-over compare", By(TAKE_OVER)),
    ("docs/moving-from-heat.md", "kiln manage take-over verify-back", By(TAKE_OVER)),
    (
        "docs/moving-from-heat.md",
        "kiln manage take-over switch --heat-config heat.conf --config-file kiln.conf --project 345de0deed754a2ab8091344a1397b46\n",
        By(TAKE_OVER),
    ),
    (
        "docs/moving-from-heat.md",
        "kiln manage take-over switch --heat-config heat.conf --config-file kiln.conf --project 345de0deed754a2ab8091344a1397b46 --rehearse",
        By(TAKE_OVER),
    ),
    ("docs/moving-from-heat.md", "Project 345de0", Not("the stacks of a cloud of its own")),
    (
        "docs/operating.md",
        "systemctl enable --now kiln.socket",
        Not("systemd runs in no test; packaging/deb/check reads the units"),
    ),
    ("docs/rights.md", "\"stacks:environment\"", By("crates/server/src/rights.rs")),
    ("docs/rights.md", "openstack application credential", Not("a command of Keystone's client")),
    ("docs/moving-from-heat.md", "systemctl stop heat-api", Not("it stops the services of a host with a Heat")),
    (
        "docs/moving-from-heat.md",
        "kiln manage take-over switch --heat-config heat.conf --config-file kiln.conf --project 345de0deed754a2ab8091344a1397b46 --back",
        By(TAKE_OVER),
    ),
    ("docs/cloudformation.md", "export AWS_ENDPOINT_URL_CLOUDFORMATION", By("tests/cloud/aws.py")),
    ("docs/cloudformation.md", "import boto3", By("tests/cloud/aws.py")),
    ("docs/cloudformation.md", "refactor=$(", By("tests/cloud/aws.py")),
    ("docs/cloudformation.md", "scan=$(", By("tests/cloud/aws.py")),
    ("docs/functions.md", "heat_template_version: 2021-04-16", By("crates/template/tests/suite/manual.rs")),
    ("docs/functions.md", "AWSTemplateFormatVersion: 2010-09-09", By("crates/template/tests/suite/manual.rs")),
    ("docs/reading-a-plan.md", "Legend: ", By("crates/kiln/tests/kiln/plan.rs")),
    ("docs/preflight.md", "Pre-flight:", By("crates/kiln/tests/kiln/preflight.rs")),
    ("docs/saved-plans.md", "plan:\n  rules", By("crates/kiln/tests/kiln/plans.rs")),
    ("docs/saved-plans.md", "- name: plan", By("tests/clients/ansible.py")),
    (
        "docs/first-server.md",
        "clouds:",
        Not("an example with the address of no cloud; the tests of kiln_cloud read such files"),
    ),
    ("docs/logs.md", "$ kiln stack failures list", By("crates/kiln/tests/kiln/logs.rs")),
    ("docs/logs.md", "$ kiln stack event list", By("crates/kiln/tests/kiln/logs.rs")),
    ("docs/logs.md", "$ kiln manage failures", By("crates/kiln/tests/kiln/logs.rs")),
    ("docs/logs.md", "$ grep 'name=", By("crates/kiln/tests/kiln/logs.rs")),
    ("docs/logs.md", "$ grep req-", By("crates/kiln/tests/kiln/logs.rs")),
    ("docs/logs.md", "$ awk", By("crates/kiln/tests/kiln/logs.rs")),
    ("docs/local-state.md", "sqlite3 ~/.local", By("tests/upgrade/backup.py")),
    ("docs/databases.md", "CREATE ROLE kiln", By("tests/upgrade/backup.py")),
    ("docs/databases.md", "CREATE DATABASE kiln CHARACTER", By("tests/upgrade/backup.py")),
    ("docs/topology.md", "POST /v1/{project}/stacks", By("tests/book.py")),
    ("docs/topology.md", "curl -F template=@app.csar", By("tests/book.py")),
    ("docs/simulation.md", "cargo sim", By("tests/book.py")),
    ("docs/monitoring/README.md", "scrape_configs:", By("tests/book.py")),
    ("docs/deploy/README.md", "sqlite3 /var/lib/kiln/kiln.db", By("tests/upgrade/backup.py")),
    ("docs/deploy/README.md", "rm -f /var/lib/kiln/kiln.db-wal", By("tests/upgrade/backup.py")),
    ("docs/deploy/README.md", "pg_dump", By("tests/upgrade/backup.py")),
    ("docs/deploy/README.md", "pg_restore", By("tests/upgrade/backup.py")),
    ("docs/deploy/README.md", "mariadb-dump", By("tests/upgrade/backup.py")),
    ("docs/deploy/README.md", "mariadb kiln", By("tests/upgrade/backup.py")),
    ("docs/plugins.md", "#!/usr/bin/env python3", By("crates/kiln/tests/kiln/processes/python_plugins.rs")),
    ("docs/plugins.md", "def hints", By("crates/kiln/tests/kiln/processes/scheduler_hints.rs")),
    (
        "plugins/python/README.md",
        "python3 -m unittest discover",
        By("crates/kiln/tests/kiln/processes/python_plugins.rs"),
    ),
    (
        "docs/plugins.md",
        "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\"",
        Not("messages with parts left out; the tests of the plug-ins exchange whole ones"),
    ),
    (
        "docs/plugins.md",
        "{\"jsonrpc\": \"2.0\", \"id\": 7, \"error\"",
        Not("a message of a program; the tests of the plug-ins exchange such messages"),
    ),
    ("docs/resource-types.md", "# yaml-language-server: $schema", Excerpt("resource-types/OS/Nova/Server.yaml")),
    ("docs/resource-types.md", "type: OS::Neutron::Net", InDefinition(&["type: OS::Neutron::Net"])),
    ("docs/resource-types.md", "/etc/kiln/resource-types/", Not("the listing of a folder")),
    ("docs/resource-types.md", "type: Acme::ConntrackHelper", By("crates/kiln/tests/kiln/types.rs")),
    ("docs/resource-types.md", "status: [hidden", InDefinition(&["status: [hidden", "status: [{ status"])),
    ("docs/resource-types.md", "translate:", InDefinition(&["translate:"])),
    ("docs/resource-types.md", "finder: acme.shelf", InDefinition(&["finder: acme.shelf"])),
    ("docs/resource-types.md", "finder:\n  name: nova.flavor", Excerpt("resource-types/OS/Nova/Flavor.yaml")),
    ("editors/README.md", "cd editors/vscode", By("tests/book.py")),
    (
        "devcloud/README.md",
        "devcloud install heat",
        Not("they install and start a whole OpenStack: the tier cloud runs install, up, rc, check and down"),
    ),
    ("tests/data/README.md", "{\"id\": …", Not("the form of a line, with parts left out")),
];

fn pages() -> Vec<String> {
    let root = Path::new(ROOT);
    let mut found: Vec<_> = ["docs", "examples", "editors", "devcloud", "packaging", "bench"]
        .iter()
        .flat_map(|folder| files(&root.join(folder), "md"))
        .filter(|page| !page.components().any(|part| part.as_os_str() == "node_modules"))
        .collect();
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "plugins/python/README.md", "tests/data/README.md"]
            .map(|page| root.join(page)),
    );
    found.iter().map(|page| page.strip_prefix(root).unwrap().display().to_string()).collect()
}

/// The blocks of a page: between fences, and indented paragraphs outside of lists.
fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let (mut found, mut fence, mut is_open): (Vec<Block>, Option<String>, bool) = (Vec::new(), None, false);
    let (mut before, mut in_list) = ("", false);
    for (index, line) in text.lines().enumerate() {
        let begin = |language: &str| Block {
            place: format!("{page}:{}", index + 1),
            page: page.to_owned(),
            language: language.to_owned(),
            text: String::new(),
        };
        let stripped = line.trim_start();
        if let Some(language) = stripped.strip_prefix("```") {
            if fence.take().is_none() {
                found.push(begin(language.trim()));
                fence = Some(line[..line.len() - stripped.len()].to_owned());
            }
            (is_open, before) = (false, "");
            continue;
        }
        let kept = match &fence {
            Some(indent) => Some(line.strip_prefix(indent.as_str()).unwrap_or(line)),
            None => line.strip_prefix("    ").filter(|_| is_open || (before.is_empty() && !in_list)),
        };
        if let Some(kept) = kept {
            if fence.is_none() && !is_open {
                found.push(begin(""));
            }
            is_open = fence.is_none();
            let block = found.last_mut().unwrap();
            block.text.push_str(kept);
            block.text.push('\n');
        } else {
            is_open = false;
            if !line.is_empty() && !line.starts_with(' ') {
                in_list =
                    line.starts_with("- ") || line.starts_with("* ") || line.starts_with(|c: char| c.is_ascii_digit());
            }
        }
        before = line;
    }
    found
}

fn all() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks(page)).collect()
}

fn listed(block: &Block) -> Option<usize> {
    LISTED.iter().position(|(page, begin, _)| *page == block.page && block.text.starts_with(begin))
}

fn is_configuration(block: &Block) -> bool {
    block.text.starts_with('[') || block.text.starts_with("plugins = ")
}

/// The name of a template or environment: the comment in its first line.
fn template(block: &Block) -> Option<&str> {
    let name = block.text.lines().next()?.strip_prefix("# ").filter(|_| block.language == "yaml")?;
    std::path::Path::new(name).extension().is_some_and(|end| end == "yaml").then_some(name)
}

/// The name of a script that the commands of a page use: the comment in its second line.
fn script(block: &Block) -> Option<&str> {
    let is_script = block.language == "sh" && block.text.starts_with("#!");
    block.text.lines().nth(1)?.strip_prefix("# ").filter(|_| is_script)
}

#[test]
fn every_block_is_executed_or_listed() {
    let all = all();
    let mut used = BTreeSet::new();
    for block in &all {
        let lines = block.text.lines().filter(|line| !line.trim().is_empty()).count();
        let commands = documented::commands(&block.text).len();
        let ways = [
            commands == lines && documented::runs(&block.page),
            is_configuration(block),
            template(block).is_some(),
            script(block).is_some() && documented::runs(&block.page),
            listed(block).is_some(),
        ];
        let ways = ways.iter().filter(|way| **way).count();
        assert_eq!(
            ways, 1,
            "{}: executed in {ways} ways ({commands} commands in {lines} lines):\n{}",
            block.place, block.text
        );
        used.extend(listed(block));
    }
    let reasons =
        LISTED.iter().filter_map(|(_, _, treatment)| if let Not(reason) = treatment { Some(*reason) } else { None });
    assert!(reasons.clone().all(|reason| reason.len() > 20), "{:?}", reasons.collect::<Vec<_>>());
    let unused: Vec<_> = (0..LISTED.len()).filter(|index| !used.contains(index)).map(|index| LISTED[index].1).collect();
    assert!(unused.is_empty(), "no block begins with {unused:?}");
    assert!(all.len() > 60, "{} blocks", all.len());
}

#[test]
fn scripts_that_run_blocks_read_their_page_and_run_in_ci() {
    let read = |file: &str| {
        std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let ci = read(".ci/run");
    for block in all() {
        let Some((page, begin, By(script))) = listed(&block).map(|index| &LISTED[index]) else { continue };
        let text = read(script);
        if *script == ".ci/run" || page.starts_with("plugins/") {
            // The command itself, with the words of a program as strings.
            let words: Vec<&str> = begin.split(' ').collect();
            let quoted = words[1..].iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
            assert!(text.contains(begin) || text.contains(&quoted), "{}: {script} does not run {begin}", block.place);
        } else {
            assert!(text.contains(page), "{}: {script} does not read {page}", block.place);
        }
        let is_test = std::path::Path::new(script).extension().is_some_and(|end| end == "rs");
        // The scripts of clients run in a loop.
        let client = script.strip_prefix("tests/clients/").and_then(|file| file.strip_suffix(".py"));
        let is_client = client.is_some_and(|client| ci.contains(&format!(" {client} ")));
        assert!(
            is_test || is_client || *script == ".ci/run" || ci.contains(script),
            "{}: .ci/run does not run {script}",
            block.place
        );
    }
}

#[test]
fn every_configuration_is_accepted() {
    let folder = Folder::new("blocks-configuration");
    let here = folder.path().display().to_string();
    for name in ["server.pem", "server.key", "ca.pem"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/data/tls").join(name);
        folder.write(name, &std::fs::read_to_string(data).unwrap());
    }
    let mut count = 0;
    for block in all().iter().filter(|block| is_configuration(block)) {
        let text = block.text.replace("/etc/kiln/", &format!("{here}/")).replace("/run/kiln/", &format!("{here}/"));
        let text = text.replace("/opt/acme/plugin", "/bin/cat");
        // Options of a section that the text names.
        let text = if text.starts_with('[') { text } else { format!("[kiln]\n{text}") };
        // What a service needs, and the block does not show.
        let text = format!("{}{text}", missing(&text));
        let file = folder.write("kiln.conf", &text).display().to_string();
        let ran = folder.run(&["config", "check", &file]);
        assert!(
            ran.code == 0 && ran.out.contains("0 errors, 0 warnings, "),
            "{}\n{text}\n{}{}",
            block.place,
            ran.out,
            ran.err
        );
        count += 1;
    }
    assert!(count >= 6, "{count} configurations");
}

/// The sections of a minimal configuration that a text does not have.
fn missing(text: &str) -> String {
    let all = [
        ("[database]", "connection = sqlite:///var/lib/kiln/kiln.db?mode=rwc"),
        ("[DEFAULT]", "auth_encryption_key = 0123456789abcdef0123456789abcdef"),
        (
            "[keystone_authtoken]",
            "auth_url = http://keystone:5000/v3\nusername = heat\npassword = secret\nproject_name = service",
        ),
    ];
    let absent = all.iter().filter(|(section, _)| !text.contains(section));
    absent.flat_map(|(section, options)| [section, "\n", options, "\n"]).collect()
}

#[test]
fn every_template_is_valid_formatted_and_without_findings() {
    let (mut templates, mut environments) = (0, BTreeSet::new());
    for page in pages() {
        let folder = Folder::new(&format!("blocks-{}", page.replace('/', "-")));
        folder.write("setup.sh", "#!/bin/sh\n");
        folder.write("site.pp", "notify { 'hello': }\n");
        let blocks = blocks(&page);
        let named: Vec<_> = blocks.iter().filter_map(|block| Some((block, template(block)?))).collect();
        for (block, name) in &named {
            folder.write(name, &block.text);
        }
        for (block, name) in blocks.iter().filter_map(|block| Some((block, script(block)?))) {
            folder.write(name, &block.text);
        }
        let commands: Vec<_> = blocks.iter().flat_map(|block| documented::commands(&block.text)).collect();
        let after = |command: &str, option: &str| {
            let (_, rest) = command.split_once(option)?;
            rest.split(' ').next().map(str::to_owned)
        };
        let is_template = |name: &str| !name.contains("environment") && !name.contains(".moves.");
        // A command validates the package.
        let is_packed = |name: &str| commands.iter().any(|line| line.contains("zipfile") && line.contains(name));
        for (block, name) in named.iter().filter(|(_, name)| is_template(name) && !is_packed(name)) {
            // With the environment that a command of the page has.
            let with = |command: &String| after(command, " -e ").filter(|_| command.contains(&format!("-t {name} ")));
            let environment = commands.iter().find_map(with);
            let mut args = vec!["template", "validate", "--offline", "-t", name];
            args.extend(environment.iter().flat_map(|name| ["-e", name.as_str()]));
            let uses = |command: &&String| command.split(' ').any(|word| word == *name);
            let types = commands.iter().filter(uses).find_map(|command| after(command, " --topology-types-dir "));
            args.extend(types.iter().flat_map(|folder| ["--topology-types-dir", folder.as_str()]));
            let ran = folder.run(&args);
            assert!(ran.code == 0, "{}\n{}{}", block.place, ran.out, ran.err);
            if block.text.contains("heat_template_version") {
                for words in [&["template", "lint", name][..], &["template", "fmt", "--check", name]] {
                    let ran = folder.run(words);
                    assert!(ran.code == 0, "{}: {words:?}\n{}{}", block.place, ran.out, ran.err);
                }
            }
            templates += 1;
            environments.extend(environment);
        }
        for (block, name) in named.iter().filter(|(_, name)| name.contains("environment")) {
            assert!(environments.contains(*name), "{}: no command of the page uses it", block.place);
        }
    }
    assert!(templates >= 8, "{templates} templates");
}

#[test]
fn every_output_is_what_the_command_prints() {
    for block in all() {
        let Some((_, _, Output(command, files))) = listed(&block).map(|index| &LISTED[index]) else { continue };
        let folder = Folder::new("blocks-output");
        for (name, text) in *files {
            folder.write(name, text);
        }
        let ran = folder.run(command);
        let shown: String = block.text.split_inclusive('\n').filter(|line| !line.starts_with("$ ")).collect();
        assert_eq!((ran.code, ran.err.trim_end()), (1, shown.trim_end()), "{}", block.place);
    }
}

#[test]
fn every_part_of_a_definition_is_accepted() {
    for block in all() {
        match listed(&block).map(|index| &LISTED[index].2) {
            Some(InDefinition(parts)) => {
                let begins: Vec<usize> = parts.iter().map(|part| block.text.find(part).unwrap()).collect();
                for (index, begin) in begins.iter().enumerate() {
                    let end = begins.get(index + 1).copied().unwrap_or(block.text.len());
                    accepted(&block.place, &block.text[*begin..end]);
                }
            }
            Some(Excerpt(file)) => {
                let whole = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
                assert!(whole.contains(block.text.trim_end()), "{}: not in {file}:\n{}", block.place, block.text);
            }
            _ => {}
        }
    }
}

/// A whole definition, or one with this part and the properties that it names.
fn accepted(place: &str, part: &str) {
    let folder = Folder::new("blocks-definition");
    let name = part.lines().next().unwrap().strip_prefix("type: ");
    let text = match name {
        Some(_) => part.to_owned(),
        None => format!(
            "type: Acme::Shelf\nsummary: A shelf.\nservice: network\nrest: {{collection: /v2.0/shelves, member: shelf}}\n\
             {part}properties:\n  sequence: {{type: list, description: A., items: {{type: map}}}}\n  \
             classes: {{type: list, description: B., items: {{type: map}}}}\n  \
             l3_agent_id: {{type: string, description: C.}}\n  \
             l3_agent_ids: {{type: list, description: D., items: string}}\n"
        ),
    };
    let name = name.unwrap_or("Acme::Shelf");
    folder.write(&format!("types/{}.yaml", name.replace("::", "/")), &text);
    let ran = folder.run(&["--local", "--resource-types-dir", "types", "resource-type", "list"]);
    assert!(ran.code == 0, "{place}\n{text}\n{}", ran.err);
}
