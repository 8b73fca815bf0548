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

#[test]
fn a_plan_says_how_long_it_takes_and_its_operation_how_long_it_took() {
    let folder = Folder::new("operations-time");
    // Resources that wait for each other.
    let slow = |names: &[&str]| {
        let resources = names.iter().enumerate().map(|(place, name)| {
            let before = names[..place].last().copied().unwrap_or_default();
            format!("  {name}: {{type: OS::Heat::TestResource, depends_on: [{before}], properties: {{wait_secs: 1}}}}")
        });
        ["heat_template_version: 2018-08-31".to_owned(), "resources:".to_owned()]
            .into_iter()
            .chain(resources)
            .collect::<Vec<_>>()
            .join("\n")
    };
    folder.write("one.yaml", &slow(&["a"]));
    folder.write("three.yaml", &slow(&["a", "b", "c"]));
    let of_stack = |args: &[&str]| folder.local(&[&["stack"], args].concat());
    let plan = |args: &[&str]| of_stack(&[&["plan"], args, &["-f", "json"]].concat()).json();
    assert!(plan(&["-t", "one.yaml", "web"]).get("estimate").is_none(), "nothing is known yet");
    of_stack(&["create", "-t", "one.yaml", "web"]).ok();

    let estimate = plan(&["-t", "three.yaml", "other"])["estimate"].clone();
    let seconds = estimate["seconds"].as_f64().unwrap();
    assert!((2.5..9.0).contains(&seconds), "three, one after the other: {estimate}");
    assert_eq!((&estimate["operations"], estimate.get("unknown")), (&1.into(), None), "{estimate}");
    let text = of_stack(&["plan", "-t", "three.yaml", "other"]).ok();
    assert!(text.contains("\nTime: about ") && text.contains("(from 1 earlier operation)"), "{text}");
    let update = plan(&["-t", "three.yaml", "web"])["estimate"].clone();
    assert!(update["seconds"].as_f64().unwrap() < seconds, "two of them: {update}");
    assert!(!of_stack(&["plan", "-t", "one.yaml", "web"]).ok().contains("Time:"), "nothing changes");

    let saved = of_stack(&["plan", "-t", "three.yaml", "web", "--save", "-f", "json"]).json();
    let id = saved["id"].as_str().unwrap_or_else(|| panic!("{saved}"));
    of_stack(&["apply", id]).ok();
    let shown = of_stack(&["operation", "show", "web", "last", "-f", "json"]).json();
    assert_eq!(shown["estimate"]["seconds"], update["seconds"], "{shown}");
    assert!(shown["seconds"].as_f64().unwrap() >= 2.0, "{shown}");
    let delete = plan(&["--delete", "web"]);
    assert_eq!(delete["estimate"], serde_json::Value::Null, "no delete was measured yet: {delete}");
}
