//! Rules for the traffic of ports (`SecurityGroupRule` of SOL001).

use std::collections::BTreeSet;

use kiln_value::{Map, Value, value};

use super::connection::VIRTUAL_ADDRESS;
use super::state::State;
use crate::graph::Policy;

pub(super) const SECURITY_GROUP_RULE: &str = "tosca.policies.nfv.SecurityGroupRule";

const PORT: &str = "OS::Neutron::Port";

/// The protocols of IANA as SOL001 spells them, by number.
const PROTOCOLS: &str = "\
    hopopt icmp igmp ggp ipv4 st tcp cbt egp igp bbn_rcc_mon nvp_ii pup argus emcon xnet chaos udp mux dcn_meas \
    hmp prm xns_idp trunk_1 trunk_2 leaf_1 leaf_2 rdp irtp iso_tp4 netblt mfe_nsp merit_inp dccp 3pc idpr xtp ddp \
    idpr_cmtp tp++ il ipv6 sdrp ipv6_route ipv6_frag idrp rsvp gre dsr bna esp ah i_nlsp swipe narp mobile tlsp \
    skip ipv6_icmp ipv6_no_nxt ipv6_opts - cftp - sat_expak kryptolan rvd ippc - sat_mon visa ipcv cpnx cphb wsn \
    pvp br_sat_mon sun_nd wb_mon wb_expak iso_ip vmtp secure_vmtp vines ttp nsfnet_igp dgp tcf eigrp ospfigp \
    sprite_rpc larp mtp ax.25 ipip micp scc_sp etherip encap - gmtp ifmp pnni pim aris scps qnx a/n ip_comp snp \
    compaq_peer ipx_in_ip vrrp pgm - l2tp ddx iatp stp srp uti smp sm ptp isis fire crtp crudp sscopmce iplt sps \
    pipe sctp fc rsvp_e2e_ignore mobility udp_lite mpls_in_ip manet hip shim6 wesp rohc";

/// Protocols that Neutron knows by the same name.
const NAMED: [&str; 13] =
    ["ah", "dccp", "egp", "esp", "gre", "icmp", "igmp", "pgm", "rsvp", "sctp", "tcp", "udp", "vrrp"];

/// Protocols with ports, as Neutron spells them; 136 is UDP-Lite.
const WITH_PORTS: [&str; 5] = ["tcp", "udp", "sctp", "dccp", "136"];

impl State<'_> {
    /// A security group for each policy, on the ports that it names.
    pub(super) fn secure_ports(&mut self) {
        let policies = self.graph.policies.iter().filter(|policy| policy.is_a(SECURITY_GROUP_RULE));
        let policies: Vec<(&Policy, Vec<String>)> =
            policies.map(|policy| (policy, self.secured_ports(policy))).collect();
        let limited = policies.iter().filter(|(policy, _)| self.is_egress(policy));
        let limited: BTreeSet<&String> = limited.flat_map(|(_, ports)| ports).collect();
        for (policy, ports) in policies.iter().filter(|(_, ports)| !ports.is_empty()) {
            let mut rules: Vec<Value> = self.security_rule(policy).map(Value::Map).into_iter().collect();
            // Neutron lets ports send everything if a group has no rule for egress, also if another group has one.
            if !self.is_egress(policy) && ports.iter().any(|port| limited.contains(port)) {
                if ports.iter().all(|port| limited.contains(port)) {
                    rules.push(value!({"direction": "egress", "remote_ip_prefix": "127.0.0.1/32"}));
                } else {
                    let message = format!(
                        "The policy {} has ports with and without rules for egress: all of them may send everything.",
                        policy.name
                    );
                    self.note(&policy.at, message);
                }
            }
            let mut properties = Map::new();
            if let Some(text) = policy.values.get("description") {
                let text = self.output_value(text, &policy.at.key("properties").key("description"));
                properties.extend(text.map(|text| ("description".to_owned(), text)));
            }
            properties.insert("rules".to_owned(), rules.into());
            self.add(&policy.name, "OS::Neutron::SecurityGroup", properties, &policy.at);
            for port in ports {
                self.append(port, "security_groups", value!({"get_resource": (&policy.name)}));
            }
        }
    }

    /// The ports that a policy names; for an address that ports share, these. Other targets have a note.
    fn secured_ports(&mut self, policy: &Policy) -> Vec<String> {
        let named = self.named_by(policy).into_iter();
        let holders = |name: &String| -> Vec<String> {
            let node = self.nodes.get(name.as_str()).filter(|node| node.is_a(VIRTUAL_ADDRESS));
            node.map_or_else(
                || vec![name.clone()],
                |node| self.holders(node).iter().map(|port| port.name.clone()).collect(),
            )
        };
        let mut ports: Vec<String> = named.flat_map(|name| holders(&name)).collect();
        let mut seen = BTreeSet::new();
        ports.retain(|name| seen.insert(name.clone()));
        let (ports, others): (Vec<String>, Vec<String>) = ports.into_iter().partition(|name| self.is_port(name));
        for other in &others {
            let message =
                format!("The policy {} has no effect on {other}, which is no port of the template.", policy.name);
            self.note(&policy.at.key("targets"), message);
        }
        if ports.is_empty() && others.is_empty() {
            self.note(&policy.at, format!("The policy {} has no effect: it has no targets.", policy.name));
        }
        ports
    }

    /// The rule of a policy in the format of Neutron.
    fn security_rule(&mut self, policy: &Policy) -> Option<Map> {
        let at = policy.at.key("properties");
        let mut rule = Map::new();
        for key in ["direction", "ether_type", "protocol"] {
            let Some(value) = policy.values.get(key) else { continue };
            // Neutron has other words than SOL001, so a parameter of the template cannot have the value.
            let Some(word) = self.known(value).as_str().map(str::to_ascii_lowercase) else {
                let message = format!("The {key} of {} must be a text that is known.", policy.name);
                self.refuse(&at.key(key), message);
                return None;
            };
            let (key, word) = match (key, word.as_str()) {
                ("ether_type", "ipv4") => ("ethertype", "IPv4".to_owned()),
                ("ether_type", "ipv6") => ("ethertype", "IPv6".to_owned()),
                ("ether_type", _) => ("ethertype", word),
                ("protocol", _) => ("protocol", protocol(word)),
                _ => (key, word),
            };
            rule.insert(key.to_owned(), word.into());
        }
        let mut limit = |key: &str| self.output_value(policy.values.get(key)?, &at.key(key));
        let (least, most) = (limit("port_range_min"), limit("port_range_max"));
        // The defaults of SOL001, which for Neutron are no range: it refuses port 0.
        let least = least.unwrap_or_else(|| 0.into());
        let most = most.unwrap_or_else(|| 65_535.into());
        if least == Value::Int(0) && most == Value::Int(65_535) {
            return Some(rule);
        }
        if !rule.get("protocol").and_then(Value::as_str).is_some_and(|protocol| WITH_PORTS.contains(&protocol)) {
            let message = format!("The port range of {} has no effect: its protocol has no ports.", policy.name);
            self.note(&at, message);
            return Some(rule);
        }
        let least = if least == Value::Int(0) { 1.into() } else { least };
        if let (Some(first), Some(last)) = (least.as_i64(), most.as_i64())
            && first > last
        {
            self.refuse(&at, format!("The port range of {} is empty: {first} to {last}.", policy.name));
            return None;
        }
        rule.insert("port_range_min".to_owned(), least);
        rule.insert("port_range_max".to_owned(), most);
        Some(rule)
    }

    fn is_egress(&self, policy: &Policy) -> bool {
        let direction = policy.values.get("direction").map(|direction| self.known(direction));
        direction.is_some_and(|direction| direction.as_str() == Some("egress"))
    }

    /// Whether a resource is a port.
    pub(super) fn is_port(&self, name: &str) -> bool {
        self.resources.get(name).and_then(|of| of.str_at("type")) == Some(PORT)
    }
}

/// A protocol as Neutron spells it: a name, else the number.
fn protocol(word: String) -> String {
    if NAMED.contains(&word.as_str()) {
        return word;
    }
    // SOL001 has two names for 84.
    let word = if word == "iptm" { "ttp".to_owned() } else { word };
    let number = PROTOCOLS.split(' ').position(|known| known == word);
    number.map_or(word, |number| number.to_string())
}
