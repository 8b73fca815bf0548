//! The forms of logs and where they go; every line of an operation has its ID.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_cloud::{Connector, Credentials, Options, SharedClient, TlsOptions};
use kiln_testcloud::{Action, Fault, Service, Testcloud, When};

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::wire::{received, send};

const TEMPLATE: &str = "heat_template_version: 2018-08-31\nresources:\n  network: {type: OS::Neutron::Net}\n  wrong:\n    \
    type: OS::Neutron::Port\n    depends_on: network\n    properties: {network: {get_resource: network}, mac_address: \
    {get_attr: [word, value]}}\n  word: {type: OS::Heat::RandomString}\n";

/// Creates a stack that fails, and waits for its end.
fn create(folder: &Folder, cloud: &Testcloud, url: &str) {
    folder.write("web.yaml", TEMPLATE);
    let command = ["stack", "create", "-t", "web.yaml", "--wait", "web"];
    let ran = Ran::from(folder.client(cloud, url, &command).output().unwrap());
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
}

/// The first network is refused, so that its create is repeated.
fn refuse_a_network(cloud: &Testcloud) {
    cloud.faults().add(Fault {
        service: Some(Service::Network),
        method: Some("POST".to_owned()),
        path: "/networks".to_owned(),
        when: When::Count(1),
        action: Action::Status(409),
    });
}

/// The text up to a line with `end`.
fn wait_for(read: impl Fn() -> String, end: &str) -> String {
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        let text = read();
        if text.contains(end) {
            return text;
        }
        assert!(Instant::now() < limit, "{end:?} is not in\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What follows `name=` up to the next space.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(&format!(" {name}="))?.1.split(' ').next()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_an_operation_has_its_id() {
    let folder = Folder::new("log-text");
    let cloud = Testcloud::builder().start().await.unwrap();
    refuse_a_network(&cloud);
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config, "-v"]));
    create(&folder, &cloud, &service.url());
    let log = wait_for(|| service.log(), "state=CREATE_FAILED");
    let ended = log.lines().find(|line| line.contains("state=CREATE_FAILED")).unwrap();
    let (request, operation) = (value(ended, "request_id").unwrap(), value(ended, "operation").unwrap());
    // The request of the API has the same ID, also in the line of the access log.
    let asked = log.lines().find(|line| line.contains("method=POST path=\"/v1")).unwrap();
    assert_eq!(value(asked, "request_id").unwrap(), request);
    // A line of a step.
    let retried = log.lines().find(|line| line.contains("create failed, retrying")).unwrap();
    assert_eq!((value(retried, "request_id"), value(retried, "operation")), (Some(request), Some(operation)), "{log}");
    service.signal("KILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_answers_who_asked_what_was_refused_and_what_the_cloud_said() {
    let folder = Folder::new("log-answers");
    let cloud = Testcloud::builder().start().await.unwrap();
    refuse_a_network(&cloud);
    let options = "debug = true\n[oslo_middleware]\nenable_proxy_headers_parsing = true\n[kiln]\ncfn_api = false\n";
    let config = folder.configured(&cloud, options);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    create(&folder, &cloud, &url);
    let log = wait_for(|| service.log(), "state=CREATE_FAILED");
    let line = |log: &str, what: &str| {
        log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what:?} is not in\n{log}")).to_owned()
    };
    // The end of a failed operation is a warning, with the stack, the project and the request.
    let ended = line(&log, "state=CREATE_FAILED");
    assert!(ended.contains(" WARN ") && ended.contains("reason="), "{ended}");
    let (stack, request) = (value(&ended, "stack").unwrap(), value(&ended, "request_id").unwrap());
    // The request that began it names the stack and the client.
    let asked = line(&log, "method=POST path=\"/v1");
    assert_eq!((value(&asked, "stack"), value(&asked, "request_id")), (Some(stack), Some(request)), "{asked}");
    assert_eq!(value(&asked, "client"), Some("127.0.0.1"));
    assert!(value(&asked, "user").is_some() && value(&asked, "project").is_some(), "{asked}");
    // Each call to the cloud, with its answer, for the same request.
    let call = line(&log, "cloud call service=\"network\" method=POST");
    assert!(
        call.contains(" DEBUG ") && value(&call, "status") == Some("409") && value(&call, "ms").is_some(),
        "{call}"
    );
    assert_eq!(value(&call, "request_id"), Some(request), "{call}");
    // What is refused says why, once; the proxy says who asked.
    let forwarded = ("x-forwarded-for", "192.0.2.1, 192.0.2.7");
    send(url.trim_start_matches("http://"), "GET", "/v1/p/stacks", &[forwarded], "");
    let log = wait_for(|| service.log(), "status=401");
    let refused = line(&log, "status=401");
    assert!(
        refused.contains("reason=\"The request you have made requires authentication.\"")
            && value(&refused, "client") == Some("192.0.2.7"),
        "{refused}"
    );
    let twice = folder.client(&cloud, &url, &["stack", "create", "-t", "web.yaml", "web"]).output().unwrap();
    assert!(!twice.status.success());
    let log = wait_for(|| service.log(), "StackExists");
    let exists = line(&log, "INFO request method=POST path=\"/v1/b118ea5561624da68c537baed56e602f/stacks\" status=409");
    assert!(exists.contains("reason=\"StackExists: The Stack (web) already exists.\""), "{exists}");
    service.signal("KILL");
    // The operator finds it without the log.
    let failures = folder.run(&["manage", "failures", "--config-file", &config, "--since", "1h", "-f", "json"]).json();
    assert_eq!((&failures[0]["Stack"], &failures[0]["Stack ID"]), (&"web".into(), &stack.into()), "{failures}");
    assert_eq!(
        (&failures[0]["Resource Type"], &failures[0]["State"]),
        (&"OS::Neutron::Port".into(), &"CREATE_FAILED".into())
    );
    let none =
        folder.run(&["manage", "failures", "--config-file", &config, "--since", "2100-01-01T00:00:00Z", "-f", "json"]);
    assert_eq!(none.json(), serde_json::json!([]));
    let other = folder.run(&["manage", "failures", "--config-file", &config, "--project", "other", "-f", "json"]);
    assert_eq!(other.json(), serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_leads_to_its_stack() {
    let folder = Folder::new("log-who-uses");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    folder.write("inner.yaml", "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Neutron::Net}\n");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources:\n  child: {type: inner.yaml}\n");
    let asked = |args: &[&str]| Ran::from(folder.client(&cloud, &url, args).output().unwrap());
    asked(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.05", "one"]).ok();
    let resources = asked(&["stack", "resource", "list", "--nested-depth", "2", "-f", "json", "one"]).json();
    let net = resources.as_array().unwrap().iter().find(|row| row["resource_name"] == "net").unwrap();
    let id = net["physical_resource_id"].as_str().unwrap();
    let users = folder.run(&["manage", "who-uses", "--config-file", &config, id, "-f", "json"]).json();
    assert_eq!((&users[0]["Stack"], &users[0]["Resource"]), (&"one".into(), &"child.net".into()), "{users}");
    let nobody = folder.run(&["manage", "who-uses", "--config-file", &config, "no-such-object"]);
    assert_eq!((nobody.code, nobody.err.trim()), (1, "error: no stack has an object with the ID no-such-object"));
    service.signal("KILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_those_of_oslo_in_a_file_that_logrotate_moves() {
    let folder = Folder::new("log-oslo");
    let cloud = Testcloud::builder().start().await.unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let options = format!("log_dir = {}\nwatch_log_file = true\n[kiln]\nlog_format = oslo\n", logs.display());
    let config = folder.configured(&cloud, &options);
    let mut command = folder.kiln(&["serve", "--config-file", &config]);
    command.env("TZ", "UTC");
    let service = Running::start(command);
    let (file, moved) = (logs.join("kiln.log"), logs.join("kiln.log.1"));
    let read = |file: &std::path::Path| std::fs::read_to_string(file).unwrap_or_default();
    let log = wait_for(|| read(&file), "serving address=");
    assert_eq!(service.log(), "");
    let url = format!("http://{}", value(&log, "address").unwrap());
    std::fs::rename(&file, &moved).unwrap();
    create(&folder, &cloud, &url);
    let log = wait_for(|| read(&file), "state=CREATE_FAILED");
    assert!(!read(&moved).contains("CREATE_FAILED"));
    let line = log.lines().find(|line| line.contains("state=CREATE_FAILED")).unwrap();
    // Date, time, process, level, name, [request user project - - -], message.
    let parts: Vec<&str> = line.splitn(11, ' ').collect();
    let [date, time, pid, level, name, request, user, project, a, b, rest] = parts[..] else { panic!("{line}") };
    assert_eq!((date.len(), time.len(), pid), (10, 12, service.pid().as_str()), "{line}");
    assert_eq!((level, name), ("WARNING", "kiln_engine.actor.events"));
    assert!(request.starts_with("[req-") && user.len() == 32 && project.len() == 32, "{line}");
    assert!(a == "-" && b == "-" && rest.starts_with("-] stack stack="), "{line}");
    assert!(value(line, "operation").is_some());
    // A line without a request.
    assert!(read(&moved).lines().next().unwrap().contains(" [-] "), "{}", read(&moved));
    // Without a look at each line: SIGHUP.
    std::fs::rename(&file, &moved).unwrap();
    service.signal("HUP");
    wait_for(|| read(&file), "the configuration was read again");
    assert_eq!(service.stop().0, 0);
    let refused = folder.run(&["serve", "--config-file", &folder.configured(&cloud, "log_file = /no/such/folder/a\n")]);
    assert!(refused.err.contains("[DEFAULT] log_file: cannot open /no/such/folder/a: "), "{}", refused.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_are_lines_of_the_log_at_their_priority() {
    let folder = Folder::new("log-notifications");
    let cloud = Testcloud::builder().start().await.unwrap();
    let options = "[kiln]\nlog_format = oslo\ncfn_api = false\n[oslo_messaging_notifications]\ndriver = log\n";
    let service = Running::start(folder.kiln(&["serve", "--config-file", &folder.configured(&cloud, options)]));
    create(&folder, &cloud, &service.url());
    let log = wait_for(|| service.log(), "orchestration.stack.create.error");
    let sent: Vec<(&str, serde_json::Value)> = log
        .lines()
        .filter_map(|line| line.split_once(" oslo.messaging.notification "))
        .map(|(front, line)| {
            let message = line.split_once("] ").unwrap().1;
            (front.rsplit(' ').next().unwrap(), serde_json::from_str(message).unwrap())
        })
        .collect();
    let told: Vec<_> = sent.iter().map(|(level, message)| (*level, message["event_type"].as_str().unwrap())).collect();
    let expected = [("INFO", "orchestration.stack.create.start"), ("ERROR", "orchestration.stack.create.error")];
    assert_eq!(told, expected, "{log}");
    assert_eq!(sent[1].1["payload"]["stack_name"], "web");
    assert_eq!(sent[1].1["priority"], "ERROR");
    service.signal("KILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_too_many_connections_is_told_once() {
    let folder = Folder::new("log-flood");
    let cloud = Testcloud::builder().start().await.unwrap();
    let options = "[kiln]\ncfn_api = false\nmax_connections_per_address = 1\n";
    let service = Running::start(folder.kiln(&["serve", "--config-file", &folder.configured(&cloud, options)]));
    let url = service.url();
    let demo = cloud.users().demo;
    let transport = Arc::new(SharedClient::new(&TlsOptions::default()).unwrap());
    let connector = Connector::new(transport, Options::new(cloud.auth_url().parse().unwrap()));
    let demo = Credentials::password(demo.user, demo.password, demo.project, "Default");
    let token = connector.session(demo).token().await.unwrap();
    let project = token.info.project.as_ref().unwrap().id.as_str();
    let connected = || TcpStream::connect(url.trim_start_matches("http://")).unwrap();

    let mut first = connected();
    let (path, secret) = (format!("/v1/{project}/stacks"), token.secret.expose());
    write!(first, "GET {path} HTTP/1.1\r\nhost: x\r\nx-auth-token: {secret}\r\n\r\n").unwrap();
    let mut status = [0; 12];
    first.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    for _ in 0..3 {
        // Closed without an answer.
        assert_eq!(connected().read(&mut [0; 1]).unwrap_or_default(), 0);
    }
    let told = service.wait_for("WARN closing further connections from this address");
    assert!(told.contains("address=127.0.0.1") && told.contains(&format!("project={project}")), "{told}");
    assert_eq!(service.log().matches("closing further connections").count(), 1, "{}", service.log());
    service.signal("KILL");
}

/// The last connection of all is told too, with who has most of them.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_all_connections_is_told() {
    let folder = Folder::new("log-full");
    let cloud = Testcloud::builder().start().await.unwrap();
    let options = "[kiln]\ncfn_api = false\nmax_connections = 2\n";
    let service = Running::start(folder.kiln(&["serve", "--config-file", &folder.configured(&cloud, options)]));
    let url = service.url();
    let _held: Vec<_> = (0..2).map(|_| TcpStream::connect(url.trim_start_matches("http://")).unwrap()).collect();
    let told = service.wait_for("WARN further connections wait: max_connections is reached");
    assert!(told.contains("address=127.0.0.1") && told.contains("connections=2"), "{told}");
    service.signal("KILL");
}

/// A service waits for its database, and says at once what it waits for.
#[test]
fn a_refused_connection_at_the_start_is_told_at_once() {
    let folder = Folder::new("log-refused");
    let text = "[DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\n[database]\nconnection = \
                postgresql://heat:secret@127.0.0.1:1/heat\n[keystone_authtoken]\nauth_url = http://127.0.0.1:1/v3\n\
                username = heat\npassword = p\nproject_name = service\n";
    let file = folder.write("kiln.conf", text);
    let service = Running::start(folder.kiln(&["serve", "--config-file", file.to_str().unwrap()]));
    let log = wait_for(|| service.log(), "attempt=1 ");
    assert!(log.contains("cannot connect to the database; trying again") && log.contains("refused"), "{log}");
    service.signal("KILL");
}

/// The fields of a datagram in the protocol of the journal.
fn fields(data: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut rest = data;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let (length, after) = rest.split_at(8);
        let length = usize::try_from(u64::from_le_bytes(length.try_into().unwrap())).unwrap();
        fields.insert(line.to_owned(), std::str::from_utf8(&after[..length]).unwrap().to_owned());
        rest = &after[length + 1..];
    }
    assert!(rest.is_empty());
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_gets_fields() {
    let folder = Folder::new("log-journal");
    let cloud = Testcloud::builder().start().await.unwrap();
    let path = folder.path().join("journal");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let options = format!("use_journal = true\nunknown_option = 1\n[kiln]\njournal_socket = {}\n", path.display());
    let config = folder.configured(&cloud, &options);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let mut buffer = vec![0; 65_536];
    let mut up_to = |message: &str, field: &str, value: &str| loop {
        let length = received(&socket, &mut buffer);
        let fields = fields(&buffer[..length]);
        if fields["MESSAGE"].starts_with(message) && fields.get(field).is_some_and(|found| found == value) {
            return fields;
        }
    };
    let warned = up_to("", "PRIORITY", "4");
    assert!(warned["MESSAGE"].contains("unknown_option is not an option"), "{warned:?}");
    let serving = up_to("serving", "SYSLOG_IDENTIFIER", "kiln");
    assert_eq!((serving["PRIORITY"].as_str(), serving["LOGGER_LEVEL"].as_str()), ("6", "INFO"));
    assert!(serving["CODE_FILE"].ends_with("serve.rs") && serving["CODE_LINE"].parse::<u32>().is_ok());
    create(&folder, &cloud, &format!("http://{}", serving["KILN_ADDRESS"]));
    let ended = up_to("stack", "KILN_STATE", "CREATE_FAILED");
    assert!(ended["REQUEST_ID"].starts_with("req-"), "{ended:?}");
    assert_eq!((ended["OPERATION_ID"].len(), ended["PROJECT_ID"].len()), (36, 32));
    assert_eq!(service.log(), "");
    service.signal("KILL");
    // Without a journal, nothing is lost.
    let missing = folder.configured(&cloud, "use_journal = true\n[kiln]\njournal_socket = /no/journal\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &missing]));
    service.wait_for("[DEFAULT] use_journal: cannot send to /no/journal, the log goes to standard error");
    service.url();
}

/// The page that goes from a failed stack to the cause.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/logs.md");
const SHOP: &str = "heat_template_version: 2018-08-31\nresources:\n  network: {type: OS::Neutron::Net}\n  web:\n    type: \
    OS::Heat::ResourceGroup\n    depends_on: network\n    properties:\n      count: 1\n      resource_def:\n        type: \
    OS::Nova::Server\n        properties: {image: cirros, flavor: m1.tiny, networks: [{network: private}]}\n";

/// The words of a text that differ in each run (IDs, times, generated names), and the text without them.
fn varying(text: &str) -> (Vec<&str>, String) {
    let (mut found, mut same) = (Vec::new(), String::new());
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:.".contains(c);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (word, after) = rest.split_at(length);
        let id = word.strip_prefix("req-").unwrap_or(word).replace('-', "");
        let is_id = id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit());
        let is_time = word.len() > 8 && word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(['-', ':']);
        if is_id || is_time || word.starts_with("shop-web-") || same.ends_with("ms=") {
            found.push(word);
            same.push('~');
        } else {
            same.push_str(word);
        }
        rest = after;
    }
    (found, same)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manual_goes_from_a_failed_stack_to_the_cause() {
    let folder = Folder::new("log-page");
    let cloud = Testcloud::builder().start().await.unwrap();
    cloud.faults().add(Fault {
        service: Some(Service::Compute),
        method: Some("POST".to_owned()),
        path: "/servers".to_owned(),
        when: When::Always,
        action: Action::FailBuild,
    });
    let log = folder.path().join("kiln.log");
    let options = format!("log_file = {}\naction_retry_limit = 1\n[kiln]\ncfn_api = false\n", log.display());
    let config = folder.configured(&cloud, &options);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let started = wait_for(read, "serving address=");
    let url = format!("http://{}", value(&started, "address").unwrap());
    folder.write("shop.yaml", SHOP);
    let ran = Ran::from(
        folder.client(&cloud, &url, &["stack", "create", "-t", "shop.yaml", "--wait", "shop"]).output().unwrap(),
    );
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    wait_for(read, "name=\"shop\" project=");
    let text = std::fs::read_to_string(PAGE).unwrap();
    let is_written = std::env::var_os("KILN_UPDATE_DATA").is_some();
    // What the page shows, and what it is now: a later command may have it.
    let mut now: BTreeMap<String, String> = BTreeMap::new();
    let mut made = String::new();
    let mut rest = text.as_str();
    while let Some((before, block)) = rest.split_once("```console\n$ ") {
        let (block, after) = block.split_once("```").unwrap();
        let (command, shown) = block.split_once('\n').unwrap();
        // The longest first: a time begins with a date that is one of the old words too.
        let mut words: Vec<(&String, &String)> = now.iter().collect();
        words.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        let replaced = words.into_iter().fold(command.to_owned(), |command, (old, new)| command.replace(old, new));
        let place = replaced.replace("/var/log/kiln", &folder.path().display().to_string());
        // An operator has the file where Kiln looks for it.
        let place = place.replace("kiln manage failures", &format!("kiln manage failures --config-file {config}"));
        let line = format!("PATH=\"$(dirname \"$KILN\"):/usr/bin:/bin\"; {place}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).current_dir(folder.path()).env("KILN", env!("CARGO_BIN_EXE_kiln"));
        shell.envs(folder.client(&cloud, &url, &[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        assert!(!output.is_empty(), "$ {place}: finds nothing");
        let (old, new) = (varying(shown), varying(&output));
        if new.1 == old.1 {
            // A duration is short, and no command has one.
            for (old, new) in old.0.iter().zip(&new.0).filter(|(old, _)| old.len() > 8) {
                now.entry((*old).to_owned()).or_insert_with(|| (*new).to_owned());
                // A time without the fraction of the second.
                if let (Some((old, _)), Some((new, _))) = (old.split_once('.'), new.split_once('.')) {
                    now.entry(old.to_owned()).or_insert_with(|| new.to_owned());
                }
            }
        }
        assert!(is_written || new.1 == old.1, "$ {place}\n{output}\nKILN_UPDATE_DATA=1 writes docs/logs.md");
        made = format!("{made}{before}```console\n$ {replaced}\n{output}```");
        rest = after;
    }
    if is_written {
        std::fs::write(PAGE, made + rest).unwrap();
    }
    assert_eq!(service.stop().0, 0);
}
