//! Resource types of a folder in addition to those of Kiln.

use kiln_testcloud::Testcloud;

use crate::run::{Folder, Ran};
use crate::service::Service;

const THING: &str = "\
type: My::Thing
summary: A thing of ours.
rest: {collection: /v1/things}
properties:
  size: {type: integer, required: true}
";

const TEMPLATE: &str = "\
heat_template_version: 2021-04-16
resources:
  thing: {type: My::Thing, properties: {size: 1}}
";

fn validate(folder: &Folder, more: &[&str]) -> Ran {
    folder.run(&[&["template", "validate", "--offline", "-t", "t.yaml"], more].concat())
}

#[test]
fn a_folder_adds_types_and_replaces_them() {
    let folder = Folder::new("types");
    folder.write("t.yaml", TEMPLATE);
    let unknown = validate(&folder, &[]);
    assert!(unknown.err.contains("The Resource Type (My::Thing) could not be found."), "{}", unknown.err);
    folder.write("types/My/Thing.yaml", THING);
    validate(&folder, &["--resource-types-dir", "types"]).ok();
    folder.write("t.yaml", &TEMPLATE.replace("size: 1", "size: big"));
    let wrong = validate(&folder, &["--resource-types-dir", "types"]);
    assert!(wrong.err.contains("resources.thing.properties.size: Value 'big' is not an integer"), "{}", wrong.err);

    // A file that replaces a shipped one: its properties are no longer known.
    folder.write("t.yaml", &TEMPLATE.replace("My::Thing", "OS::Heat::Value"));
    assert!(validate(&folder, &[]).err.contains("Unknown Property size"));
    folder.write("types/OS/Heat/Value.yaml", &THING.replace("My::Thing", "OS::Heat::Value"));
    validate(&folder, &["--resource-types-dir", "types"]).ok();
    let output = folder.kiln(&["template", "graph", "t.yaml"]).env("KILN_RESOURCE_TYPES_DIR", "types").output();
    Ran::from(output.unwrap()).ok();
    let lint = &["template", "lint", "t.yaml", "--resource-types-dir", "types"];
    folder.run(lint).ok();
}

/// `kiln` with these plug-ins.
fn with_plugins(folder: &Folder, plugins: &[&str], args: &[&str]) -> Ran {
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin/tests/programs/odd.py");
    let odd = format!("/usr/bin/env python3 {odd} {}", folder.path().display());
    let named = |plugin: &&str| if *plugin == "odd" { odd.clone() } else { (*plugin).to_owned() };
    let mut command = folder.kiln(args);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    for plugin in plugins {
        command.args(["--plugin", &named(plugin)]);
    }
    command.output().unwrap().into()
}

#[test]
fn tools_know_the_types_of_plugins() {
    let folder = Folder::new("types-plugin");
    let template = "heat_template_version: 2021-04-16\nresources:\n  a: {type: Test::Odd}\n  \
                    b: {type: Test::Odd, properties: {does: {get_attr: [a, mark]}}}\n";
    folder.write("t.yaml", template);
    let offline = ["template", "validate", "--offline", "-t", "t.yaml"];
    let unknown = folder.run(&offline);
    assert!(unknown.err.contains("The Resource Type (Test::Odd) could not be found."), "{}", unknown.err);
    with_plugins(&folder, &["odd"], &offline).ok();
    assert!(with_plugins(&folder, &["odd"], &["template", "lint", "t.yaml"]).ok().is_empty());
    let graph = with_plugins(&folder, &["odd"], &["template", "graph", "t.yaml", "--format", "json"]).ok();
    assert!(graph.contains("Test::Odd"), "{graph}");
    folder.write("t.yaml", &template.replace("does", "dose"));
    let wrong = with_plugins(&folder, &["odd"], &offline);
    assert!(wrong.code == 1 && wrong.err.contains("Unknown Property dose"), "{}", wrong.err);

    let local = ["--local", "resource-type"];
    assert!(
        with_plugins(&folder, &["odd"], &[&local[..], &["list", "-f", "value"]].concat()).ok().contains("Test::Odd\n")
    );
    let show = [&local[..], &["show", "Test::Odd"]].concat();
    assert!(with_plugins(&folder, &["odd"], &show).ok().contains("test.zone"));
    let template = with_plugins(&folder, &["odd"], &[&show[..], &["--template-type", "hot"]].concat()).ok();
    assert!(template.contains("type: Test::Odd") && template.contains("does"), "{template}");
    assert!(!folder.path().join("calls").exists(), "only the schemas are asked for");
}

#[test]
fn a_plugin_that_tells_nothing_is_a_warning_and_keeps_no_tool_waiting() {
    let folder = Folder::new("types-silent");
    folder.write("t.yaml", "heat_template_version: 2021-04-16\nresources: {a: {type: Test::Odd}}\n");
    let unknown = "its resource types are unknown";
    let plugins = ["/bin/sleep 1001", "/bin/false", "/bin/cat", "/no/such/plugin", "odd", "odd"];
    let warnings = [
        "warning: --plugin /bin/sleep 1001: describe: no response within 5 seconds".to_owned(),
        "warning: --plugin /bin/false: describe: the process ended (exit status: 1)".to_owned(),
        "warning: --plugin /bin/cat: describe: the response has neither a result nor an error".to_owned(),
        "warning: --plugin /no/such/plugin: No such file or directory (os error 2)".to_owned(),
        format!("{}: another plug-in is named odd too", folder.path().display()),
    ];
    let check = |args: &[&str]| {
        let ran = with_plugins(&folder, &plugins, args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        for warning in &warnings {
            assert!(ran.err.contains(&format!("{warning}; {unknown}")), "{args:?}: {}", ran.err);
        }
        assert_eq!(ran.err.matches("warning: ").count(), warnings.len(), "{args:?}: {}", ran.err);
    };
    std::thread::scope(|scope| {
        for args in [
            &["template", "validate", "--offline", "-t", "t.yaml"][..],
            &["template", "lint", "t.yaml"],
            &["template", "graph", "t.yaml"],
            &["--local", "resource-type", "list"],
        ] {
            scope.spawn(|| check(args));
        }
    });
}

#[test]
fn mistakes_in_definitions_are_told_where_they_are() {
    let folder = Folder::new("types-wrong");
    folder.write("t.yaml", TEMPLATE);
    folder.write("types/My/Thing.yaml", &THING.replace("properties", "propertis"));
    folder.write("types/elsewhere.yaml", THING);
    let ran = validate(&folder, &["--resource-types-dir", "types"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("types/My/Thing.yaml:4:1: unknown key propertis; did you mean properties?"),
        "{}",
        ran.err
    );
    let misplaced = "types/elsewhere.yaml: the definition of My::Thing must be in My/Thing.yaml";
    assert!(ran.err.contains(misplaced), "{}", ran.err);

    folder.write("idle/My/Thing.yaml", &THING.replace("rest: {collection: /v1/things}\n", ""));
    let idle = validate(&folder, &["--resource-types-dir", "idle"]);
    assert!(idle.err.contains("idle/My/Thing.yaml: Kiln has no driver for My::Thing"), "{}", idle.err);
    let nowhere = validate(&folder, &["--resource-types-dir", "nowhere"]);
    assert!(nowhere.err.contains("--resource-types-dir") && nowhere.err.contains("nowhere: "), "{}", nowhere.err);
}

/// Descriptions of a type, its properties and attributes; the type's own only on request, as Heat's clients have it.
#[test]
fn types_are_described() {
    let folder = Folder::new("types-described");
    let show = |more: &[&str]| {
        let args = [&["resource-type", "show", "OS::Heat::RandomString", "-f", "json"], more].concat();
        folder.local(&args).json()
    };
    let long = show(&["--long"]);
    assert!(long["description"].as_str().unwrap().starts_with("A random string"), "{long}");
    assert_eq!(long["properties"]["length"]["description"], "Number of characters.");
    let class = &long["properties"]["character_classes"]["schema"]["*"]["schema"]["class"];
    assert_eq!(class["description"], "Class of characters.");
    assert_eq!(long["attributes"]["value"]["description"], "Random string.");
    assert_eq!(show(&[]).get("description"), None);
    let template = folder.local(&["resource-type", "show", "OS::Heat::RandomString", "--template-type", "hot"]).ok();
    assert!(template.contains("description: Number of characters."), "{template}");
}

const OWN_NET: &str = "\
type: Acme::Net
summary: A network of ours.
service: network
rest: {collection: /v2.0/networks, member: network, update: put}
finder: acme.net
properties:
  name: {type: string, update: true}
";
const OWN_SUBNET: &str = "\
type: Acme::Subnet
summary: A subnet of ours.
service: network
rest: {collection: /v2.0/subnets, member: subnet}
properties:
  name: string
  net: {type: string, required: true, find: acme.net, as: network_id}
  cidr: {type: string, required: true, is: net_cidr}
  ip_version: {type: integer, default: 4}
";
const OWN_TEMPLATE: &str = "\
heat_template_version: 2021-04-16
parameters:
  net: {type: string, default: ours, constraints: [{custom_constraint: acme.net}]}
resources:
  subnet: {type: Acme::Subnet, properties: {net: {get_param: net}, cidr: 10.9.0.0/24}}
";

/// A noun is one file: with its finder, other types and parameters accept names of its objects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_noun_of_a_folder_is_found_by_name() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("types-finder");
    folder.write("types/Acme/Net.yaml", OWN_NET);
    folder.write("types/Acme/Subnet.yaml", OWN_SUBNET);
    folder.write(
        "net.yaml",
        "heat_template_version: 2021-04-16\nresources: {net: {type: Acme::Net, properties: {name: ours}}}\n",
    );
    folder.write("subnet.yaml", OWN_TEMPLATE);
    let run = |args: &[&str]| {
        let local = ["--local", "--resource-types-dir", "types"];
        let output = folder.client(&cloud, "http://127.0.0.1:9", &[&local, args].concat()).output();
        Ran::from(output.unwrap())
    };
    let create = |name: &str, more: &[&str]| run(&[&["stack", "create", "--wait", name], more].concat());
    let missing = create("before", &["-t", "subnet.yaml"]);
    assert!(
        missing.err.contains("Error validating value 'ours': The Net (ours) could not be found."),
        "{}",
        missing.err
    );
    create("net", &["-t", "net.yaml"]).ok();
    create("subnet", &["-t", "subnet.yaml"]).ok();
    let snapshot = cloud.snapshot();
    let made = |kind: &str, key: &str, value: &str| {
        snapshot.objects[kind].iter().find(|object| object[key] == value).expect("an object").clone()
    };
    let (net, subnet) = (made("networks", "name", "ours"), made("subnets", "cidr", "10.9.0.0/24"));
    assert_eq!(subnet["network_id"], net["id"]);
}

const PAGE: &str = include_str!("../../../../docs/resource-types.md");

/// The definition in the manual, through the life of an object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_noun_in_the_manual_is_a_type() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("types-manual");
    let example =
        PAGE.split("```yaml\n").find(|part| part.starts_with("type: Acme::ConntrackHelper")).expect("an example");
    folder.write("types/Acme/ConntrackHelper.yaml", example.split("```").next().expect("its text"));
    let run = |args: &[&str]| {
        let local = ["--local", "--resource-types-dir", "types"];
        let output = folder.client(&cloud, "http://127.0.0.1:9", &[&local, args].concat()).output();
        Ran::from(output.unwrap())
    };
    let stack = |action: &str, port: u16| {
        let helper = format!("{{router: {{get_resource: router}}, protocol: tcp, port: {port}, helper: ftp}}");
        let text = format!(
            "heat_template_version: 2021-04-16\nresources:\n  router: {{type: 'OS::Neutron::Router'}}\n  \
             helper: {{type: 'Acme::ConntrackHelper', properties: {helper}}}\n\
             outputs: {{it: {{value: {{get_attr: [helper, helper]}}}}}}\n"
        );
        folder.write("t.yaml", &text);
        run(&["stack", action, "--wait", "-t", "t.yaml", "it"]).ok();
    };
    let helpers = || {
        let nouns = cloud.snapshot().objects.remove("plain_nouns").unwrap_or_default();
        nouns.into_iter().filter(|noun| noun.contains_key("helper")).collect::<Vec<_>>()
    };
    run(&["resource-type", "show", "Acme::ConntrackHelper"]).ok();
    stack("create", 21);
    let [made] = helpers().try_into().expect("one helper");
    assert_eq!((&made["port"], &made["helper"]), (&21.into(), &"ftp".into()));
    assert_eq!(run(&["stack", "output", "show", "it", "it", "-f", "value", "-c", "output_value"]).ok().trim(), "ftp");
    stack("update", 2121);
    let [changed] = helpers().try_into().expect("one helper");
    assert_eq!((&changed["id"], &changed["port"]), (&made["id"], &2121.into()));
    run(&["stack", "check", "--wait", "it"]).ok();
    run(&["stack", "delete", "--yes", "--wait", "it"]).ok();
    assert!(helpers().is_empty());
}

const CACHE: &str = "\
topology_type: com.example.Cache
description: A value for tests.
derived_from: tosca.nodes.Root
component: {aliases: [cache]}
properties:
  size: {type: integer, default: 3}
hot:
  resources:
    '': {type: OS::Heat::Value, properties: {value: {$property: size}}}
";

/// Type files of blueprints and TOSCA.
#[test]
fn a_folder_adds_types_of_topologies() {
    let folder = Folder::new("topology-types");
    folder.write("app.yaml", "components:\n  redis: {type: cache, size: 4}\n");
    let unknown = folder.run(&["template", "lower", "app.yaml"]);
    assert!(unknown.err.contains("No component type is named cache."), "{}", unknown.err);
    folder.write("types/deep/cache.yaml", CACHE);
    let by = ["--topology-types-dir", "types"];
    let run = |args: &[&str]| folder.run(&[args, &by].concat());
    assert!(run(&["template", "lower", "app.yaml"]).ok().contains("value: 4"));
    run(&["template", "validate", "--offline", "-t", "app.yaml"]).ok();
    assert!(run(&["template", "graph", "app.yaml"]).ok().contains("redis"));
    run(&["template", "lint", "app.yaml", "types/deep/cache.yaml"]).ok();
    run(&["--local", "--database", "stacks.db", "stack", "create", "--wait", "-t", "app.yaml", "s"]).ok();
    let output = folder.kiln(&["template", "lower", "app.yaml"]).env("KILN_TOPOLOGY_TYPES_DIR", "types").output();
    Ran::from(output.unwrap()).ok();

    let shown = folder.run(&["template", "validate", "-t", "types/deep/cache.yaml"]).ok();
    assert!(shown.contains("Type: com.example.Cache") && shown.contains("NODE: OS::Heat::Value"), "{shown}");
    folder.write("types/deep/cache.yaml", &CACHE.replace("size}", "siez}"));
    let lint = run(&["template", "lint", "types/deep/cache.yaml"]);
    assert!(lint.err.contains("invalid type files"), "{}", lint.err);
    let lint = folder.run(&["template", "lint", "types/deep/cache.yaml"]);
    assert!(lint.out.contains("The type has no property siez.") && lint.out.contains("cache.yaml:9"), "{}", lint.out);
    assert!(lint.out.contains("did you mean size?"), "{}", lint.out);
    let wrong = run(&["template", "lower", "app.yaml"]);
    assert!(wrong.err.contains("types/deep/cache.yaml:9:54: The type has no property siez."), "{}", wrong.err);
}

/// What the resource types do not have is found too.
#[test]
fn the_resources_of_a_type_file_are_checked() {
    let folder = Folder::new("topology-types-resources");
    let text = CACHE.replace("OS::Heat::Value, properties: {value", "OS::Heat::Valeu, properties: {value");
    folder.write("a.yaml", &text);
    let wrong = folder.run(&["template", "validate", "-t", "a.yaml"]);
    assert!(wrong.err.contains("No resource type is named OS::Heat::Valeu."), "{}", wrong.err);
    assert!(wrong.err.contains("did you mean OS::Heat::Value?") && wrong.err.contains("a.yaml:9"), "{}", wrong.err);
    let lint = folder.run(&["template", "lint", "a.yaml"]);
    assert!(lint.out.contains("No resource type is named OS::Heat::Valeu."), "{}", lint.out);
    folder.write("a.yaml", &CACHE.replace("{value", "{valeu"));
    let wrong = folder.run(&["template", "validate", "-t", "a.yaml"]);
    assert!(wrong.err.contains("OS::Heat::Value has no property valeu."), "{}", wrong.err);
}

/// A blueprint uses a resource of another stack, and says in which countries it may be.
#[test]
fn a_blueprint_takes_what_exists_already() {
    let folder = Folder::new("topology-existing");
    let types = [
        (
            "word",
            "topology_type: com.example.Word\nderived_from: tosca.nodes.Root\ncomponent: {aliases: [word_type]}\nhot:\n  \
             resources: {'': {type: OS::Heat::RandomString}}\n  attributes: {value: {$attribute: [value]}}\n",
        ),
        (
            "reader",
            "topology_type: com.example.Reader\nderived_from: tosca.nodes.Root\ncomponent: {aliases: \
             [reader]}\nrequirements: [{word: {node: com.example.Word}}]\nhot:\n  resources: {'': {type: \
             OS::Heat::Value, properties: {value: {$target_attribute: [word, value]}}}}\n  attributes: {value: \
             {$attribute: [value]}}\n",
        ),
    ];
    for (name, text) in types {
        folder.write(&format!("types/{name}.yaml"), text);
    }
    let run = |args: &[&str]| {
        let all = [&["--local", "--database", "stacks.db", "--topology-types-dir", "types"], args].concat();
        folder.run(&all)
    };
    folder.write("shared.yaml", "components:\n  word: {type: word_type}\n");
    folder.write("app.yaml", "components:\n  r: {type: reader, requires: {word: 'heat://shared/word'}}\n");
    let create = |file: &str, name: &str| run(&["stack", "create", "--wait", "--poll", "0.1", "-t", file, name]);
    let missing = create("app.yaml", "app");
    assert!(missing.err.contains("The project has no stack shared."), "{}", missing.err);
    create("shared.yaml", "shared").ok();
    create("app.yaml", "app").ok();
    let word = run(&["stack", "resource", "show", "shared", "word", "-f", "json"]).ok();
    let word: serde_json::Value = serde_json::from_str(&word).unwrap();
    let word = word["attributes"]["value"].as_str().unwrap().to_owned();
    assert_eq!(word.len(), 32);
    let shown = run(&["stack", "show", "app", "-f", "json"]).ok();
    assert!(shown.contains(&word), "{shown}");
    folder.write("app.yaml", "components:\n  r: {type: reader, requires: {word: 'heat://shared/other'}}\n");
    let other = create("app.yaml", "other");
    assert!(other.err.contains("The stack shared has no resource other."), "{}", other.err);

    folder.write("here.yaml", "components:\n  word: {type: word_type}\nrequires: {jurisdiction: [de, fr]}\n");
    let nowhere = create("here.yaml", "here");
    assert!(
        nowhere.err.contains("The country of the region, one of DE, FR. The operator has not said"),
        "{}",
        nowhere.err
    );
    let in_country = |country: &str| {
        run(&[
            "stack",
            "create",
            "--wait",
            "-t",
            "here.yaml",
            "--parameter",
            &format!("jurisdiction={country}"),
            "here",
        ])
    };
    assert!(in_country("US").err.contains("not an allowed value"), "{}", in_country("US").err);
    in_country("FR").ok();
}

/// What Kiln's own types of software become is valid, by an agent and by cloud-init.
#[test]
fn software_types_become_valid_templates() {
    let folder = Folder::new("topology-software");
    for file in ["site.pp", "play.yaml", "compose.yaml"] {
        folder.write(file, "{}\n");
    }
    let text = "components:\n  web: {type: server, requires: {run: [a, b, c, d]}}\n  a: {type: puppet, content: site.pp, \
                facts: {role: web}}\n  b: {type: ansible, content: play.yaml, variables: {size: 3}, skip_tags: x}\n  c: \
                {type: compose, content: compose.yaml}\n  d: {type: container, image: nginx, ports: ['80:80']}\n";
    folder.write("app.yaml", text);
    folder.run(&["template", "validate", "--offline", "-t", "app.yaml"]).ok();
    let hot = folder.run(&["template", "lower", "app.yaml", "--software", "cloud-init"]).ok();
    assert!(!hot.contains("SoftwareDeployment"), "{hot}");
    folder.write("hot.yaml", &hot);
    folder.run(&["template", "validate", "--offline", "-t", "hot.yaml"]).ok();
    folder.write(
        "chef.yaml",
        "components:\n  web: {type: server, requires: {run: {type: chef, run_list: ['recipe[x]']}}}\n",
    );
    folder.run(&["template", "validate", "--offline", "-t", "chef.yaml"]).ok();
    let refused = folder.run(&["template", "lower", "chef.yaml", "--software", "cloud-init"]);
    assert!(
        refused.err.contains("web_run_configure_deploy is run by chef, which requires an agent."),
        "{}",
        refused.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_blueprints_of_the_operator_are_known_where_documents_are_converted() {
    let folder = Folder::new("operator-types");
    let cloud = Testcloud::builder().start().await.unwrap();
    let service = Service::start(&folder, &cloud);
    let kiln = |args: &[&str]| service.asked(&folder, &cloud, args);
    folder.write("app.yaml", "components:\n  redis: {type: our_cache, size: 4}\n");
    kiln(&["stack", "create", "-t", "app.yaml", "--wait", "--poll", "0.1", "one"]).ok();
    let template = kiln(&["stack", "template", "show", "one", "-f", "json"]).json();
    assert_eq!(template["resources"]["redis"]["properties"]["value"], 4);
    kiln(&["template", "validate", "-t", "app.yaml"]).ok();
    // Without a service they are unknown.
    for tool in
        [&["template", "lower", "app.yaml"][..], &["template", "lint", "app.yaml"], &["template", "graph", "app.yaml"]]
    {
        let unknown = kiln(tool);
        assert!(
            format!("{}{}", unknown.out, unknown.err).contains("No component type is named our_cache."),
            "{tool:?}"
        );
        kiln(&[tool, &["--service-types"]].concat()).ok();
    }
    // The user's own file comes first, and types of the user may be derived from those of the operator.
    let own = "topology_type: com.example.operator.Cache\nderived_from: tosca.nodes.Root\ncomponent: {aliases: [our_cache]}\nproperties: \
               {size: {type: integer}}\nhot:\n  resources:\n    '': {type: OS::Heat::Value, properties: {value: 7}}\n";
    let derived =
        "topology_type: com.example.Large\nderived_from: com.example.operator.Cache\ncomponent: {aliases: [large]}\n";
    folder.write("large/large.yaml", derived);
    folder.write("large.yaml", "components:\n  redis: {type: large, size: 5}\n");
    let lower = ["template", "lower", "large.yaml", "--service-types", "-f", "json", "--topology-types-dir", "large"];
    assert_eq!(kiln(&lower).json()["resources"]["redis"]["properties"]["value"], 5);
    folder.write("large/cache.yaml", own);
    assert_eq!(kiln(&lower).json()["resources"]["redis"]["properties"]["value"], 7);
}
