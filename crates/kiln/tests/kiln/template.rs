//! The commands for template authors.

use std::fs;

use crate::run::{Folder, Ran};

const TEMPLATE: &str = "heat_template_version: 2016-10-14
parameters:
    unused:   {type: string}
resources:
    a: {type: OS::Heat::None}
    b: {type: OS::Heat::Value, properties: {value: {get_resource: a}}}
";

#[test]
fn lint_shows_its_findings_and_counts_them() {
    let folder = Folder::new("lint");
    folder.write("t.yaml", TEMPLATE);
    let ran = folder.run(&["template", "lint", "t.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("warning[unused-parameter]") && ran.out.contains("t.yaml:3:5"), "{}", ran.out);
    assert!(ran.err.contains("1 warning"), "{}", ran.err);
    folder.run(&["template", "lint", "t.yaml", "--without", "unused-parameter"]).ok();
    let json = folder.run(&["template", "lint", "t.yaml", "-f", "json"]);
    let found: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(found[0]["rule"], "unused-parameter");
    assert_eq!(found[0]["path"], "parameters.unused");
    let wrong = folder.run(&["template", "lint", "t.yaml", "--only", "unused-paramter"]);
    assert!(wrong.err.contains("did you mean unused-parameter?"), "{}", wrong.err);
}

#[test]
fn a_graph_is_drawn_in_each_form() {
    let folder = Folder::new("graph");
    folder.write("t.yaml", TEMPLATE);
    let drawn = |format| folder.run(&["template", "graph", "t.yaml", "-f", format]).ok();
    assert!(drawn("dot").contains("\"a\" -> \"b\";"));
    assert!(drawn("mermaid").contains("n0 --> n1"));
    assert!(drawn("svg").starts_with("<svg"));
    let json: serde_json::Value = serde_json::from_str(&drawn("json")).unwrap();
    assert_eq!(json["edges"], serde_json::json!([{"from": "a", "to": "b"}]));
}

#[test]
fn topologies_are_linted_and_drawn() {
    let folder = Folder::new("lint-topology");
    let mode = "components:\n  web: {type: org.jetty.Server, requires: {database: {mode:\n    jndi}}}\n";
    folder.write("app.yaml", mode);
    folder.write("wrong.yaml", "components:\n  web: {type: sever}\n  db: {type: nothing}\n");
    let service = "tosca_definitions_version: tosca_simple_yaml_1_3\nimports: [types.yaml]\ntopology_template:\n  \
                   node_templates:\n    a: {type: my.Server}\n    disk: {type: tosca.nodes.BlockStorage, properties: {size: 1 GB}}\n    \
                   b: {type: my.Server, requirements: [{local_storage: {node: disk, relationship: {type: tosca.relationships.AttachesTo, properties: {location: /data}}}}]}\n";
    folder.write("service.yaml", service);
    let types = "node_types: {my.Server: {derived_from: tosca.nodes.Compute}}\n";
    folder.write("types.yaml", &format!("tosca_definitions_version: tosca_simple_yaml_1_3\n{types}"));
    let ran = folder.run(&["template", "lint", "app.yaml", "wrong.yaml", "service.yaml", "-f", "json"]);
    assert_eq!(ran.code, 1);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let found: Vec<_> =
        found.as_array().unwrap().iter().map(|one| (&one["file"], &one["line"], &one["rule"])).collect();
    let is = |file: &str, line: i64, rule: &str| found.contains(&(&file.into(), &line.into(), &rule.into()));
    assert!(is("app.yaml", 2, "no-effect") && is("wrong.yaml", 2, "unknown-type"), "{found:?}");
    assert!(is("wrong.yaml", 3, "unknown-type") && found.len() == 3, "{found:?}");
    let drawn = folder.run(&["template", "graph", "service.yaml", "-f", "json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&drawn).unwrap();
    let names: Vec<_> = json["nodes"].as_array().unwrap().iter().filter_map(|node| node["name"].as_str()).collect();
    assert!(names.contains(&"a") && names.contains(&"disk"), "{names:?}");
}

#[test]
fn lint_shows_what_it_finds_beside_a_file_that_it_cannot_read() {
    let folder = Folder::new("lint-unreadable");
    folder.write("bad.yaml", "heat_template_version: [\n");
    folder.write("t.yaml", TEMPLATE);
    let ran = folder.run(&["template", "lint", "bad.yaml", "nowhere.yaml", "t.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("unused"), "{}", ran.out);
    assert!(ran.err.contains("bad.yaml:2:1") && ran.err.contains("nowhere.yaml: "), "{}", ran.err);
    assert!(ran.err.contains("2 of 3 templates could not be read"), "{}", ran.err);
}

#[test]
fn lint_shows_where_a_template_is_none_and_what_helps() {
    let folder = Folder::new("lint-no-template");
    for (text, place, words) in [
        ("", "t.yaml:1:1", "a template needs a version, such as heat_template_version"),
        ("# nothing\n", "t.yaml:1:1", "a template needs a version, such as heat_template_version"),
        ("# one\nheat_template_verson: 2018-08-31\n", "t.yaml:2:1", "did you mean heat_template_version?"),
        ("heat_template_version: 2018-08-32\n", "t.yaml:1:24", "did you mean 2018-08-31?"),
        ("heat_template_version: 2018-08-31\nresources:\n\tx: 1\n", "t.yaml:3:1", "YAML does not allow tabs"),
    ] {
        folder.write("t.yaml", text);
        let ran = folder.run(&["template", "lint", "t.yaml"]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(place) && ran.err.contains(words), "{text:?}: {}", ran.err);
    }
}

#[test]
fn lint_is_silent_on_the_examples() {
    let folder = Folder::new("lint-examples");
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    for folder_of in [examples.to_owned(), format!("{examples}/farm")] {
        for path in fs::read_dir(folder_of).unwrap().map(|entry| entry.unwrap().path()) {
            if !fs::read_to_string(&path).is_ok_and(|text| text.contains("heat_template_version")) {
                continue;
            }
            let ran = folder.run(&["template", "lint", path.to_str().unwrap()]);
            assert!(ran.code == 0 && ran.out.is_empty(), "{}: {}{}", path.display(), ran.out, ran.err);
            seen += 1;
        }
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn fmt_formats_the_files_beside_one_that_it_cannot_read() {
    let folder = Folder::new("fmt-unreadable");
    folder.write("bad.yaml", "a: [\n");
    let path = folder.write("t.yaml", "a:   1\r\nb: 2\r\n");
    let ran = folder.run(&["template", "fmt", "bad.yaml", "nowhere.yaml", "t.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("2 of 3 templates could not be formatted"), "{}", ran.err);
    assert_eq!(fs::read_to_string(path).unwrap(), "a: 1\r\n\r\nb: 2\r\n");
}

/// Time that grows with the square of the template would be hours here.
#[test]
fn lint_of_a_large_template_takes_linear_time() {
    let folder = Folder::new("lint-large");
    let names: Vec<String> = (0..12_000).map(|n| format!("p{n}")).collect();
    let lines: Vec<String> = names.iter().map(|name| format!("  {name}: {{type: string}}\n")).collect();
    folder.write("lines.yaml", &format!("heat_template_version: 2021-04-16\nparameters:\n{}", lines.concat()));
    let flow: Vec<String> = names.iter().map(|name| format!("{name}: {{type: string}}")).collect();
    folder.write("flow.yaml", &format!("heat_template_version: 2021-04-16\nparameters: {{{}}}\n", flow.join(", ")));
    for (name, place) in [("lines.yaml", "lines.yaml:12002:3"), ("flow.yaml", "flow.yaml:2:276880")] {
        // At most a minute of the processor.
        let lint = folder.kiln(&["template", "lint", name]);
        let mut limited = std::process::Command::new("/bin/sh");
        limited.args(["-c", "ulimit -t 60; exec \"$@\"", "-"]).arg(lint.get_program()).args(lint.get_args());
        let ran = crate::run::Ran::from(limited.env_clear().current_dir(folder.path()).output().unwrap());
        assert!(ran.err.contains("12000 warnings"), "{}", ran.err);
        let last = ran.out.rsplit("warning[").next().unwrap();
        assert!(last.contains(place) && last.contains("p11999: {type: string}"), "{last}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error_not_a_crash() {
    let folder = Folder::new("full-output");
    folder.write("t.yaml", TEMPLATE);
    let commands: [&[&str]; 6] = [
        &["template", "lint", "t.yaml"],
        &["template", "fmt", "--check", "t.yaml"],
        &["template", "upgrade", "t.yaml"],
        &["template", "upgrade", "-f", "json", "t.yaml"],
        &["template", "graph", "t.yaml"],
        &["template", "graph", "-f", "json", "t.yaml"],
    ];
    for command in commands {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = folder.kiln(command).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{command:?}: {told}");
        assert!(!told.contains("panicked"), "{command:?}: {told}");
    }
}

#[test]
fn fmt_checks_and_rewrites() {
    let folder = Folder::new("fmt");
    let path = folder.write("t.yaml", TEMPLATE);
    let check = folder.run(&["template", "fmt", "--check", "t.yaml"]);
    assert_eq!((check.code, check.out.trim()), (1, "t.yaml"));
    folder.run(&["template", "fmt", "t.yaml"]).ok();
    assert!(fs::read_to_string(&path).unwrap().contains("\n\nparameters:\n  unused: {type: string}\n"));
    folder.run(&["template", "fmt", "--check", "t.yaml"]).ok();
}

#[test]
fn upgrade_writes_only_what_is_proved() {
    let folder = Folder::new("upgrade");
    let path = folder.write("t.yaml", TEMPLATE);
    let ran = folder.run(&["template", "upgrade", "t.yaml", "-f", "json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.ok()).unwrap();
    assert!(told["template"].as_str().unwrap().starts_with("heat_template_version: 2021-04-16\n"));
    assert_eq!(told["bindings_compared"], 1);
    folder.run(&["template", "upgrade", "--in-place", "t.yaml"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), TEMPLATE.replace("2016-10-14", "2021-04-16"));
    folder.write("u.yaml", "heat_template_version: 2013-05-23\nresources: {a: {type: OS::Heat::Value, properties: {value: {'Fn::GetAZs': ''}}}}\n");
    let refused = folder.run(&["template", "upgrade", "u.yaml"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("u.yaml:2:61: resources.a.properties.value.Fn::GetAZs"), "{}", refused.err);
}

#[test]
fn the_languages_are_listed_without_a_service() {
    let folder = Folder::new("languages");
    let versions = folder.run(&["template", "version", "list", "--offline", "-f", "value"]).ok();
    assert!(versions.contains("heat_template_version.2018-08-31 hot rocky"), "{versions}");
    let functions = folder.run(&["template", "function", "list", "--offline", "newton", "-f", "value"]).ok();
    assert!(functions.contains("map_replace") && !functions.contains("make_url"), "{functions}");
    let shown = folder.run(&["template", "function", "show", "str_split"]).ok();
    assert!(shown.contains("str_split: [delimiter, text, index]") && shown.contains("→ [a, b, c]"), "{shown}");
    assert!(folder.run(&["template", "function", "show", "str_spilt"]).err.contains("did you mean str_split?"));
    assert_eq!(folder.run(&["template", "function", "list", "--offline", "2012-01-01"]).code, 1);
}

#[test]
fn a_template_to_validate_is_named_like_one_to_lint() {
    let folder = Folder::new("named-template");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources: {}\n");
    let validate = |named: &[&str]| folder.run(&[&["template", "validate", "--offline"], named].concat());
    assert_eq!(validate(&["t.yaml"]).ok(), validate(&["-t", "t.yaml"]).ok());
    assert_eq!((validate(&[]).code, validate(&["t.yaml", "-t", "t.yaml"]).code), (2, 2));
}

#[test]
fn types_that_cannot_be_created_are_told_of_first() {
    let folder = Folder::new("unimplemented");
    // All shipped types have drivers.
    folder.write("types/My/Thing.yaml", "type: My::Thing\nsummary: A thing.\ndriver: none\n");
    folder.write("t.yaml", "heat_template_version: 2018-08-31\nresources:\n  w: {type: My::Thing}\n");
    let told = "My::Thing is not implemented by Kiln yet";
    let types = ["--resource-types-dir", "types"];
    for command in [
        &["template", "validate", "--offline", "-t", "t.yaml"][..],
        &["--local", "stack", "create", "-t", "t.yaml", "--dry-run", "s"],
        &["--local", "stack", "create", "-t", "t.yaml", "s"],
    ] {
        let ran = folder.run(&[command, &types].concat());
        assert_eq!(ran.code, 1, "{command:?}");
        assert!(ran.err.contains(told) && ran.err.contains("t.yaml:3"), "{command:?}: {}", ran.err);
    }
    let ran = folder.run(&[&["template", "lint", "t.yaml"], &types[..]].concat());
    assert!(ran.code == 1 && ran.out.contains(told), "{}", ran.out);
    // Nothing was stored.
    assert_eq!(folder.local(&["stack", "list", "-f", "json"]).ok().trim(), "[]");
}

#[test]
fn offline_validation_shows_what_nested_templates_ask_for() {
    let folder = Folder::new("offline-nested");
    folder.write(
        "parent.yaml",
        "heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources:
  one: {type: child.yaml, properties: {said: {get_param: word}}}
  many:
    type: OS::Heat::ResourceGroup
    properties: {resource_def: {type: child.yaml, properties: {said: x}}}
",
    );
    folder.write("child.yaml", "heat_template_version: 2018-08-31\nparameters: {said: {type: string}}\n");
    let shown = |more: &[&str]| -> serde_json::Value {
        let args = [&["template", "validate", "--offline", "-t", "parent.yaml", "-f", "json"], more].concat();
        serde_json::from_str(&folder.run(&args).ok()).unwrap()
    };
    assert_eq!(shown(&[])["NestedParameters"], serde_json::Value::Null);
    let nested = &shown(&["--show-nested"])["NestedParameters"];
    assert_eq!(nested["one"]["Parameters"]["said"]["Type"], "String", "{nested}");
    assert!(nested["one"]["Type"].as_str().is_some_and(|name| name.ends_with("/child.yaml")), "{nested}");
    let member = &nested["many"]["NestedParameters"]["0"];
    assert_eq!(member["Parameters"]["said"]["Value"], "x", "{nested}");
}

/// Every mistake of a CFN template is shown with its message and its place, offline and by a service.
#[test]
fn mistakes_in_cfn_templates_have_messages_and_places() {
    let folder = Folder::new("cfn-mistakes");
    folder.write(
        "t.yaml",
        "HeatTemplateFormatVersion: 2012-12-12
Resources:
  R:
    Type: OS::Heat::RandomString
    DependsOn: Nowhere
    Properties: {length: 1000}
  S:
    Type: OS::Heat::RandomStrng
  V:
    Type: OS::Heat::Value
    Properties: {type: number, value: abc}
",
    );
    let told = [
        ("t.yaml:5:16", "The specified reference \"Nowhere\" (in R) is incorrect."),
        ("t.yaml:6:18", "Property error: Resources.R.Properties.length: 1000 is out of range (min: 1, max: 512)"),
        ("t.yaml:8:5", "The Resource Type (OS::Heat::RandomStrng) could not be found."),
        ("t.yaml:11:32", "Property error: Resources.V.Properties.value: could not convert string to float: 'abc'"),
    ];
    let ran = folder.run(&["template", "validate", "--offline", "-t", "t.yaml"]);
    assert_eq!(ran.code, 1);
    for (place, message) in told {
        assert!(ran.err.contains(place) && ran.err.contains(message), "{place}: {message}\n{}", ran.err);
    }
    let ran = folder.local(&["stack", "create", "-t", "t.yaml", "s"]);
    assert!(ran.err.contains("OS::Heat::RandomStrng") && ran.err.contains("t.yaml:8:5"), "{}", ran.err);
}

const BLUEPRINT: &str = "\
components:
  web: {type: server, requires: {minRam: 1gb, run: setup}}
  setup: {type: com.example.script.ShellScript, content: setup.sh}
";

#[test]
fn a_blueprint_is_lowered_and_validated() {
    let folder = Folder::new("lower");
    folder.write("b.yaml", BLUEPRINT);
    folder.write("setup.sh", "#!/bin/sh\n");
    let lowered = folder.run(&["template", "lower", "b.yaml", "-f", "json"]).json();
    assert_eq!(lowered["resources"]["web"]["type"], "OS::Nova::Server");
    assert_eq!(lowered["resources"]["setup_create_deploy"]["properties"]["server"]["get_resource"], "web");
    let asked = folder.run(&["template", "lower", "b.yaml", "--show", "questions"]).ok();
    assert!(asked.contains("web_flavor: A flavor with at least 954 MiB of memory."), "{asked}");
    folder.run(&["template", "validate", "-t", "b.yaml", "--offline"]).ok();

    let wrong = folder.run(&["template", "validate", "-t", "b.yaml", "--offline", "--parameter", "web=1"]);
    assert_eq!(wrong.code, 1);
    std::fs::remove_file(folder.path().join("setup.sh")).unwrap();
    let missing = folder.run(&["template", "lower", "b.yaml"]);
    assert!(missing.err.contains("Could not read setup.sh"), "{}", missing.err);
}

#[test]
fn errors_of_topologies_are_shown_in_the_file() {
    let folder = Folder::new("lower-errors");
    folder.write("b.yaml", &BLUEPRINT.replace("run: setup", "run: steup"));
    let wrong = folder.run(&["template", "validate", "-t", "b.yaml", "--offline"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("b.yaml:2:47") && wrong.err.contains("did you mean setup?"), "{}", wrong.err);
    folder.write(
        "t.yaml",
        "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n    \
                            a: {type: tosca.nodes.Compte}\n    b: {type: tosca.nodes.Compute, requirments: []}\n",
    );
    let wrong = folder.run(&["template", "lower", "t.yaml"]);
    assert!(wrong.err.contains("2 errors") && wrong.err.contains("t.yaml:4:9"), "{}", wrong.err);
    assert!(wrong.err.contains("did you mean requirements?"), "{}", wrong.err);
    let other = folder.run(&["template", "lower", "nowhere.yaml"]);
    assert!(other.err.contains("nowhere.yaml cannot be read"), "{}", other.err);
}

#[test]
fn tosca_becomes_a_stack() {
    let folder = Folder::new("tosca-stack");
    folder.write(
        "t.yaml",
        "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  inputs:\n    \
                            word: {type: string}\n  node_templates:\n    a: {type: tosca.nodes.Root}\n  outputs:\n    \
                            said: {value: {concat: [{get_input: word}, '!']}}\n",
    );
    let made = folder.local(&["stack", "create", "-t", "t.yaml", "--parameter", "word=yes", "one", "-f", "json"]);
    assert!(made.err.contains("a has no resource"), "{}", made.err);
    assert_eq!(made.json()["outputs"][0]["output_value"], "yes!");
}

/// The original of a document with other files is a package of all of them, which makes the same stack.
#[test]
fn the_original_of_a_folder_is_a_package() {
    let folder = Folder::new("original-folder");
    folder.write(
        "app/service.yaml",
        "tosca_definitions_version: tosca_simple_yaml_1_3\nimports: [types/own.yaml]\ntopology_template:\n  outputs:\n    \
         said: {value: {get_property: [a, word]}}\n  node_templates:\n    a: {type: my.Thing, properties: {word: yes}}\n",
    );
    folder.write(
        "app/types/own.yaml",
        "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  my.Thing: {derived_from: tosca.nodes.Root, \
         properties: {word: {type: string}}}\n",
    );
    folder.local(&["stack", "create", "--wait", "-t", "app/service.yaml", "one"]).ok();
    let mut command = folder.kiln(&["--local", "stack", "template", "show", "--original", "one"]);
    let shown = command.output().unwrap();
    assert!(shown.stdout.starts_with(b"PK"), "{}", String::from_utf8_lossy(&shown.stderr));
    std::fs::write(folder.path().join("again.csar"), shown.stdout).unwrap();
    let lowered = |file: &str| folder.run(&["template", "lower", file]).ok();
    assert_eq!(lowered("again.csar"), lowered("app/service.yaml"));
    let made = folder.local(&["stack", "create", "--wait", "-t", "again.csar", "two", "-f", "json"]);
    assert_eq!(made.json()["outputs"][0]["output_value"], "True");
}

/// It contains the types of the user that the document uses, so that it needs no folder.
#[test]
fn the_original_contains_the_types_of_the_user() {
    let folder = Folder::new("original-types");
    let of = |name: &str, word: &str| {
        format!(
            "topology_type: com.example.{name}\nderived_from: tosca.nodes.Root\ncomponent: {{aliases: [{word}]}}\nproperties: \
             {{size: {{type: integer}}}}\nhot:\n  resources:\n    '': {{type: OS::Heat::Value, properties: {{value: \
             {{$property: size}}}}}}\n"
        )
    };
    folder.write("own/cache.yaml", &of("Cache", "cache"));
    folder.write("own/other.yaml", &of("Other", "other"));
    folder.write("app.yaml", "components:\n  redis: {type: cache, size: 4}\n");
    let given = ["--topology-types-dir", "own"];
    folder.local(&[&["stack", "create", "--wait", "-t", "app.yaml", "one"], &given[..]].concat()).ok();
    let mut command = folder.kiln(&["--local", "stack", "template", "show", "--original", "one"]);
    let shown = command.output().unwrap();
    std::fs::write(folder.path().join("again.zip"), &shown.stdout).unwrap();
    let limits = kiln_package::Limits::default();
    let package = kiln_package::Package::open(&shown.stdout, &limits).unwrap();
    let names: Vec<&String> = package.files.keys().collect();
    assert_eq!(names, ["heat.yaml", "topology-types/com.example.Cache.yaml"]);
    let lowered = folder.run(&["template", "lower", "again.zip"]).ok();
    assert_eq!(lowered, folder.run(&[&["template", "lower", "app.yaml"], &given[..]].concat()).ok());
}

#[test]
fn lint_reads_policies_and_tells_what_to_use_instead() {
    let folder = Folder::new("lint-once");
    folder.write(
        "t.yaml",
        "heat_template_version: 2018-08-31
parameters:
  keep: {type: string}
  bootstrap-token: {type: string}
  certificate-key: {type: string}
resources:
  a:
    type: OS::Heat::Value
    deletion_policy: {get_param: keep}
    properties: &same {value: {password: plain, first: {get_param: bootstrap-token}, last: {get_param: certificate-key}}}
  b: {type: OS::Heat::Value, properties: *same}
  server: {type: OS::Nova::Server, properties: {flavor: f, image: i, networks: [{uuid: n}]}}
  interface: {type: OS::Neutron::RouterInterface, properties: {router_id: r, subnet: s}}
",
    );
    let found = folder.run(&["template", "lint", "t.yaml", "-f", "json"]);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    let found: Vec<(&str, u64)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["rule"].as_str().unwrap(), one["line"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("visible-secret", 4),
        ("visible-secret", 5),
        ("plain-secret", 10),
        ("deprecated-property", 12),
        ("deprecated-property", 13),
    ];
    assert_eq!(found, expected);
    let shown = folder.run(&["template", "lint", "t.yaml"]).out;
    let hints: Vec<&str> = shown.lines().filter_map(|line| line.trim().strip_prefix("= help: ")).collect();
    assert!(hints.iter().any(|hint| hint.contains("Use network")), "{hints:?}");
    assert!(hints.iter().any(|hint| hint.to_lowercase().contains("use router")), "{hints:?}");
}

#[test]
fn fmt_keeps_the_column_of_comments() {
    let folder = Folder::new("fmt-comments");
    let text = "heat_template_version: 2018-08-31\n\nresources:\n    a:\n        type:    OS::Heat::Value   # what\n        \
                properties: {value: 1}     # how\n";
    let file = folder.write("t.yaml", text);
    folder.run(&["template", "fmt", "t.yaml"]).ok();
    let formatted = std::fs::read_to_string(file).unwrap();
    let columns: Vec<Option<usize>> = formatted.lines().skip(4).map(|line| line.find('#')).collect();
    assert_eq!(columns, [Some(35), Some(35)], "{formatted}");
    assert!(formatted.contains("    type: OS::Heat::Value "), "{formatted}");
}

/// The function of line 8 resolves with none of the values that are made up for the comparison.
#[test]
fn upgrade_changes_the_version_where_nothing_else_has_to_change() {
    let folder = Folder::new("upgrade-version");
    let text = "\
heat_template_version: 2016-10-14
parameters:
  cidr: {type: string}
resources:
  a:
    type: OS::Heat::Value
    properties:
      value: {str_split: ['/', {get_param: cidr}, 3]}
";
    folder.write("t.yaml", text);
    let ran = folder.run(&["template", "upgrade", "t.yaml"]);
    assert!(ran.err.contains("t.yaml:8:") && ran.err.contains("not compared"), "{}", ran.err);
    assert_eq!(ran.ok(), text.replace("2016-10-14", "2021-04-16"));
}

#[test]
fn the_depth_of_nested_templates_is_an_option() {
    let folder = Folder::new("depth");
    for level in 0..7 {
        let inner = if level == 6 { "OS::Heat::RandomString".to_owned() } else { format!("t{}.yaml", level + 1) };
        let text = format!("heat_template_version: 2018-08-31\nresources: {{inner: {{type: {inner}}}}}\n");
        folder.write(&format!("t{level}.yaml"), &text);
    }
    let validate = ["template", "validate", "--offline", "-t", "t0.yaml"];
    let ran = folder.run(&validate);
    assert!(ran.code == 1 && ran.err.contains("Recursion depth exceeds 5."), "{}", ran.err);
    folder.run(&[&validate[..], &["--max-nested-depth", "6"]].concat()).ok();
}

/// `validate`, `lint` and `fmt` take the same names of files.
#[test]
fn several_templates_are_checked_by_each_command() {
    let folder = Folder::new("several");
    folder.write("good.yaml", "heat_template_version: 2018-08-31\n\ndescription: Good.\n");
    folder.write("bad.yaml", "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Nova::Sever}}\n");
    for (command, done) in [
        (&["validate", "--offline"][..], "1 of 2 templates are not valid"),
        (&["lint"], "1 of 2 templates could not be read"),
        (&["fmt", "--check"], "1 of 2 templates could not be formatted"),
    ] {
        let other = if command[0] == "validate" { "bad.yaml" } else { "missing.yaml" };
        let run = |files: &[&str]| {
            let file = std::fs::File::open(folder.path().join("good.yaml")).unwrap();
            let mut kiln = folder.kiln(&[&["template"], command, files].concat());
            Ran::from(kiln.stdin(file).output().unwrap())
        };
        for files in [&["good.yaml", "good.yaml"][..], &["-"]] {
            let ran = run(files);
            assert_eq!(ran.code, 0, "{command:?} {files:?}: {}", ran.err);
        }
        let ran = run(&[other, "good.yaml"]);
        assert!(ran.code == 1 && ran.err.contains(done), "{command:?}: {}", ran.err);
    }
}
