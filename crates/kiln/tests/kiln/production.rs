//! What operators need to run a service: maintenance, budgets of requests, requests that are sent again, and a key that is made.

use std::io::Write as _;
use std::net::TcpStream;

use kiln_testcloud::Testcloud;
use serde_json::{Value, json};

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::wire::{send, status};

/// A service and its user.
struct World {
    folder: Folder,
    cloud: Testcloud,
    config: String,
    service: Running,
    token: String,
    project: String,
}

/// An answer: status, head and body.
struct Answer(u16, String, String);

impl Answer {
    fn has(&self, header: &str) -> bool {
        self.1.to_lowercase().contains(header)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.2).unwrap_or_else(|_| panic!("{} {}", self.0, self.2))
    }
}

impl World {
    async fn new(name: &str, more: &str) -> Self {
        let folder = Folder::new(name);
        let cloud = Testcloud::builder().start().await.unwrap();
        let config = folder.configured(&cloud, more);
        let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
        let url = service.url();
        folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
        let demo = cloud.users().demo;
        let auth = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": demo.user, "password": demo.password, "domain": {"name": "Default"}}}},
            "scope": {"project": {"name": demo.project, "domain": {"name": "Default"}}}}});
        let (address, base) = cloud
            .auth_url()
            .trim_start_matches("http://")
            .split_once('/')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let Answer(_, head, body) = ask(&address, "POST", &format!("/{base}/auth/tokens"), &[], &auth.to_string());
        let token = head
            .lines()
            .find_map(|line| line.to_lowercase().starts_with("x-subject-token: ").then(|| line[17..].to_owned()));
        let body: Value = serde_json::from_str(&body).unwrap();
        let project = body["token"]["project"]["id"].as_str().unwrap().to_owned();
        let world = Self { folder, cloud, config, service, token: token.unwrap(), project };
        assert!(url.starts_with("http"));
        world
    }

    fn kiln(&self, args: &[&str]) -> Ran {
        Ran::from(self.folder.client(&self.cloud, &self.service.url(), args).output().unwrap())
    }

    fn manage(&self, args: &[&str]) -> Ran {
        self.folder.run(&[&["manage"], args, &["--config-file", &self.config]].concat())
    }

    /// Asks the REST API as the user.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let address = self.service.url().trim_start_matches("http://").to_owned();
        let token = [("x-auth-token", self.token.as_str())];
        ask(&address, method, &format!("/v1/{}{path}", self.project), &[&token[..], headers].concat(), body)
    }

    fn create(&self, name: &str, key: &str) -> Answer {
        let body = json!({"stack_name": name, "template": {"heat_template_version": "2018-08-31"}}).to_string();
        self.ask("POST", "/stacks", &[("idempotency-key", key)], &body)
    }

    /// Changes the database as nobody else does.
    async fn sql(&self, statement: &str) {
        let url = format!("sqlite://{}/kiln.db", self.folder.path().display());
        let database = Box::pin(sea_orm::Database::connect(url)).await.unwrap();
        sea_orm::ConnectionTrait::execute_unprepared(&database, statement).await.unwrap();
    }
}

fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = [&[("content-type", "application/json")], headers].concat();
    let answer = send(address, method, path, &headers, body);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
        body.lines().nth(1).unwrap_or_default().to_owned()
    } else {
        body.to_owned()
    };
    Answer(status(head), head.to_owned(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_is_carried_out_once() {
    let world = World::new("keys", "[kiln]\ncfn_api = false\n").await;
    let first = world.create("one", "\"k1\"");
    assert_eq!(first.0, 201, "{}", first.2);
    let again = world.create("one", "\"k1\"");
    assert_eq!((again.0, again.json()), (201, first.json()));
    assert!(again.has("idempotency-replayed: true") && !first.has("idempotency-replayed"), "{}", again.1);
    assert!(again.has("location: http"), "{}", again.1);
    // The key without quotes, and by OpenStack's name, is the same one; another body is refused.
    let other = world.create("two", "k1");
    assert_eq!((other.0, &other.json()["error"]["type"]), (422, &"HTTPUnprocessableEntity".into()), "{}", other.2);
    // Without a key, the stack exists. With a key of its own, this is not the final answer.
    let body = json!({"stack_name": "one", "template": {"heat_template_version": "2018-08-31"}}).to_string();
    assert_eq!(world.ask("POST", "/stacks", &[], &body).0, 409);
    assert_eq!(world.ask("POST", "/stacks", &[("x-openstack-idempotency-key", "k2")], &body).0, 409);
    assert_eq!(world.ask("POST", "/stacks", &[("x-openstack-idempotency-key", "k2")], &body).0, 409);
    // A wrong request has a final answer, and a key must be one.
    let wrong = || world.ask("POST", "/stacks", &[("idempotency-key", "k3")], "{\"stack_name\": \"x\"}");
    assert_eq!((wrong().0, wrong().0), (400, 400));
    assert!(wrong().has("idempotency-replayed: true"));
    assert_eq!(world.create("x", "\"\"").0, 400);
    // Another route is another request.
    let path =
        first.json()["stack"]["links"][0]["href"].as_str().unwrap().split_once(&world.project).unwrap().1.to_owned();
    let delete = || world.ask("DELETE", &path, &[("idempotency-key", "k1")], "");
    assert_eq!((delete().0, delete().0), (204, 204));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_process_was_killed_is_answered_by_the_next() {
    let world = World::new("keys-killed", "[kiln]\ncfn_api = false\n").await;
    let first = world.create("one", "k1");
    assert_eq!(first.0, 201);
    world.kiln(&["stack", "wait", "one"]);
    world.service.signal("KILL");
    // Killed after the commit and before the answer was stored.
    world.sql("UPDATE kiln_answer SET answer = NULL").await;
    let service = Running::start(world.folder.kiln(&["serve", "--config-file", &world.config]));
    let World { folder, cloud, config, token, project, .. } = world;
    let world = World { folder, cloud, config, service, token, project };
    let second = world.create("one", "k1");
    assert_eq!((second.0, &second.json()["stack"]["id"]), (201, &first.json()["stack"]["id"]));
    assert!(!second.has("idempotency-replayed"));
    assert!(world.create("one", "k1").has("idempotency-replayed: true"));
    // Killed before the commit: for a while, the request may still be processed.
    world.sql("UPDATE kiln_answer SET answer = NULL, request = 'req-lost'").await;
    let busy = world.create("one", "k1");
    assert_eq!((busy.0, &busy.json()["error"]["type"]), (409, &"HTTPConflict".into()), "{}", busy.2);
    assert!(busy.2.contains("is being processed"), "{}", busy.2);
    world.sql("UPDATE kiln_answer SET begun = begun - 180000000").await;
    let taken = world.create("one", "k1");
    assert!(taken.0 == 409 && taken.2.contains("StackExists"), "{}", taken.2);
    // A day later, the key is a new one.
    assert_eq!(world.create("two", "k2").0, 201);
    world.sql("UPDATE kiln_answer SET begun = begun - 90000000000").await;
    assert_eq!(world.create("three", "k2").0, 201);
    let (code, log) = world.service.stop();
    assert_eq!(code, 0, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_requests_with_one_key_at_the_same_time_make_one_stack() {
    let world = std::sync::Arc::new(World::new("keys-together", "[kiln]\ncfn_api = false\n").await);
    let all: Vec<_> = (0..20)
        .map(|_| {
            let world = std::sync::Arc::clone(&world);
            std::thread::spawn(move || world.create("one", "k1").0)
        })
        .collect();
    let statuses: Vec<u16> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(statuses.contains(&201) && statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
    assert_eq!(world.kiln(&["stack", "list", "-f", "json"]).json().as_array().unwrap().len(), 1);
    assert_eq!(world.create("one", "k1").0, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_maintenance_requests_read_and_do_not_change() {
    let world = World::new("maintenance", "[kiln]\ncfn_api = false\n").await;
    world.kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.05", "one"]).ok();
    let none = world.manage(&["maintenance", "show"]);
    assert_eq!((none.code, none.err.trim()), (1, "error: there is no maintenance"));
    world.manage(&["maintenance", "on", "--message", "Until 06:00 UTC."]).ok();
    assert_eq!(world.manage(&["maintenance", "show"]).ok().trim(), "Until 06:00 UTC.");
    world.service.wait_for("maintenance begins");
    for args in [
        &["stack", "create", "-t", "t.yaml", "two"][..],
        &["stack", "delete", "--yes", "one"],
        &["stack", "check", "one"],
    ] {
        let refused = world.kiln(args);
        assert!(refused.code != 0 && refused.err.contains("Until 06:00 UTC."), "{args:?} {}", refused.err);
    }
    world.kiln(&["stack", "show", "one"]).ok();
    world.kiln(&["stack", "plan", "-t", "t.yaml", "one"]);
    assert_eq!(
        world.ask("POST", "/validate", &[], "{\"template\": {\"heat_template_version\": \"2018-08-31\"}}").0,
        200
    );
    let signal = world.ask("POST", "/stacks/one/00000000-0000-0000-0000-000000000000/resources/r/signal", &[], "{}");
    assert_eq!(signal.0, 404, "{}", signal.2);
    // A process that starts now knows it.
    let other = Running::start(world.folder.kiln(&["api", "--config-file", &world.config]));
    let address = other.url().trim_start_matches("http://").to_owned();
    let path = format!("/v1/{}/stacks", world.project);
    let body = json!({"stack_name": "x", "template": {"heat_template_version": "2018-08-31"}}).to_string();
    let refused = ask(&address, "POST", &path, &[("x-auth-token", &world.token)], &body);
    assert!(refused.0 == 503 && refused.has("retry-after: "), "{} {}", refused.1, refused.2);
    world.manage(&["maintenance", "off"]).ok();
    world.service.wait_for("maintenance ends");
    world.kiln(&["stack", "create", "-t", "t.yaml", "two"]).ok();
    assert_eq!(world.manage(&["maintenance", "off"]).code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_a_budget_and_guests_are_never_refused() {
    let more = "[kiln]\ncfn_api = false\nrequest_rate_per_project = 1\nrequest_burst_per_project = 5\n\
                request_rate_per_address = 1\nrequest_burst_per_address = 40\n";
    let world = World::new("budgets", more).await;
    let statuses: Vec<u16> = (0..8).map(|_| world.ask("GET", "/stacks", &[], "").0).collect();
    assert_eq!((statuses[..5].to_vec(), statuses[7]), (vec![200; 5], 429), "{statuses:?}");
    let refused = world.ask("GET", "/stacks", &[], "");
    assert!(refused.has("retry-after: ") && refused.2.contains("Too many requests: try again in"), "{}", refused.2);
    assert_eq!(refused.json()["error"]["type"], "HTTPTooManyRequests");
    // Signals come through.
    let signal = "/stacks/one/00000000-0000-0000-0000-000000000000/resources/r/signal";
    assert!((0..5).all(|_| world.ask("POST", signal, &[], "{}").0 == 404));
    // An address is refused before its token is looked at.
    let address = world.service.url().trim_start_matches("http://").to_owned();
    let mut answers = (0..60).map(|_| ask(&address, "GET", "/v1/p/stacks", &[("x-auth-token", "wrong")], "").0);
    assert!(answers.any(|status| status == 429));
    assert_eq!(world.ask("POST", signal, &[], "{}").0, 404);
    assert_eq!(ask(&address, "GET", "/healthcheck", &[], "").0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_can_be_in_barbican() {
    let folder = Folder::new("key-in-barbican");
    let cloud = Testcloud::builder().start().await.unwrap();
    let (key, heat) = ("fedcba9876543210fedcba9876543210", cloud.users().heat);
    let keep = "heat_template_version: 2018-08-31\nparameters: {key: {type: string, hidden: true}}\nresources:\n  kept:\n    \
                type: OS::Barbican::Secret\n    properties: {payload: {get_param: key}}\n";
    folder.write("keep.yaml", keep);
    let as_heat = |args: &[&str]| {
        let mut command = folder.kiln(&[&["--local"], args].concat());
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", heat.user).env("OS_PASSWORD", heat.password);
        Ran::from(command.env("OS_PROJECT_NAME", heat.project).output().unwrap())
    };
    as_heat(&["stack", "create", "-t", "keep.yaml", "--parameter", &format!("key={key}"), "keep"]).ok();
    let show = ["stack", "resource", "show", "keep", "kept", "-f", "json"];
    let id = as_heat(&show).json()["physical_resource_id"].as_str().unwrap().to_owned();
    let path = folder.configured(&cloud, &format!("[kiln]\ncfn_api = false\nencryption_key_from = barbican:{id}\n"));
    let both = folder.run(&["serve", "--config-file", &path]);
    assert!(both.err.contains("encryption_key_from is set, and [DEFAULT] auth_encryption_key too"), "{}", both.err);
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("auth_encryption_key = 0123456789abcdef0123456789abcdef\n", "");
    folder.write("kiln.conf", &text);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &path]));
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let args = ["stack", "create", "-t", "t.yaml", "one"];
    Ran::from(folder.client(&cloud, &service.url(), &args).output().unwrap()).ok();
    let (code, log) = service.stop();
    assert!(code == 0 && !log.contains(key), "{log}");
    // It was this key.
    folder.write("kiln.conf", &text.replace("encryption_key_from", "#"));
    let with = |key: &str| {
        let mut command = folder.kiln(&["manage", "doctor", "--config-file", &path, "-f", "json"]);
        let found = Ran::from(command.env("OS_DEFAULT__AUTH_ENCRYPTION_KEY", key).output().unwrap());
        let found: Vec<Value> = serde_json::from_str(&found.out).unwrap();
        found.iter().find(|row| row["check"] == "stored credentials").unwrap()["result"].clone()
    };
    assert_eq!((with(key), with("0123456789abcdef0123456789abcdef")), (json!("ok"), json!("failed")));
    // An unknown secret is named, and no key is made instead.
    folder.write("kiln.conf", &text.replace(&id, "none"));
    let refused = folder.run(&["serve", "--config-file", &path]);
    assert!(refused.code != 0 && refused.err.contains("barbican:none"), "{}", refused.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_made_once_and_another_one_is_refused() {
    let folder = Folder::new("made-key");
    let cloud = Testcloud::builder().start().await.unwrap();
    let state = folder.path().join("state");
    let key = state.join("key");
    let without = |file: &std::path::Path| {
        let path =
            folder.configured(&cloud, &format!("[kiln]\ncfn_api = false\nencryption_key_file = {}\n", file.display()));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("auth_encryption_key")).collect();
        let text = lines.join("\n") + "\n";
        folder.write("kiln.conf", &text);
        path
    };
    // Nothing is made where there is no folder.
    let config = without(&key);
    let refused = folder.run(&["serve", "--config-file", &config]);
    assert!(refused.err.contains("[DEFAULT] auth_encryption_key is not set"), "{}", refused.err);
    std::fs::create_dir(&state).unwrap();
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    service.wait_for("made a key");
    // The database knows the key before the service listens.
    service.url();
    let made = std::fs::read_to_string(&key).unwrap();
    assert_eq!((made.len(), made.chars().all(|c| c.is_ascii_hexdigit())), (32, true));
    let permissions = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&key).unwrap().permissions());
    assert_eq!(permissions & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1);
    // Another host without the file would encrypt with a key of its own.
    let other = state.join("other");
    let refused = folder.run(&["serve", "--config-file", &without(&other)]);
    assert!(refused.err.contains("[DEFAULT] auth_encryption_key is not the key of this database"), "{}", refused.err);
    std::fs::remove_file(&other).unwrap();
    without(&key);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let args = ["stack", "create", "-t", "t.yaml", "one"];
    Ran::from(folder.client(&cloud, &service.url(), &args).output().unwrap()).ok();
    let (_, log) = service.stop();
    assert!(!log.contains(&made));
    // The next start and the commands of operators have the same one.
    folder.run(&["manage", "failures", "--config-file", &config]).ok();
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    service.url();
    assert!(!service.stop().1.contains("made a key"));
    assert_eq!(std::fs::read_to_string(&key).unwrap(), made);
    // A change of the key: both are known until all is encrypted with the new one.
    let new = "fedcba9876543210fedcba9876543210";
    folder.write("state/key", new);
    let text = std::fs::read_to_string(&config).unwrap();
    folder.write("kiln.conf", &format!("{text}older_encryption_keys = {made}\n"));
    Running::start(folder.kiln(&["serve", "--config-file", &config])).url();
    folder.run(&["manage", "update-params", "--config-file", &config]).ok();
    folder.write("kiln.conf", &text);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    service.url();
    assert_eq!(service.stop().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_cloudformation_makes_a_request_once() {
    let world = World::new("tokens", "[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = 0\n").await;
    let serving = world.service.wait_for("serving address=");
    let cfn = serving.split_once(" cfn=").unwrap().1.split(' ').next().unwrap().to_owned();
    let template = "%7B%22heat_template_version%22%3A%222018-08-31%22%7D";
    let act = |parameters: &str| {
        let path = format!("/v1/?ContentType=JSON&{parameters}");
        ask(&cfn, "GET", &path, &[("x-auth-token", &world.token)], "")
    };
    let create =
        |name: &str| act(&format!("Action=CreateStack&StackName={name}&TemplateBody={template}&ClientRequestToken=t1"));
    let first = create("one");
    assert_eq!(first.0, 200, "{}", first.2);
    let id = |answer: &Answer| answer.json()["CreateStackResponse"]["CreateStackResult"]["StackId"].clone();
    let again = create("one");
    assert!(again.0 == 200 && id(&again) == id(&first) && id(&first).is_string(), "{}", again.2);
    let other = create("two");
    assert!(other.0 == 400 && other.2.contains("TokenAlreadyExistsException"), "{}", other.2);
    // Killed after the commit.
    world.sql("UPDATE kiln_answer SET answer = NULL").await;
    assert_eq!(id(&create("one")), id(&first));
    world.kiln(&["stack", "wait", "one"]);
    let delete = || act("Action=DeleteStack&StackName=one&ClientRequestToken=t1").0;
    assert_eq!((delete(), delete()), (200, 200));
    // A failure is tried again.
    let wrong = || act("Action=CreateStack&StackName=x&ClientRequestToken=t2");
    assert!(wrong().2.contains("MissingParameter") && wrong().2.contains("MissingParameter"));
    let long = act(&format!("Action=DeleteStack&StackName=one&ClientRequestToken={}", "x".repeat(129)));
    assert!(long.2.contains("at most 128 characters"), "{}", long.2);
}

/// The sample says what the service does: as a policy of its own it has no problems, and changes nothing.
#[test]
fn the_sample_of_the_policy_is_a_policy() {
    let folder = Folder::new("policy-sample");
    let sample = folder.run(&["manage", "policy", "sample"]).ok();
    let create = "# POST  /v1/{tenant_id}/stacks\n# Also sufficient without enforce_new_defaults: rule:deny_stack_user\n\
                  #\"stacks:create\": \"role:member and project_id:%(project_id)s\"\n";
    assert!(sample.contains(create), "{sample}");
    assert!(sample.contains("#\"resource_types:OS::Nova::Flavor\": \"rule:project_admin\"\n"), "{sample}");
    let rules = sample.lines().filter(|line| line.starts_with("#\"")).count();
    let used: String = sample
        .lines()
        .map(|line| line.strip_prefix("#\"").map_or_else(|| format!("{line}\n"), |rule| format!("\"{rule}\n")))
        .collect();
    let yaml = folder.write("policy.yaml", &used);
    let checked = folder.run(&["manage", "policy", "check", yaml.to_str().unwrap()]).ok();
    assert_eq!(checked, format!("{rules} rules, no problems.\n"));
    let json = folder.run(&["manage", "policy", "sample", "-f", "json"]);
    assert_eq!(json.json().as_object().unwrap().len(), rules);
    // Rules of Heat and of Kiln, and each only once.
    let names: std::collections::BTreeSet<&str> = used.lines().filter(|line| line.starts_with('"')).collect();
    assert!(rules > 100 && names.len() == rules && used.contains("\"plans:"), "{rules}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_upgrade_the_schema() {
    let folder = Folder::new("migrate");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\nmigrate = manual\n");
    let refused = folder.run(&["serve", "--config-file", &config]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("the schema of the database has version 0, and this program needs "),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("run 'kiln manage db sync'"), "{}", refused.err);
    assert_eq!(folder.run(&["manage", "service", "list", "--config-file", &config]).code, 1);
    folder.run(&["manage", "db", "sync", "--config-file", &config]).ok();
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    service.url();
    assert_eq!(service.stop().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_is_in_the_audit() {
    let world = World::new("audit-away", "[kiln]\ncfn_api = false\naudit = true\n").await;
    let address = world.service.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    // It does not send its whole body.
    write!(
        stream,
        "POST /v1/{}/stacks HTTP/1.1\r\nhost: h\r\nx-auth-token: {}\r\ncontent-length: 100\r\n\r\n{{",
        world.project, world.token
    )
    .unwrap();
    world.service.wait_for("\"outcome\":\"pending\"");
    drop(stream);
    world.service.wait_for("audit.http.response");
    let log = world.service.log();
    assert!(log.contains("\"outcome\":\"unknown\"") || log.contains("\"reasonCode\":\"400\""), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_can_be_about_one_stack() {
    let world = World::new("report-of", "[kiln]\ncfn_api = false\n").await;
    let slow = "heat_template_version: 2018-08-31\nresources:\n  r: {type: OS::Heat::TestResource, properties: {wait_secs: 60}}\n";
    world.folder.write("slow.yaml", slow);
    world.folder.write("outer.yaml", "heat_template_version: 2018-08-31\nresources:\n  inner: {type: slow.yaml}\n");
    for name in ["shop", "shop-2"] {
        world.kiln(&["stack", "create", "-t", "outer.yaml", name]).ok();
    }
    let project = world.project.clone();
    let report = |args: &[&str]| world.manage(&[&["report"], args].concat()).ok();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while report(&[]).matches("OS::Heat::TestResource CREATE_IN_PROGRESS").count() < 2 {
        assert!(std::time::Instant::now() < end, "{}", report(&[]));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let one = report(&["--stack", "shop", "--project", &project]);
    assert!(one.contains(" shop CREATE_IN_PROGRESS") && one.contains(" shop-inner-"), "{one}");
    assert!(!one.contains(" shop-2 ") && !one.contains("shop-2-inner-"), "{one}");
    assert!(!report(&["--project", "other"]).contains(" shop"));
}
