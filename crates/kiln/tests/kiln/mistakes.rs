//! Errors in templates and environments, shown in the files of the user.

use std::process::{Command, Stdio};

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::running::Running;

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
parameters:
  flavor: {type: string, default: m1.small}
resources:
  port:
    type: OS::Neutron::Port
    properties:
      network: net
      mac_adress: 00:11:22:33:44:55
      fixed_ips:
        - ip_adress: 1.2.3.4
  server:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavr}
      networks: [{port: {get_resource: prt}}]
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 3
      resource_def:
        type: OS::Heat::Value
        properties: {valeu: 3}
  child: {type: child.yaml}
  other: {type: child.yaml}
outputs:
  addresses: {value: {get_attr: [server, adresses]}}
";

const CHILD: &str = "\
heat_template_version: 2018-08-31
resources:
  inner:
    type: OS::Heat::RandomString
    properties:
      lenght: 4
";

/// The places of all errors and their suggestions, in the order of the output.
fn told(ran: &Ran) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in ran.err.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("--> ") {
            found.push((place.to_owned(), String::new()));
        } else if let (Some(hint), Some(last)) = (line.strip_prefix("= help: did you mean "), found.last_mut()) {
            hint.trim_end_matches('?').clone_into(&mut last.1);
        }
    }
    found
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(place, hint)| ((*place).to_owned(), (*hint).to_owned())).collect()
}

/// Also those of an environment, of a group's members and of a nested template, which two resources use.
#[test]
fn each_error_is_shown_at_the_word_that_is_wrong() {
    let folder = Folder::new("each-error");
    folder.write("t.yaml", TEMPLATE);
    folder.write("child.yaml", CHILD);
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    let expected = pairs(&[
        ("t.yaml:9:7", "mac_address"),
        ("t.yaml:11:11", "ip_address"),
        ("t.yaml:15:27", "flavor"),
        ("t.yaml:16:40", "port"),
        ("t.yaml:23:22", "value"),
        ("t.yaml:27:42", "addresses"),
        ("child.yaml:6:7", "length"),
    ]);
    assert_eq!(told(&ran), expected, "{}", ran.err);
    let errors = ran.err.lines().filter(|line| line.starts_with("error: ")).count();
    assert!(errors == expected.len() + 1 && ran.err.ends_with("error: found 7 errors\n"), "{}", ran.err);

    folder.write("e.yaml", "parameter_defaults:\n  flavor: m1.large\nparameters:\n  flavr: m1.tiny\n");
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml", "-e", "e.yaml"]);
    assert!(told(&ran).contains(&("e.yaml:4:3".to_owned(), "flavor".to_owned())), "{}", ran.err);
    folder.write("t.yaml", &TEMPLATE.replace("  server:\n", "  server:\n    propertys: {}\n"));
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    assert!(told(&ran).contains(&("t.yaml:13:5".to_owned(), "properties".to_owned())), "{}", ran.err);
}

/// An invalid parameter does not hide the errors of resources.
#[test]
fn an_invalid_default_hides_nothing() {
    let folder = Folder::new("invalid-default");
    let text = "heat_template_version: 2015-04-30\nparameters: {count: {type: number, default: many}}\nresources:\n  \
                word: {type: OS::Heat::RandomString, properties: {length: 1000}}\nconditions: {}\n";
    folder.write("t.yaml", text);
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    let places: Vec<String> = told(&ran).into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, ["t.yaml:2:14", "t.yaml:4:53", "t.yaml:5:1"], "{}", ran.err);
    assert!(ran.err.contains("a newer version of templates has conditions"), "{}", ran.err);
    folder.write("t.yaml", &text.replace("conditions: {}\n", ""));
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    let places: Vec<String> = told(&ran).into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, ["t.yaml:2:14", "t.yaml:4:53"], "{}", ran.err);
}

/// A property is right, and the value that it reads is wrong.
#[test]
fn a_value_is_shown_where_it_is_given() {
    let folder = Folder::new("given-value");
    let text = "heat_template_version: 2018-08-31\nparameters: {length: {type: number, default: 8}}\nresources:\n  \
                word: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}\n  \
                other: {type: OS::Heat::RandomString, properties: {lenth: {get_param: length}}}\n";
    folder.write("t.yaml", text);
    folder.write("e.yaml", "parameter_defaults:\n  length: 9\n");
    folder.write("f.yaml", "parameter_defaults:\n  length: 1000\n");
    let validate = ["template", "validate", "--offline", "-t", "t.yaml", "-e", "f.yaml"];
    let ran = folder.run(&[&validate[..], &["-e", "e.yaml"]].concat());
    assert_eq!(told(&ran), pairs(&[("t.yaml:5:54", "length")]), "{}", ran.err);
    let ran = folder.run(&validate);
    assert_eq!(told(&ran), pairs(&[("t.yaml:5:54", "length"), ("f.yaml:2:3", "")]), "{}", ran.err);
    assert!(ran.err.contains("it is the value of resources.word.properties.length"), "{}", ran.err);
    let ran = folder.run(&[&validate[..], &["--parameter", "length=1001"]].concat());
    assert_eq!(told(&ran), pairs(&[("t.yaml:5:54", "length"), ("--parameter length", "")]), "{}", ran.err);
}

/// Two errors of one value stay two errors.
#[test]
fn a_value_that_is_read_twice_is_told_once() {
    let folder = Folder::new("read-twice");
    let resource = |name: &str, property: &str| {
        format!("  {name}: {{type: OS::Heat::RandomString, properties: {{{property}: {{get_param: length}}}}}}\n")
    };
    let text = format!(
        "heat_template_version: 2018-08-31\nparameters: {{length: {{type: number}}}}\nresources:\n{}{}",
        resource("one", "length"),
        resource("two", "length"),
    );
    folder.write("t.yaml", &text);
    folder.write("e.yaml", "parameters:\n  length: 1000\n");
    let validate = ["template", "validate", "--offline", "-t", "t.yaml"];
    let ran = folder.run(&[&validate[..], &["-e", "e.yaml"]].concat());
    assert_eq!(told(&ran), pairs(&[("e.yaml:2:3", "")]), "{}", ran.err);
    for name in ["one", "two"] {
        let uses = format!("it is the value of resources.{name}.properties.length");
        assert_eq!(ran.err.matches(&uses).count(), 1, "{}", ran.err);
    }
    let ran = folder.run(&[&validate[..], &["--parameter", "length=1000"]].concat());
    assert_eq!(told(&ran), pairs(&[("--parameter length", "")]), "{}", ran.err);
    folder.write("t.yaml", &(text + &resource("three", "character_classes")));
    let ran = folder.run(&[&validate[..], &["-e", "e.yaml"]].concat());
    assert_eq!(told(&ran), pairs(&[("e.yaml:2:3", ""), ("e.yaml:2:3", "")]), "{}", ran.err);
}

/// A template with them is valid, and so is an environment: only the last one counts.
#[test]
fn duplicate_keys_are_told_in_every_file() {
    let folder = Folder::new("duplicate-keys");
    let text = "heat_template_version: 2018-08-31\nparameters: {size: {type: number, default: 1}}\nresources:\n  \
                a: {type: child.yaml}\n  a: {type: OS::Heat::Value, properties: {value: {get_param: size}}}\n  \
                b: {type: child.yaml}\n";
    folder.write("t.yaml", text);
    let child = "heat_template_version: 2018-08-31\nresources: {}\noutputs:\n  o: {value: 1}\n  o: {value: 2}\n";
    folder.write("child.yaml", child);
    folder.write("e.yaml", "parameters:\n  size: 1\n  size: 2\n");
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml", "-e", "e.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("warning: duplicate key").count(), 3, "{}", ran.err);
    let mut places: Vec<String> = told(&ran).into_iter().map(|(place, _)| place).collect();
    places.sort();
    assert_eq!(places, ["child.yaml:5:3", "e.yaml:3:3", "t.yaml:5:3"], "{}", ran.err);
}

#[test]
fn a_suggestion_is_near() {
    let folder = Folder::new("near");
    let text = "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Heat::Value, properties: {value: 1}}\n  \
                other: {type: OS::Heat::Value, properties: {value: {get_resource: prt}}}\n";
    folder.write("t.yaml", text);
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    assert_eq!(told(&ran), pairs(&[("t.yaml:4:69", "")]), "{}", ran.err);
}

/// A service stops at the first error, as Heat does; the command finds the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_shows_all_errors_and_what_exists() {
    let folder = Folder::new("all-errors");
    let cloud = Testcloud::builder().start().await.unwrap();
    let demo = cloud.users().demo;
    let local = |args: &[&str]| {
        let mut command = folder.kiln(&[&["--local", "stack"], args].concat());
        command.env("OS_AUTH_URL", cloud.auth_url()).env("OS_USERNAME", demo.user).env("OS_PASSWORD", demo.password);
        Ran::from(command.env("OS_PROJECT_NAME", demo.project).output().unwrap())
    };
    folder.write("t.yaml", TEMPLATE);
    folder.write("child.yaml", CHILD);
    let ran = local(&["create", "-t", "t.yaml", "one"]);
    let offline = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let create = ["stack", "create", "-t", "t.yaml", "one"];
    let with_service = Ran::from(folder.client(&cloud, &service.url(), &create).output().unwrap());
    assert_eq!(with_service.code, 1, "{}", with_service.err);
    assert!(told(&offline).len() > 5, "{}", offline.err);
    for place in told(&offline) {
        assert!(told(&ran).contains(&place), "{place:?}: {}", ran.err);
        assert!(told(&with_service).contains(&place), "{place:?}: {}", with_service.err);
    }
    folder.write(
        "t.yaml",
        "heat_template_version: 2018-08-31\nparameters: {size: {type: number, constraints: [{range: {max: 9}}]}}\n\
         resources:\n  server:\n    type: OS::Nova::Server\n    properties:\n      image: ciros\n      flavor: m1.small\n",
    );
    folder.write("e.yaml", "parameters:\n  size: 10\n");
    let ran = local(&["create", "-t", "t.yaml", "-e", "e.yaml", "one"]);
    assert_eq!(told(&ran)[0], ("e.yaml:2:3".to_owned(), String::new()), "{}", ran.err);
    let ran = local(&["create", "-t", "t.yaml", "--parameter", "size=10", "one"]);
    assert!(ran.err.contains("--> --parameter size"), "{}", ran.err);
    let ran = local(&["create", "-t", "t.yaml", "--parameter", "size=1", "one"]);
    assert!(told(&ran).contains(&("t.yaml:7:7".to_owned(), "cirros".to_owned())), "{}", ran.err);
    assert!(ran.err.contains("there is cirros, fedora-coreos"), "{}", ran.err);
}

#[test]
fn an_unknown_parameter_gets_a_suggestion() {
    let folder = Folder::new("unknown-parameter");
    let text = "heat_template_version: 2018-08-31\nparameters: {word: {type: string, default: a}, must: {type: string}}\n\
                resources: {r: {type: OS::Heat::Value, properties: {value: {get_param: word}}}}\n";
    folder.write("t.yaml", text);
    folder.write("e.yaml", "parameters: {must: a}\n");
    folder.local(&["stack", "create", "-t", "t.yaml", "-e", "e.yaml", "one"]).ok();
    let ran = folder.local(&["stack", "update", "--existing", "--parameter", "wrod=b", "one"]);
    assert_eq!(told(&ran), pairs(&[("--parameter wrod", "word")]), "{}", ran.err);
    assert!(ran.err.contains("The Parameter (wrod) was not defined in template."), "{}", ran.err);
    folder.write("f.yaml", "parameters:\n  mst: b\n");
    let ran = folder.local(&["stack", "update", "--existing", "-e", "f.yaml", "one"]);
    assert_eq!(told(&ran), pairs(&[("f.yaml:2:3", "must")]), "{}", ran.err);
    // The environment of the create is not repeated.
    let ran = folder.local(&["stack", "update", "-t", "t.yaml", "one"]);
    assert!(ran.err.contains("The Parameter (must) was not provided."), "{}", ran.err);
    assert!(ran.err.contains("t.yaml:2:") && ran.err.contains("--existing") && ran.err.contains("-e"), "{}", ran.err);
}

#[test]
fn what_is_no_template_is_told_in_plain_words() {
    let folder = Folder::new("no-template");
    for (text, place, words) in [
        ("heat_template_version: 2018-08-31\nresources:\n\tx: 1\n", "t.yaml:3:1", "YAML does not allow tabs"),
        ("heat_template_verson: 2018-08-31\n", "t.yaml:1:1", "did you mean heat_template_version?"),
        ("", "t.yaml is empty", "a template needs a version"),
        (
            "heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::Heat::Value, properties: {value: \
             {get_file: gone.txt}}}\n",
            "t.yaml:3:61",
            "No such file",
        ),
    ] {
        folder.write("t.yaml", text);
        let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(place) && ran.err.contains(words), "{text:?}: {}", ran.err);
    }
}

/// The notation of hints and progress is that of every command.
#[test]
fn a_nested_resource_has_one_notation() {
    let folder = Folder::new("notation");
    folder.write(
        "child.yaml",
        "heat_template_version: 2018-08-31\nresources:\n  fine: {type: OS::Heat::Value, metadata: {a: 1}, properties: {value: 1}}\n  \
         broken: {type: OS::Heat::TestResource, properties: {fail: true}, depends_on: fine}\n",
    );
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {nested: {type: child.yaml}}\n");
    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "-e", "e.yaml", "one"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    folder.write("e.yaml", "{}\n");
    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "-e", "e.yaml", "one"]);
    assert!(ran.err.contains("root cause: nested/broken"), "{}", ran.err);
    let again = ["kiln --local stack continue one", "kiln --local stack update -t t.yaml -e e.yaml one"];
    assert!(again.iter().all(|command| ran.err.contains(command)), "{}", ran.err);
    let resource = |args: &[&str]| folder.local(&[&["stack", "resource"], args].concat());
    let shown = resource(&["show", "one", "nested/broken", "-f", "json"]).json();
    assert_eq!(shown["resource_status"], "CREATE_FAILED");
    assert_eq!(resource(&["metadata", "one", "nested/fine"]).json()["a"], 1);
    resource(&["mark", "unhealthy", "one", "nested/fine"]).ok();
    let misspelt = resource(&["show", "one", "nested/brokn"]);
    assert!(misspelt.err.contains("did you mean broken?"), "{}", misspelt.err);
    let drift = |name: &str| folder.local(&["stack", "drift", "one", "--resource", name, "-f", "json"]);
    let compared = drift("nested/fine").json();
    let compared: Vec<_> = compared.as_array().unwrap().iter().map(|one| &one["resource_name"]).collect();
    assert_eq!(compared, ["nested", "fine"]);
    let misspelt = drift("nested/fin");
    assert!(misspelt.code == 1 && misspelt.err.contains("did you mean fine?"), "{}", misspelt.err);
    let events = ["stack", "event", "list", "one", "--resource", "nested/broken"];
    let of_status = |status: &str| {
        let filter = format!("resource_status={status}");
        folder.local(&[&events[..], &["--filter", &filter, "-f", "json"]].concat()).json().as_array().unwrap().len()
    };
    assert_eq!(["CREATE_FAILED", "FAILED", "CREATE_COMPLETE"].map(of_status), [1, 1, 0]);
    let fine = ["stack", "event", "list", "one", "--resource", "nested/fine", "-f", "json"];
    let complete = folder.local(&[&fine[..], &["--filter", "resource_status=CREATE_COMPLETE"]].concat()).json();
    let complete: Vec<_> = complete.as_array().unwrap().iter().map(|event| &event["resource_status"]).collect();
    assert_eq!(complete, ["CREATE_COMPLETE"]);
}

#[test]
fn a_template_may_come_from_a_pipe() {
    let folder = Folder::new("pipe");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {v: {type: OS::Heat::None}}\n");
    let mut cat = Command::new("cat").arg(folder.path().join("t.yaml")).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = cat.stdout.take().unwrap();
    let mut kiln = folder.kiln(&["template", "validate", "--offline", "-t", "/dev/stdin"]);
    let ran: Ran = kiln.stdin(pipe).output().unwrap().into();
    cat.wait().unwrap();
    assert_eq!(ran.code, 0, "{}", ran.err);
}
