//! Runs every command of `kiln` in the manual and in the help with a simulated cloud, and the configurations of a service.
//! [`crate::blocks`] checks that there are no others.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::Folder;
use crate::service::Service;
use crate::take_over::heat_in;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const WEB: &str = "\
heat_template_version: 2018-08-31
parameters:
  flavor: {type: string, default: m1.tiny}
  size: {type: number, default: 1}
resources:
  server:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: {get_param: flavor}
      networks: [{network: private}]
      metadata: {size: {get_param: size}}
outputs:
  address: {value: {get_attr: [server, first_address]}}
";
const OLD: &str = "heat_template_version: 2015-10-15\nresources: {word: {type: OS::Heat::RandomString}}\n";
const CACHE: &str = "topology_type: com.example.Cache\nderived_from: tosca.nodes.SoftwareComponent\n";
const CFN: &str = "AWSTemplateFormatVersion: '2010-09-09'\nResources: {word: {Type: 'OS::Heat::RandomString'}}\n";

const CONNTRACK: &str = "\
heat_template_version: 2021-04-16
resources:
  router: {type: OS::Neutron::Router}
  helper:
    type: Acme::ConntrackHelper
    properties: {router: {get_resource: router}, protocol: tcp, port: 21, helper: ftp}
";

/// Commands that run until they are stopped.
const SERVERS: [&str; 7] =
    ["kiln serve", "kiln api", "kiln engine", "kiln demo", "kiln testcloud", "kiln dashboard", "--follow"];
/// Commands that exit with 1 if they find something, or nothing.
const FINDERS: [&str; 14] = [
    "take-over compare --heat-config heat.conf --config-file kiln.conf --stack web --live",
    "take-over finish",
    "kiln webhook test",
    "kiln manage who-uses",
    "config check",
    "template lint",
    "fmt --check",
    "hook clear web 'nested/*'",
    "resource forget",
    "stack continue",
    "stack cancel",
    "import write",
    "stack refactor --moves web.moves.yaml",
    "commit -t web.yaml",
];

/// Whether the commands of a page are run.
pub(crate) fn runs(page: &str) -> bool {
    OTHER_PAGES.contains(&page) || MANUAL.contains(&page)
}

const OTHER_PAGES: [&str; 3] = ["README.md", "examples/README.md", "docs/topology.md"];
const MANUAL: [&str; 24] = [
    "docs/rights.md",
    "docs/first-stack.md",
    "docs/first-server.md",
    "docs/templates.md",
    "docs/reading-a-plan.md",
    "docs/saved-plans.md",
    "docs/audit.md",
    "docs/guards.md",
    "docs/webhooks.md",
    "docs/preflight.md",
    "docs/drift.md",
    "docs/moved.md",
    "docs/import.md",
    "docs/history.md",
    "docs/local-state.md",
    "docs/ci.md",
    "docs/terraform.md",
    "docs/databases.md",
    "docs/topology-guide.md",
    "docs/topology-types.md",
    "docs/operating.md",
    "docs/troubleshooting.md",
    "docs/resource-types.md",
    "docs/plugins.md",
];

/// Whether a line is a command: of `kiln`, also with variables before it, one that reads variables from a file, or one
/// that makes a package.
fn is_command(line: &str) -> bool {
    let is_variable = |word: &str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let has_variable = line.split(' ').next().is_some_and(is_variable) && line.contains(" kiln ");
    ["kiln ", ". ./", "python3 -m zipfile "].iter().any(|start| line.starts_with(start)) || has_variable
}

/// The example commands in a text: lines that start with `kiln`, or with a variable, and their continuations.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        if is_open {
            if let Some(last) = found.last_mut() {
                last.push(' ');
                last.push_str(line);
                is_open = last.matches('\'').count() % 2 == 1;
            }
        } else if is_command(line) {
            // Comments start after three spaces, or after two spaces and a `#`.
            let end = line.find("   ").into_iter().chain(line.find("  #")).min().unwrap_or(line.len());
            found.push(line[..end].trim().to_owned());
            is_open = line.matches('\'').count() % 2 == 1;
        }
    }
    found
}

/// The code of a page: indented lines.
fn code(page: &str) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    text.lines().filter(|line| line.starts_with("    ")).collect::<Vec<_>>().join("\n")
}

/// The examples in the help of a command and its subcommands, except these.
fn of_help(folder: &Folder, path: &[String], except: &[&str], found: &mut Vec<String>) {
    let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let help = folder.run(&args).ok();
    for examples in help.split("Example").skip(1) {
        let Some((_, examples)) = examples.split_once(":\n").filter(|(plural, _)| matches!(*plural, "" | "s")) else {
            continue;
        };
        for line in examples.lines().take_while(|line| line.starts_with("  ")) {
            // Deeper lines continue the line before.
            let is_example = line.strip_prefix("  ").is_some_and(|line| line.starts_with(' ') || is_command(line));
            assert!(is_example, "kiln {}: {line:?} is not executed", path.join(" "));
        }
    }
    found.extend(commands(&help));
    let below = help.split("Commands:\n").nth(1).unwrap_or_default();
    for line in below.lines().take_while(|line| line.starts_with("  ")) {
        if let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            let name = name.split_whitespace().next().unwrap();
            if !except.contains(&name) {
                of_help(folder, &[path, &[name.to_owned()]].concat(), &[], found);
            }
        }
    }
}

/// A folder with all files of the examples.
fn prepare(folder: &Folder, cloud: &Testcloud) {
    let examples = Path::new(ROOT).join("examples");
    for name in ["three-tier.yaml", "farm.yaml", "farm-environment.yaml"] {
        folder.write(name, &std::fs::read_to_string(examples.join(name)).unwrap());
    }
    for entry in std::fs::read_dir(examples.join("farm")).unwrap() {
        let entry = entry.unwrap();
        folder.write(&format!("farm/{}", entry.file_name().display()), &std::fs::read_to_string(entry.path()).unwrap());
    }
    // Replaces the names of another cloud.
    let environment = std::fs::read_to_string(examples.join("three-tier-environment.yaml")).unwrap();
    let environment = environment.replace("debian-12", "cirros").replace("internet", "public");
    folder.write("three-tier-environment.yaml", &environment);
    folder.write("web.yaml", WEB);
    folder.write("my.yaml", WEB);
    folder.write("production.yaml", "parameters: {flavor: m1.small}\n");
    folder.write("old.yaml", OLD);
    folder.write("policy.yaml", "stacks:index: role:reader\n");
    folder.write("install.sh", "#!/bin/sh\n");
    folder.write("inputs.yaml", "inputs: [{name: size}]\n");
    folder.write("id_ed25519.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJu me@example.com\n");
    let admin = cloud.users().admin;
    let clouds = format!(
        "clouds: {{admin: {{auth: {{auth_url: '{}', username: {}, password: {}, project_name: {}}}}}}}\n",
        cloud.auth_url(),
        admin.user,
        admin.password,
        admin.project
    );
    folder.write("clouds.yaml", &clouds);
    folder.write("cfn.template", CFN);
    folder.write("template.yaml", CONNTRACK);
    for (name, example) in [("app.yaml", "blueprint.yaml"), ("tosca.yaml", "tosca.yaml"), ("setup.sh", "setup.sh")] {
        folder.write(name, &std::fs::read_to_string(examples.join(example)).unwrap());
    }
    let dot = folder.write("bin/dot", "#!/bin/sh\ncat > /dev/null\n");
    folder.write("node-types/cache.yaml", CACHE);
    folder.write("cache.yaml", CACHE);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kiln"), folder.path().join("bin/kiln")).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(dot).status().unwrap().success());
    for place in ["etc", ".zfunc", ".config/fish/completions"] {
        std::fs::create_dir_all(folder.path().join(place)).unwrap();
    }
}

/// Runs a shell in the folder, with the variables of the simulated cloud.
fn shell(folder: &Folder, cloud: &Testcloud, service: &Service, line: &str) -> Output {
    let demo = cloud.users().demo;
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder.path()).env_clear().env("HOME", folder.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().join("bin").display()));
    command.env("TMPDIR", folder.path()).env("KILN_DATABASE", folder.path().join("stacks.db"));
    command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", demo.user).env("OS_PASSWORD", demo.password);
    command.env("OS_PROJECT_NAME", demo.project).env("OS_HEAT_API__BIND_PORT", "0");
    if ["manage report --service", "kiln quota"].iter().any(|command| line.contains(command)) {
        let admin = cloud.users().admin;
        command.env("OS_USERNAME", admin.user).env("OS_PASSWORD", admin.password).env("OS_PROJECT_NAME", admin.project);
    }
    // The service that runs has the socket of its configuration.
    command.env("OS_KILN__API_SOCKET", folder.path().join("another.sock"));
    // No browser starts.
    command.env("BROWSER", "true");
    command.env("PYTHONPATH", Path::new(ROOT).join("plugins/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("OS_ORCHESTRATION_ENDPOINT_OVERRIDE", format!("{}/v1/%(project_id)s", service.url));
    command.output().unwrap()
}

/// The top-level commands whose help is run together; the others are run with the pages.
const GROUPS: [&[&str]; 3] = [&["stack"], &["serve", "api", "engine", "demo", "testcloud"], &["template", "software"]];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_in_the_help_of_stacks_runs() {
    run_commands("documented-stacks", 20, |folder| of_group(folder, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_in_the_help_of_services_runs() {
    run_commands("documented-services", 5, |folder| of_group(folder, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_in_the_help_of_templates_and_software_runs() {
    run_commands("documented-templates", 10, |folder| of_group(folder, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_in_the_pages_and_the_other_help_runs() {
    run_commands("documented-pages", 30, |folder| {
        let mut all = Vec::new();
        of_help(folder, &[], &GROUPS.concat(), &mut all);
        all.extend(OTHER_PAGES.iter().flat_map(|page| commands(&code(page))));
        all
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_in_the_manual_runs() {
    run_commands("documented-manual", 30, |folder| {
        MANUAL
            .iter()
            .flat_map(|page| {
                write_files(folder, page);
                commands(&code(page))
            })
            .collect()
    })
    .await;
}

/// Writes the files of a page: templates and environments, whose first line is their name (`# port.yaml`), scripts, whose
/// second line is it, definitions of types, and plug-ins.
fn write_files(folder: &Folder, page: &str) {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    for block in text.split("```yaml\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        let first = block.lines().next().unwrap();
        if let Some(name) = first.strip_prefix("# ").filter(|name| !name.contains(' ')) {
            folder.write(name, block);
        } else if let Some(name) = first.strip_prefix("type: Acme::") {
            folder.write(&format!("types/Acme/{name}.yaml"), block);
        }
    }
    if let Some((_, block)) = text.split_once("```python\n") {
        folder.write("notes.py", block.split_once("```").unwrap().0);
    }
    for block in text.split("```sh\n#!").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        let name = block.lines().nth(1).unwrap().strip_prefix("# ").unwrap();
        folder.write(name, &format!("#!{block}"));
    }
}

/// The examples in the help of the commands of a group.
fn of_group(folder: &Folder, group: usize) -> Vec<String> {
    let mut all = Vec::new();
    for command in GROUPS[group] {
        of_help(folder, &[(*command).to_owned()], &[], &mut all);
    }
    all
}

/// Runs at least `least` commands with a cloud and a service of their own.
async fn run_commands(name: &str, least: usize, find: impl FnOnce(&Folder) -> Vec<String>) {
    let folder = Folder::new(name);
    let cloud = Testcloud::builder().build_time(std::time::Duration::from_millis(50)).start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    prepare(&folder, &cloud);
    heat_in(&folder).await;
    let mut all = find(&folder);
    let mut seen = BTreeSet::new();
    all.retain(|line| seen.insert(line.clone()));
    assert!(all.len() >= least, "{} commands: {all:#?}", all.len());

    let here = folder.path().display().to_string();
    let run = |line: &str| shell(&folder, &cloud, &service, line);
    let mut was_of_guards = false;
    for line in all {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Guards hold only until the examples of other commands.
        let is_of_guards = ["guard", "protect", "unprotect", "freeze", "thaw"].iter().any(|word| words.contains(word));
        if !is_of_guards && was_of_guards {
            run("kiln guard list -f value -c ID | xargs -r kiln guard lift");
        }
        was_of_guards = is_of_guards;
        let local = if words.contains(&"--local") { "--local " } else { "" };
        let is_create = (words.contains(&"create") || words.contains(&"adopt")) && !words.contains(&"webhook");
        for name in ["web", "db", "cache", "farm", "app"].into_iter().filter(|name| words.contains(name)) {
            let stack = format!("kiln {local}stack");
            if is_create {
                run(&format!("{stack} delete --yes --wait --poll 0.1 {name}"));
                continue;
            }
            // Waits for operations of earlier examples, but not for ever: one of them stops at a hook.
            run(&format!("timeout 5 {stack} wait --poll 0.1 {name}"));
            if !run(&format!("{stack} show {name}")).status.success() {
                let of = match name {
                    "farm" => "farm.yaml -e farm-environment.yaml",
                    "app" => "tosca.yaml --parameter web_image=cirros",
                    _ => "web.yaml",
                };
                let made = run(&format!("{stack} create -t {of} --wait --poll 0.1 {name}"));
                assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            }
        }
        let place = line.replace("/etc/kiln/kiln.conf", &format!("{here}/kiln.conf"));
        let place = place.replace("/etc/bash_completion.d", &format!("{here}/etc"));
        let place = place.replace("/etc/kiln/notes.py", &format!("{here}/notes.py"));
        let place = place.replace("--service http://localhost:8004", &format!("--service {}", service.url));
        let place = place.replace("unix:/run/kiln/api.sock", &format!("unix:{here}/api.sock"));
        let place = place.replace("sqlite:///tmp/kiln.db", &format!("sqlite://{here}/serve.db"));
        let place = if place.contains("WEBHOOK") {
            let webhooks = run("kiln webhook list -f value -c ID");
            let webhooks = String::from_utf8_lossy(&webhooks.stdout).into_owned();
            place.replace("WEBHOOK", webhooks.lines().next().expect("an example makes one"))
        } else {
            place
        };
        let serves = SERVERS.iter().any(|server| line.contains(server));
        let place = if !serves {
            place.replace("--wait ", "--wait --poll 0.1 ")
        } else if line.starts_with("OS_DATABASE") {
            place.replace("kiln serve", &format!("timeout -s INT 2 kiln serve --config-file {here}/kiln.conf"))
        } else {
            // Several tests run testclouds at the same time.
            let place = place.replace("kiln testcloud", "kiln testcloud --port 0");
            place.replacen("kiln ", "timeout -s INT 2 kiln ", 1)
        };
        let ran = run(&place);
        let code = ran.status.code().unwrap_or(-1);
        let finds = FINDERS.iter().any(|finder| line.contains(finder));
        let right = match code {
            0 => true,
            1 => finds,
            2 | 5 => line.contains("--detailed-exitcode"),
            124 | 130 => serves,
            _ => false,
        };
        assert!(right, "{line}\n{place}\nexit code {code}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// The configuration in a text, from `[database]` to `project_name`.
fn configuration(text: &str) -> String {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "[database]");
    let mut lines: Vec<&str> = lines.take_while(|line| !line.starts_with("kiln ")).collect();
    let end = lines.iter().position(|line| line.starts_with("project_name")).expect("a configuration");
    lines.truncate(end + 1);
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_configuration_starts() {
    let folder = Folder::new("configured");
    let cloud = Testcloud::builder().start().await.unwrap();
    let help = folder.run(&["serve", "--help"]).ok();
    for text in [code("README.md"), help] {
        let shown = configuration(&text);
        // Replaces only the values that users must replace.
        let config = shown.replace("/var/lib/kiln", &folder.path().display().to_string());
        let config = config.replace("http://keystone:5000/v3", &cloud.auth_url());
        let config = config.replace("password = secret", &format!("password = {}", cloud.users().heat.password));
        let file = folder.write("kiln.conf", &config);
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
        command.args(["serve", "--bind-port", "0", "--config-file"]).arg(file).env_clear();
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = String::new();
        for line in BufReader::new(process.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            log.push_str(&line);
            log.push('\n');
            if line.contains("serving address=") {
                break;
            }
        }
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(log.contains("serving address=") && !log.contains("WARN") && !log.contains("ERROR"), "{shown}\n{log}");
    }
}
