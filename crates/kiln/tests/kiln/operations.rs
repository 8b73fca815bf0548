//! What is recorded of the requests to a stack, and the way back to one of its revisions.

use crate::run::Folder;

const ONE: &str = "\
heat_template_version: 2018-08-31
parameters:
  password: {type: string, hidden: true}
resources:
  value: {type: OS::Heat::Value, properties: {value: one}}
  held: {type: OS::Heat::Value, properties: {value: {get_param: password}}}
outputs:
  value: {value: {get_attr: [value, value]}}
";

fn failing() -> String {
    let child = "{type: OS::Heat::ResourceGroup, properties: {count: 1, resource_def: {type: child.yaml}}}";
    ONE.replace("outputs:", &format!("  group: {child}\noutputs:"))
}

#[test]
fn a_stack_tells_who_requested_what_and_returns_to_a_revision() {
    let folder = Folder::new("operations");
    folder.write("one.yaml", ONE);
    folder.write("two.yaml", &ONE.replace("value: one", "value: two"));
    folder.write("failing.yaml", &failing());
    let child = "heat_template_version: 2018-08-31\nresources:\n  broken: {type: OS::Heat::TestResource, properties: {fail: true}}\n";
    folder.write("child.yaml", child);
    let of_stack = |args: &[&str]| folder.local(&[&["stack"], args].concat());
    of_stack(&["create", "-t", "one.yaml", "--parameter", "password=planted-one", "web"]).ok();
    of_stack(&["update", "-t", "two.yaml", "--parameter", "password=planted-two", "web"]).ok();
    let failed = of_stack(&["update", "--existing", "-t", "failing.yaml", "--rollback", "enabled", "web"]);
    assert_eq!(failed.code, 3, "{failed:?}");

    let operations = of_stack(&["operation", "list", "web", "-f", "json"]).json();
    let seen: Vec<String> = operations
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {}", one["Action"], one["Status"], one["Revision"]).replace('"', ""))
        .collect();
    assert_eq!(seen, ["ROLLBACK COMPLETE 4", "UPDATE FAILED 3", "UPDATE COMPLETE 2", "CREATE COMPLETE 1"]);
    let id = operations[1]["ID"].as_str().unwrap();
    let shown = of_stack(&["operation", "show", "web", id, "-f", "json"]).json();
    assert_eq!(shown["root_cause"]["resource_path"], "group/0/broken", "{shown}");
    assert_eq!(shown["root_cause"]["resource_type"], "OS::Heat::TestResource", "{shown}");
    let last = of_stack(&["operation", "show", "web", "last", "-f", "json"]).json();
    assert_eq!((&last["action"], &last["user_id"]), (&"ROLLBACK".into(), &serde_json::Value::Null), "{last}");

    let diff = of_stack(&["revision", "diff", "web", "1", "2"]).ok();
    assert!(diff.contains("-      value: one\n") && diff.contains("+      value: two\n"), "{diff}");
    let shown = of_stack(&["revision", "show", "web", "1"]).ok();
    assert!(shown.contains("******") && !(shown + &diff).contains("planted"), "hidden");
    let unknown = of_stack(&["revision", "show", "web", "9"]);
    assert!(unknown.code == 1 && unknown.err.contains("No revision 9 of stack web is kept"), "{unknown:?}");

    let plan = of_stack(&["rollback", "web", "--to", "1", "--dry-run"]).ok();
    assert!(plan.contains("~ value") && plan.contains("\"two\" → \"one\"") && !plan.contains("planted"), "{plan}");
    of_stack(&["rollback", "web", "--to", "1", "--yes"]).ok();
    assert_eq!(of_stack(&["output", "show", "web", "value", "-f", "value", "-c", "output_value"]).ok(), "one\n");
    let held = of_stack(&["export", "web"]).ok();
    assert!(held.contains("planted-one"), "the hidden value of the revision: {held}");
}
