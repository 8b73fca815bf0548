//! Plans that are saved: what they show, what executes them, and what refuses them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use kiln_testcloud::Testcloud;
use serde_json::Value;

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::terminal::answered;

const ONE: &str = "\
heat_template_version: 2018-08-31
resources:
  value: {type: OS::Heat::Value, properties: {value: one}}
outputs:
  value: {value: {get_attr: [value, value]}}
";

/// A folder with two templates, and commands that run there without a service.
struct World {
    folder: Folder,
}

impl World {
    /// With a stack.
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        folder.write("one.yaml", ONE);
        folder.write("two.yaml", &ONE.replace("value: one", "value: two"));
        let world = Self { folder };
        world.stack(&["create", "-t", "one.yaml", "web"]).ok();
        world
    }

    fn stack(&self, args: &[&str]) -> Ran {
        self.folder.local(&[&["stack"], args].concat())
    }

    fn plan(&self, args: &[&str]) -> Ran {
        self.folder.local(&[&["plan"], args].concat())
    }

    /// Saves a plan; its ID.
    fn saved(&self, args: &[&str]) -> String {
        let saved = self.stack(&[&["plan", "--save", "-f", "json"], args].concat()).json();
        saved["id"].as_str().unwrap().to_owned()
    }

    fn status(&self, id: &str) -> String {
        self.plan(&["show", id, "-f", "value", "-c", "status"]).ok().trim().to_owned()
    }

    fn value(&self) -> String {
        self.stack(&["output", "show", "web", "value", "-f", "value", "-c", "output_value"]).ok().trim().to_owned()
    }
}

#[track_caller]
fn refused(ran: &Ran, why: &str) {
    assert!(ran.code == 1 && ran.err.contains(why), "{why}: {ran:?}");
}

#[test]
fn a_saved_plan_is_shown_applied_once_and_named_by_the_operation() {
    let world = World::new("plans");
    let plan = ["plan", "-t", "two.yaml", "--out", "web.plan", "--description", "say two", "web"];
    let told = world.stack(&plan).ok();
    let file: Value = serde_json::from_slice(&std::fs::read(world.folder.path().join("web.plan")).unwrap()).unwrap();
    let (id, digest) = (file["id"].as_str().unwrap(), file["digest"].as_str().unwrap());
    assert!(
        told.contains("~ value  (OS::Heat::Value)") && told.contains(&format!("Saved as plan {id} until ")),
        "{told}"
    );
    assert!(told.contains(digest) && told.contains("run 'kiln stack apply web.plan'"), "{told}");
    assert_eq!(file["document"]["resources"][0]["path"], "value", "{file}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(world.folder.path().join("web.plan")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(world.value(), "one", "it is not executed");

    let listed = world.plan(&["list", "--stack", "web", "-f", "json"]).json();
    let entry = &listed[0];
    assert_eq!(
        (&entry["ID"], &entry["Status"], &entry["Description"]),
        (&id.into(), &"READY".into(), &"say two".into())
    );
    let shown = world.plan(&["show", id]).ok();
    assert!(shown.contains("READY") && shown.contains("\"one\" → \"two\"") && !shown.contains("document"), "{shown}");
    let document = world.plan(&["show", id, "-f", "json"]).json();
    assert_eq!((&document["digest"], &document["document"]), (&digest.into(), &file["document"]));
    let markdown = world.plan(&["show", id, "-f", "markdown", "--html", "page.html"]).ok();
    assert!(markdown.contains("web") && markdown.contains("value"), "{markdown}");
    assert!(std::fs::read_to_string(world.folder.path().join("page.html")).unwrap().contains("<html"));

    let applied = world.stack(&["apply", "web.plan", "-f", "json"]).json();
    assert_eq!((&applied["stack_name"], &applied["stack_status"]), (&"web".into(), &"UPDATE_COMPLETE".into()));
    assert_eq!(world.value(), "two");
    let operation = world.stack(&["operation", "show", "web", "last", "-f", "json"]).json();
    assert_eq!(operation["plan_id"], id, "{operation}");
    let shown = world.plan(&["show", id, "-f", "json"]).json();
    assert_eq!((&shown["status"], &shown["operation_id"]), (&"EXECUTED".into(), &operation["id"]));
    refused(&world.stack(&["apply", id]), "it was executed");

    world.plan(&["delete", id]).ok();
    let gone = world.plan(&["show", id]);
    refused(&gone, &format!("Plan not found: {id}"));
    assert!(gone.err.contains("'kiln --local plan list'"), "{}", gone.err);
}

#[test]
fn creates_deletes_and_returns_to_a_revision_are_planned() {
    let world = World::new("plans-kinds");
    world.saved(&["-t", "one.yaml", "other"]);
    let listed = world.plan(&["list", "--stack", "other", "-f", "json"]).json();
    let created = listed[0]["ID"].as_str().unwrap();
    assert!(!world.stack(&["list", "-f", "value"]).ok().contains("other"), "it is only planned");
    assert!(world.stack(&["apply", created]).ok().contains("CREATE_COMPLETE"));

    world.stack(&["apply", &world.saved(&["-t", "two.yaml", "web"])]).ok();
    let shown = world.stack(&["plan", "--to", "1", "web"]).ok();
    assert!(shown.contains("\"two\" → \"one\"") && !shown.contains("Saved"), "{shown}");
    let missing = world.stack(&["plan", "--to", "9", "--save", "web"]);
    refused(&missing, "No revision 9 of stack web is kept");
    world.stack(&["apply", &world.saved(&["--to", "1", "web"])]).ok();
    assert_eq!(world.value(), "one");

    let deleted = world.saved(&["--delete", "web"]);
    assert_eq!(world.stack(&["apply", &deleted]).ok(), "");
    assert!(!world.stack(&["list", "-f", "value"]).ok().contains("web"));
    refused(&world.stack(&["apply", &deleted]), "it was executed");
}

#[test]
fn a_plan_that_is_stale_rejected_expired_or_another_one_changes_nothing() {
    let world = World::new("plans-refused");
    world.folder.write("three.yaml", &ONE.replace("value: one", "value: three"));
    let rejected = world.saved(&["-t", "three.yaml", "web"]);
    world.plan(&["reject", &rejected]).ok();
    refused(&world.stack(&["apply", &rejected]), "it was rejected");
    refused(&world.plan(&["reject", &rejected]), "it was executed or rejected");

    let expired = world.saved(&["-t", "three.yaml", "--expires-in", "1", "web"]);
    let end = Instant::now() + Duration::from_secs(20);
    while world.status(&expired) != "EXPIRED" {
        assert!(Instant::now() < end, "it does not expire");
    }
    refused(&world.stack(&["apply", &expired]), "it has expired");

    world.stack(&["plan", "-t", "three.yaml", "--out", "web.plan", "web"]).ok();
    let text = std::fs::read_to_string(world.folder.path().join("web.plan")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    world.folder.write("other.plan", &text.replace(file["digest"].as_str().unwrap(), "another"));
    refused(&world.stack(&["apply", "--yes", "other.plan"]), "of the service is another one; nothing was changed");
    world.folder.write("wrong.plan", "{}");
    refused(&world.stack(&["apply", "wrong.plan"]), "wrong.plan: not a saved plan");
    refused(&world.stack(&["apply", "none.plan"]), "none.plan: No such file");
    let unknown = "7f2c1f0e-0000-4000-8000-000000000000";
    refused(&world.stack(&["apply", unknown]), &format!("Plan not found: {unknown}"));
    let away = world.stack(&["plan", "-t", "three.yaml", "--out", "none/web.plan", "web"]);
    refused(&away, "cannot write none/web.plan");
    refused(&world.stack(&["plan", "--replace", "none", "--save", "web"]), "none");
    assert_eq!(world.plan(&["list", "-f", "json"]).json().as_array().unwrap().len(), 3, "nothing else was saved");

    let demanded: Ran = world
        .folder
        .kiln(&["--local", "stack", "apply", "web.plan"])
        .env("KILN_REQUIRE_YES", "1")
        .output()
        .unwrap()
        .into();
    refused(&demanded, "nothing was changed");
    assert!(demanded.err.contains("\"one\" → \"three\""), "it shows the plan: {}", demanded.err);

    world.stack(&["update", "-t", "two.yaml", "web"]).ok();
    let id = file["id"].as_str().unwrap();
    assert_eq!(world.status(id), "STALE");
    let stale = world.stack(&["apply", "web.plan"]);
    refused(&stale, "the stack web has changed since");
    assert!(stale.err.contains(&format!("run 'kiln --local plan renew {id}'")), "{}", stale.err);
    assert_eq!(world.value(), "two");

    let renewed = world.plan(&["renew", id]).ok();
    assert!(renewed.contains("\"two\" → \"three\""), "{renewed}");
    let (_, new) = renewed.split_once("kiln stack apply ").unwrap();
    assert_eq!(world.status(id), "REJECTED");
    world.stack(&["apply", new.trim().trim_end_matches('\'')]).ok();
    assert_eq!(world.value(), "three");
}

#[test]
fn apply_asks_on_a_terminal_and_refuses_a_stack_that_changed_meanwhile() {
    let world = World::new("plans-asked");
    let id = world.saved(&["-t", "two.yaml", "web"]);
    let apply = world.folder.kiln(&["--local", "stack", "apply", &id]);
    let asked = "Execute this plan [y/N]? ";
    let no = answered(&apply, asked, || {}, "n\n");
    assert!(no.code == 1 && no.out.contains("\"one\" → \"two\""), "{no:?}");
    assert!(no.out.contains("not confirmed; nothing was changed") && world.status(&id) == "READY", "{no:?}");
    world.folder.write("three.yaml", &ONE.replace("value: one", "value: three"));
    let meanwhile = || drop(world.stack(&["update", "-t", "three.yaml", "web"]).ok());
    let late = answered(&apply, asked, meanwhile, "y\n");
    assert!(late.code == 1 && late.out.contains("the stack web has changed since"), "{late:?}");
    assert_eq!(world.value(), "three");
}

/// A service that has none of Kiln's calls.
fn heat() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/p", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                lines.read_line(&mut head).unwrap();
            }
            let lower = head.to_ascii_lowercase();
            let length = lower.split_once("content-length: ").map(|(_, rest)| rest.lines().next().unwrap().parse());
            let mut body = vec![0; length.map_or(0, Result::unwrap)];
            lines.read_exact(&mut body).unwrap();
            let (status, text) = if head.starts_with("GET /v1/p/stacks/web") {
                ("200 OK", r#"{"stack": {"stack_name": "web", "id": "i", "stack_status": "CREATE_COMPLETE"}}"#)
            } else {
                ("404 Not Found", r#"{"message": "The resource could not be found.", "code": "404 Not Found"}"#)
            };
            let head = "content-type: application/json\r\nconnection: close";
            write!(stream, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len()).unwrap();
        }
    });
    url
}

#[test]
fn a_heat_saves_no_plans() {
    let folder = Folder::new("plans-heat");
    folder.write("one.yaml", ONE);
    let url = heat();
    let id = "7f2c1f0e-0000-4000-8000-000000000000";
    for args in [
        &["stack", "plan", "-t", "one.yaml", "--save", "web"][..],
        &["stack", "plan", "--delete", "--save", "web"],
        &["stack", "apply", id],
        &["plan", "list"],
        &["plan", "show", id],
        &["plan", "approve", id],
        &["plan", "renew", id],
        &["plan", "reject", id],
        &["plan", "delete", id],
    ] {
        let ran = folder.run(&[&["--os-auth-type", "none", "--os-endpoint", &url], args].concat());
        refused(&ran, "The service cannot save plans, so nothing notices that a stack has changed since its plan");
    }
}

/// With a service, and with the lifetime that its configuration allows.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_executes_a_plan_while_the_command_waits() {
    let folder = Folder::new("plans-service");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\nplan_lifetime = 3600\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let kiln = |args: &[&str]| Ran::from(folder.client(&cloud, &url, args).output().unwrap());
    folder.write("net.yaml", "heat_template_version: 2018-08-31\nresources: {net: {type: OS::Neutron::Net}}\n");
    let saved =
        kiln(&["stack", "plan", "-t", "net.yaml", "--save", "--expires-in", "9999", "-f", "json", "web"]).json();
    let time = |key: &str| saved[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time("expires_at").duration_since(time("created_at")).as_secs(), 3600, "{saved}");
    assert_eq!(saved["user_name"], cloud.users().demo.user, "{saved}");
    let id = saved["id"].as_str().unwrap();
    let ran = kiln(&["stack", "apply", id, "--wait", "--poll", "0.05", "--progress", "plain"]);
    assert!(ran.err.contains("CREATE_COMPLETE"), "{}", ran.err);
    assert!(ran.ok().contains(saved["stack_id"].as_str().unwrap()));
    assert_eq!(service.stop().0, 0);
}

/// A service that demands plans, and approvals.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_can_demand_plans_and_approvals() {
    let folder = Folder::new("plans-required");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[kiln]\nplans = required\nplan_approvals = 1\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    folder.write("one.yaml", ONE);
    let kiln = |args: &[&str]| Ran::from(folder.client(&cloud, &url, args).output().unwrap());
    refused(&kiln(&["stack", "create", "-t", "one.yaml", "web"]), "Changes need a saved plan");
    let saved = kiln(&["stack", "plan", "-t", "one.yaml", "--save", "-f", "json", "web"]).json();
    let id = saved["id"].as_str().unwrap();
    let unapproved = kiln(&["stack", "apply", id]);
    refused(&unapproved, "has 0 of the 1 approvals");
    assert!(unapproved.err.contains(&format!("kiln plan approve {id}")), "{}", unapproved.err);
    refused(&kiln(&["plan", "approve", id]), "you made it");
    // Who approves sees whether the objects are compared.
    let unread = ["stack", "plan", "-t", "one.yaml", "--save", "--no-refresh", "-f", "json", "web"];
    assert_eq!([&saved, &kiln(&unread).json()].map(|plan| plan["refresh"].clone()), [true, false]);
    assert_eq!(service.stop().0, 0);
}

/// The jobs of the pipeline in the manual.
#[tokio::test(flavor = "multi_thread")]
async fn the_pipeline_of_the_manual_plans_and_applies() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/saved-plans.md"));
    let jobs = page.split("```yaml\nplan:").nth(1).unwrap().split("```").next().unwrap();
    let scripts: Vec<&str> = jobs.lines().filter_map(|line| line.strip_prefix("    - ")).collect();
    assert_eq!(scripts.len(), 2, "{scripts:?}");
    let folder = Folder::new("plans-pipeline");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    folder.write("web.yaml", ONE);
    let run = |script: &str| {
        let program =
            format!("alias kiln='{}'\n{}", env!("CARGO_BIN_EXE_kiln"), script.replace("--wait", "--wait --poll 0.1"));
        let mut command = Command::new("sh");
        command.args(["-c", &program]).current_dir(folder.path()).env_clear();
        for (name, value) in folder.client(&cloud, &url, &[]).get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        Ran::from(command.output().unwrap())
    };
    run(scripts[0]).ok();
    let comment = std::fs::read_to_string(folder.path().join("plan.md")).unwrap();
    assert!(comment.contains("OS::Heat::Value") && !comment.contains("Saved as"), "{comment}");
    assert!(run(scripts[1]).ok().contains("CREATE_COMPLETE"));
    refused(&run(scripts[1]), "it was executed");
    assert_eq!(service.stop().0, 0);
}
