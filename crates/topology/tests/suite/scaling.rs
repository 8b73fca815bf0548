//! Servers that scale are in a nested template.

use std::collections::HashMap;

use kiln_topology::lower::lower;
use kiln_topology::question::Wanted;
use kiln_topology::tosca;
use kiln_value::{Map, value};

#[test]
fn members_are_created_after_the_subnets_of_their_networks() {
    let text = "tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  node_templates:
    web: {type: tosca.nodes.Compute}
    port:
      type: tosca.nodes.network.Port
      requirements: [{binding: web}, {link: net}]
    net: {type: tosca.nodes.network.Network, properties: {cidr: 10.1.0.0/24}}
    other: {type: tosca.nodes.network.Network, properties: {cidr: 10.2.0.0/24}}
  policies:
  - grow: {type: tosca.policies.Scaling, targets: [web]}
";
    let files = HashMap::from([("t.yaml".to_owned(), text.to_owned())]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals).unwrap().graph;
    let lowered = lower(&graph, "t.yaml").unwrap();
    let resources = lowered.template.get("resources").unwrap();
    // A port without a subnet in its network has no address.
    let group = resources.get("grow_group").unwrap();
    assert_eq!(group.get("depends_on"), Some(&value!(["net_subnet"])));
    let member = group.get("properties").unwrap().get("resource").unwrap();
    assert_eq!(member.get("properties").unwrap().get("net_id"), Some(&value!({"get_resource": "net"})));
}

#[test]
fn numbers_of_members_are_those_of_the_capability_scalable() {
    let text = "tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  inputs: {most: {type: integer, default: 4}}
  node_templates:
    web:
      type: tosca.nodes.Compute
      capabilities:
        scalable: {properties: {min_instances: 2, default_instances: 3, max_instances: {get_input: most}}}
  policies:
  - grow: {type: tosca.policies.Scaling, targets: [web]}
";
    let files = HashMap::from([("t.yaml".to_owned(), text.to_owned())]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals).unwrap().graph;
    let lowered = lower(&graph, "t.yaml").unwrap();
    let group = lowered.template.get("resources").unwrap().get("grow_group").unwrap().get("properties").unwrap();
    assert_eq!(group.get("min_size"), Some(&value!(2)));
    // An update keeps the number that there is.
    assert_eq!(group.get("desired_capacity"), Some(&value!({"get_param": "grow_group_size"})));
    let size = lowered.template.get("parameters").unwrap().get("grow_group_size").unwrap();
    assert_eq!((size.str_at("type"), size.get("default")), (Some("number"), Some(&value!(3))));
    let wanted = Wanted::Members { group: vec!["grow_group".to_owned()], least: Some(2), most: None };
    assert!(lowered.questions.iter().any(|one| one.parameter == "grow_group_size" && one.wanted == wanted));
    assert_eq!(group.get("max_size"), Some(&value!({"get_param": "most"})));
}
