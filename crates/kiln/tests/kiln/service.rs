//! `kiln serve` with a Keystone, and requests with `kiln stack`.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database, Statement};

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::wire;

/// A resource type of the operator.
const NET: &str = "
type: My::Net
summary: A network with a label.
service: network
rest: {collection: /v2.0/networks, member: network, name: label}
properties:
  label: {type: string, as: name}
attributes:
  label: {type: string, as: name}
";

/// A template that the operator's environment maps a type to.
const LABELLED: &str = "
heat_template_version: 2018-08-31
description: A network that is called by what it is for.
parameters:
  purpose: {type: string, description: What it is for.}
resources:
  net: {type: My::Net, properties: {label: {get_param: purpose}}}
outputs:
  label: {description: What it is called., value: {get_attr: [net, label]}}
";

/// A type of blueprints and TOSCA of the operator.
const CACHE: &str = "
topology_type: com.example.operator.Cache
description: A cache.
derived_from: tosca.nodes.Root
component: {aliases: [our_cache]}
properties: {size: {type: integer}}
hot:
  resources:
    '': {type: OS::Heat::Value, properties: {value: {$property: size}}}
";

/// A running `kiln serve` with the operator's types, stopped at the end of the test.
pub(crate) struct Service {
    child: Child,
    pub(crate) url: String,
    /// The lines of its log.
    log: Arc<Mutex<Vec<serde_json::Value>>>,
}

/// A configuration of a service with a cloud.
pub(crate) fn config(folder: &Folder, cloud: &Testcloud) -> String {
    let heat = cloud.users().heat;
    folder.write("operator-types/cache.yaml", CACHE);
    format!(
        "[database]\nconnection = sqlite://{here}/serve.db?mode=rwc\n\
         [DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\n\
         enable_stack_adopt = true\nenable_stack_abandon = true\n\
         unknown_option = 1\nmax_stack_per_tenant = 9\n\
         [keystone_authtoken]\nauth_url = {}\nusername = {}\npassword = {}\nproject_name = {}\n\
         [heat_api]\nbind_host = localhost\nbind_port = 0\n[kiln]\nmetrics_bind_port = 0\nresource_types_dir = {here}/types\n\
         topology_types_dir = {here}/operator-types\n",
        cloud.auth_url(),
        heat.user,
        heat.password,
        heat.project,
        here = folder.path().display(),
    )
}

impl Service {
    pub(crate) fn start(folder: &Folder, cloud: &Testcloud) -> Self {
        let socket = folder.path().join("api.sock");
        let config = format!(
            "{}api_socket = {}\n[webhooks]\nenabled = true\nhandshake = optional\n",
            config(folder, cloud),
            socket.display()
        );
        Self::start_with(folder, &config, "serve", "0")
    }

    /// Starts a service in another role, on a port.
    fn start_as(folder: &Folder, cloud: &Testcloud, role: &str, port: &str) -> Self {
        Self::start_with(folder, &config(folder, cloud), role, port)
    }

    pub(crate) fn start_with(folder: &Folder, config: &str, role: &str, port: &str) -> Self {
        folder.write("types/My/Net.yaml", NET);
        let url = format!("file://{}", folder.write("labelled.yaml", LABELLED).display());
        folder.write("environment.d/ours.yaml", &format!("resource_registry: {{'My::Labelled': '{url}'}}\n"));
        let config = folder.write("kiln.conf", config);
        let mut command = folder.kiln(&[role, "--log-format", "json", "--config-file", config.to_str().unwrap()]);
        command.args(["--bind-port", port]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // The log contains the port.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let url = loop {
            let line = lines.next().expect("the service ended").unwrap();
            let told: serde_json::Value = serde_json::from_str(&line).expect(&line);
            let address = told["fields"]["address"].as_str().map(str::to_owned);
            log.lock().unwrap().push(told);
            // The address of TCP comes first, then the socket.
            if let Some(address) = address {
                break format!("http://{}", address.split(',').next().unwrap());
            }
        };
        // Keep reading, or the service would block on a full pipe.
        let rest = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                rest.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, url, log }
    }

    /// Runs a client command as the demo user.
    pub(crate) fn asked(&self, folder: &Folder, cloud: &Testcloud, args: &[&str]) -> Ran {
        Ran::from(self.command(folder, cloud, args).output().unwrap())
    }

    fn command(&self, folder: &Folder, cloud: &Testcloud, args: &[&str]) -> Command {
        folder.client(cloud, &self.url, args)
    }

    /// Stops the service and returns the exit code.
    pub(crate) fn stop(&mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// The fields of the log lines with this message.
    fn told(&self, message: &str) -> Vec<serde_json::Value> {
        let log = self.log.lock().unwrap();
        let of = |line: &&serde_json::Value| line["fields"]["message"] == message;
        let flat = |line: &serde_json::Value| {
            let mut all = line.as_object().unwrap().clone();
            all.extend(line["fields"].as_object().unwrap().clone());
            serde_json::Value::Object(all)
        };
        log.iter().filter(of).map(flat).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The metrics of a service.
fn scraped(service: &Service) -> String {
    let end = Instant::now() + Duration::from_secs(20);
    let told = loop {
        match service.told("serving metrics").pop() {
            Some(told) => break told,
            None => assert!(Instant::now() < end, "metrics are not served"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let address = told["address"].as_str().unwrap();
    wire::get(address, "/metrics")
}

/// What changes something in the cloud, and what creates tokens and trusts; polls depend on the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_plans_sends_what_it_always_sent() {
    let folder = Folder::new("requests");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    let template = "\
heat_template_version: 2018-08-31
parameters: {name: {type: string, default: ant}, cidr: {type: string, default: 10.9.0.0/24}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: {get_param: cidr}}}
  volume: {type: OS::Cinder::Volume, properties: {size: 1}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def:
        type: OS::Neutron::Net
        properties: {name: {list_join: ['-', [{get_param: name}, '%index%']]}}
";
    folder.write("t.yaml", template);
    let mut text = String::new();
    for args in [
        &["create", "-t", "t.yaml", "--wait", "--poll", "0.1", "one"][..],
        &[
            "update",
            "--existing",
            "--parameter",
            "name=bee",
            "--parameter",
            "cidr=10.8.0.0/24",
            "--wait",
            "--poll",
            "0.1",
            "one",
        ],
        &["check", "--wait", "--poll", "0.1", "one"],
        &["delete", "--yes", "--wait", "--poll", "0.1", "one"],
    ] {
        cloud.journal().clear();
        service.asked(&folder, &cloud, &[&["stack"], args].concat()).ok();
        _ = writeln!(text, "# {}", args[0]);
        for (call, count) in cloud.journal().counts() {
            // The trust is deleted some time after the stack.
            let is_later = args[0] == "delete" && call.contains(" identity ");
            if !call.starts_with("GET ") && !is_later {
                _ = writeln!(text, "{count} x {call}");
            }
        }
    }
    insta::assert_snapshot!("requests", text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_asked_and_drained() {
    let folder = Folder::new("service");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut service = Service::start(&folder, &cloud);
    let kiln = |args: &[&str]| service.asked(&folder, &cloud, args);
    let text = "heat_template_version: 2018-08-31\nresources: {net: {type: My::Labelled, properties: {purpose: mine}}}\n\
                outputs: {label: {value: {get_attr: [net, label]}}}\n";
    folder.write("t.yaml", text);
    let made = kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", "one", "-f", "json"]).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE");
    let label = kiln(&["stack", "output", "show", "one", "label", "-f", "value", "-c", "output_value"]).ok();
    assert_eq!(label, "mine\n");
    let nested = kiln(&["stack", "list", "--nested", "-f", "json"]).json();
    let nested = nested.as_array().unwrap().iter().find(|stack| stack["Stack Name"] != "one").unwrap().clone();
    let shown = kiln(&["stack", "show", nested["Stack Name"].as_str().unwrap(), "-c", "id", "-f", "json"]).json();
    assert_eq!(shown["id"], nested["ID"], "nested stacks have names, too");
    let planned = |args: &[&str]| kiln(&[args, &["--dry-run", "-f", "json", "--detailed-exitcode"]].concat()).code;
    assert_eq!(planned(&["stack", "update", "one", "--existing"]), 0);
    assert_eq!(planned(&["stack", "create", "two", "-t", "t.yaml"]), 2);
    let metrics = scraped(&service);
    let post = "api=\"rest\",route=\"/{tenant_id}/stacks\",method=\"POST\",status=\"201\"";
    let preview = |route: &str, method: &str| {
        let labels = format!("api=\"rest\",route=\"/{{tenant_id}}/stacks/{route}\",method=\"{method}\",status=\"200\"");
        format!("kiln_requests_seconds_count{{{labels}}} 1")
    };
    for line in [
        "kiln_stacks{action=\"CREATE\",status=\"COMPLETE\"} 2".to_owned(),
        "kiln_stacks_pending 0".to_owned(),
        "kiln_engines{status=\"up\"} 1".to_owned(),
        // It is there before the first one, so that an alert sees the increase.
        "kiln_actors_started_total{taken_over=\"true\"} 0".to_owned(),
        format!("kiln_requests_seconds_count{{{post}}} 1"),
        // The preview and the exit code are from one answer.
        preview("{stack_name}/{stack_id}/preview", "PATCH"),
        preview("preview", "POST"),
    ] {
        assert!(metrics.lines().any(|have| have == line), "{line} in\n{metrics}");
    }
    for start in [
        "kiln_store_seconds_count{retried=\"false\"} ",
        "kiln_actors_started_total{taken_over=\"false\"} ",
        "kiln_actors_ended_total{exit=\"settled\"} ",
        "kiln_doorbells_total ",
        "kiln_oldest_pending_seconds 0",
        "kiln_engine_silence_seconds ",
        "kiln_build_info{version=\"0",
        "process_resident_memory_bytes ",
        "process_open_fds ",
    ] {
        assert!(metrics.lines().any(|have| have.starts_with(start)), "{start} in\n{metrics}");
    }
    assert!(metrics.contains("kiln_cloud_calls_seconds_count{service=\"network\",status=\"201\"} 1"), "{metrics}");
    let listed = kiln(&["resource-type", "list", "-f", "value"]).ok();
    assert!(["My::Labelled", "My::Net"].iter().all(|ours| listed.lines().any(|name| name == *ours)), "{listed}");
    let shown = kiln(&["resource-type", "show", "My::Labelled", "-f", "json"]).json();
    assert_eq!(shown["properties"]["purpose"]["description"], "What it is for.", "{shown}");
    assert_eq!(shown["attributes"]["label"]["description"], "What it is called.", "{shown}");
    let wrong = kiln(&["--os-password", "wrong", "stack", "list"]);
    assert_eq!(wrong.code, 1, "{}", wrong.err);
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "one"]).ok();
    assert_eq!(service.stop(), 0);
}

/// However long ago it was stopped: an alert about silence would be wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_engine_is_neither_up_nor_silent() {
    let folder = Folder::new("stopped-engine");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut service = Service::start_as(&folder, &cloud, "api", "0");
    let config = folder.path().join("kiln.conf").display().to_string();
    let engine = Running::start(folder.kiln(&["engine", "--config-file", &config]));
    let has = |line: &str| scraped(&service).lines().any(|have| have == line);
    while !has("kiln_engines{status=\"up\"} 1") {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(engine.stop().0, 0);
    let database = Box::pin(Database::connect(format!("sqlite://{}/serve.db", folder.path().display()))).await.unwrap();
    database.execute_unprepared("UPDATE kiln_engine SET seen = seen - 3600000000").await.unwrap();
    assert!(has("kiln_engines{status=\"up\"} 0") && has("kiln_engine_silence_seconds 0"), "{}", scraped(&service));
    assert_eq!(service.stop(), 0);
}

/// `[kiln] keep_deleted`, in days.
#[tokio::test(flavor = "multi_thread")]
async fn engines_purge_deleted_stacks_when_the_operator_says_so() {
    let folder = Folder::new("keep-deleted");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = |more: &str| {
        let config = folder.configured(&cloud, &format!("[kiln]\ncfn_api = false\n{more}"));
        Running::start(folder.kiln(&["serve", "--config-file", &config]))
    };
    let first = service("");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    for args in [&["stack", "create", "--wait", "-t", "t.yaml", "one"][..], &["stack", "delete", "--wait", "one"]] {
        Ran::from(folder.client(&cloud, &first.url(), args).output().unwrap()).ok();
    }
    assert_eq!(first.stop().0, 0);
    let database = Box::pin(Database::connect(format!("sqlite://{}/kiln.db", folder.path().display()))).await.unwrap();
    let count = async || {
        let count = Statement::from_string(database.get_database_backend(), "SELECT count(*) FROM kiln_stack");
        database.query_one_raw(count).await.unwrap().unwrap().try_get_by_index::<i64>(0).unwrap()
    };
    assert_eq!(count().await, 1, "kept for 30 days");
    let second = service("keep_deleted = 0\n");
    second.url();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while count().await > 0 {
        assert!(std::time::Instant::now() < end, "{}", second.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(second.stop().0, 0);
}

/// A stack is purged after its line is in the archive, and has only one.
#[tokio::test(flavor = "multi_thread")]
async fn purged_stacks_are_archived_before() {
    let folder = Folder::new("archive");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {word: {type: OS::Heat::RandomString}}\n");
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let create = ["stack", "create", "--wait", "-t", "t.yaml", name, "-f", "value", "-c", "id"];
        ids.push(Ran::from(folder.client(&cloud, &service.url(), &create).output().unwrap()).ok().trim().to_owned());
        let delete = ["stack", "delete", "--wait", name];
        Ran::from(folder.client(&cloud, &service.url(), &delete).output().unwrap()).ok();
    }
    assert_eq!(service.stop().0, 0);
    let file = folder.path().join("purged.jsonl");
    let purge = || {
        let args = ["manage", "purge-deleted", "--days", "0", "--archive", "purged.jsonl", "--config-file", &config];
        folder.run(&args)
    };
    let database = Box::pin(Database::connect(format!("sqlite://{}/kiln.db", folder.path().display()))).await.unwrap();
    let count = async || {
        let count = Statement::from_string(database.get_database_backend(), "SELECT count(*) FROM kiln_stack");
        database.query_one_raw(count).await.unwrap().unwrap().try_get_by_index::<i64>(0).unwrap()
    };
    let lines = || -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    };
    // A file that is no archive stays as it is, and so do the stacks.
    for other in ["other\n", "other"] {
        folder.write("purged.jsonl", other);
        let refused = purge();
        assert!(refused.code != 0 && refused.err.contains("line 1 is no stack"), "{refused:?}");
        assert_eq!((std::fs::read_to_string(&file).unwrap().as_str(), count().await), (other, 2));
    }
    std::fs::remove_file(&file).unwrap();
    // It ends between the archive and the purge.
    database
        .execute_unprepared("CREATE TRIGGER no BEFORE DELETE ON kiln_stack BEGIN SELECT RAISE(ABORT, 'no'); END")
        .await
        .unwrap();
    assert_ne!(purge().code, 0);
    assert_eq!((lines().len(), count().await), (2, 2));
    database.execute_unprepared("DROP TRIGGER no").await.unwrap();
    // It was killed in the second line.
    let text = std::fs::read_to_string(&file).unwrap();
    folder.write("purged.jsonl", &text[..text.len() - 9]);
    assert_eq!(purge().ok().lines().next(), Some("Archived 1 stacks."));
    assert_eq!(count().await, 0);
    let archived = lines();
    assert_eq!(archived.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), ids);
    let one = &archived[0];
    assert_eq!((&one["name"], &one["status"]), (&"one".into(), &"DELETE_COMPLETE".into()));
    let actions = |list: &serde_json::Value| {
        list.as_array().unwrap().iter().map(|one| one["action"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(actions(&one["operations"]), ["DELETE", "CREATE"]);
    assert_eq!(
        actions(&one["events"]),
        ["CREATE", "CREATE", "CREATE", "CREATE", "DELETE", "DELETE", "DELETE", "DELETE"]
    );
    let permissions = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(permissions & 0o777, 0o600);
    assert_eq!(purge().ok(), "Archived 0 stacks.\nPurged 0 rows.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_stay_that_are_retained_or_were_there_before() {
    let folder = Folder::new("retained");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    let kiln = |args: &[&str]| service.asked(&folder, &cloud, args);
    let create = |name, rest: &str| {
        let outputs = "outputs: {id: {value: {get_resource: net}}, name: {value: {get_attr: [net, name]}}}";
        let text = format!(
            "heat_template_version: 2018-08-31\nresources: {{net: {{type: OS::Neutron::Net, {rest}}}}}\n{outputs}\n"
        );
        folder.write("t.yaml", &text);
        kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", name, "-f", "json"])
    };
    let output = |stack, name| {
        kiln(&["stack", "output", "show", stack, name, "-f", "value", "-c", "output_value"]).ok().trim().to_owned()
    };
    let before = cloud.snapshot().counts()["networks"];
    create("kept", "deletion_policy: Retain, properties: {name: mine}").ok();
    let id = output("kept", "id");
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "kept"]).ok();
    assert_eq!(cloud.snapshot().counts()["networks"], before + 1);

    let made = create("adopted", &format!("external_id: {id}")).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE");
    assert_eq!((output("adopted", "id"), output("adopted", "name")), (id.clone(), "mine".to_owned()));
    let events = kiln(&["stack", "event", "list", "adopted", "-f", "json"]).json();
    let states: Vec<_> = events.as_array().unwrap().iter().map(|event| &event["resource_status"]).collect();
    let wanted = ["CREATE_IN_PROGRESS", "ADOPT_IN_PROGRESS", "ADOPT_COMPLETE", "CHECK_IN_PROGRESS", "CHECK_COMPLETE"];
    assert_eq!(states[..5], wanted);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let refused = kiln(&["stack", "update", "-t", "t.yaml", "--wait", "--poll", "0.1", "adopted"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    let reason = kiln(&["stack", "show", "adopted", "-f", "value", "-c", "stack_status_reason"]).ok();
    let text = "Update to property external_id of net (OS::Neutron::Net) is not supported.";
    assert!(reason.contains(text), "{reason}");
    kiln(&["stack", "delete", "--wait", "--poll", "0.1", "adopted"]).ok();
    assert_eq!(cloud.snapshot().counts()["networks"], before + 1);

    let absent = create("absent", "external_id: nowhere");
    let text = "Invalid external resource: Resource nowhere (OS::Neutron::Net) can not be found.";
    assert!(absent.code == 1 && absent.err.contains(text), "{}", absent.err);
    assert!(kiln(&["stack", "show", "absent"]).code != 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_what_is_asked_and_done() {
    let folder = Folder::new("log");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut service = Service::start(&folder, &cloud);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n");
    let args = ["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", "one"];
    service.asked(&folder, &cloud, &args).ok();
    let health = service.url.trim_start_matches("http://").to_owned();
    let health = wire::get(&health, "/healthcheck");
    assert!(health.contains("database: up\nengine: up (1)\n"), "{health}");
    let config = folder.path().join("kiln.conf");
    let engines = folder.run(&["manage", "service", "list", "--config-file", config.to_str().unwrap(), "-f", "json"]);
    assert_eq!(engines.json()[0]["Status"], "up");
    assert_eq!(service.stop(), 0);
    let engines = folder.run(&["manage", "service", "list", "--config-file", config.to_str().unwrap(), "-f", "json"]);
    assert!(!engines.ok().contains("\"up\""), "it has said that it stops");

    let requests = service.told("request");
    let made = requests.iter().find(|told| told["method"] == "POST").unwrap();
    assert_eq!((&made["status"], made["ms"].is_u64()), (&201.into(), true), "{made}");
    assert!(
        made["path"].as_str().unwrap().ends_with("/stacks") && made["request_id"].as_str().unwrap().starts_with("req-")
    );
    assert!(made["user"].as_str().unwrap().len() > 1 && made["project"].as_str().unwrap().len() > 1, "{made}");
    let states: Vec<_> = service.told("stack").iter().map(|told| told["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]);
    let log = format!("{:?}", service.log.lock().unwrap());
    assert!(log.contains(
        "[DEFAULT] max_stack_per_tenant is not an option of Kiln or Heat: did you mean max_stacks_per_tenant?"
    ));
    assert!(log.contains("[DEFAULT] unknown_option is not an option of Kiln or Heat"), "{log}");
    assert!(!log.contains(cloud.users().heat.password), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_work_is_refused_in_a_line() {
    let folder = Folder::new("refused");
    let cloud = Testcloud::builder().start().await.unwrap();
    let right =
        config(&folder, &cloud).replace(&format!("resource_types_dir = {}/types\n", folder.path().display()), "");
    let start = |config: &str| {
        let file = folder.write("kiln.conf", config);
        // If the service starts unexpectedly, the test must not hang.
        let mut command = Command::new("timeout");
        command.args(["20", env!("CARGO_BIN_EXE_kiln"), "serve", "--config-file", file.to_str().unwrap()]);
        Ran::from(command.output().unwrap())
    };
    let password = format!("password = {}", cloud.users().heat.password);
    let key = "0123456789abcdef0123456789abcdef";
    for (from, to, told) in [
        (password.as_str(), "password = wr0ngw0rd", "rejects the user \"heat\": check username, password"),
        (key, "0123456789abcdef0123456789abcdefg", "[DEFAULT] auth_encryption_key must have 32 (or 16) bytes"),
        ("sqlite://", "nosuch://me:wr0ngw0rd@", "[database] connection nosuch://me:***@"),
        (
            "[keystone_authtoken]",
            "[oslo_policy]\npolicy_file = /nowhere.yaml\n[keystone_authtoken]",
            "[oslo_policy] policy_file: /nowhere.yaml",
        ),
        ("[heat_api]", "wr0ngw0rd\n[heat_api]", "line 14: no ':' or '=' found"),
        ("/identity/v3", "/nowhere/v3", "[keystone_authtoken] auth_url"),
    ] {
        assert!(right.contains(from), "{from}");
        let ran = start(&right.replace(from, to));
        assert_eq!(ran.code, 1, "{told}: {}", ran.err);
        let error = ran.err.lines().find(|line| line.starts_with("error")).unwrap();
        assert!(error.contains(told), "{told}: {}", ran.err);
        assert!(!ran.err.contains("wr0ngw0rd"), "{}", ran.err);
        assert!(ran.err.contains("kiln.conf"), "{}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_does_not_open_the_database_is_refused() {
    let folder = Folder::new("key");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut service = Service::start(&folder, &cloud);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n");
    service.asked(&folder, &cloud, &["stack", "create", "-t", "t.yaml", "one"]).ok();
    assert_eq!(service.stop(), 0);
    let other = config(&folder, &cloud).replace("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
    let file = folder.write("kiln.conf", &other);
    let ran = folder.run(&["serve", "--config-file", file.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("[DEFAULT] auth_encryption_key does not decrypt the data in this database"),
        "{}",
        ran.err
    );
}

/// There and back: with the new key alone the old one is needed no more, and the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_can_be_changed() {
    const NEW: &str = "fedcba9876543210fedcba9876543210";
    const OLD: &str = "0123456789abcdef0123456789abcdef";
    let folder = Folder::new("rotation");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut service = Service::start(&folder, &cloud);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n");
    service.asked(&folder, &cloud, &["stack", "create", "-t", "t.yaml", "--wait", "one"]).ok();
    assert_eq!(service.stop(), 0);

    let rotate = |key: &str, older: &str| {
        let rotated = config(&folder, &cloud).replace(OLD, key) + &format!("older_encryption_keys = {older}\n");
        let file = folder.write("rotation.conf", &rotated);
        folder.run(&["manage", "rotate-keys", "encrypt", "--config-file", file.to_str().unwrap()]).ok()
    };
    assert!(rotate(NEW, OLD).ends_with("rows updated.\n"));
    let file = folder.write("kiln.conf", &config(&folder, &cloud));
    let refused = folder.run(&["serve", "--config-file", file.to_str().unwrap()]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(refused.err.contains("does not decrypt the data in this database"), "{}", refused.err);

    assert!(!rotate(OLD, NEW).starts_with("0 "));
    let service = Service::start(&folder, &cloud);
    let shown = service.asked(&folder, &cloud, &["stack", "resource", "list", "one", "-f", "json"]).json();
    assert_eq!(shown[0]["resource_status"], "CREATE_COMPLETE", "{shown}");
    service.asked(&folder, &cloud, &["stack", "delete", "--yes", "--wait", "one"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_can_be_changed_while_stacks_are_created() {
    const NEW: &str = "fedcba9876543210fedcba9876543210";
    const OLD: &str = "0123456789abcdef0123456789abcdef";
    let folder = Folder::new("rotating");
    let cloud = Testcloud::builder().start().await.unwrap();
    let old = config(&folder, &cloud);
    let new = old.replace(OLD, NEW);
    let both = format!("{new}older_encryption_keys = {OLD}\n");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n");
    let mut service = Service::start(&folder, &cloud);
    service.asked(&folder, &cloud, &["stack", "create", "-t", "t.yaml", "--wait", "before"]).ok();
    assert_eq!(service.stop(), 0);

    let mut service = Service::start_with(&folder, &both, "serve", "0");
    let names = ["a", "b", "c", "d", "e", "f"];
    std::thread::scope(|scope| {
        let (service, folder, cloud) = (&service, &folder, &cloud);
        let creates = scope.spawn(move || {
            for name in names {
                service
                    .asked(folder, cloud, &["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", name])
                    .ok();
            }
        });
        let mut rounds = 0;
        while !creates.is_finished() || rounds == 0 {
            let file = folder.path().join("kiln.conf");
            folder.run(&["manage", "update-params", "encrypt", "--config-file", file.to_str().unwrap()]).ok();
            rounds += 1;
        }
        creates.join().unwrap();
    });
    assert_eq!(service.stop(), 0);

    // Nothing needs the old key any more.
    let service = Service::start_with(&folder, &new, "serve", "0");
    for name in ["before"].iter().chain(&names) {
        let shown = service.asked(&folder, &cloud, &["stack", "resource", "list", name, "-f", "json"]).json();
        assert_eq!(shown[0]["resource_status"], "CREATE_COMPLETE", "{name}: {shown}");
        service.asked(&folder, &cloud, &["stack", "delete", "--yes", "--wait", "--poll", "0.1", name]).ok();
    }
}

#[test]
fn a_service_refuses_what_is_for_local_stacks() {
    let folder = Folder::new("notlocal");
    for (args, told) in [
        (&["serve", "--database", "x.db"][..], "set [database] connection"),
        (&["engine", "--local"], "--local cannot be used with a service"),
    ] {
        let ran = folder.run(args);
        assert!(ran.code == 1 && ran.err.contains(told), "{}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_bears_a_restart_and_says_when_no_engine_runs() {
    let folder = Folder::new("restart");
    let cloud = Testcloud::builder().start().await.unwrap();
    let mut api = Service::start_as(&folder, &cloud, "api", "0");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n");
    let args = ["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.1", "--progress", "plain", "one"];
    let mut command = api.command(&folder, &cloud, &args);
    let mut waiting = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(waiting.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains("note: no engine of the service is running")));
    assert_eq!(api.stop(), 0);
    assert!(told.any(|line| line.contains("still waiting")));
    let port = api.url.rsplit(':').next().unwrap().to_owned();
    let mut service = Service::start_as(&folder, &cloud, "serve", &port);
    assert!(told.any(|line| line.contains("CREATE_COMPLETE")));
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    assert_eq!(service.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_its_keystone_cannot_be_reached() {
    let folder = Folder::new("keystonegone");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    let demo = cloud.users().demo;
    let mut command = folder.kiln(&["--os-auth-type", "none", "--os-endpoint"]);
    command.arg(format!("{}/v1/{}", service.url, demo.project)).args(["stack", "list"]);
    // Without a token the request is rejected.
    assert_eq!(Ran::from(command.output().unwrap()).code, 1);
    cloud.stop().await;
    let (host, path) = (service.url.trim_start_matches("http://"), "/v1/p/stacks");
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: h\r\nx-auth-token: t\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_keeps_nothing_from_ending() {
    let folder = Folder::new("unread");
    let cloud = Testcloud::builder().start().await.unwrap();
    folder.write("types/My/Net.yaml", NET);
    let file = folder.write("kiln.conf", &config(&folder, &cloud));
    let mut command = folder.kiln(&["serve", "--log-format", "json", "--config-file", file.to_str().unwrap()]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let serving = lines.find(|line| line.contains("\"address\"")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&serving).unwrap();
    let address = told["fields"]["address"].as_str().unwrap().to_owned();
    // From here on, writing to the log fails.
    drop(lines);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /v1/p/stacks HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if std::time::Instant::now() > until {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_domain_of_stack_users_is_set_up() {
    let folder = Folder::new("domain");
    let cloud = Testcloud::builder().start().await.unwrap();
    let setup = |user: kiln_testcloud::Account, more: &[&str]| {
        let mut command = folder.kiln(&[&["manage", "setup-domain"], more].concat());
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", user.user).env("OS_PASSWORD", user.password);
        command.env("OS_PROJECT_NAME", user.project);
        Ran::from(command.output().unwrap())
    };
    let name = ["--stack-user-domain-name", "stacks", "--stack-domain-admin", "keeper"];
    let without = setup(cloud.users().admin, &name);
    assert!(without.code == 1 && without.err.contains("export HEAT_DOMAIN_PASSWORD"), "{}", without.err);
    let all = [&name[..], &["--stack-domain-admin-password", "secret"]].concat();
    let refused = setup(cloud.users().demo, &all);
    assert!(refused.code == 1 && refused.err.contains("use the credentials of an administrator"), "{}", refused.err);
    let out = setup(cloud.users().admin, &all).ok();
    let id = out.lines().find_map(|line| line.strip_prefix("stack_user_domain_id=")).unwrap();
    assert_eq!(
        out,
        format!(
            "\nPlease update your heat.conf with the following in [DEFAULT]\n\nstack_user_domain_id={id}\n\
             stack_domain_admin=keeper\nstack_domain_admin_password=secret\n"
        )
    );
    // A second time, what exists is used.
    let again = setup(cloud.users().admin, &all);
    assert!(again.err.contains("warning: the domain stacks already exists"), "{}", again.err);
    assert!(again.err.contains("warning: the password of user keeper is not changed"), "{}", again.err);
    assert_eq!(again.ok(), out);

    // The service can use it: a stack with a user is created.
    let options = format!(
        "[DEFAULT]\nstack_user_domain_id={id}\nstack_domain_admin=keeper\nstack_domain_admin_password=secret\n"
    );
    let config = config(&folder, &cloud).replacen("[DEFAULT]\n", &options, 1);
    let service = Service::start_with(&folder, &config, "serve", "0");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {it: {type: 'AWS::IAM::User'}}\n");
    let made =
        service.asked(&folder, &cloud, &["stack", "create", "-t", "t.yaml", "--wait", "one", "-f", "json"]).json();
    assert_eq!(made["stack_status"], "CREATE_COMPLETE", "{made}");
}
