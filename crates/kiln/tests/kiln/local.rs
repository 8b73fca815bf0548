//! `--local`: stacks without a service.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use crate::run::Folder;

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: first}
resources:
  value: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
  secret: {type: OS::Heat::RandomString, depends_on: value}
outputs:
  word: {description: What was said, value: {get_attr: [value, value]}}
";

#[test]
fn a_stack_lives_from_create_to_delete() {
    let folder = Folder::new("life");
    folder.write("t.yaml", TEMPLATE);
    let made = folder.local(&["stack", "create", "-t", "t.yaml", "--tags", "a,b", "one", "-f", "json"]).json();
    assert_eq!((&made["stack_name"], &made["stack_status"]), (&"one".into(), &"CREATE_COMPLETE".into()));
    assert_eq!(made["outputs"][0]["output_value"], "first", "{made}");
    let word = || folder.local(&["stack", "output", "show", "one", "word", "-f", "value", "-c", "output_value"]).ok();
    assert_eq!(word(), "first\n");

    folder.local(&["stack", "update", "--existing", "--parameter", "word=second", "one"]).ok();
    assert_eq!(word(), "second\n");
    let resources = folder.local(&["stack", "resource", "list", "one", "-f", "json"]).json();
    let names: Vec<_> = resources.as_array().unwrap().iter().map(|r| r["resource_name"].clone()).collect();
    assert_eq!(names, ["secret", "value"]);
    let events = folder.local(&["stack", "event", "list", "one"]).ok();
    assert!(events.contains("[one.value]: CREATE_COMPLETE"), "{events}");
    assert!(events.contains("[one]: UPDATE_COMPLETE  Stack UPDATE completed successfully"), "{events}");
    let drift = folder.local(&["stack", "drift", "one", "--resource", "value", "-f", "json"]).json();
    assert_eq!((&drift[0]["drift_status"], drift.as_array().unwrap().len()), (&"NOT_CHECKED".into(), 1), "{drift}");
    assert_eq!(drift[0]["differences"], "its type has no objects in the cloud");
    let wrong = folder.local(&["stack", "drift", "one", "--resource", "nothing"]).err;
    assert!(wrong.contains("Stack or resource not found: one nothing"), "{wrong}");
    assert!(folder.local(&["stack", "drift", "none"]).err.contains("Stack not found: none"));
    let listed = folder.local(&["stack", "list", "-f", "csv", "-c", "Stack Name", "-c", "Stack Status"]).ok();
    assert_eq!(listed, "\"Stack Name\",\"Stack Status\"\n\"one\",\"UPDATE_COMPLETE\"\n");

    folder.local(&["stack", "delete", "one"]).ok();
    assert_eq!(folder.local(&["stack", "list", "-f", "json"]).ok(), "[]\n");
    // The database contains credentials: only the owner can read its key.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let key = std::fs::metadata(folder.path().join("stacks.db.key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
}

/// Where Heat has a text of its own, ours is the same.
#[test]
fn errors_at_runtime_have_the_texts_of_heat() {
    let folder = Folder::new("texts");
    folder.write(
        "t.yaml",
        "heat_template_version: 2018-08-31
resources:
  value: {type: OS::Heat::Value, properties: {value: x}}
  child: {type: child.yaml}
  of_value: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: value}, timeout: 9}}
outputs:
  path: {value: {get_attr: [child, nosuch, p, 0]}}
  name: {value: {get_attr: [child, nosuch]}}
  merged: {value: {map_merge: [{a: 1}, {get_attr: [value, value]}]}}
",
    );
    folder.write("child.yaml", "heat_template_version: 2018-08-31\noutputs: {one: {value: 1}}\n");
    assert_eq!(folder.local(&["stack", "create", "-t", "t.yaml", "one"]).code, 3);
    let shown = folder.local(&["stack", "show", "one", "-f", "json"]).json();
    let reason = "Resource CREATE failed: ValueError: resources.of_value: value is not a valid wait condition handle.";
    assert_eq!(shown["stack_status_reason"], reason);
    let error = |name: &str| {
        let outputs = shown["outputs"].as_array().unwrap();
        outputs.iter().find(|output| output["output_key"] == name).unwrap()["output_error"].clone()
    };
    assert_eq!(error("path"), "The Referenced Attribute (child ('nosuch', 'p', 0)) is incorrect.");
    assert_eq!(error("name"), "The Referenced Attribute (child nosuch) is incorrect.");
    let merged = "Incorrect arguments: Items to merge must be maps. 'x' is type <class 'str'> instead of a dict";
    assert_eq!(error("merged"), merged);
}

/// The failure of a rollback comes first, before the one that it should undo.
#[test]
fn a_rollback_that_fails_names_its_own_cause_first() {
    let folder = Folder::new("failed-rollback");
    let first = "heat_template_version: 2018-08-31
resources:
  one: {type: OS::Heat::TestResource, properties: {value: a, fail: false}}
";
    folder.write("t.yaml", first);
    folder.local(&["stack", "create", "-t", "t.yaml", "s"]).ok();
    folder.local(&["stack", "abandon", "s", "--output-file", "s.json"]).ok();
    // A stack that is adopted runs nothing: its resource fails when the rollback returns to it.
    let adopted = std::fs::read_to_string(folder.path().join("s.json")).unwrap();
    folder.write("s.json", &adopted.replace("\"fail\": false", "\"fail\": true"));
    folder.local(&["stack", "adopt", "--adopt-file", "s.json", "s"]).ok();
    let second = "  two: {type: OS::Heat::TestResource, depends_on: one, properties: {value: b, fail: true}}\n";
    folder.write("t.yaml", &format!("{}{second}", first.replace("value: a", "value: b")));
    let ran = folder.local(&["stack", "update", "-t", "t.yaml", "--rollback", "enabled", "s"]);
    let cause = |name: &str| {
        format!("{name} (OS::Heat::TestResource): ValueError: resources.{name}: Test Resource failed {name}")
    };
    let told = format!("s ROLLBACK_FAILED\n  root cause: {}\n  rolled back because of two", cause("one"));
    assert!(ran.err.contains(&told), "{}", ran.err);
}

/// As in Heat, the rollback itself deletes the replacement that failed, before the stack is rolled back.
#[test]
fn a_failed_replacement_is_deleted_during_the_rollback() {
    let folder = Folder::new("failed-replacement");
    let template = |value: &str, fail: &str| {
        folder.write(
            "t.yaml",
            &format!(
                "heat_template_version: 2018-08-31\nresources:\n  one:\n    type: OS::Heat::TestResource\n    properties: \
                 {{update_replace_value: {value}, fail: {fail}}}\n"
            ),
        );
    };
    template("a", "false");
    folder.local(&["stack", "create", "-t", "t.yaml", "s"]).ok();
    let physical = || {
        folder.local(&["stack", "resource", "show", "s", "one", "-f", "json"]).json()["physical_resource_id"].clone()
    };
    let before = physical();
    template("b", "true");
    let update = ["stack", "update", "-t", "t.yaml", "--rollback", "enabled", "--yes", "s"];
    assert_eq!(folder.local(&update).code, 3);
    assert_eq!(physical(), before);
    let events = folder.local(&["stack", "event", "list", "s", "-f", "json"]).json();
    let events: Vec<(&str, &str)> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (event["resource_name"].as_str().unwrap(), event["resource_status"].as_str().unwrap()))
        .collect();
    let at = |wanted: (&str, &str)| {
        events.iter().position(|event| *event == wanted).unwrap_or_else(|| panic!("{wanted:?}: {events:?}"))
    };
    let order = [
        ("one", "CREATE_FAILED"),
        ("s", "ROLLBACK_IN_PROGRESS"),
        ("one", "DELETE_IN_PROGRESS"),
        ("one", "DELETE_COMPLETE"),
        ("s", "ROLLBACK_COMPLETE"),
    ];
    assert!(order.map(at).is_sorted(), "{events:?}");
}

#[test]
fn a_stack_is_abandoned_and_adopted() {
    let folder = Folder::new("adopt");
    folder.write("t.yaml", TEMPLATE);
    folder.local(&["stack", "create", "-t", "t.yaml", "--parameter", "word=kept", "one"]).ok();
    let exported = folder.local(&["stack", "export", "one"]).json();
    let secret = |data: &serde_json::Value| data["resources"]["secret"]["resource_data"]["value"].clone();
    assert_eq!(exported["resources"]["value"]["type"], "OS::Heat::Value", "{exported}");
    assert_eq!(exported["environment"]["parameters"]["word"], "kept");
    folder.local(&["stack", "abandon", "one", "--output-file", "one.json"]).ok();
    assert_eq!(folder.local(&["stack", "list", "-f", "json"]).ok(), "[]\n");
    let adopt = ["stack", "adopt", "--adopt-file", "one.json", "two", "-f", "json"];
    let adopted = folder.local(&adopt).json();
    assert_eq!(adopted["stack_status"], "ADOPT_COMPLETE", "{adopted}");
    assert_eq!(adopted["outputs"][0]["output_value"], "kept", "{adopted}");
    assert_eq!(secret(&folder.local(&["stack", "export", "two"]).json()), secret(&exported));
}

/// The data of an abandoned stack is the only record of its objects.
#[test]
fn the_data_of_an_abandoned_stack_is_not_lost() {
    let folder = Folder::new("record");
    folder.write("t.yaml", TEMPLATE);
    let make = || folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    make();
    let away = folder.local(&["stack", "abandon", "one", "--output-file", "none/one.json"]);
    assert!(away.code == 1 && away.err.contains("none/one.json: No such file"), "{}", away.err);
    assert!(folder.local(&["stack", "list", "-f", "value"]).ok().contains("CREATE_COMPLETE"), "it is not abandoned");
    let one = folder.write("one.json", "old");
    assert_eq!(folder.local(&["stack", "abandon", "two", "--output-file", "one.json"]).code, 1);
    assert_eq!(std::fs::read_to_string(&one).unwrap(), "old", "nothing was abandoned");
    let wrong = folder.local(&["stack", "abandon", "one", "-f", "json", "-c", "nothing"]);
    assert!(wrong.code == 1 && wrong.err.contains("No recognized column names"), "{}", wrong.err);
    folder.write("adopt.json", &wrong.out);
    folder.local(&["stack", "adopt", "--adopt-file", "adopt.json", "two"]).ok();
}

#[test]
fn a_released_stack_can_be_made_again_from_its_data() {
    let folder = Folder::new("release");
    folder.write("t.yaml", TEMPLATE);
    folder.local(&["stack", "create", "-t", "t.yaml", "--parameter", "word=kept", "one"]).ok();
    let shown = folder.local(&["stack", "release", "one", "--dry-run"]).json();
    assert_eq!(shown["environment"]["parameters"]["word"], "kept");
    let away = folder.local(&["stack", "release", "one", "--data", "none/one.json"]);
    assert!(away.code == 1 && away.err.contains("cannot write none/one.json"), "{}", away.err);
    assert!(folder.local(&["stack", "list", "-f", "value"]).ok().contains("CREATE_COMPLETE"), "it is not released");
    // It has no objects that others could take over.
    let released = folder.local(&["stack", "release", "one", "--to", "terraform"]);
    assert!(released.err.contains("one: released; the data of the stack is in one.released.json"), "{}", released.err);
    assert_eq!(released.ok(), "");
    assert_eq!(folder.local(&["stack", "list", "-f", "json"]).ok(), "[]\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let data = std::fs::metadata(folder.path().join("one.released.json")).unwrap();
        assert_eq!(data.permissions().mode() & 0o777, 0o600, "it has secrets");
    }
    let adopted = folder.local(&["stack", "adopt", "--adopt-file", "one.released.json", "two", "-f", "json"]).json();
    assert_eq!(adopted["stack_status"], "ADOPT_COMPLETE", "{adopted}");
}

#[test]
fn an_empty_key_file_is_an_error_that_names_it() {
    let folder = Folder::new("key");
    folder.write("t.yaml", TEMPLATE);
    folder.write("stacks.db.key", "");
    let refused = folder.local(&["stack", "create", "-t", "t.yaml", "one"]);
    assert!(refused.code == 1 && refused.err.contains("stacks.db.key: the key file is empty"), "{}", refused.err);
}

#[test]
fn a_stack_returns_to_its_snapshot() {
    let folder = Folder::new("snapshot");
    folder.write("t.yaml", TEMPLATE);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let made = folder.local(&["stack", "snapshot", "create", "one", "--name", "before", "-f", "json"]).json();
    assert_eq!((&made["name"], &made["status"]), (&"before".into(), &"COMPLETE".into()), "{made}");
    let id = made["id"].as_str().unwrap();
    let word = || folder.local(&["stack", "output", "show", "one", "word", "-f", "value", "-c", "output_value"]).ok();
    folder.local(&["stack", "update", "--existing", "--parameter", "word=second", "one"]).ok();
    assert_eq!(word(), "second\n");
    folder.local(&["stack", "snapshot", "restore", "one", id]).ok();
    assert_eq!(word(), "first\n");
    let listed = folder.local(&["stack", "snapshot", "list", "one", "-f", "csv", "-c", "Name", "-c", "Status"]).ok();
    assert_eq!(listed, "\"Name\",\"Status\"\n\"before\",\"COMPLETE\"\n");
    let shown = folder.local(&["stack", "snapshot", "show", "one", id, "-f", "json"]).json();
    assert_eq!(shown["data"]["resources"]["value"]["action"], "SNAPSHOT", "{shown}");
    folder.local(&["stack", "snapshot", "delete", "one", id]).ok();
    assert_eq!(folder.local(&["stack", "snapshot", "list", "one", "-f", "json"]).ok(), "[]\n");
    assert_eq!(folder.local(&["stack", "snapshot", "show", "one", id]).code, 1);
}

#[test]
fn a_hook_is_polled_and_cleared() {
    let folder = Folder::new("hook");
    folder.write("t.yaml", TEMPLATE);
    let create = ["--local", "stack", "create", "-t", "t.yaml", "--pre-create", "secret", "--progress", "none", "one"];
    let mut first = folder.kiln(&create).stdout(std::process::Stdio::null()).spawn().unwrap();
    let poll = || folder.local(&["stack", "hook", "poll", "one", "-f", "json"]);
    let waiting = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let polled = poll();
        (polled.code == 0 && polled.out.contains("paused until Hook pre-create is cleared")).then(|| polled.json())
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let polled = waiting.unwrap();
    assert_eq!(polled[0]["resource_name"], "secret", "{polled}");
    let ran = folder.local(&["stack", "hook", "clear", "--pre-update", "one", "secret"]);
    assert_eq!(ran.code, 1);
    folder.local(&["stack", "hook", "clear", "--pre-create", "one", "sec*"]).ok();
    folder.local(&["stack", "wait", "one"]).ok();
    assert_eq!(poll().json(), serde_json::json!([]));
    let listed = folder.local(&["stack", "list", "-f", "value", "-c", "Stack Status"]).ok();
    assert_eq!(listed, "CREATE_COMPLETE\n");
}

#[test]
fn a_failure_names_its_cause() {
    let folder = Folder::new("cause");
    let child = "\
heat_template_version: 2018-08-31
resources:
  fine: {type: OS::Heat::TestResource}
  broken: {type: OS::Heat::TestResource, properties: {fail: true}, depends_on: fine}
";
    folder.write("child.yaml", child);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {nested: {type: child.yaml}}\n");
    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "--progress", "json", "bad"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("error: Stack bad CREATE_FAILED"), "{}", ran.err);
    assert!(ran.err.contains("root cause: nested/broken (OS::Heat::TestResource): "), "{}", ran.err);
    let failures = folder.local(&["stack", "failures", "list", "bad"]).ok();
    assert!(failures.starts_with("bad.nested.broken:\n  resource_type: OS::Heat::TestResource\n"), "{failures}");
}

/// A value that is known only at create fails there; its text is in reasons of the nested stack and of the stack above.
#[test]
fn reasons_do_not_show_hidden_values() {
    let folder = Folder::new("reasons");
    let child = "\
heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources:
  held: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
  random: {type: OS::Heat::RandomString, properties: {length: {get_attr: [held, value]}}}
";
    folder.write("child.yaml", child);
    let text = "\
heat_template_version: 2018-08-31
parameters: {key: {type: string, hidden: true}}
resources: {nested: {type: child.yaml, properties: {word: {get_param: key}}}}
";
    folder.write("t.yaml", text);
    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "--parameter", "key=swordfish", "bad"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let events = folder.local(&["stack", "event", "list", "--nested-depth", "2", "bad"]).ok();
    let shown = folder.local(&["stack", "resource", "list", "--nested-depth", "2", "bad", "-f", "json"]).ok();
    let stack = folder.local(&["stack", "show", "bad", "-f", "json"]).json();
    for text in [&ran.err, &events, &shown, &stack["stack_status_reason"].to_string()] {
        assert!(!text.contains("swordfish"), "{text}");
    }
    assert!(events.contains("******"), "{events}");
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let folder = Folder::new("mistakes");
    let text = TEMPLATE.replace("OS::Heat::RandomString", "OS::Heat::RandomStrin");
    folder.write("t.yaml", &text);
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("The Resource Type (OS::Heat::RandomStrin) could not be found."), "{}", ran.err);
    assert!(ran.err.contains("t.yaml:6:"), "{}", ran.err);

    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "wrong"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("t.yaml:6:"), "{}", ran.err);
    assert_eq!(folder.local(&["stack", "list", "-f", "json"]).ok(), "[]\n");
}

#[test]
fn wrong_names_get_a_hint() {
    let folder = Folder::new("hints");
    folder.write("t.yaml", TEMPLATE);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    for (args, message, hint) in [
        (&["stack", "show", "two"][..], "Stack not found: two", "kiln --local stack list"),
        (&["stack", "output", "show", "one", "wrd"], "Stack one or output wrd not found.", "did you mean word?"),
        (
            &["stack", "resource", "show", "one", "valeu"],
            "Stack or resource not found: one valeu",
            "did you mean value?",
        ),
        (&["resource-type", "show", "OS::Heat::Valu"], "Resource type not found", "did you mean OS::Heat::Value?"),
    ] {
        let ran = folder.local(args);
        assert_eq!(ran.code, 1, "{args:?}");
        assert!(ran.err.contains(message) && ran.err.contains(hint), "{args:?}: {}", ran.err);
    }
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let folder = Folder::new("codes");
    assert_eq!(folder.run(&["stack", "create"]).code, 2);
    // Port 9 of this machine is closed.
    let closed = ["--os-auth-type", "none", "--os-endpoint", "http://127.0.0.1:9/v1/p", "stack", "list"];
    let ran = folder.run(&closed);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("--local"), "{}", ran.err);
    let ran = folder.run(&["stack", "list"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("OS_AUTH_URL") && ran.err.contains("kiln demo"), "{}", ran.err);
}

#[test]
fn a_resource_without_metadata_has_an_empty_map_of_it() {
    let folder = Folder::new("facade");
    let child = "heat_template_version: 2018-08-31\noutputs: {seen: {value: {resource_facade: metadata}}}\n";
    folder.write("child.yaml", child);
    let parent = "\
heat_template_version: 2018-08-31
resources:
  with: {type: child.yaml, metadata: {a: 1}}
  without: {type: child.yaml}
outputs:
  both: {value: [{get_attr: [with, seen]}, {get_attr: [without, seen]}]}
";
    folder.write("t.yaml", parent);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let shown = folder.local(&["stack", "output", "show", "one", "both", "-f", "json"]).json();
    assert_eq!(shown["output_value"], serde_json::json!([{"a": 1}, {}]), "{shown}");
}

/// As in Heat, the error of a nested stack's output is that of the output that reads it.
#[test]
fn the_error_of_a_nested_output_is_told() {
    let folder = Folder::new("nested-error");
    let child = "heat_template_version: 2018-08-31
outputs: {wrong: {value: {get_param: nowhere}}, fine: {value: 1}}
";
    folder.write("child.yaml", child);
    let parent = "heat_template_version: 2018-08-31
resources: {it: {type: child.yaml}}
outputs: {seen: {value: {get_attr: [it, wrong]}}, fine: {value: {get_attr: [it, fine]}}}
";
    folder.write("t.yaml", parent);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let shown = folder.local(&["stack", "output", "show", "one", "seen"]);
    let text = "Error in it output wrong: The Parameter (nowhere) was not provided.";
    assert!(shown.code != 0 && shown.err.contains(text), "{}", shown.err);
    let shown = folder.local(&["stack", "output", "show", "one", "fine", "-f", "json"]).json();
    assert_eq!(shown["output_value"], 1, "{shown}");
}

#[test]
fn a_database_is_created_by_create_alone() {
    let folder = Folder::new("mistyped");
    folder.write("t.yaml", TEMPLATE);
    let elsewhere = ["--local", "--database", "mistyped.db", "stack"];
    for rest in [&["list"][..], &["show", "one"], &["delete", "--yes", "one"], &["update", "-t", "t.yaml", "one"]] {
        let ran = folder.run(&[&elsewhere, rest].concat());
        assert_eq!(ran.code, 1, "{rest:?}");
        assert!(ran.err.contains("mistyped.db: the database does not exist"), "{}", ran.err);
    }
    folder.run(&["--local", "--database", "mistyped.db", "resource-type", "list"]).ok();
    assert!(!folder.path().join("mistyped.db").exists() && !folder.path().join("mistyped.db.key").exists());
    folder.run(&["--local", "--database", "mistyped.db", "stack", "create", "-t", "t.yaml", "one"]).ok();
    // Hints contain the options for the next command.
    let ran = folder.run(&["--local", "--database", "mistyped.db", "stack", "show", "two"]);
    assert!(ran.err.contains("'kiln --local --database mistyped.db stack list'"), "{}", ran.err);
}

#[test]
fn a_missing_key_is_never_replaced() {
    let folder = Folder::new("lostkey");
    folder.write("t.yaml", TEMPLATE);
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    let key = folder.path().join("stacks.db.key");
    let text = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    for args in [&["stack", "list"][..], &["stack", "create", "-t", "t.yaml", "two"]] {
        let ran = folder.local(args);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("stacks.db.key: the key file of") && ran.err.contains("is missing"), "{}", ran.err);
    }
    assert!(!key.exists());
    std::fs::write(&key, text).unwrap();
    folder.local(&["stack", "show", "one"]).ok();
}

#[test]
fn a_missing_cloud_is_said_before_anything_is_stored() {
    let folder = Folder::new("nocloud");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Neutron::Net}\n");
    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "one"]);
    assert_eq!(ran.code, 1);
    let told = "Resource type OS::Neutron::Net needs a cloud, and none is configured.";
    assert!(ran.err.contains(told) && ran.err.contains("--os-cloud"), "{}", ran.err);
    assert_eq!(folder.local(&["stack", "list", "-f", "json"]).ok(), "[]\n");
}

#[test]
fn interrupted_work_goes_on_by_one_command() {
    let folder = Folder::new("goeson");
    let text = "heat_template_version: 2018-08-31\nresources:\n  \
                slow: {type: OS::Heat::TestResource, properties: {action_wait_secs: {create: 3}}}\n";
    folder.write("t.yaml", text);
    let mut command = folder.kiln(&["--local", "stack", "create", "-t", "t.yaml", "--progress", "json", "one"]);
    let mut child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("CREATE_IN_PROGRESS") && line.contains("slow")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let hint = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(hint.contains("run 'kiln --local stack wait one' to continue"), "{hint}");
    let ran = folder.local(&["stack", "wait", "one", "-f", "json"]);
    assert_eq!(ran.json()[0]["Stack Status"], "CREATE_COMPLETE");
    assert_eq!(folder.local(&["stack", "wait", "two"]).code, 1);
}

#[test]
fn a_keystone_that_does_not_answer_is_named() {
    let folder = Folder::new("nokeystone");
    let options = ["--os-auth-url", "http://127.0.0.1:9/v3", "--os-username", "me", "--os-password", "secret"];
    let ran = folder.run(&[&options[..], &["--os-project-name", "mine", "stack", "list"]].concat());
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("http://127.0.0.1:9/v3") && ran.err.contains("--os-auth-url"), "{}", ran.err);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
}

#[test]
fn a_dry_run_reads_like_a_plan() {
    let folder = Folder::new("plan");
    let text = "\
heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 8}}
resources:
  secret: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
  word: {type: OS::Heat::Value, properties: {value: one}}
  group: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: OS::Heat::None}}}
";
    folder.write("t.yaml", text);
    let planned = folder.local(&["stack", "create", "-t", "t.yaml", "--dry-run", "one"]).ok();
    assert!(planned.contains("  + secret  (OS::Heat::RandomString)\n        length: 8\n"), "{planned}");
    let group = "  + group  (OS::Heat::ResourceGroup)\n        count: 2\n        resource_def: {\"type\": \"OS::Heat::None\"}\n";
    assert!(planned.contains(&format!("{group}      + 0  (OS::Heat::None)\n      + 1  ")), "{planned}");
    assert!(planned.ends_with("one: 5 to create\n"), "{planned}");
    let created = folder.local(&["stack", "create", "-t", "t.yaml", "--progress", "plain", "one"]).err;
    let totals: Vec<&str> = created.split(" of ").skip(1).filter_map(|rest| rest.split([',', ')']).next()).collect();
    assert!(totals.len() >= 2 && totals.iter().all(|total| *total == "5"), "{created}");

    folder.write("t.yaml", &text.replace("value: one", "value: two").replace("default: 8", "default: 9"));
    let update = ["stack", "update", "-t", "t.yaml", "--dry-run", "one"];
    let planned = folder.local(&update).ok();
    assert!(
        planned.contains("-/+ secret  (OS::Heat::RandomString)\n        length: 8 → 9\n        because: "),
        "{planned}"
    );
    assert!(planned.contains("  ~ word  (OS::Heat::Value)\n        value: \"one\" → \"two\"\n"), "{planned}");
    assert!(planned.ends_with("one: 1 to update, 1 to replace, 3 unchanged\n"), "{planned}");
    let json = folder.local(&[&update[..], &["-f", "json"]].concat()).json();
    assert_eq!(json["replaced"][0]["change"]["after"]["length"], 9, "{json}");

    let ran = folder.local(&["stack", "update", "-t", "t.yaml", "--progress", "plain", "one"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("secret (OS::Heat::RandomString) replacing"), "{}", ran.err);
    assert!(
        ran.err.contains("secret (OS::Heat::RandomString) replaced") && !ran.err.contains("deleted"),
        "{}",
        ran.err
    );
}

/// Heat's `test_nested_resources_replace`.
#[test]
fn a_plan_shows_what_is_deleted_with_a_replaced_nested_stack() {
    let folder = Folder::new("plan-nested");
    let template = |kind: &str| format!("heat_template_version: 2018-08-31\nresources: {{it: {{type: {kind}}}}}\n");
    folder.write("inner.yaml", &template("OS::Heat::RandomString"));
    folder.write("outer.yaml", &template("inner.yaml"));
    folder.write("t.yaml", &template("outer.yaml"));
    folder.local(&["stack", "create", "-t", "t.yaml", "one"]).ok();
    folder.write("t.yaml", &template("OS::Heat::None"));
    let json =
        folder.local(&["stack", "update", "-t", "t.yaml", "--dry-run", "--show-nested", "-f", "json", "one"]).json();
    let types = |list: &str| -> Vec<String> {
        let entries = json[list].as_array().unwrap().iter();
        entries.map(|entry| entry["resource_type"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    assert_eq!(types("replaced"), ["OS::Heat::None"], "{json}");
    assert_eq!(types("deleted"), ["inner.yaml", "OS::Heat::RandomString"], "{json}");
    assert_eq!(json["deleted"][0]["parent_resource"], "it", "{json}");
}

/// What is known only when a resource is created is validated then: its own properties, and those in a nested stack,
/// which is not created if they do not fit. The reasons are those of Heat.
#[test]
fn values_are_validated_when_they_are_known() {
    let folder = Folder::new("late-values");
    let parent = "heat_template_version: 2018-08-31
resources:
  value: {type: OS::Heat::Value, properties: {value: -5}}
";
    let own = "  own: {type: OS::Heat::Delay, properties: {min_wait: {get_attr: [value, value]}}}\n";
    folder.write("own.yaml", &format!("{parent}{own}"));
    folder.write(
        "child.yaml",
        "heat_template_version: 2018-08-31
parameters: {length: {type: number}}
resources: {pause: {type: OS::Heat::Delay, properties: {min_wait: {get_param: length}}}}
",
    );
    let child = "  child: {type: child.yaml, properties: {length: {get_attr: [value, value]}}}\n";
    folder.write("child-of-root.yaml", &format!("{parent}{child}"));
    let group = "  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 1, resource_def: {type: child.yaml, properties: {length: {get_attr: [value, value]}}}}
";
    folder.write("group.yaml", &format!("{parent}{group}"));
    let unfit = "-5 is out of range (min: 0, max: None)";
    for (name, reason) in [
        ("own", format!("StackValidationFailed: resources.own: Property error: own.Properties.min_wait: {unfit}")),
        ("child-of-root", format!("resources.child: Property error: resources.pause.properties.min_wait: {unfit}")),
        (
            "group",
            format!("resources[0]: resources.group.Property error: resources.pause.properties.min_wait: {unfit}"),
        ),
    ] {
        let ran = folder.local(&["stack", "create", "--wait", "-t", &format!("{name}.yaml"), name]);
        assert_eq!(ran.code, 3, "{name}: {}", ran.err);
        let shown = folder.local(&["stack", "show", name, "-f", "json"]).ok();
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["stack_status_reason"], format!("Resource CREATE failed: {reason}"));
        let inside = folder.local(&["stack", "resource", "list", "-n", "5", name, "-f", "value"]).ok();
        assert!(!inside.contains("pause"), "{name}: {inside}");
    }
}
