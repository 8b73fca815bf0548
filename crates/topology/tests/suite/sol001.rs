//! Policies of SOL001. Their types are those of the document; only what they become is Kiln's.

use std::collections::HashMap;

use kiln_topology::Refusal;
use kiln_topology::lower::{Lowered, lower};
use kiln_topology::tosca;
use kiln_value::{Map, Value, value};

const TYPES: &str = "tosca_definitions_version: tosca_simple_yaml_1_2
node_types:
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties: {name: {type: string}, vdu_profile: {type: map, required: false}}
    capabilities: {virtual_binding: {type: tosca.capabilities.nfv.VirtualBindable}}
  tosca.nodes.nfv.VduCp:
    derived_from: tosca.nodes.Root
    requirements:
    - virtual_binding: {capability: tosca.capabilities.nfv.VirtualBindable, occurrences: [0, 1]}
  tosca.nodes.nfv.VnfExtCp: {derived_from: tosca.nodes.Root}
capability_types:
  tosca.capabilities.nfv.VirtualBindable: {derived_from: tosca.capabilities.Root}
policy_types:
  tosca.policies.nfv.AntiAffinityRule:
    derived_from: tosca.policies.Root
    properties: {scope: {type: string}}
  tosca.policies.nfv.SecurityGroupRule:
    derived_from: tosca.policies.Root
    properties:
      description: {type: string, required: false}
      direction: {type: string, required: false, default: ingress}
      ether_type: {type: string, required: false, default: ipv4}
      protocol: {type: string, required: false, default: tcp}
      port_range_min: {type: integer, required: false, default: 0}
      port_range_max: {type: integer, required: false, default: 65535}
  tosca.policies.nfv.ScalingAspects:
    derived_from: tosca.policies.Root
    properties: {aspects: {type: map}}
  tosca.policies.nfv.VduScalingAspectDeltas:
    derived_from: tosca.policies.Root
    properties: {aspect: {type: string}, deltas: {type: map}}
  tosca.policies.nfv.VduInitialDelta:
    derived_from: tosca.policies.Root
    properties: {initial_delta: {type: map}}
  tosca.policies.nfv.InstantiationLevels:
    derived_from: tosca.policies.Root
    properties: {levels: {type: map}, default_level: {type: string, required: false}}
  tosca.policies.nfv.VduInstantiationLevels:
    derived_from: tosca.policies.Root
    properties: {levels: {type: map}}
  tosca.policies.nfv.VirtualLinkInstantiationLevels:
    derived_from: tosca.policies.Root
    properties: {levels: {type: map}}
topology_template:
  inputs: {first: {type: integer, default: 80}}
  groups:
    ports: {type: tosca.groups.Root, members: [a_port, b_port]}
  node_templates:
    a: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: a}}
    b: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: b}}
    a_port: {type: tosca.nodes.nfv.VduCp, requirements: [{virtual_binding: a}]}
    b_port: {type: tosca.nodes.nfv.VduCp, requirements: [{virtual_binding: b}]}
    outside: {type: tosca.nodes.nfv.VnfExtCp}
  policies:
";

/// Two steps of one server `a`.
const ASPECT: &str = "
  - aspects:
      type: tosca.policies.nfv.ScalingAspects
      properties: {aspects: {workers: {name: workers, max_scale_level: 2}}}
  - deltas:
      type: tosca.policies.nfv.VduScalingAspectDeltas
      properties: {aspect: workers, deltas: {one: {number_of_instances: 1}}}
      targets: [a]
";

fn try_lowered(policies: &str) -> Result<Lowered, Vec<Refusal>> {
    let files = HashMap::from([("t.yaml".to_owned(), format!("{TYPES}{policies}"))]);
    let graph = tosca::read(&files, "t.yaml", &Map::new()).map_err(|(_, refusals)| refusals)?.graph;
    lower(&graph, "t.yaml")
}

fn lowered(policies: &str) -> Lowered {
    try_lowered(policies).unwrap()
}

fn part<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

fn property<'v>(template: &'v Value, resource: &str, name: &str) -> Option<&'v Value> {
    part(template, &["resources", resource, "properties", name])
}

/// The notes about policies.
fn notes(lowered: &Lowered) -> Vec<&str> {
    lowered.notes.iter().map(|note| note.message.as_str()).filter(|text| !text.contains("has no resource")).collect()
}

fn rule(properties: &str) -> Result<Value, Vec<Refusal>> {
    let policy = format!(
        "  - ssh: {{type: tosca.policies.nfv.SecurityGroupRule, targets: [a_port], properties: {{{properties}}}}}\n"
    );
    let lowered = try_lowered(&policy)?;
    assert_eq!(notes(&lowered), Vec::<&str>::new());
    Ok(property(&lowered.template, "ssh", "rules").and_then(|rules| rules.at(0)).unwrap().clone())
}

#[test]
fn a_security_group_rule_is_a_group_on_the_ports_that_it_names() {
    let lowered = lowered(
        "
  - ssh:
      type: tosca.policies.nfv.SecurityGroupRule
      properties: {description: Logins, protocol: tcp, port_range_min: 22, port_range_max: 22}
      targets: [a_port, outside]
  - ping: {type: tosca.policies.nfv.SecurityGroupRule, properties: {protocol: icmp}, targets: [ports]}
  - nothing: {type: tosca.policies.nfv.SecurityGroupRule, targets: [outside]}
  - nobody: {type: tosca.policies.nfv.SecurityGroupRule}
",
    );
    let template = &lowered.template;
    assert_eq!(part(template, &["resources", "ssh", "type"]), Some(&"OS::Neutron::SecurityGroup".into()));
    assert_eq!(property(template, "ssh", "description"), Some(&"Logins".into()));
    let ssh = value!([{
        "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22
    }]);
    assert_eq!(property(template, "ssh", "rules"), Some(&ssh));
    let both = value!([{"get_resource": "ssh"}, {"get_resource": "ping"}]);
    assert_eq!(property(template, "a_port", "security_groups"), Some(&both));
    assert_eq!(property(template, "b_port", "security_groups"), Some(&value!([{"get_resource": "ping"}])));
    assert!(part(template, &["resources", "nothing"]).is_none());
    let expected = [
        "The policy ssh has no effect on outside, which is no port of the template.",
        "The policy nothing has no effect on outside, which is no port of the template.",
        "The policy nobody has no effect: it has no targets.",
    ];
    assert_eq!(notes(&lowered), expected);
}

#[test]
fn security_rules_have_the_words_and_ports_of_neutron() {
    // All ports are no range.
    let all = value!({"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"});
    assert_eq!(rule("").unwrap(), all);
    let to = value!({
        "direction": "egress", "ethertype": "IPv6", "protocol": "udp", "port_range_min": 1, "port_range_max": 53
    });
    assert_eq!(rule("direction: egress, ether_type: ipv6, protocol: udp, port_range_max: 53").unwrap(), to);
    let from = rule("port_range_min: {get_input: first}").unwrap();
    assert_eq!(from.get("port_range_min"), Some(&value!({"get_param": "first"})));
    assert_eq!(from.get("port_range_max"), Some(&value!(65535)));
    for (word, number) in [("gre", "gre"), ("ipv6_icmp", "58"), ("ospfigp", "89"), ("iptm", "84"), ("rohc", "142")] {
        assert_eq!(rule(&format!("protocol: {word}")).unwrap().str_at("protocol"), Some(number));
    }
    assert_eq!(rule("protocol: udp_lite, port_range_min: 9").unwrap().get("port_range_min"), Some(&value!(9)));
    let refusals = rule("port_range_min: 90, port_range_max: 80").unwrap_err();
    assert_eq!(refusals[0].message, "The port range of ssh is empty: 90 to 80.");
    let odd = lowered(
        "  - ping:
      type: tosca.policies.nfv.SecurityGroupRule
      properties: {protocol: icmp, port_range_min: 8}
      targets: [a_port]
",
    );
    assert_eq!(notes(&odd), ["The port range of ping has no effect: its protocol has no ports."]);
}

#[test]
fn a_group_without_egress_does_not_open_ports_that_have_rules_for_egress() {
    let policies = |ports: &str| {
        format!(
            "
  - in: {{type: tosca.policies.nfv.SecurityGroupRule, targets: [{ports}]}}
  - out: {{type: tosca.policies.nfv.SecurityGroupRule, properties: {{direction: egress}}, targets: [a_port]}}
"
        )
    };
    let closed = lowered(&policies("a_port"));
    let nothing = value!({"direction": "egress", "remote_ip_prefix": "127.0.0.1/32"});
    assert_eq!(property(&closed.template, "in", "rules").unwrap().at(1), Some(&nothing));
    assert_eq!(notes(&closed), Vec::<&str>::new());
    let mixed = lowered(&policies("a_port, b_port"));
    assert_eq!(property(&mixed.template, "in", "rules").unwrap().at(1), None);
    let note = "The policy in has ports with and without rules for egress: all of them may send everything.";
    assert_eq!(notes(&mixed), [note]);
}

#[test]
fn ports_of_servers_that_scale_are_in_the_same_security_group() {
    // The order of the policies does not matter.
    let lowered = lowered(&format!(
        "{ASPECT}
  - ssh: {{type: tosca.policies.nfv.SecurityGroupRule, targets: [a_port]}}
  - apart: {{type: tosca.policies.nfv.AntiAffinityRule, properties: {{scope: nfvi_node}}, targets: [a]}}
"
    ));
    let nested = &lowered.nested["workers.yaml"];
    assert_eq!(property(nested, "a_port", "security_groups"), Some(&value!([{"get_param": "ssh_id"}])));
    assert_eq!(part(nested, &["parameters", "ssh_id"]), Some(&value!({"type": "string"})));
    let hints = property(nested, "a", "scheduler_hints");
    assert_eq!(hints, Some(&value!({"group": {"get_param": "apart_group_id"}})));
    let member = property(&lowered.template, "workers", "resource").unwrap();
    assert_eq!(part(member, &["properties", "ssh_id"]), Some(&value!({"get_resource": "ssh"})));
    assert!(part(&lowered.template, &["resources", "ssh"]).is_some());
    assert_eq!(notes(&lowered), Vec::<&str>::new());
}

/// Levels `small` and `large` with these numbers of the server `a`, and a part of the properties.
fn levels(small: i64, large: i64, default: &str) -> String {
    format!(
        "
  - levels:
      type: tosca.policies.nfv.InstantiationLevels
      properties: {{levels: {{small: {{description: s}}, large: {{description: l}}}}{default}}}
  - numbers:
      type: tosca.policies.nfv.VduInstantiationLevels
      properties: {{levels: {{small: {{number_of_instances: {small}}}, large: {{number_of_instances: {large}}}}}}}
      targets: [a]
"
    )
}

fn delta(number: i64) -> String {
    format!(
        "
  - delta:
      type: tosca.policies.nfv.VduInitialDelta
      properties: {{initial_delta: {{number_of_instances: {number}}}}}
      targets: [a]
"
    )
}

/// The least, first and most members of a group.
fn sizes(lowered: &Lowered, group: &str) -> [Value; 3] {
    let template = &lowered.template;
    let first = property(template, group, "desired_capacity").unwrap().clone();
    let parameter = first.str_at("get_param").map(|name| part(template, &["parameters", name, "default"]).unwrap());
    let limit = |name: &str| property(template, group, name).unwrap().clone();
    [limit("min_size"), parameter.unwrap_or(&first).clone(), limit("max_size")]
}

#[test]
fn a_scaling_aspect_begins_with_the_number_of_the_default_level() {
    let large = lowered(&format!("{ASPECT}{}{}", delta(1), levels(1, 3, ", default_level: large")));
    // The steps count from the initial delta: one, and two steps of one.
    assert_eq!(sizes(&large, "workers"), [1.into(), 3.into(), 3.into()]);
    assert_eq!(notes(&large), Vec::<&str>::new());
    let without = lowered(&format!("{ASPECT}{}", delta(2)));
    assert_eq!(sizes(&without, "workers"), [2.into(), 2.into(), 4.into()]);
}

#[test]
fn a_default_level_is_given_or_the_only_one() {
    let only = lowered(
        "
  - levels: {type: tosca.policies.nfv.InstantiationLevels, properties: {levels: {one: {description: o}}}}
  - numbers:
      type: tosca.policies.nfv.VduInstantiationLevels
      properties: {levels: {one: {number_of_instances: 2}}}
      targets: [a]
",
    );
    assert_eq!(sizes(&only, "a_group"), [2.into(), 2.into(), 2.into()]);
    let unclear = lowered(&format!("{ASPECT}{}{}", delta(1), levels(2, 3, "")));
    assert_eq!(sizes(&unclear, "workers")[1], 1.into());
    assert_eq!(notes(&unclear), ["The policy levels has no effect: it has no default_level."]);
    let unknown = lowered(&format!("{ASPECT}{}{}", delta(1), levels(2, 3, ", default_level: huge")));
    assert_eq!(sizes(&unknown, "workers")[1], 1.into());
    assert_eq!(notes(&unknown), ["The policy numbers has no number for the default level huge."]);
}

#[test]
fn several_servers_that_do_not_scale_are_a_group_of_a_fixed_number() {
    let text = format!(
        "{}  - ssh: {{type: tosca.policies.nfv.SecurityGroupRule, targets: [a_port]}}\n",
        levels(1, 3, ", default_level: large")
    );
    for (text, number) in [(text, 3), (delta(2), 2), (delta(0), 0)] {
        let lowered = lowered(&text);
        assert_eq!(sizes(&lowered, "a_group"), [number.into(), number.into(), number.into()]);
        // An update sets the number of the document, and nothing signals the group.
        assert_eq!(property(&lowered.template, "a_group", "desired_capacity"), Some(&number.into()));
        assert!(part(&lowered.template, &["resources", "numbers_scale_out"]).is_none());
        let kinds = part(&lowered.template, &["resources"]).and_then(Value::as_map).unwrap().values();
        assert!(!kinds.into_iter().any(|of| of.str_at("type") == Some("OS::Heat::ScalingPolicy")));
        let nested = &lowered.nested["a_group.yaml"];
        assert!(property(nested, "a", "networks").is_some());
        if number == 3 {
            assert_eq!(property(nested, "a_port", "security_groups"), Some(&value!([{"get_param": "ssh_id"}])));
        }
        assert!(part(&lowered.template, &["resources", "b"]).is_some());
        assert_eq!(notes(&lowered), Vec::<&str>::new());
    }
    // One server stays as it is.
    assert!(part(&lowered(&delta(1)).template, &["resources", "a"]).is_some());
}

#[test]
fn levels_without_an_effect_are_told() {
    let links = lowered(
        "
  - links: {type: tosca.policies.nfv.VirtualLinkInstantiationLevels, properties: {levels: {one: {}}}}
  - numbers:
      type: tosca.policies.nfv.VduInstantiationLevels
      properties: {levels: {one: {number_of_instances: 2}}}
      targets: [a]
",
    );
    let expected = [
        "The policy links has no effect: bitrates are those of the networks themselves.",
        "The policy numbers has no effect: no policy InstantiationLevels has a level.",
    ];
    assert_eq!(notes(&links), expected);
    let alone = lowered(
        "  - levels: {type: tosca.policies.nfv.InstantiationLevels, properties: {levels: {one: {description: o}}}}\n",
    );
    let expected = ["The policy levels has no effect: no policy VduInstantiationLevels has a number of servers."];
    assert_eq!(notes(&alone), expected);
    let different = lowered(&format!(
        "{ASPECT}
  - more: {{type: tosca.policies.nfv.VduScalingAspectDeltas, targets: [b],
      properties: {{aspect: workers, deltas: {{one: {{number_of_instances: 1}}}}}}}}
  - delta_b:
      type: tosca.policies.nfv.VduInitialDelta
      properties: {{initial_delta: {{number_of_instances: 2}}}}
      targets: [b]
{}",
        delta(1)
    ));
    let note = "The servers of the aspect workers begin with different numbers: all of them begin with 1.";
    assert_eq!(notes(&different), [note]);
}
