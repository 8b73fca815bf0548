//! Resources with another name than before (`moved` in the template): their objects stay.

use kiln_value::Value;

use crate::processes::drift_plans::World;

const BEFORE: &str = "\
heat_template_version: 2018-08-31
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.76.0.0/24}}
  handle: {type: OS::Heat::RandomString}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Neutron::Net}}
outputs:
  net: {value: {get_resource: net}}
";
const AFTER: &str = "\
heat_template_version: 2018-08-31
resources:
  lan: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: lan}, cidr: 10.76.0.0/24}}
  done: {type: OS::Heat::RandomString}
  members:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Neutron::Net}}
outputs:
  net: {value: {get_resource: lan}}
moved:
  - {from: net, to: lan}
  - {from: handle, to: done}
  - {from: group, to: members}
";

#[tokio::test(flavor = "multi_thread")]
async fn objects_stay_when_their_resources_get_other_names() {
    let world = World::with("moved", BEFORE).await;
    world.folder.write("web.yaml", AFTER);
    let plan = ["stack", "plan", "-t", "web.yaml", "web", "--detailed-exitcode"];
    let shown = world.run(&plan);
    assert_eq!(shown.code, 2, "{shown:?}");
    for line in [" => lan  (OS::Neutron::Net)", "moved from net", "3 to move", "3 unchanged"] {
        assert!(shown.out.contains(line), "{line}: {}", shown.out);
    }
    let saved = world.run(&["stack", "plan", "-t", "web.yaml", "web", "--save"]).ok();
    assert_eq!(world.apply(&saved).await, Vec::<String>::new(), "no object changes");
    let now = world.ids_now().await;
    for (from, to) in [("net", "lan"), ("subnet", "subnet"), ("handle", "done"), ("group", "members"), ("0", "0")] {
        assert_eq!(now.get(to), world.ids.get(from), "{from}");
    }
    assert_eq!(now.len(), world.ids.len());
    let again = world.run(&plan);
    assert_eq!(
        (again.code, again.out.contains("no changes") || again.out.contains("unchanged")),
        (0, true),
        "{again:?}"
    );
    // The name of the object is made of the first name of the resource.
    assert_eq!(world.drift(&["lan"]), []);
    let network = world.run(&["stack", "resource", "show", "web", "lan", "-f", "json"]).json();
    let name = network["attributes"]["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.starts_with("web-net-"), "{name}");
    // A nested stack is found below the new name.
    let paths = world.run(&["stack", "resource", "list", "web", "-n", "2", "-f", "json"]).ok();
    assert!(paths.contains("members"), "{paths}");
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_and_the_former_template_give_the_former_names_back() {
    let world = World::with("moved-back", BEFORE).await;
    let failing = AFTER.replace(
        "outputs:",
        "  bad: {type: OS::Heat::TestResource, depends_on: lan, properties: {fail: true}}\noutputs:",
    );
    world.folder.write("web.yaml", &failing);
    let failed = world.run(&["stack", "update", "-t", "web.yaml", "--rollback", "enabled", "--wait", "web"]);
    assert_eq!(failed.code, 3, "{failed:?}");
    assert_eq!(world.ids_now().await, world.ids, "rolled back");
    world.folder.write("web.yaml", AFTER);
    let moved = world.run(&["stack", "update", "-t", "web.yaml", "--wait", "web"]);
    assert!(moved.err.contains("  lan moved from net\n") && !moved.err.contains("created"), "{moved:?}");
    world.folder.write("web.yaml", BEFORE);
    world.run(&["stack", "update", "-t", "web.yaml", "--wait", "web"]).ok();
    assert_eq!(world.ids_now().await, world.ids, "the former template");
    world.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_out_of_the_protection_of_a_guard_is_refused() {
    let world = World::with("moved-guarded", BEFORE).await;
    world.run(&["stack", "protect", "web", "--resource", "net"]).ok();
    world.folder.write("web.yaml", AFTER);
    let refused = world.run(&["stack", "update", "-t", "web.yaml", "--yes", "web"]);
    assert!(refused.code == 1 && refused.err.contains("it would move to lan, where"), "{refused:?}");
    world.run(&["stack", "unprotect", "web", "--resource", "net"]).ok();
    world.run(&["stack", "protect", "web", "--resource", "*"]).ok();
    world.run(&["stack", "update", "-t", "web.yaml", "--wait", "--yes", "web"]).ok();
    assert_eq!(world.ids_now().await.get("lan"), world.ids.get("net"));
    let wrong = AFTER.replace("from: net", "from: subnet");
    world.folder.write("web.yaml", &wrong);
    let refused = world.run(&["stack", "update", "-t", "web.yaml", "--yes", "web"]);
    assert!(refused.err.contains("moved: the resource subnet is still in the template"), "{refused:?}");
    assert_eq!(world.ids.get("net").and_then(Value::as_str).map(str::len), Some(36));
    world.cluster.end().await;
}
