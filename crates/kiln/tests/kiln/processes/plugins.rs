//! Types of a plug-in in stacks: their life, faults of the plug-in, and an engine that is killed during a create.

use std::path::Path;
use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, StackAction, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Value, value};

use crate::processes::cluster::{Cluster, Limits, log_of};
use crate::run::{Folder, Ran};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin/tests/programs/odd.py");

/// A cluster with the plug-in, whose things are in a folder.
struct World {
    cluster: Cluster,
    client: Client,
    things: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
        let things = tempfile::tempdir().expect("a folder");
        let limits = Limits {
            lease: Duration::from_secs(2),
            call_limit: Duration::from_secs(3),
            list_delay: Duration::from_millis(100),
            ..Limits::default()
        };
        let program = format!("/usr/bin/env python3 {PROGRAM} {}", things.path().display());
        let options = format!("[kiln]\nplugins = {program}\nplugin_timeout = 6\n");
        let cluster = Cluster::start_with(cloud, "sqlite", 1, limits, &options).await;
        let client = cluster.client(cluster.cloud.users().demo);
        Self { cluster, client, things }
    }

    /// Waits for the end of an action: its status and reason.
    async fn settled(&self, stack: &str) -> (String, String) {
        let start = Instant::now();
        loop {
            match self.client.stack(stack, false).await {
                Ok(stack) if !stack.status().ends_with("_IN_PROGRESS") => {
                    return (stack.status().to_owned(), stack.reason().to_owned());
                }
                Err(error) if error.is_not_found() => return ("DELETE_COMPLETE".to_owned(), String::new()),
                found => assert!(start.elapsed() < Duration::from_mins(2), "{stack} is stuck: {found:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn complete(&self, stack: &str, action: &str) {
        let (status, reason) = self.settled(stack).await;
        assert_eq!(status, format!("{action}_COMPLETE"), "{stack}: {reason}");
    }

    async fn create(&self, stack: &str, properties: Value) {
        self.client.create_stack(stack, &request(properties)).await.expect("a create");
    }

    /// The names of the things, which are their IDs.
    fn things(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.things.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("thing-")).collect()
    }

    /// How often a method was called.
    fn calls(&self, method: &str) -> usize {
        let text = std::fs::read_to_string(self.things.path().join("calls")).unwrap_or_default();
        text.lines().filter(|line| line.split(' ').next() == Some(method)).count()
    }

    async fn delete(&self, stack: &str) {
        self.client.delete_stack(stack).await.expect("a delete");
        self.complete(stack, "DELETE").await;
    }
}

fn request(properties: Value) -> StackRequest {
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {
            "it": {"type": "Test::Odd", "properties": properties},
            "reader": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["it", "mark"]}}},
        },
        "outputs": {"user": {"value": {"get_attr": ["it", "user"]}}, "id": {"value": {"get_resource": "it"}}},
    });
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    StackRequest { bundle, disable_rollback: Some(true), ..StackRequest::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_of_a_plugin_lives_in_a_stack() {
    let world = World::new().await;
    let listed = world.client.resource_types(&vec![], false).await.expect("types");
    assert!(listed.contains(&"Test::Odd".into()));
    let shown = world.client.resource_type("Test::Odd", true).await.expect("a type");
    let zone = shown.get("properties").and_then(|properties| properties.get("zone")).expect("a property");
    assert_eq!(zone.get("constraints"), Some(&value!([{"custom_constraint": "test.zone"}])));

    let refused = world.client.create_stack("moon", &request(value!({"zone": "moon"}))).await.expect_err("refused");
    let text = refused.to_string();
    assert!(text.contains("Error validating value 'moon': there is no air"), "{text}");
    let parameter = value!({
        "heat_template_version": "2018-08-31",
        "parameters": {"zone": {"type": "string", "default": "moon", "constraints": [{"custom_constraint": "test.zone"}]}},
    });
    let bundle = Bundle { template: Some(parameter), ..Bundle::default() };
    let request_of_parameter = StackRequest { bundle, ..StackRequest::default() };
    let refused = world.client.create_stack("moon", &request_of_parameter).await.expect_err("refused");
    assert!(refused.to_string().contains("there is no air"), "{refused}");
    let refused = world.client.create_stack("not", &request(value!({"does": "refused"}))).await.expect_err("refused");
    assert!(refused.to_string().contains("this is not allowed"), "{refused}");

    world.create("life", value!({"zone": "mars", "does": "leak"})).await;
    world.complete("life", "CREATE").await;
    let made = world.things();
    assert_eq!(made.len(), 1, "{made:?}");
    let id = world.client.output("life", "id").await.expect("an output");
    assert_eq!(id.str_at("output_value"), Some(made[0].as_str()));
    let user = world.client.output("life", "user").await.expect("an output");
    assert!(user.str_at("output_value").is_some_and(|user| user.len() > 10), "{user:?}");

    world.client.stack_action("life", StackAction::Check).await.expect("a check");
    world.complete("life", "CHECK").await;
    world.client.stack_action("life", StackAction::Suspend).await.expect("a suspend");
    world.complete("life", "SUSPEND").await;
    world.client.stack_action("life", StackAction::Resume).await.expect("a resume");
    world.complete("life", "RESUME").await;
    world.client.update_stack("life", &request(value!({"zone": "mars"}))).await.expect("an update");
    world.complete("life", "UPDATE").await;
    assert_eq!((world.things(), world.calls("update"), world.calls("check")), (made.clone(), 1, 1));
    world.client.update_stack("life", &request(value!({"zone": "venus"}))).await.expect("an update");
    world.complete("life", "UPDATE").await;
    assert!(world.things().len() == 1 && world.things() != made, "replaced: {made:?} by {:?}", world.things());
    world.delete("life").await;
    assert_eq!(world.things(), Vec::<String>::new());

    let token = std::fs::read_to_string(world.things.path().join("token")).expect("a token");
    let log = read(&world, &log_of(0));
    assert!(log.contains("my token is ******") && !log.contains(&token), "the log has the token");
    world.cluster.end().await;
}

fn read(world: &World, log: &str) -> String {
    std::fs::read_to_string(Path::new(world.cluster.folder()).join(log)).expect("a log")
}

const DIED: &str = "the process ended (exit status: 3): I have had enough";
const LATE: &str = "no response within 6 seconds";
const GARBAGE: &str = "it wrote a line that is no response in JSON: Hello world";

/// Each fault fails its resource with a reason (what the plug-in does, the method, why) and no other stack. What two of
/// them made without an answer is found by its mark and deleted.
async fn faults(cases: &[(&str, &str, &str)]) {
    let world = World::new().await;
    for (number, (does, method, why)) in cases.iter().enumerate() {
        let stack = format!("fault{number}");
        world.create(&stack, value!({"does": (*does)})).await;
        let reason = format!("Resource CREATE failed: PluginError: resources.it: Plug-in odd, method {method}: {why}");
        assert_eq!(world.settled(&stack).await, ("CREATE_FAILED".to_owned(), reason), "{does}");
        world.create("sound", value!({})).await;
        world.complete("sound", "CREATE").await;
        world.delete("sound").await;
    }
    assert_eq!(world.things().len(), 2);
    for number in 0..cases.len() {
        world.delete(&format!("fault{number}")).await;
    }
    assert_eq!(world.things(), Vec::<String>::new());
    world.cluster.end().await;
}

impl World {
    /// Makes a snapshot and waits for its end: its ID, status and reason.
    async fn snapshot(&self, stack: &str) -> (String, String, String) {
        let made = self.client.create_snapshot(stack, None).await.expect("a snapshot");
        let id = made.str_at("id").expect("an id").to_owned();
        let start = Instant::now();
        loop {
            let snapshot = self.client.snapshot(stack, &id).await.expect("a snapshot");
            let text = |key: &str| snapshot.str_at(key).unwrap_or_default().to_owned();
            if !text("status").is_empty() && text("status") != "IN_PROGRESS" {
                self.settled(stack).await;
                return (id, text("status"), text("status_reason"));
            }
            assert!(start.elapsed() < Duration::from_mins(1), "{snapshot:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The reasons of the events of the resource, once there is this one.
    async fn told(&self, stack: &str, reason: &str) {
        let start = Instant::now();
        loop {
            let events = self.client.events(stack, &kiln_client::EventFilter::default()).await.expect("events");
            if events.iter().any(|event| event.reason() == reason) {
                return;
            }
            let reasons: Vec<_> = events.iter().map(|event| event.reason().to_owned()).collect();
            assert!(start.elapsed() < Duration::from_secs(30), "no {reason}: {reasons:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The copies that snapshots have made.
    fn copies(&self) -> usize {
        let entries = std::fs::read_dir(self.things.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("copy-")).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_of_a_plugin_gets_signals_and_is_saved_and_restored() {
    let world = World::new().await;
    world.create("it", value!({"zone": "mars"})).await;
    world.complete("it", "CREATE").await;
    for number in 1..=2 {
        let body = value!({"number": number});
        world.client.signal("it", "it", Some(&body)).await.expect("a signal");
        world.told("it", &format!("Signal: number {number}")).await;
        let metadata = world.client.resource_metadata("it", "it").await.expect("metadata");
        assert_eq!(metadata.get("signal"), Some(&body));
    }

    let (snapshot, status, reason) = world.snapshot("it").await;
    assert_eq!((status.as_str(), world.copies()), ("COMPLETE", 1), "{reason}");
    world.client.restore_snapshot("it", &snapshot).await.expect("a restore");
    world.complete("it", "RESTORE").await;
    assert_eq!(world.calls("update"), 1, "the properties of the snapshot are set");
    world.client.delete_snapshot("it", &snapshot).await.expect("a delete");
    let start = Instant::now();
    while world.copies() > 0 {
        assert!(start.elapsed() < Duration::from_secs(30), "the copy is not deleted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.delete("it").await;
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_plugin_in_signals_and_snapshots_harm_nothing_else() {
    let world = World::new().await;
    let died = "the process ended (exit status: 3): I have had enough";
    let nonsense = "it wrote a line that is no response in JSON: Hello world";
    for (number, (word, why)) in
        [("die", died), ("hang", "no response within 6 seconds"), ("garbage", nonsense)].iter().enumerate()
    {
        let stack = format!("saved{number}");
        world.create(&stack, value!({"does": (format!("snapshot:{word} signal:{word}"))})).await;
        world.complete(&stack, "CREATE").await;
        world.client.signal(&stack, "it", None).await.expect("a signal");
        let start = Instant::now();
        while !read(&world, &log_of(0)).contains(&format!("method signal: {why}")) {
            assert!(start.elapsed() < Duration::from_secs(30), "{word}: the log does not tell");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (_, status, _) = world.snapshot(&stack).await;
        assert_eq!(status, "FAILED", "{word}");
        let resource = world.client.resource(&stack, "it", &[]).await.expect("a resource");
        let text = format!("Plug-in odd, method snapshot: {why}");
        assert!(resource.reason().contains(&text), "{word}: {}", resource.reason());
        world.create("sound", value!({})).await;
        world.complete("sound", "CREATE").await;
        world.delete("sound").await;
        world.delete(&stack).await;
    }
    assert_eq!((world.things(), world.copies()), (Vec::new(), 0));
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_dies_fails_its_resource_and_leaves_nothing() {
    faults(&[("die", "create", DIED), ("made die", "create", DIED), ("poll:die", "poll", DIED)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_hangs_fails_its_resource_and_leaves_nothing() {
    faults(&[("hang", "create", LATE), ("made hang", "create", LATE), ("poll:hang", "poll", LATE)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_of_a_plugin_fails_its_resource_and_leaves_nothing() {
    faults(&[
        ("garbage", "create", GARBAGE),
        ("flood", "create", "it sent a line of more than 4194304 bytes"),
        ("made wrong_shape", "create", "the result has an unknown key size"),
        ("attributes:garbage", "attributes", GARBAGE),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_killed_during_a_create_creates_nothing_twice() {
    let mut world = World::new().await;
    for (stack, does, creates) in [("made", "made once", 1), ("unmade", "once", 2)] {
        let before = world.calls("create");
        world.create(stack, value!({"does": does})).await;
        let start = Instant::now();
        while !world.things.path().join("once-it").exists() {
            assert!(start.elapsed() < Duration::from_mins(1), "no create");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        world.cluster.engines[0].kill();
        world.cluster.restart(0);
        world.complete(stack, "CREATE").await;
        assert_eq!(world.calls("create") - before, creates, "{stack}");
        assert_eq!(world.things().len(), 1, "{stack}");
        world.delete(stack).await;
        assert_eq!(world.things(), Vec::<String>::new());
        std::fs::remove_file(world.things.path().join("once-it")).expect("removed");
    }
    world.cluster.end().await;
}

#[tokio::test]
async fn a_plugin_that_cannot_be_started_is_an_error_at_the_start() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let folder = Folder::new("plugin-start");
    let config = folder.configured(&cloud, "[kiln]\nplugins = /bin/false\n");
    let ran = folder.run(&["engine", "--config-file", &config]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let text = "[kiln] plugins: /bin/false: describe: the process ended (exit status: 1)";
    assert!(ran.err.contains(text), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_service_a_plugin_is_an_option() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let (folder, things) = (Folder::new("plugin-local"), tempfile::tempdir().expect("a folder"));
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {it: {type: Test::Odd}}\n");
    let program = format!("/usr/bin/env python3 {PROGRAM} {}", things.path().display());
    let run = |args: &[&str]| {
        let mut command = folder.client(&cloud, "http://127.0.0.1:9", &[&["--local"], args].concat());
        let path = std::env::var_os("PATH").expect("a path");
        Ran::from(command.env("KILN_PLUGINS", &program).env("PATH", path).output().expect("kiln runs"))
    };
    assert!(run(&["resource-type", "list", "-f", "value"]).ok().contains("Test::Odd\n"));
    run(&["stack", "create", "--wait", "-t", "t.yaml", "one"]).ok();
    assert_eq!(std::fs::read_dir(things.path()).expect("a folder").count(), 2, "a thing, and the list of calls");
    run(&["stack", "delete", "--yes", "--wait", "one"]).ok();
    assert_eq!(std::fs::read_dir(things.path()).expect("a folder").count(), 1);
}
