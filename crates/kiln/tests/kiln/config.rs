//! `kiln config`: checks of real configuration files, the values in use, the reference; SIGHUP.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::running::Running;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FILES: [&str; 6] = ["debian", "debian-all", "kolla", "openstack-helm", "openstack-ansible", "devstack"];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/heat-conf").join(name)
}

/// One of the files, with the folder of policies that its package creates.
fn prepared(folder: &Folder, name: &str) -> PathBuf {
    std::fs::create_dir_all(folder.path().join("policy.d")).unwrap();
    let text = std::fs::read_to_string(data(&format!("{name}.conf"))).unwrap();
    folder.write(
        &format!("{name}.conf"),
        &text.replace("/etc/heat/policy.d", &folder.path().join("policy.d").display().to_string()),
    )
}

#[test]
fn files_of_heat_are_answered_line_by_line() {
    let folder = Folder::new("heat-conf");
    let updates = std::env::var_os("KILN_UPDATE_DATA").is_some();
    for name in FILES {
        let file = prepared(&folder, name);
        let ran = folder.run(&["config", "check", file.to_str().unwrap()]);
        let out = ran.out.replace(&format!("{}/", folder.path().display()), "");
        let expected = data(&format!("{name}.txt"));
        if updates {
            std::fs::write(&expected, &out).unwrap();
        }
        assert_eq!(out, std::fs::read_to_string(&expected).unwrap(), "{name}; KILN_UPDATE_DATA=1 updates the data");
        let errors = out.lines().filter(|line| line.contains("error: ")).count();
        assert_eq!(ran.code, i32::from(errors > 0), "{name}");
        // Nothing is unknown: what is missing is the key and the password, which their packages generate.
        assert!(!out.contains("is not an option"), "{name}");
        assert!(!out.contains("password = ") && !ran.err.contains("secret"), "{name}");
    }
}

/// With what their packages generate, the files start a service: only addresses are replaced.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_heat_start_a_service() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for name in FILES.into_iter().filter(|name| *name != "debian-all") {
        let folder = Folder::new(&format!("heat-conf-{name}"));
        let file = prepared(&folder, name);
        let mut variables = Vec::new();
        let heat = cloud.users().heat;
        for section in ["KEYSTONE_AUTHTOKEN", "TRUSTEE", "EC2AUTHTOKEN"] {
            for (option, value) in [
                ("AUTH_URL", cloud.auth_url()),
                ("USERNAME", heat.user.to_owned()),
                ("PASSWORD", heat.password.to_owned()),
                ("PROJECT_NAME", heat.project.to_owned()),
                ("REGION_NAME", cloud.region().to_owned()),
                // Names differ in case, which only MariaDB ignores.
                ("USER_DOMAIN_NAME", "Default".to_owned()),
                ("PROJECT_DOMAIN_NAME", "Default".to_owned()),
            ] {
                variables.push((format!("OS_{section}__{option}"), value));
            }
        }
        let database = format!("sqlite://{}/kiln.db?mode=rwc", folder.path().display());
        for (option, value) in [
            ("DATABASE__CONNECTION", database.as_str()),
            ("DEFAULT__AUTH_ENCRYPTION_KEY", "0123456789abcdef0123456789abcdef"),
            ("DEFAULT__REGION_NAME_FOR_SERVICES", cloud.region()),
            ("HEAT_API__BIND_PORT", "0"),
            ("HEAT_API__BIND_HOST", "127.0.0.1"),
            ("HEAT_API_CFN__BIND_PORT", "0"),
        ] {
            variables.push((format!("OS_{option}"), value.to_owned()));
        }
        if name == "kolla" {
            // Its log file is in a folder of its image.
            let log = folder.path().join("heat-engine.log").display().to_string();
            variables.push(("OS_DEFAULT__LOG_FILE".to_owned(), log));
            variables.push(("OS_DEFAULT__USE_STDERR".to_owned(), "true".to_owned()));
        }
        let mut command = folder.kiln(&["serve", "--config-file", file.to_str().unwrap()]);
        command.envs(variables);
        let service = Running::start(command);
        service.wait_for("serving address=127.0.0.1:");
        let (code, log) = service.stop();
        let has_unread = log.contains("options without effect in Kiln: [");
        assert!(code == 0 && !log.contains("ERROR") && has_unread == (name != "debian"), "{name}\n{log}");
        if name == "kolla" {
            assert_eq!(std::fs::read_to_string(folder.path().join("heat-engine.log")).unwrap(), log);
        }
    }
}

#[test]
fn findings_are_objects_too() {
    let folder = Folder::new("config-check");
    let file = folder.write("kiln.conf", "[DEFAULT]\nmax_stack_per_tenant = 3\n");
    let ran = folder.run(&["config", "check", "-f", "json", file.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found[0]["line"], 2);
    assert_eq!(found[0]["option"], "max_stack_per_tenant");
    assert_eq!(found[0]["hint"], "did you mean max_stacks_per_tenant?");
    assert_eq!(found[1]["option"], "connection");
    let broken = folder.write("broken.conf", "[DEFAULT]\nword\n");
    let ran = folder.run(&["config", "check", broken.to_str().unwrap()]);
    assert!(ran.code == 1 && ran.err.contains("broken.conf: line 2: no ':' or '=' found"), "{}", ran.err);
}

/// Options of a list in `heat-options`: `[section]`, then one name a line.
fn listed(name: &str) -> Vec<(String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/heat-options").join(format!("{name}.txt"));
    let mut section = String::new();
    let mut options = Vec::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => name.clone_into(&mut section),
            None => options.push((section.clone(), line.to_owned())),
        }
    }
    options
}

/// Every option that Heat's own generator prints, and all that deployments set, is honoured, refused, or said to have
/// no effect. What is printed is the same table as in the data, with a reason for each.
#[test]
fn every_option_of_heat_is_honoured_refused_or_said_to_have_no_effect() {
    const LISTS: [&str; 8] = [
        "heat",
        "heat-older-names",
        "kolla-ansible",
        "openstack-ansible",
        "openstack-helm",
        "tripleo",
        "charm-heat",
        "sunbeam-charm-heat",
    ];
    let folder = Folder::new("heat-options");
    let mut table: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for name in LISTS {
        let options = listed(name);
        assert!(name != "heat" || options.len() >= 528, "{}", options.len());
        // Not a value of any option that has values of its own.
        let lines = options.iter().map(|(section, option)| format!("[{section}]\n{option} = no-such-value\n"));
        let file = folder.write("heat.conf", &lines.collect::<Vec<_>>().concat());
        let ran = folder.run(&["config", "check", "-f", "json", file.to_str().unwrap()]);
        let found: Vec<serde_json::Value> = serde_json::from_str(&ran.out).unwrap();
        for (section, option) in options {
            let told = found.iter().find(|told| told["section"] == *section && told["option"] == *option);
            let text = |key: &str| told.and_then(|told| told[key].as_str()).unwrap_or_default();
            let group = match text("message") {
                "is not an option of Kiln or Heat" if name.starts_with("heat") => {
                    panic!("[{section}] {option}: {ran:?}")
                }
                "is not an option of Kiln or Heat" => "unknown, also to Heat".to_owned(),
                "has no effect" => format!("no effect: {}", text("hint")),
                message if message.starts_with("does not support the value") => {
                    format!("{}, other values: {}", text("level"), text("hint"))
                }
                _ => "honoured".to_owned(),
            };
            table.entry(group).or_default().entry(section).or_default().insert(option);
        }
    }
    let mut shown = String::new();
    for (group, sections) in &table {
        _ = writeln!(shown, "{group}");
        for (section, options) in sections {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            _ = writeln!(shown, "  [{section}] {}", options.join(" "));
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/heat-options/table.txt");
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::write(&file, &shown).unwrap();
    }
    assert_eq!(shown, std::fs::read_to_string(file).unwrap(), "KILN_UPDATE_DATA=1 updates the data");
}

/// What is honoured is also read: each option of the table occurs in the code.
#[test]
fn every_option_of_the_table_is_read() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let options = crates.join("config/src/options");
    let mut folders: Vec<_> =
        ["config", "server", "telemetry", "bus", "webhook", "kiln"].map(|name| crates.join(name).join("src")).into();
    let (mut table, mut code) = (String::new(), String::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                (if path.starts_with(&options) { &mut table } else { &mut code }).push_str(&text);
            }
        }
    }
    let is_name = |id: &&str| id.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("    ")?.split_once(" = ")?.0))
        .filter(is_name)
        .collect();
    assert!(names.len() > 150, "{}", names.len());
    let words: BTreeSet<&str> = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let unread: Vec<&str> = names.into_iter().filter(|name| !words.contains(name)).collect();
    assert!(unread.is_empty(), "{unread:?}");
}

/// What is honoured is a part of the configuration: a value of each option is shown, by the name that it has today.
#[test]
fn the_values_of_honoured_options_are_in_the_configuration() {
    let folder = Folder::new("config-honoured");
    let table =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/heat-options/table.txt"));
    let table = table.unwrap();
    let honoured = table.split("honoured\n").nth(1).unwrap().lines().take_while(|line| line.starts_with("  ["));
    let mut checked = 0;
    for line in honoured {
        let (section, options) = line.trim_start_matches("  [").split_once("] ").unwrap();
        // All of a section at once; older names of one option in files of their own, because one value is read of them.
        let shown = |options: &[&str]| -> Vec<serde_json::Value> {
            let lines: Vec<String> = options.iter().map(|option| format!("{option} = 17")).collect();
            let file = folder.write("heat.conf", &format!("[{section}]\n{}\n", lines.join("\n")));
            let args = ["config", "show", "--set", "--config-file", file.to_str().unwrap(), "-f", "json"];
            serde_json::from_str(&folder.run(&args).ok()).unwrap()
        };
        let options: Vec<&str> = options.split(' ').collect();
        let together = shown(&options);
        for option in options {
            let is_here = |row: &&serde_json::Value| row["Section"] == section && row["Option"] == option;
            let row = together.iter().find(is_here).cloned().or_else(|| shown(&[option]).pop());
            let value = row.as_ref().map(|row| row["Value"].as_str().unwrap_or_default());
            assert!(matches!(value, Some("17" | "***")), "[{section}] {option}: {row:?}");
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
}

/// A value that means something in Heat and nothing in Kiln stops the start, also from the environment; a name of an
/// older release means what it meant.
#[test]
fn what_is_not_built_stops_the_start() {
    let folder = Folder::new("config-refused");
    let key = "auth_encryption_key = 0123456789abcdef0123456789abcdef";
    let database = "[database]\nconnection = sqlite:///k.db";
    let why =
        "[ssl] cert_file does not support the value \"/c.pem\": HTTPS is served with [heat_api] cert_file and key_file";
    let plain = folder.write("plain.conf", &format!("[DEFAULT]\n{key}\n{database}\n"));
    let set = folder.write("set.conf", &format!("[DEFAULT]\n{key}\n{database}\n[ssl]\ncert_file = /c.pem\n"));
    let mut by_variable = folder.kiln(&["serve", "--config-file", plain.to_str().unwrap()]);
    by_variable.env("OS_SSL__CERT_FILE", "/c.pem");
    for mut command in [by_variable, folder.kiln(&["serve", "--config-file", set.to_str().unwrap()])] {
        let ran = Ran::from(command.output().unwrap());
        assert!(ran.code == 1 && ran.err.contains(why), "{}", ran.err);
    }
    let ran = folder.run(&["config", "check", set.to_str().unwrap()]);
    assert!(ran.code == 1 && ran.out.contains(&format!("set.conf:6: error: {why}")), "{}", ran.out);
    let older = folder.write(
        "older.conf",
        "[DEFAULT]\nnotification_driver = messagingv2\nnotification_driver = log\npolicy_file = p.yaml\n\
         [oslo_messaging_rabbit]\nrabbit_use_ssl = true\nkombu_ssl_ca_certs = /ca.pem\n",
    );
    let ran = folder.run(&["config", "show", "--set", "--config-file", older.to_str().unwrap(), "-f", "json"]).ok();
    let shown: serde_json::Value = serde_json::from_str(&ran).unwrap();
    let row = |option: &str| shown.as_array().unwrap().iter().find(|row| row["Option"] == option).unwrap().clone();
    assert_eq!((row("driver")["Value"].as_str(), row("policy_file")["Value"].as_str()), (Some("log"), Some("p.yaml")));
    assert_eq!((row("ssl")["Value"].as_str(), row("ssl_ca_file")["Value"].as_str()), (Some("true"), Some("/ca.pem")));
    let ran = folder.run(&["config", "check", older.to_str().unwrap()]);
    let told =
        "older.conf:2: note: [DEFAULT] notification_driver is an older name: use [oslo_messaging_notifications] driver";
    assert!(ran.out.contains(told), "{}", ran.out);
}

/// kolla, OpenStack-Ansible and openstack-helm set both.
#[tokio::test(flavor = "multi_thread")]
async fn servers_read_metadata_where_it_says_and_backups_are_refused_without_their_service() {
    let folder = Folder::new("config-heat");
    let cloud = Testcloud::builder().build_time(std::time::Duration::ZERO).start().await.unwrap();
    let options = "heat_metadata_server_url = http://meta.example:8000\n[kiln]\ncfn_api = false\n[volumes]\n\
                   backups_enabled = false\n";
    let config = folder.configured(&cloud, options);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let template = |resource: &str| {
        let text = format!("heat_template_version: 2018-08-31\nresources: {{it: {{{resource}}}}}\n");
        folder.write("t.yaml", &text).display().to_string()
    };
    let create = |name: &str, template: String| {
        let args = ["stack", "create", "-t", &template, "--wait", "--poll", "0.1", name];
        Ran::from(folder.client(&cloud, &url, &args).output().unwrap())
    };
    let server = "type: OS::Nova::Server, properties: {image: cirros, flavor: m1.nano, networks: [{network: private}]}";
    create("server", template(server)).ok();
    let saved: serde_json::Value = serde_json::from_str(&cloud.save()).unwrap();
    assert!(user_data(&saved).contains("http://meta.example:8000/v1/"), "{saved}");
    let volume = template("type: OS::Cinder::Volume, properties: {size: 1}, deletion_policy: Snapshot");
    let refused = create("volume", volume);
    let why = "\"Snapshot\" deletion policy not supported - volume backup service is not enabled.";
    assert!(refused.code == 1 && refused.err.contains(why), "{}", refused.err);
    service.signal("KILL");
}

/// All texts in a document that are base64, decoded.
fn user_data(document: &serde_json::Value) -> String {
    match document {
        serde_json::Value::String(text) => {
            STANDARD.decode(text).map_or_else(|_| String::new(), |text| String::from_utf8_lossy(&text).into_owned())
        }
        serde_json::Value::Array(items) => items.iter().map(user_data).collect(),
        serde_json::Value::Object(map) => map.values().map(user_data).collect(),
        _ => String::new(),
    }
}

/// What stops the start is found by the check, and a short password takes no letters out of the reason.
#[test]
fn the_check_refuses_what_stops_the_start() {
    let folder = Folder::new("config-start");
    let key = "0123456789abcdef0123456789abcdef";
    for (url, key, why) in [
        ("sqlite:///k.db", format!("{key}0"), "[DEFAULT] auth_encryption_key must have 32 (or 16) bytes: run 'openssl"),
        (
            "oracle://heat:o@db/heat",
            key.to_owned(),
            "[database] connection oracle://heat:***@db/heat: not a database that Kiln supports: use postgresql://",
        ),
        (
            "sqlite:///k.db",
            format!("{key}\n[kiln]\nolder_encryption_keys = {key}, {key}0"),
            "[kiln] older_encryption_keys must each have 32 (or 16) bytes",
        ),
    ] {
        let text = format!("[DEFAULT]\nauth_encryption_key = {key}\n[database]\nconnection = {url}\n");
        let file = folder.write("kiln.conf", &text);
        let ran = folder.run(&["config", "check", file.to_str().unwrap()]);
        let (code, line) = (ran.code, if why.starts_with("[DEFAULT]") { 2 } else { 4 });
        let expected = format!("kiln.conf:{line}: error: {why}");
        assert!(code == 1 && ran.out.contains(&expected), "{}", ran.out);
        let ran = folder.run(&["serve", "--config-file", file.to_str().unwrap()]);
        assert!(ran.code == 1 && ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn values_in_use_have_sources_and_no_secrets() {
    let folder = Folder::new("config-show");
    let text = "[DEFAULT]\nauth_encryption_key = s3cret\nmax_stacks_per_tenant = 3\n[database]\n\
                connection = postgresql://heat:s3cret@db/heat\n[trustee]\npassword = s3cret\n";
    let file = folder.write("kiln.conf", text);
    let show = |more: &[&str]| {
        let args = [&["config", "show", "--config-file", file.to_str().unwrap(), "-f", "json"], more].concat();
        let mut command = folder.kiln(&args);
        let ran = Ran::from(command.env("OS_HEAT_API__BIND_PORT", "9004").output().unwrap()).ok();
        assert!(!ran.contains("s3cret"), "{ran}");
        serde_json::from_str::<serde_json::Value>(&ran).unwrap()
    };
    let find = |rows: &serde_json::Value, option: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["Option"] == option).cloned();
        row.map(|row| format!("{} {} {}", row["Section"], row["Value"], row["Source"]).replace('"', ""))
    };
    let (all, set) = (show(&[]), show(&["--set"]));
    let place = |line| format!("{}:{line}", file.display());
    for rows in [&all, &set] {
        assert_eq!(find(rows, "max_stacks_per_tenant"), Some(format!("DEFAULT 3 {}", place(3))));
        assert_eq!(find(rows, "connection"), Some(format!("database postgresql://heat:***@db/heat {}", place(5))));
        assert_eq!(find(rows, "bind_port"), Some("heat_api 9004 OS_HEAT_API__BIND_PORT".to_owned()));
    }
    assert_eq!(find(&set, "password"), Some(format!("trustee *** {}", place(7))));
    assert_eq!(find(&all, "lease"), Some("kiln 15 default".to_owned()));
    assert_eq!(find(&set, "lease"), None);
}

#[test]
fn the_page_is_that_of_the_table() {
    let folder = Folder::new("reference");
    let page = folder.run(&["config", "reference", "-f", "markdown"]).ok();
    let stored = std::fs::read_to_string(Path::new(ROOT).join("docs/configuration.md")).unwrap();
    assert!(page == stored, "run: kiln config reference -f markdown > docs/configuration.md");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_changes_the_level_of_the_log() {
    let folder = Folder::new("hangup");
    let cloud = Testcloud::builder().start().await.unwrap();
    let file = folder.configured(&cloud, "");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &file]));
    // During the start the signal waits; it does not end the process.
    service.wait_for("database schema upgraded migration=1");
    folder.configured(&cloud, "debug = true\nmax_stacks_per_tenant = 5\n");
    service.signal("HUP");
    service.wait_for("the configuration was read again applied=\"[DEFAULT] debug\"");
    service.wait_for("restart the service to apply the changes of [DEFAULT] max_stacks_per_tenant");
    // A client that does not speak HTTP is told of at that level.
    let url = service.url();
    std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap().write_all(b"what\r\n\r\n").unwrap();
    service.wait_for("DEBUG");
    std::fs::write(&file, "[DEFAULT]\ndebug = loud\n").unwrap();
    service.signal("HUP");
    service.wait_for("the former one stays in use: [DEFAULT] debug: \"loud\" is not a boolean");
    assert_eq!(service.stop().0, 0);
}
