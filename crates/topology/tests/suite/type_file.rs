//! Types that are defined in files: in service templates, blueprints and packages, and what is refused.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{Lowered, by_cloud_init, lower};
use kiln_topology::upload::{self, Limits};
use kiln_topology::{Refusal, TypeFiles, tosca};
use kiln_value::{Map, Value, value};

const CACHE: &str = "\
topology_type: com.example.Cache
description: A server of Redis.
derived_from: tosca.nodes.SoftwareComponent
component: {aliases: [cache]}
properties:
  port: {type: integer, default: 6379, constraints: [{in_range: [1, 65535]}]}
  size: {type: scalar-unit.size, required: false}
capabilities:
  endpoint: tosca.capabilities.Endpoint
hot:
  resources:
    _password:
      type: OS::Heat::RandomString
      properties: {length: 20}
    _zone:
      when: size
      type: OS::Heat::Value
      properties: {value: {$mib: size}}
  attributes:
    password: {$value: _password}
  operations:
    configure:
      config: |
        #!/bin/sh
        echo \"$port $password\"
      inputs:
        port: {$property: port}
        password: {$value: _password}
";

const SHOP: &str = "\
topology_type: com.example.Shop
derived_from: com.example.Application
requirements:
- cache: {node: com.example.Cache}
hot:
  operations:
    start:
      hook: ansible
      config: {$content: content}
      inputs: {cache: {$target_attribute: [cache, password]}, name: {$node: ''}}
      cloud_init: |
        #!/bin/sh
        echo \"$KILN_CONFIG\"
";

const APPLICATION: &str = "\
topology_type: com.example.Application
derived_from: tosca.nodes.SoftwareComponent
component: {derived_from: runnable}
properties:
  content: {type: string}
";

fn with(files: &[(&str, &str)]) -> Result<Arc<TypeFiles>, Vec<Refusal>> {
    TypeFiles::shipped().unwrap().with(files.iter().copied()).map(Arc::new)
}

fn service(text: &str, types: &Arc<TypeFiles>) -> Result<Lowered, Vec<Refusal>> {
    let text = format!("tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n{text}");
    let files = HashMap::from([("t.yaml".to_owned(), text)]);
    let template = tosca::read_with(&files, "t.yaml", &Map::new(), types).map_err(|(_, refusals)| refusals)?;
    lower(&template.graph, "t.yaml")
}

fn components(text: &str, types: &Arc<TypeFiles>) -> Result<Lowered, Vec<Refusal>> {
    let library = Library::of(types)?;
    let read = blueprint::read(text, &library).map_err(|(_, refusals)| refusals)?;
    lower(&read.graph()?.0, "heat.yaml")
}

fn resource<'t>(lowered: &'t Lowered, name: &str) -> &'t Value {
    lowered.template.get("resources").and_then(|all| all.get(name)).unwrap_or_else(|| panic!("{name}: {lowered:?}"))
}

fn property<'t>(lowered: &'t Lowered, name: &str, property: &str) -> &'t Value {
    resource(lowered, name).get("properties").and_then(|all| all.get(property)).unwrap()
}

#[test]
fn a_node_becomes_what_its_file_says() {
    let types = with(&[("cache.yaml", CACHE)]).unwrap();
    let lowered = service(
        "  inputs:\n    p: {type: integer, default: 7000}\n  node_templates:\n    server: {type: \
         tosca.nodes.Compute}\n    c:\n      type: com.example.Cache\n      properties: {port: {get_input: p}, size: 1 \
         GiB}\n      requirements: [{host: server}]\n  outputs:\n    secret: {value: {get_attribute: [c, password]}}\n",
        &types,
    )
    .unwrap();
    let inputs = value!({"port": {"get_param": "p"}, "password": {"get_attr": ["c_password", "value"]}});
    assert_eq!(property(&lowered, "c_configure_deploy", "input_values"), &inputs);
    assert_eq!(property(&lowered, "c_configure_deploy", "server"), &value!({"get_resource": "server"}));
    assert_eq!(property(&lowered, "c_configure_config", "group"), &value!("script"));
    assert_eq!(property(&lowered, "c_zone", "value"), &value!(1024));
    let secret = lowered.template.get("outputs").unwrap().get("secret").unwrap();
    assert_eq!(secret.get("value"), Some(&value!({"get_attr": ["c_password", "value"]})));
    // The place of the user's document, not of the type.
    assert_eq!(lowered.sources["resources.c_zone"].at.to_string(), "topology_template.node_templates.c");
}

#[test]
fn the_same_types_are_components() {
    let types = with(&[("a.yaml", APPLICATION), ("cache.yaml", CACHE), ("shop.yaml", SHOP)]).unwrap();
    let lowered = components(
        "components:\n  web: {type: server, requires: {run: [redis, shop]}}\n  redis: {type: cache, port: 7001}\n  \
         shop: {type: com.example.Shop, content: shop.yaml, requires: {cache: redis}}\n",
        &types,
    )
    .unwrap();
    assert_eq!(property(&lowered, "redis_configure_deploy", "input_values").get("port"), Some(&value!(7001)));
    assert_eq!(property(&lowered, "shop_start_config", "group"), &value!("ansible"));
    assert_eq!(property(&lowered, "shop_start_config", "config"), &value!({"get_file": "shop.yaml"}));
    let inputs = value!({"cache": {"get_attr": ["redis_password", "value"]}, "name": "shop"});
    assert_eq!(property(&lowered, "shop_start_deploy", "input_values"), &inputs);
    assert_eq!(resource(&lowered, "shop_start_deploy").get("depends_on"), Some(&value!(["redis_configure_deploy"])));
}

#[test]
fn without_an_agent_a_script_stands_for_a_hook() {
    let types = with(&[("a.yaml", APPLICATION), ("cache.yaml", CACHE), ("shop.yaml", SHOP)]).unwrap();
    let text = "components:\n  web: {type: server, requires: {run: [redis, shop]}}\n  redis: {type: cache}\n  shop: \
                {type: com.example.Shop, content: shop.yaml, requires: {cache: redis}}\n";
    let lowered = by_cloud_init(components(text, &types).unwrap()).unwrap();
    let steps = property(&lowered, "web", "user_data").get("str_replace").unwrap().get("params").unwrap();
    let shop = steps.get("@KILN_STEPS@").unwrap().at(1).unwrap();
    assert_eq!(shop.str_at("name"), Some("shop_start"));
    assert_eq!(shop.str_at("script"), Some("#!/bin/sh\necho \"$KILN_CONFIG\"\n"));
    assert_eq!(shop.get("inputs").unwrap().get("KILN_CONFIG"), Some(&value!({"get_file": "shop.yaml"})));
    // Chef cannot be installed: it is refused by its name.
    let chef = "components:\n  web: {type: server, requires: {run: {type: chef, run_list: ['recipe[x]']}}}\n";
    let refused = by_cloud_init(components(chef, &types).unwrap()).unwrap_err();
    assert_eq!(refused[0].message, "web_run_configure_deploy is run by chef, which requires an agent.");
}

#[test]
fn a_derived_type_inherits_and_changes_what_its_parent_becomes() {
    let large = "topology_type: com.example.Large\nderived_from: com.example.Cache\nproperties:\n  port: {type: integer, \
                 default: 1}\nhot:\n  resources:\n    _password: {properties: {length: 40, salt: {$node: ''}}}\n    \
                 _zone: null\n    _more: {type: OS::Heat::Value, depends_on: [_password], properties: {value: \
                 {$resource_attribute: [_password, value]}}}\n";
    let types = with(&[("cache.yaml", CACHE), ("large.yaml", large)]).unwrap();
    let text = "  node_templates:\n    server: {type: tosca.nodes.Compute}\n    c:\n      type: com.example.Large\n      \
                properties: {size: 1 GB}\n      requirements: [{host: server}]\n";
    let lowered = service(text, &types).unwrap();
    let password = value!({"length": 40, "salt": "c"});
    assert_eq!(resource(&lowered, "c_password").get("properties"), Some(&password));
    assert!(lowered.template.get("resources").unwrap().get("c_zone").is_none());
    let more = resource(&lowered, "c_more");
    assert_eq!(more.get("depends_on"), Some(&value!(["c_password"])));
    assert_eq!(property(&lowered, "c_more", "value"), &value!({"get_attr": ["c_password", "value"]}));
    assert_eq!(property(&lowered, "c_configure_deploy", "input_values").get("port"), Some(&value!(1)));
}

#[test]
fn resources_are_made_after_what_their_node_requires() {
    let alarm = "topology_type: com.example.Record\nderived_from: tosca.nodes.Root\nproperties:\n  id: {type: string, \
                 required: false}\nrequirements:\n- of: {capability: tosca.capabilities.Node, node: tosca.nodes.Compute, \
                 relationship: tosca.relationships.DependsOn}\nhot:\n  existing: id\n  resources:\n    '': {type: \
                 OS::Heat::Value, deletion_policy: retain, properties: {value: {$target: of}}}\n";
    let types = with(&[("record.yaml", alarm)]).unwrap();
    let text = "  node_templates:\n    s: {type: tosca.nodes.Compute}\n    r: {type: com.example.Record, requirements: \
                [{of: s}]}\n    e: {type: com.example.Record, properties: {id: x}, requirements: [{of: s}]}\n";
    let lowered = service(text, &types).unwrap();
    assert_eq!(resource(&lowered, "r").get("depends_on"), Some(&value!(["s"])));
    assert_eq!(resource(&lowered, "r").str_at("deletion_policy"), Some("retain"));
    assert!(lowered.template.get("resources").unwrap().get("e").is_none());
}

#[test]
fn a_type_takes_the_place_of_another_one_only_if_it_says_so() {
    let compute = "topology_type: tosca.nodes.ObjectStorage\nderived_from: tosca.nodes.Root\n";
    let wrong = with(&[("o.yaml", compute)]).unwrap_err();
    assert_eq!(wrong[0].text(), "o.yaml:1:1: tosca.nodes.ObjectStorage is a type of Kiln.");
    let puppet = with(&[("p.yaml", "topology_type: org.openstack.heat.Puppet\nderived_from: tosca.nodes.Root\n")]);
    assert!(puppet.unwrap_err()[0].message.starts_with("org.openstack.heat.Puppet is defined in software/puppet.yaml"));
    let new = with(&[("n.yaml", "topology_type: a.b\nreplaces: true\nderived_from: tosca.nodes.Root\n")]).unwrap_err();
    assert_eq!(new[0].text(), "n.yaml:2:1: No type is named a.b: there is nothing to replace.");
    // Zun in place of Docker on a server.
    let zun = "topology_type: tosca.nodes.Container.Application\nreplaces: true\nderived_from: tosca.nodes.Root\nhot:\n  \
               resources:\n    '': {type: OS::Zun::Container, properties: {image: {$artifact: \
               tosca.artifacts.Deployment.Image.Container.Docker}}}\n";
    let types = with(&[("zun.yaml", zun)]).unwrap();
    let text = "  node_templates:\n    c:\n      type: tosca.nodes.Container.Application\n      artifacts:\n        image: \
                {type: tosca.artifacts.Deployment.Image.Container.Docker, file: redis}\n";
    assert_eq!(property(&service(text, &types).unwrap(), "c", "image"), &value!("redis"));
}

/// The texts of the errors in a type file.
fn wrong(text: &str) -> Vec<String> {
    with(&[("t.yaml", text)]).unwrap_err().iter().map(Refusal::text).collect()
}

#[test]
fn all_errors_of_a_file_are_told_with_their_places() {
    assert_eq!(
        wrong("topology_type: a.b\nderived_form: x\nhot: {resource: {}, operations: {boot: {config: x}, start: {}}}\n"),
        [
            "t.yaml:1:1: A type file must have the key derived_from: the type that it is derived from.",
            "t.yaml:2:1: A type file has no key derived_form.",
            "t.yaml:3:7: hot has no key resource.",
            "t.yaml:3:34: The operations are create, configure, start, stop, delete, but not boot.",
            "t.yaml:3:53: An operation must have the key config: what its hook runs.",
        ]
    );
    assert_eq!(
        wrong(
            "topology_type: a.b\nderived_from: tosca.nodes.Root\nproperties:\n  a: {type: strin}\n  b: {type: integer, \
             default: x}\n  c: {type: string, constraints: [{longest: 3}]}\n  d: {kind: string}\nrequirements:\n- e: \
             {node: x.y}\n- f: {}\ncapabilities:\n  g: tosca.capabilities.Nothing\n"
        ),
        [
            "t.yaml:4:3: No type of values is named strin.",
            "t.yaml:5:22: \"x\" is not an integer.",
            "t.yaml:6:35: No operator of constraints is named \"longest\".",
            "t.yaml:7:3: The definition of d must have a type.",
            "t.yaml:7:7: A definition has no key kind.",
            "t.yaml:9:7: No type is named x.y.",
            "t.yaml:10:3: The requirement f must have a node or a capability.",
            "t.yaml:12:3: No type of capabilities is named tosca.capabilities.Nothing.",
        ]
    );
    assert_eq!(
        wrong(
            "topology_type: a.b\nderived_from: tosca.nodes.Root\nproperties:\n  port: {type: integer}\nhot:\n  \
             resources:\n    _a:\n      type: OS::Heat::Value\n      properties: {value: [{$property: prt}, {$proprty: \
             port}, {get_resource: x}, {$resource: _c}, {get_param: x}, {get_param: 'OS::stack_name'}, {$target: \
             host}]}\n    _b: {depends_on: [_c]}\n  attributes: {x: {$resource_attribute: _a}}\n"
        ),
        [
            "t.yaml:9:29: The type has no property prt.",
            "t.yaml:9:47: No word is named $proprty.",
            "t.yaml:9:65: A type does not know the names of a template: use $resource, not get_resource.",
            "t.yaml:9:84: The type has no resource with the suffix \"_c\".",
            "t.yaml:9:101: A type does not know the parameters of a template: use $property, not get_param.",
            "t.yaml:9:148: The type has no requirement host.",
            "t.yaml:10:5: A resource must have a type.",
            "t.yaml:10:10: The type has no resource with the suffix \"_c\".",
            "t.yaml:11:20: $resource_attribute must have a suffix and an attribute.",
        ]
    );
    assert_eq!(wrong("topology_type: a.b\nderived_from: a.c\n"), ["t.yaml:2:1: No type is named a.c."]);
    assert_eq!(
        wrong("topology_type: a.b\nderived_from: tosca.nodes.Root\ncomponent: {derived_from: nothing, aliases: [server]}\n")
            .len(),
        2
    );
    let circle =
        with(&[("a.yaml", "topology_type: a\nderived_from: b\n"), ("b.yaml", "topology_type: b\nderived_from: a\n")]);
    assert!(circle.unwrap_err().iter().all(|refusal| refusal.kind == "cycle"));
    let twice = with(&[("a.yaml", APPLICATION), ("b.yaml", APPLICATION)]).unwrap_err();
    assert_eq!(twice[0].text(), "b.yaml:1:1: a.yaml defines the type com.example.Application too.");
}

#[test]
fn errors_of_documents_are_told_at_their_places() {
    let types = with(&[("a.yaml", APPLICATION), ("cache.yaml", CACHE), ("shop.yaml", SHOP)]).unwrap();
    let refused = |text: &str| -> Vec<String> {
        components(text, &types).unwrap_err().iter().map(|r| format!("{}: {}", r.at, r.message)).collect()
    };
    assert_eq!(
        refused("components:\n  web: {type: server, requires: {run: redis}}\n  redis: {type: cache, port: 70000}\n"),
        ["components.redis.port: The value \"70000\" of property \"port\" does not satisfy in_range: \"[1, 65535]\"."]
    );
    assert_eq!(
        refused("components:\n  web: {type: server, requires: {run: shop}}\n  shop: {type: com.example.Shop}\n"),
        [
            "components.shop: com.example.Shop must have the requirement cache.",
            "components.shop: The \"properties\" of \"shop\" must have the field \"content\"."
        ]
    );
    assert_eq!(
        refused(
            "components:\n  web: {type: server, requires: {run: shop}}\n  shop: {type: com.example.Shop, content: a, \
             requires: {cache: other}}\n  other: {type: server}\n"
        ),
        ["components.shop.requires.cache: cache must be fulfilled by a com.example.Cache, but other is a server."]
    );
}

/// A TAR archive.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len().try_into().unwrap());
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_package_brings_its_types_along() {
    let root = "components:\n  web: {type: server, requires: {run: redis}}\n  redis: {type: cache}\n";
    let types = TypeFiles::shipped().unwrap();
    let read = |bytes: &[u8]| upload::read(bytes.to_vec(), &Map::new(), false, &Limits::default(), &types);
    let made = read(&archive(&[("heat.yaml", root), ("topology-types/cache.yaml", CACHE)])).unwrap();
    assert!(made.template.get("resources").unwrap().get("redis_password").is_some());
    // They count for this package only.
    assert_eq!(read(root.as_bytes()).unwrap_err()[0].text, "No component type is named cache.");
    let wrong = read(&archive(&[("heat.yaml", root), ("topology-types/x.yaml", "type: x\n")])).unwrap_err();
    assert_eq!(wrong[0].file.as_deref(), Some("topology-types/x.yaml"));
    let many: Vec<(String, String)> = (0..101)
        .map(|i| (format!("topology-types/{i}.yaml"), format!("topology_type: t{i}\nderived_from: tosca.nodes.Root\n")))
        .collect();
    let mut files = vec![("heat.yaml", root)];
    files.extend(many.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    assert_eq!(read(&archive(&files)).unwrap_err()[0].text, "A package may have 100 type files, but this has 101.");
}

#[test]
fn what_types_make_is_bounded() {
    let text = "x".repeat(100_000);
    let huge = format!(
        "topology_type: a.b\nderived_from: tosca.nodes.Root\nhot:\n  resources:\n    _a: {{type: OS::Heat::Value, \
         properties: {{value: {text}}}}}\n"
    );
    let types = with(&[("t.yaml", &huge)]).unwrap();
    let nodes: Vec<String> = (0..1000).map(|i| format!("    n{i}: {{type: a.b}}\n")).collect();
    let nodes = nodes.concat();
    let refused = service(&format!("  node_templates:\n{nodes}"), &types).unwrap_err();
    assert_eq!(refused.iter().map(|refusal| refusal.kind).collect::<Vec<_>>(), ["too-large"]);
}

#[test]
fn containers_run_on_the_server_of_their_runtime() {
    let types = TypeFiles::shipped().unwrap();
    let lowered = service(
        "  node_templates:\n    s: {type: tosca.nodes.Compute}\n    docker:\n      type: \
         tosca.nodes.Container.Runtime\n      requirements: [{host: s}]\n      capabilities: {host: {properties: \
         {publish_ports: [{source: 80, target: 8080}]}}}\n    web:\n      type: \
         tosca.nodes.Container.Application\n      requirements: [{host: docker}]\n      artifacts:\n        image: \
         {file: nginx, type: tosca.artifacts.Deployment.Image.Container.Docker, repository: hub}\n",
        &types,
    )
    .unwrap();
    let inputs = property(&lowered, "web_start_deploy", "input_values");
    assert_eq!(inputs.str_at("image"), Some("nginx"));
    let ports = inputs.get("ports").unwrap().get("str_replace").unwrap().get("params").unwrap();
    assert_eq!(ports.get("%json%"), Some(&value!([{"source": 80, "target": 8080}])));
    assert_eq!(resource(&lowered, "web_start_deploy").get("depends_on"), Some(&value!(["docker_create_deploy"])));
    by_cloud_init(lowered).unwrap();
}

/// A runtime has ports, volumes, both or none.
#[test]
fn containers_without_ports_or_volumes_are_valid() {
    let types = TypeFiles::shipped().unwrap();
    let lowered = service(
        "  node_templates:\n    s: {type: tosca.nodes.Compute}\n    docker: {type: tosca.nodes.Container.Runtime, \
         requirements: [{host: s}]}\n    web:\n      type: tosca.nodes.Container.Application\n      requirements: [{host: \
         docker}]\n      artifacts:\n        image: {file: nginx, type: \
         tosca.artifacts.Deployment.Image.Container.Docker}\n",
        &types,
    )
    .unwrap();
    let inputs = property(&lowered, "web_start_deploy", "input_values");
    assert_eq!(*inputs, value!({"container_name": "web", "image": "nginx"}));
    by_cloud_init(lowered).unwrap();
}

/// A port specification is checked like any other value of a data type, and names a port or a range.
#[test]
fn port_specifications_are_checked() {
    let types = TypeFiles::shipped().unwrap();
    let refusals = |spec: &str| -> Vec<String> {
        let text = format!(
            "  node_templates:\n    s: {{type: tosca.nodes.Compute}}\n    docker:\n      type: \
             tosca.nodes.Container.Runtime\n      requirements: [{{host: s}}]\n      capabilities: {{host: {{properties: \
             {{publish_ports: [{spec}]}}}}}}\n"
        );
        match service(&text, &types) {
            Ok(_) => Vec::new(),
            Err(refusals) => refusals.iter().map(|refusal| refusal.kind.to_owned()).collect(),
        }
    };
    for fine in ["{source: 80}", "{target_range: [1, 5], protocol: udp}", "{source: 3, source_range: [1, 5]}"] {
        assert_eq!(refusals(fine), [""; 0], "{fine}");
    }
    for (wrong, codes) in [
        ("{source: 99999}", &["invalid"][..]),
        ("{source: 80, bogus: 1}", &["unknown-field"]),
        ("{protocol: tcp}", &["missing-field"]),
        ("{target: 80, protocol: foo}", &["invalid"]),
        ("{source: 80, source_range: [1, 5]}", &["invalid"]),
        ("80", &["wrong-shape"]),
    ] {
        assert_eq!(refusals(wrong), codes, "{wrong}");
    }
}

#[test]
fn an_image_that_implements_an_operation_runs_with_its_inputs() {
    let lowered = service(
        "  node_templates:\n    s: {type: tosca.nodes.Compute}\n    docker: {type: tosca.nodes.Container.Runtime, \
         requirements: [{host: s}]}\n    db:\n      type: tosca.nodes.Container.Application.Docker\n      requirements: \
         [{host: docker}]\n      artifacts:\n        image: {file: mysql, type: \
         tosca.artifacts.Deployment.Image.Container.Docker, repository: hub}\n      interfaces:\n        Standard:\n          \
         create: {implementation: image, inputs: {MYSQL_DATABASE: shop, MYSQL_USER: me}}\n",
        &TypeFiles::shipped().unwrap(),
    )
    .unwrap();
    let inputs = property(&lowered, "db_create_deploy", "input_values");
    assert_eq!(inputs.str_at("image"), Some("mysql"));
    assert_eq!(inputs.str_at("environment_names"), Some("MYSQL_DATABASE MYSQL_USER"));
    assert_eq!(inputs.str_at("MYSQL_DATABASE"), Some("shop"));
    // The container is not run twice.
    assert!(lowered.template.get("resources").unwrap().get("db_start_deploy").is_none());
}
