//! Connection points of SOL001: the addresses of their ports, and addresses that several ports share.

use std::collections::HashSet;

use kiln_value::{Map, Value, value};

use super::state::State;
use crate::graph::Node;

/// The type of addresses that several ports share.
pub(super) const VIRTUAL_ADDRESS: &str = "tosca.nodes.nfv.VipCp";

/// Layers below those of Neutron, or beside them.
const OTHER_LAYERS: [&str; 3] = ["mpls", "odu2", "pseudo-wire"];

impl<'g> State<'g> {
    /// The parts of the protocol data that are about IP addresses.
    fn address_data<'n>(node: &'n Node, property: &str) -> Vec<&'n Map> {
        let protocols = node.properties.get(property).and_then(Value::as_list).into_iter().flatten();
        let data = protocols.filter_map(|protocol| protocol.get("address_data")?.as_list()).flatten();
        data.filter_map(|data| data.get("l3_address_data")?.as_map()).collect()
    }

    /// The fixed addresses of a connection point.
    pub(super) fn addresses(&mut self, node: &'g Node, property: &str) -> Option<Value> {
        let at = node.at.key("properties").key(property);
        let mut fixed = Vec::new();
        for data in Self::address_data(node, property) {
            let addresses = data.get("fixed_ip_address").map(crate::tosca::arguments).unwrap_or_default();
            for address in addresses {
                fixed.push(value!({"ip_address": (self.value(node, None, address, &at))}));
            }
        }
        (!fixed.is_empty()).then(|| fixed.into())
    }

    /// What a connection point says that its port cannot have.
    pub(super) fn note_connection(&mut self, node: &'g Node) {
        if !node.is_a("tosca.nodes.nfv.Cp") {
            return;
        }
        let at = node.at.key("properties");
        for key in ["trunk_mode", "virtual_network_interface_requirements", "nic_io_requirements"] {
            if node.properties.get(key).is_some_and(Value::is_truthy) {
                self.note(&at.key(key), format!("The property {key} of {} has no effect.", node.name));
            }
        }
        let layers = node.properties.get("layer_protocols").and_then(Value::as_list).unwrap_or_default();
        if let Some(layer) = layers.iter().filter_map(Value::as_str).find(|layer| OTHER_LAYERS.contains(layer)) {
            let message = format!("The layer {layer} of {} has no effect: ports are those of Ethernet.", node.name);
            self.note(&at.key("layer_protocols"), message);
        }
        if node.properties.get("vip_function").and_then(Value::as_str) == Some("load_balance") {
            let message = format!("The address of {} is shared by its ports, but nothing balances load.", node.name);
            self.note(&at.key("vip_function"), message);
        }
        let mut without_effect = Vec::new();
        for data in Self::address_data(node, "protocol") {
            let fixed = data.get("fixed_ip_address").map_or(1, |fixed| crate::tosca::arguments(fixed).len());
            let number = data.get("number_of_ip_address").and_then(Value::as_i64).unwrap_or(1);
            if usize::try_from(number) != Ok(fixed.max(1)) {
                without_effect.push("number_of_ip_address");
            }
            if data.get("floating_ip_activated").is_some_and(Value::is_truthy) {
                without_effect.push("floating_ip_activated");
            }
        }
        for key in without_effect {
            let message = format!("{key} in the property protocol of {} has no effect.", node.name);
            self.note(&at.key("protocol"), message);
        }
    }

    /// The network for a port inside of `node`, whose link is mapped to a requirement of the node, and the resources that
    /// must be complete before.
    ///
    /// A connection point without a link asks for its network with the parameter `NAME_network`.
    pub(super) fn network_outside(
        &mut self,
        node: &'g Node,
        mapped: Option<&Value>,
        parameter: &str,
    ) -> Option<(Value, Vec<String>)> {
        let port = parameter.strip_suffix("_network")?;
        let mapped: Vec<(&String, &Value)> = match mapped? {
            Value::Map(map) => map.iter().collect(),
            Value::List(items) => items.iter().filter_map(Value::as_map).flatten().collect(),
            _ => return None,
        };
        let (requirement, _) = mapped.into_iter().find(|(_, inner)| {
            let requirement = inner.at(1).and_then(Value::as_str).unwrap_or_default();
            inner.at(0).and_then(Value::as_str) == Some(port) && requirement.ends_with("virtual_link")
        })?;
        let target = node.targets.iter().find(|target| target.requirement == *requirement)?;
        let link = self.nodes.get(target.node.as_str()).copied()?;
        // A port without a subnet in its network has no address.
        let before = self.rules.find(link).map(|rule| Self::made(link, &rule)).unwrap_or_default();
        Some((self.reference(link, &target.at), before))
    }

    /// The ports that share an address may send from it.
    pub(super) fn lower_virtual_addresses(&mut self) {
        for node in self.graph.nodes.iter().filter(|node| node.is_a(VIRTUAL_ADDRESS)) {
            let ports = self.holders(node);
            if ports.is_empty() {
                let message = format!("The virtual address {} has no target that is a port.", node.name);
                self.refuse(&node.at.key("requirements"), message);
            }
            for port in ports {
                let address = value!({"get_attr": [(&node.name), "fixed_ips", 0, "ip_address"]});
                self.append(&port.name, "allowed_address_pairs", value!({"ip_address": address}));
            }
        }
    }

    /// The ports that hold the address of a virtual connection point.
    pub(super) fn holders(&self, node: &Node) -> Vec<&'g Node> {
        let mut seen = HashSet::new();
        let targets = node.targets.iter().filter(|target| target.requirement == "target");
        let targets = targets.filter_map(|target| self.nodes.get(target.node.as_str()).copied());
        targets.filter(|port| self.is_port(&port.name) && seen.insert(&port.name)).collect()
    }
}
