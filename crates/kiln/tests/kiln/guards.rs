//! Guards: each way in which a protected object could change or go, and the commands.

use kiln_resource::Method;
use kiln_testcloud::{Action, Fault, Service, Testcloud, When};
use serde_json::Value;

use crate::cloud_user::CloudUser;
use crate::plan::local;
use crate::run::{Folder, Ran};

/// `db` is replaced if its length changes, the members of `group` go if its count shrinks, and `app` has a nested stack.
const WEB: &str = "\
heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 8}, count: {type: number, default: 2}, inner: {type: number, default: 8}}
resources:
  db: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_param: count}, resource_def: {type: OS::Heat::RandomString}}
  app: {type: app.yaml, properties: {length: {get_param: inner}}}
  free: {type: OS::Heat::Value, properties: {value: {get_param: length}}}
";
const APP: &str = "\
heat_template_version: 2018-08-31
parameters: {length: {type: number}}
resources:
  key: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
";

struct World {
    folder: Folder,
}

impl World {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        folder.write("web.yaml", WEB);
        folder.write("app.yaml", APP);
        folder.write("empty.yaml", "heat_template_version: 2018-08-31\n");
        let world = Self { folder };
        world.stack(&["create", "-t", "web.yaml", "web"]).ok();
        world
    }

    fn stack(&self, args: &[&str]) -> Ran {
        self.folder.local(&[&["stack"], args].concat())
    }

    fn guards(&self) -> Vec<Value> {
        self.folder.local(&["guard", "list", "-f", "json"]).json().as_array().unwrap().clone()
    }

    /// The physical IDs of all resources, by path.
    fn objects(&self) -> Vec<String> {
        let listed = self.stack(&["resource", "list", "web", "-n", "3", "-f", "json"]).json();
        let of = |row: &Value| format!("{} {}", row["resource_name"], row["physical_resource_id"]);
        listed.as_array().unwrap().iter().map(of).collect()
    }
}

#[track_caller]
fn refused(ran: &Ran, why: &str) {
    let said = format!("{}{}", ran.out, ran.err);
    assert!(matches!(ran.code, 1 | 3) && said.contains(why), "{why}: {ran:?}");
}

#[test]
fn no_way_leads_to_the_object_of_a_protected_resource() {
    let world = World::new("guards");
    let before = world.objects();
    for path in ["db", "group", "app/key"] {
        let told = world.stack(&["protect", "web", "--resource", path, "--reason", "the ledger"]).ok();
        assert!(told.contains(&format!("forbids delete of {path}")), "{told}");
    }
    // Known at once: nothing is stored.
    for args in [&["delete", "--yes", "web"][..], &["update", "-t", "empty.yaml", "web"]] {
        let ran = world.stack(args);
        refused(&ran, "stays as it is");
        refused(&ran, "(the ledger) forbids");
    }
    let status = world.stack(&["show", "web", "-f", "value", "-c", "stack_status"]).ok();
    assert_eq!(status.trim(), "CREATE_COMPLETE");
    // Known when it is decided: the operation ends before the call.
    for (parameter, path) in [("length=9", "db"), ("count=1", "group"), ("inner=9", "key")] {
        let plan = world.stack(&["plan", "web", "--existing", "--parameter", parameter]).ok();
        assert!(plan.contains("forbidden by the guard ") && plan.contains("(the ledger)"), "{parameter}: {plan}");
        let saved =
            world.stack(&["plan", "--save", "-f", "json", "web", "--existing", "--parameter", parameter]).json();
        let applied = world.stack(&["apply", saved["id"].as_str().unwrap()]);
        refused(&applied, "stays as it is");
        let ran = world.stack(&["update", "web", "--existing", "--parameter", parameter]);
        refused(&ran, "Guarded");
        refused(&ran, "(the ledger) forbids");
        assert!(format!("{}{}", ran.out, ran.err).contains(path), "{ran:?}");
        assert_eq!(world.objects(), before, "{parameter}");
        // The stack can be brought in order.
        world.stack(&["update", "web", "-t", "web.yaml"]).ok();
        assert_eq!(world.objects(), before, "{parameter}");
    }

    let lifted = world.stack(&["unprotect", "web", "--resource", "db"]).ok();
    assert!(lifted.contains("it forbade delete of db"), "{lifted}");
    world.stack(&["update", "web", "--existing", "--parameter", "length=9"]).ok();
    assert_ne!(world.objects(), before);
    world.stack(&["unprotect", "web"]).ok();
    assert_eq!(world.guards(), Vec::<Value>::new());
    world.stack(&["delete", "--yes", "web"]).ok();
}

/// The new objects of a failed operation go, although the guard would protect them.
#[test]
fn a_rollback_takes_back_what_its_operation_has_made() {
    let world = World::new("guards-rollback");
    world.stack(&["protect", "web", "--resource", "*", "--from", "delete", "--from", "update"]).ok();
    let before = world.objects();
    let more = format!(
        "{WEB}  more: {{type: OS::Heat::RandomString}}\n  bad: {{type: OS::Heat::TestResource, depends_on: more, properties: {{fail: true}}}}\n"
    );
    world.folder.write("more.yaml", &more);
    // What an operation has made that failed before is taken back with the one that has continued it.
    assert_eq!(world.stack(&["update", "web", "-t", "more.yaml", "--rollback", "disabled"]).code, 3);
    assert_ne!(world.objects(), before);
    let ran = world.stack(&["update", "web", "-t", "more.yaml", "--rollback", "enabled"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let status = world.stack(&["show", "web", "-f", "value", "-c", "stack_status"]).ok();
    assert_eq!((status.trim(), world.objects()), ("ROLLBACK_COMPLETE", before), "{ran:?}");
}

#[test]
fn a_stack_is_protected_frozen_and_thawed() {
    let world = World::new("guards-stack");
    world.stack(&["protect", "web"]).ok();
    let shown = world.stack(&["show", "web"]).ok();
    assert!(shown.contains("guards") && shown.contains("delete of the stack"), "{shown}");
    refused(&world.stack(&["delete", "--yes", "web"]), "the stack web stays as it is: the guard ");
    refused(&world.stack(&["abandon", "--yes", "web"]), "the stack web stays as it is: the guard ");
    world.stack(&["update", "web", "-t", "web.yaml"]).ok();
    refused(&world.stack(&["thaw", "web"]), "No guard of stack web freezes anything like this");
    world.stack(&["unprotect", "web"]).ok();

    world.stack(&["freeze", "web", "--reason", "exams"]).ok();
    for args in [
        &["update", "web", "-t", "web.yaml"][..],
        &["suspend", "web"],
        &["check", "web"],
        &["snapshot", "create", "web"],
        &["resource", "mark", "unhealthy", "web", "db"],
        &["delete", "--yes", "web"],
    ] {
        refused(&world.stack(args), "(exams) forbids it");
    }
    world.stack(&["thaw", "web"]).ok();

    world.stack(&["freeze", "--all-stacks"]).ok();
    refused(&world.stack(&["create", "-t", "empty.yaml", "new"]), "a new stack in this project stays as it is");
    let ran = world.stack(&["thaw", "web"]);
    refused(&ran, "No guard of stack web");
    assert!(ran.err.contains("repeat it with --all-stacks"), "{ran:?}");
    world.stack(&["thaw", "--all-stacks"]).ok();
    world.stack(&["create", "-t", "empty.yaml", "new"]).ok();
}

#[test]
fn a_guard_can_require_plans() {
    let world = World::new("guards-plans");
    world.folder.local(&["guard", "require-plans", "--stack", "web"]).ok();
    refused(&world.stack(&["update", "web", "--existing", "--parameter", "length=9"]), "Changes need a saved plan");
    world.stack(&["create", "-t", "empty.yaml", "other"]).ok();
    let plan = ["plan", "--save", "-f", "json", "web", "--existing", "--parameter", "length=9"];
    let saved = world.stack(&plan).json();
    world.stack(&["apply", saved["id"].as_str().unwrap()]).ok();
    let guards = world.guards();
    assert_eq!(guards[0]["Forbids"], "changes without a saved plan");
    let id = guards[0]["ID"].as_str().unwrap();
    let shown = world.folder.local(&["guard", "show", id, "-f", "json"]).json();
    assert_eq!((&shown["plans"], &shown["id"]), (&"required".into(), &id.into()));
    world.folder.local(&["guard", "lift", id]).ok();
    let gone = world.folder.local(&["guard", "lift", id]);
    assert!(gone.code == 1 && gone.err.contains("'kiln --local guard list'"), "{gone:?}");
    world.stack(&["delete", "--yes", "web"]).ok();
}

/// A server alone, and one with an image in each of two nested stacks.
const LOCKED: &str = "\
heat_template_version: 2018-08-31
resources:
  web: {type: OS::Nova::Server, properties: {name: web, image: cirros, flavor: m1.tiny, networks: [{network: private}]}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: member.yaml, properties: {number: '%index%'}}}
";
const MEMBER: &str = "\
heat_template_version: 2018-08-31
parameters: {number: {type: string}}
resources:
  db:
    type: OS::Nova::Server
    properties: {name: {get_param: number}, image: cirros, flavor: m1.tiny, networks: [{network: private}]}
  image:
    type: OS::Glance::WebImage
    properties:
      name: {list_join: [-, [golden, {get_param: number}]]}
      disk_format: raw
      container_format: bare
      location: http://images.invalid/golden.raw
";

/// `--lock`: the services of the cloud refuse the deletes of others too, until the guard is lifted.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_locks_objects_in_the_cloud() {
    let (cloud, folder) = (Testcloud::builder().start().await.unwrap(), Folder::new("guards-lock"));
    folder.write("web.yaml", LOCKED);
    folder.write("member.yaml", MEMBER);
    let stack = |args: &[&str]| local(&cloud, &folder, &[&["stack"], args].concat());
    let user = CloudUser::of(&cloud, cloud.users().demo).await;
    let locks = async || {
        let servers = user.call("compute", Method::Get, "/servers/detail", None).await;
        let images = user.call("image", Method::Get, "/v2/images", None).await;
        let named = |list: &kiln_value::Value, key: &str, flag: &str| {
            let list = list.get(key).and_then(kiln_value::Value::as_list).unwrap_or_default().to_vec();
            let is_locked = |one: &&kiln_value::Value| one.get(flag).is_some_and(kiln_value::Value::is_truthy);
            list.iter().filter(is_locked).filter_map(|one| Some(one.str_at("name")?.to_owned())).collect::<Vec<_>>()
        };
        let mut locked = named(&servers, "servers", "locked");
        locked.extend(named(&images, "images", "protected"));
        locked.sort();
        locked
    };
    stack(&["create", "-t", "web.yaml", "web"]).ok();
    assert_eq!(locks().await, [""; 0]);

    let told = stack(&["protect", "web", "--resource", "group/*/*", "--lock"]).ok();
    assert!(told.contains("forbids delete of group/*/*, also in the cloud"), "{told}");
    for path in ["group/0/db", "group/0/image", "group/1/db", "group/1/image"] {
        assert!(told.contains(&format!("The object of {path} is locked in the cloud")), "{told}");
    }
    assert!(!told.contains("of web is locked"), "{told}");
    let inside = ["0", "1", "golden-0", "golden-1"];
    assert_eq!(locks().await, inside);

    // A service that fails: the guard is there, and the rest is locked by repeating the request.
    let down = |service: Service| {
        let (service, method, path) = (Some(service), Some("POST".to_owned()), "/servers/*/action".to_owned());
        cloud.faults().add(Fault { service, method, path, when: When::Always, action: Action::Status(500) });
    };
    down(Service::Compute);
    let ran = stack(&["protect", "web", "--lock"]);
    refused(&ran, "cannot be locked");
    refused(&ran, "was added: repeat the request to lock the rest");
    cloud.faults().clear();
    assert_eq!(locks().await, inside);
    stack(&["protect", "web", "--lock"]).ok();
    let all = ["0", "1", "golden-0", "golden-1", "web"];
    assert_eq!(locks().await, all);
    let guards = local(&cloud, &folder, &["guard", "list", "-f", "json"]).json();
    assert_eq!(guards.as_array().map(Vec::len), Some(2), "the same guard is not added twice: {guards}");

    // What another guard locks stays locked. A guard is not lifted while its objects stay locked.
    stack(&["unprotect", "web", "--resource", "group/*/*"]).ok();
    assert_eq!(locks().await, all);
    down(Service::Compute);
    let ran = stack(&["unprotect", "web"]);
    refused(&ran, "cannot be unlocked");
    refused(&ran, "was not lifted: repeat the request");
    refused(&stack(&["delete", "--yes", "web"]), "stays as it is");
    cloud.faults().clear();
    // An object that is gone is no obstacle.
    let admin = CloudUser::of(&cloud, cloud.users().admin).await;
    let web = stack(&["resource", "show", "web", "web", "-f", "value", "-c", "physical_resource_id"]).ok();
    admin.call("compute", Method::Delete, &format!("/servers/{}", web.trim()), None).await;
    stack(&["unprotect", "web"]).ok();
    assert_eq!(locks().await, [""; 0]);
    stack(&["delete", "--yes", "web"]).ok();
}
