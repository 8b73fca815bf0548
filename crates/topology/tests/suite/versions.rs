//! What only newer versions of TOSCA have.

use std::collections::HashMap;

use kiln_topology::Refusal;
use kiln_topology::lower::lower;
use kiln_topology::tosca::{self, Template};
use kiln_value::{Map, value};

fn read(text: &str) -> Result<Template, Vec<Refusal>> {
    let files = HashMap::from([("t.yaml".to_owned(), text.to_owned())]);
    tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals)
}

#[test]
fn tosca_2_0_has_service_templates_and_functions_with_a_dollar() {
    let template = read(
        "tosca_definitions_version: tosca_2_0\n\
         imports:\n- profile: org.oasis-open.simple:2.0\n\
         service_template:\n  inputs:\n    size: {type: scalar-unit.size, default: 3 GiB}\n  node_templates:\n    \
         volume:\n      type: tosca.nodes.BlockStorage\n      properties: {size: {$get_input: size}}\n  outputs:\n    \
         id: {value: {$get_attribute: [volume, volume_id]}}\n",
    )
    .unwrap();
    let lowered = lower(&template.graph, "t.yaml").unwrap().template;
    let volume = lowered.get("resources").and_then(|resources| resources.get("volume")).unwrap();
    assert_eq!(volume.get("properties"), Some(&value!({"size": 3})));
    let output = lowered.get("outputs").and_then(|outputs| outputs.get("id")).unwrap();
    assert_eq!(output, &value!({"value": {"get_resource": "volume"}}));
}

#[test]
fn validation_clauses_of_tosca_2_0_are_constraints() {
    let document = |clause: &str| {
        format!(
            "tosca_definitions_version: tosca_2_0\nservice_template:\n  inputs:\n    size:\n      type: integer\n      \
             validation: {clause}\n      default: 5\n  outputs: {{o: {{value: {{$get_input: size}}}}}}\n"
        )
    };
    let constraints = |clause: &str| {
        let lowered = lower(&read(&document(clause)).unwrap().graph, "t.yaml").unwrap().template;
        lowered.get("parameters").and_then(|all| all.get("size")?.get("constraints").cloned())
    };
    assert_eq!(constraints("{$in_range: [$value, [1, 9]]}"), Some(value!([{"range": {"min": 1, "max": 9}}])));
    let both = constraints("{$and: [{$greater_or_equal: [$value, 1]}, {$valid_values: [{$value: []}, [4, 5]]}]}");
    assert_eq!(both, Some(value!([{"range": {"min": 1}}, {"allowed_values": [4, 5]}])));
    let wrong = |clause: &str| read(&document(clause)).unwrap_err().into_iter().map(|one| one.message).next();
    let too_small = wrong("{$less_than: [$value, 5]}").unwrap();
    assert!(too_small.contains("does not satisfy less_than"), "{too_small}");
    for clause in ["{$or: [{$equal: [$value, 5]}]}", "{$not: [{$equal: [$value, 5]}]}", "{$equal: [5, $value]}"] {
        let word = clause.trim_start_matches('{').split(':').next().unwrap();
        assert_eq!(wrong(clause), Some(format!("The validation \"{word}\" is not supported here.")));
    }
}

#[test]
fn functions_of_tosca_2_0_are_known_in_imports_and_unknown_ones_are_refused() {
    let with = |value: &str| {
        let template = "tosca_definitions_version: tosca_2_0\nimports: [types.yaml]\nservice_template:\n  \
                        node_templates:\n    v: {type: Volume}\n";
        let types = format!(
            "tosca_definitions_version: tosca_2_0\nnode_types:\n  Volume:\n    derived_from: tosca.nodes.BlockStorage\n    \
             properties:\n      size: {{type: scalar-unit.size, default: {value}}}\n"
        );
        let files = [("t.yaml", template), ("types.yaml", &types)];
        let files: HashMap<String, String> = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals)
    };
    let graph = with("{$token: ['3 GiB/x', '/', 0]}").unwrap().graph;
    let lowered = kiln_value::text::json(&lower(&graph, "t.yaml").unwrap().template);
    assert!(lowered.contains("str_split"), "{lowered}");
    let refused = with("{$product: [3, 1 GiB]}").unwrap_err();
    assert_eq!(refused[0].message, "The function \"$product\" is not supported.");
}

#[test]
fn unknown_profiles_workflows_and_copies_are_refused_by_name() {
    let wrong = |text: &str| read(text).unwrap_err().into_iter().map(|refusal| refusal.message).collect::<Vec<_>>();
    let profile = wrong("tosca_definitions_version: tosca_2_0\nimports: [{profile: com.example:1.0}]\n");
    assert_eq!(profile, ["The profile \"com.example:1.0\" is unknown: import it as a file."]);
    let rest = wrong(
        "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  workflows: {deploy: {}}\n  \
         node_templates:\n    a: {type: tosca.nodes.Root, copy: b}\n",
    );
    assert_eq!(rest, ["Imperative \"workflows\" are not supported.", "Copies of node templates are not supported."]);
}

#[test]
fn operations_of_version_1_3_stand_under_a_key() {
    let template = read(
        "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n    s: {type: \
         tosca.nodes.Compute}\n    a:\n      type: tosca.nodes.SoftwareComponent\n      requirements: [{host: s}]\n      \
         interfaces:\n        Standard:\n          operations:\n            create: {implementation: a.sh}\n            \
         delete: b.sh\n",
    )
    .unwrap();
    let lowered = lower(&template.graph, "t.yaml").unwrap().template;
    let resources = lowered.get("resources").unwrap();
    let delete = resources.get("a_delete_deploy").unwrap();
    assert_eq!(delete.get("properties").unwrap().get("actions"), Some(&value!(["DELETE"])));
    assert_eq!(delete.get("depends_on"), Some(&value!(["a_create_deploy"])));
}

/// Types of SOL001 are imported by the template; only what they become is Kiln's.
#[test]
fn storage_of_sol001_becomes_containers_and_shares() {
    let template = read(
        "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  tosca.nodes.nfv.Vdu.VirtualObjectStorage:\n    \
         derived_from: tosca.nodes.Root\n    properties: {virtual_object_storage_data: {type: map}}\n  \
         tosca.nodes.nfv.Vdu.VirtualFileStorage:\n    derived_from: tosca.nodes.Root\n    properties: \
         {virtual_file_storage_data: {type: map}}\ntopology_template:\n  node_templates:\n    objects:\n      type: \
         tosca.nodes.nfv.Vdu.VirtualObjectStorage\n      properties: {virtual_object_storage_data: \
         {max_size_of_storage: 2 KiB}}\n    files:\n      type: tosca.nodes.nfv.Vdu.VirtualFileStorage\n      properties: \
         {virtual_file_storage_data: {size_of_storage: 5 GB, file_system_protocol: NFS}}\n",
    )
    .unwrap();
    let lowered = lower(&template.graph, "t.yaml").unwrap().template;
    let resources = lowered.get("resources").unwrap();
    let objects = value!({"X-Container-Meta": {"Quota-Bytes": 2048}});
    assert_eq!(resources.get("objects").unwrap().get("properties"), Some(&objects));
    assert_eq!(resources.get("files").unwrap().get("properties"), Some(&value!({"size": 5, "share_protocol": "NFS"})));
}

#[test]
fn volumes_of_sol001_without_an_image_are_attached() {
    let template = read(
        "tosca_definitions_version: tosca_simple_yaml_1_3
node_types:
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties: {name: {type: string}, sw_image_data: {type: map, required: false}}
    requirements: [{virtual_storage: {capability: tosca.capabilities.nfv.VirtualStorage, occurrences: [0, UNBOUNDED]}}]
  tosca.nodes.nfv.Vdu.VirtualBlockStorage:
    derived_from: tosca.nodes.Root
    properties: {virtual_block_storage_data: {type: map}, sw_image_data: {type: map, required: false}}
    capabilities: {virtual_storage: {type: tosca.capabilities.nfv.VirtualStorage}}
capability_types:
  tosca.capabilities.nfv.VirtualStorage: {derived_from: tosca.capabilities.Root}
topology_template:
  node_templates:
    vdu:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: vdu}
      requirements: [{virtual_storage: root}, {virtual_storage: data}]
    root:
      type: tosca.nodes.nfv.Vdu.VirtualBlockStorage
      properties: {virtual_block_storage_data: {size_of_storage: 1 GiB}, sw_image_data: {name: cirros}}
    data:
      type: tosca.nodes.nfv.Vdu.VirtualBlockStorage
      properties: {virtual_block_storage_data: {size_of_storage: 2 GiB}}
",
    )
    .unwrap();
    let lowered = lower(&template.graph, "t.yaml").unwrap().template;
    let resources = lowered.get("resources").and_then(|resources| resources.as_map()).unwrap();
    let boot = resources["vdu"].get("properties").unwrap().get("block_device_mapping_v2");
    assert_eq!(boot, Some(&value!([{"volume_id": {"get_resource": "root"}, "boot_index": 0}])));
    let attachment = resources["vdu_attachment_1"].get("properties").unwrap();
    assert_eq!(attachment.get("volume_id"), Some(&value!({"get_resource": "data"})));
    assert!(!resources.contains_key("vdu_attachment_2"));
}
