//! The audit of a running service: which requests have events, and what they say.

use kiln_testcloud::Testcloud;
use serde_json::Value;

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::wire::send;

/// The events in a log, by their type.
fn events(log: &str) -> Vec<(String, Value)> {
    let event = |line: &str| {
        let (before, payload) = line.split_once(" INFO ")?;
        assert!(before.starts_with("20"));
        let start = payload.find('{').filter(|_| payload.contains("audit/1.0/event"))?;
        let mut read = serde_json::Deserializer::from_str(&payload[start..]).into_iter::<Value>();
        let event = read.next()?.ok()?;
        let kind = line.split_once("event_type=\"")?.1.split('"').next()?.to_owned();
        Some((kind, event))
    };
    log.lines().filter_map(event).collect()
}

fn ask(url: &str, request: &str) -> String {
    let (method, target) = request.split_once(' ').unwrap();
    send(url.trim_start_matches("http://"), method, target, &[], "")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_audited_as_the_filter_in_the_pipeline_says() {
    let folder = Folder::new("audit");
    let cloud = Testcloud::builder().start().await.unwrap();
    folder.write(
        "api-paste.ini",
        "[pipeline:heat-api]\npipeline = healthcheck authtoken audit apiv1app\n[filter:audit]\npaste.filter_factory = \
         keystonemiddleware.audit:filter_factory\naudit_map_file = %(here)s/map.conf\nignore_req_list = HEAD\n",
    );
    folder.write(
        "map.conf",
        "[DEFAULT]\ntarget_endpoint_type = network\n[path_keywords]\nstacks = stack\n[service_endpoints]\nnetwork = service/orchestration\n",
    );
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let config = folder.configured(&cloud, "[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = 0\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let cfn = service.wait_for("serving address=").split_once(" cfn=").unwrap().1.split(' ').next().unwrap().to_owned();
    let url = service.url();
    let client = |args: &[&str]| Ran::from(folder.client(&cloud, &url, args).output().unwrap());
    client(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.05", "one"]).ok();
    assert_ne!(client(&["stack", "create", "-t", "t.yaml", "one"]).code, 0);
    assert!(ask(&url, "GET /v1/p/stacks?marker=a%20b").contains("401 "));
    assert!(ask(&url, "HEAD /v1/p/stacks").contains("401 "));
    assert!(ask(&url, "GET /healthcheck").contains("200 "));
    assert!(ask(&url, "GET /").contains("300 "));
    let secret = "Action=CreateStack&Parameters.member.1.ParameterValue=planted";
    assert!(ask(&cfn, &format!("GET /v1/?{secret}")).contains(" 40"));
    let log = service.stop().1;
    let all = events(&log);
    // Each request has two, with one ID.
    let (asked, answered): (Vec<_>, Vec<_>) = all.iter().partition(|(kind, _)| kind == "audit.http.request");
    assert_eq!(asked.len(), answered.len(), "{log}");
    assert!(asked.iter().all(|(_, event)| event["outcome"] == "pending" && event.get("reason").is_none()));
    let find = |action: &str, code: &str| {
        let is_it = |event: &&Value| event["action"] == action && event["reason"]["reasonCode"] == code;
        answered.iter().map(|(_, event)| event).find(is_it).unwrap_or_else(|| panic!("{action} {code}: {log}"))
    };
    let created = find("create", "201");
    assert_eq!(
        (&created["outcome"], &created["target"]["typeURI"]),
        (&"success".into(), &"service/orchestration/stacks".into())
    );
    let initiator = &created["initiator"];
    assert_eq!((&initiator["name"], &initiator["host"]["address"]), (&"demo".into(), &"127.0.0.1".into()));
    let token = initiator["credential"]["token"].as_str().unwrap();
    assert!(token.contains(" xxxxxxxx ") && !log.contains(&token.replace(" xxxxxxxx ", "")), "{token}");
    assert_eq!(
        (&created["attachments"][0]["name"], created["attachments"][0]["content"].as_str().unwrap().len()),
        (&"stack".into(), 36)
    );
    let first = asked.iter().find(|(_, event)| event["id"] == created["id"]).unwrap();
    assert_eq!(first.1["tags"], created["tags"]);
    assert_eq!(find("create", "409")["outcome"], "failure");
    // Nobody whom Keystone knows: the filter behind auth_token does not see it.
    let unknown = find("read/list", "401");
    assert_eq!(unknown["requestPath"], "/v1/p/stacks?marker=a%20b");
    assert_eq!(
        (&unknown["initiator"]["id"], &unknown["initiator"]["credential"]["identity_status"]),
        (&"unknown".into(), &"Invalid".into())
    );
    assert!(
        !all.iter().any(|(_, event)| event["requestPath"] == "/healthcheck" || event["requestPath"] == "/"),
        "{log}"
    );
    assert_eq!(
        answered.iter().filter(|(_, event)| event["reason"]["reasonCode"] == "401").count(),
        1,
        "HEAD is ignored: {log}"
    );
    // The values of parameters are in no event of the CloudFormation API.
    assert!(all.iter().any(|(_, event)| event["requestPath"] == "/v1/") && !log.contains("planted"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_filter_changes_are_audited_and_a_full_spool_can_refuse_them() {
    let folder = Folder::new("audit-own");
    let cloud = Testcloud::builder().start().await.unwrap();
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let config = folder.configured(&cloud, "[kiln]\naudit = true\ncfn_api = false\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let client = |url: &str, args: &[&str]| Ran::from(folder.client(&cloud, url, args).output().unwrap());
    client(&url, &["stack", "create", "-t", "t.yaml", "one"]).ok();
    client(&url, &["stack", "list"]).ok();
    let actions: Vec<_> = events(&service.stop().1).into_iter().map(|(_, event)| event["action"].clone()).collect();
    assert_eq!(actions, ["create", "create"]);
    // The bus never answers, and the file may have a MiB.
    let spool = folder.path().join("spool");
    let bus = format!(
        "[kiln]\naudit = true\ncfn_api = false\naudit_on_failure = refuse\naudit_spool = {}\naudit_spool_limit = 1\n\
         [audit_middleware_notifications]\ndriver = messagingv2\ntransport_url = rabbit://guest:guest@127.0.0.1:1/\n",
        spool.display()
    );
    let config = folder.configured(&cloud, &bus);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let lengths = [60_000; 20].into_iter().chain([100; 60]);
    let mut answers = lengths.map(|length| ask(&url, &format!("POST /v1/{}", "x".repeat(length))));
    // A request that is refused by its token is answered as ever.
    assert!(answers.all(|answer| answer.contains("401 ")));
    let refused = client(&url, &["stack", "create", "-t", "t.yaml", "two"]);
    assert!(refused.err.contains("the audit event of the request cannot be written"), "{}", refused.err);
    client(&url, &["stack", "show", "one"]).ok();
    assert_ne!(client(&url, &["stack", "show", "two"]).code, 0);
    assert!(service.stop().1.contains("an audit event cannot be written"));
    // A folder that cannot be used is told at once.
    let wrong = folder.configured(&cloud, &bus.replace(&spool.display().to_string(), "/proc/no"));
    let refused = folder.run(&["serve", "--config-file", &wrong]);
    assert!(refused.err.contains("[kiln] audit_spool: /proc/no/"), "{}", refused.err);
}

/// A limit of the size of files stands for a full disk; the database stays below it.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_changes_that_cannot_be_audited_are_refused() {
    let folder = Folder::new("audit-full");
    let cloud = Testcloud::builder().start().await.unwrap();
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let spool = folder.path().join("spool");
    let config = folder.configured(
        &cloud,
        &format!(
            "[kiln]\naudit = true\ncfn_api = false\naudit_on_failure = refuse\naudit_spool = {}\n\
             [audit_middleware_notifications]\ndriver = messagingv2\ntransport_url = rabbit://guest:guest@127.0.0.1:1/\n",
            spool.display()
        ),
    );
    folder.run(&["manage", "db", "sync", "--config-file", &config]).ok();
    let mut command = std::process::Command::new("bash");
    // Blocks of 1024 bytes. The signal would end the process.
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let limited = format!("trap '' XFSZ; ulimit -f 2500; exec {kiln} serve --config-file {config}");
    command.args(["-c", &limited]).stdin(std::process::Stdio::null()).env_clear().env("HOME", folder.path());
    let service = Running::start(command);
    let url = service.url();
    let client = |args: &[&str]| Ran::from(folder.client(&cloud, &url, args).output().unwrap());
    client(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let lengths = [60_000; 24].into_iter().chain([100; 60]);
    let mut answers = lengths.map(|length| ask(&url, &format!("POST /v1/{}", "x".repeat(length))));
    assert!(answers.all(|answer| answer.contains("401 ")));
    let refused = client(&["stack", "create", "-t", "t.yaml", "two"]);
    assert!(refused.err.contains("the audit event of the request cannot be written"), "{}", refused.err);
    client(&["stack", "show", "one"]).ok();
    assert_ne!(client(&["stack", "show", "two"]).code, 0);
    assert!(service.stop().1.contains("an audit event cannot be written"));
    // Each event in the file is whole.
    let file = std::fs::read_dir(&spool).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n') && text.len() > 2_000_000, "{}", text.len());
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}
