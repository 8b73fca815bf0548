//! What the types of SOL001 become, with the definitions of ETSI.

use std::collections::HashMap;
use std::fs;
use std::path::Path as FilePath;

use kiln_topology::Refusal;
use kiln_topology::lower::{Lowered, lower};
use kiln_topology::tosca;
use kiln_value::{Map, Value, value};

/// A server with a port in a network.
const SERVER: &str = "
    vdu: &vdu
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: vdu, description: '', vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 5}}
    port: {type: tosca.nodes.nfv.VduCp, properties: {layer_protocols: [ipv4]}, requirements: [{virtual_binding: vdu}, {virtual_link: link}]}
    link:
      type: tosca.nodes.nfv.VnfVirtualLink
      properties:
        connectivity_type: {layer_protocols: [ipv4]}
        vl_profile:
          max_bitrate_requirements: {root: 4096000}
          min_bitrate_requirements: {root: 0}
          virtual_link_protocol_data:
          - {associated_layer_protocol: ipv4, l3_protocol_data: {ip_version: ipv4, cidr: 10.0.0.0/24}}
";

/// What a topology of SOL001 becomes.
fn lowered(types: &str, nodes: &str, policies: &str) -> Result<Lowered, Vec<Refusal>> {
    let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tosca/heat-translator/data/etsi_nfv");
    let policies = if policies.is_empty() { String::new() } else { format!("  policies:{policies}") };
    let text = format!(
        "tosca_definitions_version: tosca_simple_yaml_1_3\nimports: [common.yaml, vnfd.yaml]\n{types}topology_template:\n  \
         node_templates:{nodes}{policies}"
    );
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let files = HashMap::from([
        ("common.yaml".to_owned(), read("etsi_nfv_sol001_common_types.yaml")),
        ("vnfd.yaml".to_owned(), read("etsi_nfv_sol001_vnfd_types.yaml")),
        ("t.yaml".to_owned(), text),
    ]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals)?.graph;
    lower(&graph, "t.yaml")
}

fn properties<'t>(template: &'t Value, name: &str) -> &'t Value {
    let resource = template.get("resources").and_then(|resources| resources.get(name));
    resource.unwrap_or_else(|| panic!("no {name} in {}", kiln_value::text::json(template))).get("properties").unwrap()
}

fn messages(result: Result<Lowered, Vec<Refusal>>) -> Vec<String> {
    result.unwrap_err().into_iter().map(|refusal| refusal.message).collect()
}

fn notes(lowered: &Lowered) -> Vec<&str> {
    lowered.notes.iter().map(|note| note.message.as_str()).collect()
}

/// Types of later versions of SOL001.
const LATER: &str = "node_types:
  tosca.nodes.nfv.VipCp:
    derived_from: tosca.nodes.nfv.Cp
    properties: {vip_function: {type: string, required: false}}
    requirements:
    - target: {capability: tosca.capabilities.Node, occurrences: [1, UNBOUNDED]}
    - virtual_link: {capability: tosca.capabilities.nfv.VirtualLinkable, relationship: tosca.relationships.nfv.VirtualLinksTo}
  tosca.nodes.nfv.VirtualCp: {derived_from: tosca.nodes.nfv.Cp}
  tosca.nodes.nfv.Vdu.OsContainer: {derived_from: tosca.nodes.Root}
  tosca.nodes.nfv.PNF: {derived_from: tosca.nodes.Root}
  tosca.nodes.nfv.NFP: {derived_from: tosca.nodes.Root}
  tosca.nodes.nfv.Sap: {derived_from: tosca.nodes.nfv.Cp}
  tosca.nodes.nfv.NsVirtualLink:
    derived_from: tosca.nodes.Root
    properties: {vl_profile: {type: map}}
    capabilities: {virtual_linkable: {type: tosca.capabilities.nfv.VirtualLinkable}}
";

#[test]
fn ports_share_the_address_of_a_virtual_connection_point() {
    let nodes = format!(
        "{SERVER}    vip: {{type: tosca.nodes.nfv.VipCp, properties: {{layer_protocols: [ipv4], vip_function: load_balance}}, requirements: \
         [{{target: port}}, {{virtual_link: link}}]}}\n"
    );
    let rule = "\n  - web: {type: tosca.policies.nfv.SecurityGroupRule, targets: [vip]}\n";
    let lowered = lowered(LATER, &nodes, rule).unwrap();
    assert_eq!(properties(&lowered.template, "vip"), &value!({"network": {"get_resource": "link"}}));
    let port = properties(&lowered.template, "port");
    let address = value!([{"ip_address": {"get_attr": ["vip", "fixed_ips", 0, "ip_address"]}}]);
    assert_eq!(port.get("allowed_address_pairs"), Some(&address));
    assert_eq!(port.get("security_groups"), Some(&value!([{"get_resource": "web"}])));
    assert_eq!(notes(&lowered), ["The address of vip is shared by its ports, but nothing balances load."]);
}

#[test]
fn what_a_connection_point_says_becomes_its_port_or_a_warning() {
    let server = SERVER.replace(
        "port: {type: tosca.nodes.nfv.VduCp, properties: {layer_protocols: [ipv4]}",
        "port: {type: tosca.nodes.nfv.VduCp, properties: {layer_protocols: [mpls], vnic_type: virtio, bitrate_requirement: \
         1024000, trunk_mode: true, protocol: [{associated_layer_protocol: ipv4, address_data: [{address_type: ip_address, \
         l3_address_data: {ip_address_assignment: true, floating_ip_activated: true, number_of_ip_address: 2}}]}]}",
    );
    let lowered = lowered("", &server, "").unwrap();
    let port = properties(&lowered.template, "port");
    assert_eq!(port.str_at("binding:vnic_type"), Some("normal"));
    assert_eq!(port.get("qos_policy"), Some(&value!({"get_resource": "port_qospolicy"})));
    assert_eq!(properties(&lowered.template, "port_bandwidth").get("max_kbps"), Some(&value!(1000)));
    assert_eq!(
        notes(&lowered),
        [
            "The property trunk_mode of port has no effect.",
            "The layer mpls of port has no effect: ports are those of Ethernet.",
            "number_of_ip_address in the property protocol of port has no effect.",
            "floating_ip_activated in the property protocol of port has no effect.",
        ]
    );
}

#[test]
fn fixed_addresses_and_boot_data_of_later_versions_have_an_effect() {
    let types = "node_types:
  my.Vdu: {derived_from: tosca.nodes.nfv.Vdu.Compute, properties: {boot_data: {type: map}}}
  my.Cp: {derived_from: tosca.nodes.nfv.VduCp, properties: {protocol: {type: list}}}
";
    let server = SERVER
        .replace("type: tosca.nodes.nfv.Vdu.Compute", "type: my.Vdu")
        .replace(
            "{name: vdu,",
            "{name: vdu, boot_data: {content_or_file_data: {source_path: boot.sh, destination_path: /a}},",
        )
        .replace(
            "{type: tosca.nodes.nfv.VduCp, properties: {",
            "{type: my.Cp, properties: {protocol: [{address_data: \
            [{l3_address_data: {fixed_ip_address: [10.0.0.9]}}]}], ",
        );
    let with_file = lowered(types, &server, "").unwrap();
    assert_eq!(properties(&with_file.template, "vdu").get("user_data"), Some(&value!({"get_file": "boot.sh"})));
    assert_eq!(properties(&with_file.template, "port").get("fixed_ips"), Some(&value!([{"ip_address": "10.0.0.9"}])));
    assert_eq!(notes(&with_file), ["destination_path in boot_data of vdu has no effect."]);
    // In the versions before, it is a text.
    let text = SERVER.replace("{name: vdu,", "{name: vdu, boot_data: '#!/bin/sh',");
    let with_text = lowered("", &text, "").unwrap();
    assert_eq!(properties(&with_text.template, "vdu").str_at("user_data"), Some("#!/bin/sh"));
}

#[test]
fn subnets_of_ipv6_are_subnets_of_ipv6() {
    let server = SERVER.replace(
        "{ip_version: ipv4, cidr: 10.0.0.0/24}",
        "{ip_version: ipv6, cidr: 'fd00::/64', ipv6_address_mode: slaac}",
    );
    let lowered = lowered("", &server, "").unwrap();
    let subnet = properties(&lowered.template, "link_subnet");
    assert_eq!((subnet.get("ip_version"), subnet.str_at("ipv6_address_mode")), (Some(&value!(6)), Some("slaac")));
}

#[test]
fn what_heat_has_no_equivalent_for_is_refused_by_name() {
    let nodes = "
    a: {type: tosca.nodes.nfv.Vdu.OsContainer}
    b: {type: tosca.nodes.nfv.VirtualCp, properties: {layer_protocols: [ipv4]}}
    c: {type: tosca.nodes.nfv.PNF}
    d: {type: tosca.nodes.nfv.NFP}
";
    assert_eq!(
        messages(lowered(LATER, nodes, "")),
        [
            "a (tosca.nodes.nfv.Vdu.OsContainer) is not supported: its containers need a cluster, which Heat does not manage.",
            "b (tosca.nodes.nfv.VirtualCp) is not supported: it stands for the containers of a cluster.",
            "c (tosca.nodes.nfv.PNF) is not supported: a physical function cannot be created.",
            "d (tosca.nodes.nfv.NFP) is not supported: forwarding paths have no equivalent.",
        ]
    );
}

#[test]
fn what_has_no_resource_is_a_warning_with_its_name() {
    let nodes = "
    sap: {type: tosca.nodes.nfv.Sap, properties: {layer_protocols: [ipv4]}}
    net: {type: tosca.nodes.nfv.NsVirtualLink, properties: {vl_profile: {max_bitrate_requirements: {root: 1024000}}}}
    vnf:
      type: tosca.nodes.nfv.VNF
      properties: {flavour_id: a, descriptor_id: a, provider: a, product_name: a, software_version: a, descriptor_version: a, vnfm_info: ['0:a'], flavour_description: a}
      interfaces: {Vnflcm: {instantiate: {implementation: a.sh}}}
";
    let lowered = lowered(LATER, nodes, "").unwrap();
    assert_eq!(properties(&lowered.template, "net_bandwidth").get("max_kbps"), Some(&value!(1000)));
    assert_eq!(
        notes(&lowered),
        [
            "sap (tosca.nodes.nfv.Sap) has no resource: the connection points of the servers have the ports.",
            "vnf (tosca.nodes.nfv.VNF) has no resource: its servers and networks are the resources.",
            "The operation instantiate of Vnflcm is not run: only those of the interface Standard are.",
        ]
    );
}

#[test]
fn a_vnf_of_a_network_service_is_connected_to_its_links() {
    let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tosca/heat-translator/data/etsi_nfv");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let vnf = "tosca_definitions_version: tosca_simple_yaml_1_3
imports: [common.yaml, vnfd.yaml]
node_types:
  my.Vnf:
    derived_from: tosca.nodes.Root
    requirements: [{outside: {capability: tosca.capabilities.nfv.VirtualLinkable, relationship: tosca.relationships.nfv.VirtualLinksTo}}]
topology_template:
  substitution_mappings: {node_type: my.Vnf, requirements: {outside: [port, virtual_link]}}
  node_templates:
    vdu:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: vdu, description: '', vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 1}}
    port: {type: tosca.nodes.nfv.VduCp, properties: {layer_protocols: [ipv4]}, requirements: [{virtual_binding: vdu}]}
";
    let service = format!(
        "tosca_definitions_version: tosca_simple_yaml_1_3\nimports: [common.yaml, vnfd.yaml, vnf.yaml]\n{LATER}topology_template:\n  \
         node_templates:\n    net: {{type: tosca.nodes.nfv.NsVirtualLink, properties: {{vl_profile: {{}}}}}}\n    \
         vnf: {{type: my.Vnf, requirements: [{{outside: net}}]}}\n"
    );
    let files = HashMap::from([
        ("common.yaml".to_owned(), read("etsi_nfv_sol001_common_types.yaml")),
        ("vnfd.yaml".to_owned(), read("etsi_nfv_sol001_vnfd_types.yaml")),
        ("vnf.yaml".to_owned(), vnf.to_owned()),
        ("t.yaml".to_owned(), service),
    ]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals).unwrap().graph;
    let lowered = lower(&graph, "t.yaml").unwrap();
    assert_eq!(properties(&lowered.template, "vnf").get("port_network"), Some(&value!({"get_resource": "net"})));
    let vnf = lowered.template.get("resources").and_then(|resources| resources.get("vnf")).unwrap();
    assert_eq!(vnf.get("depends_on"), Some(&value!(["net", "net_subnet"])));
    assert!(lowered.questions.iter().all(|question| !question.parameter.contains("port_network")));
}
