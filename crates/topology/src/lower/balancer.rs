//! Load balancers: a listener, a pool, its members, and a name.

use kiln_value::{Map, Value, value};

use super::state::State;
use crate::graph::Node;
use crate::question::Wanted;

fn entries(value: Value) -> Map {
    if let Value::Map(map) = value { map } else { Map::new() }
}

impl<'g> State<'g> {
    /// A load balancer with a pool of the nodes that it requires.
    ///
    /// The port is that of the capability `client`; properties are `algorithm`, and from blueprints `protocol`, `sticky`
    /// and `hostname`.
    pub(super) fn lower_load_balancer(&mut self, node: &'g Node) {
        let text = |key: &str| node.properties.get(key).and_then(Value::as_str);
        let client = node.capability("client").map(|capability| &capability.properties);
        let protocol = match text("protocol").unwrap_or_default().to_ascii_lowercase().as_str() {
            "http" => "HTTP",
            "https" => "HTTPS",
            _ => "TCP",
        };
        let usual = if protocol == "HTTPS" { 443 } else { 80 };
        let port = client.and_then(|properties| properties.get("port")).cloned();
        let port = port.map_or(Value::Int(usual), |port| self.value(node, None, &port, &node.at));
        let name = |suffix: &str| format!("{}_{suffix}", node.name);
        let balancer = if node.exists.is_some() {
            self.reference(node, &node.at)
        } else {
            let subnet = self.ask(&name("subnet"), &node.at, Some("neutron.subnet"), Wanted::Subnet);
            self.add(&node.name, "OS::Octavia::LoadBalancer", entries(value!({"vip_subnet": subnet})), &node.at);
            value!({"get_resource": (&node.name)})
        };
        let listener = value!({"loadbalancer": balancer, "protocol": protocol, "protocol_port": (port.clone())});
        self.add(&name("listener"), "OS::Octavia::Listener", entries(listener), &node.at);
        let algorithm = match text("algorithm") {
            Some("least_connections") => "LEAST_CONNECTIONS",
            Some("source_ip") => "SOURCE_IP",
            _ => "ROUND_ROBIN",
        };
        let mut pool = entries(value!({
            "listener": {"get_resource": (name("listener"))}, "protocol": protocol, "lb_algorithm": algorithm
        }));
        if node.properties.get("sticky").is_some_and(Value::is_truthy) {
            pool.insert("session_persistence".to_owned(), value!({"type": "SOURCE_IP"}));
        }
        self.add(&name("pool"), "OS::Octavia::Pool", pool, &node.at);
        let targets = node.targets.iter().filter(|target| target.requirement != "dependency");
        for (i, target) in targets.enumerate() {
            let Some(server) = self.servers(&target.node).first().copied() else {
                self.refuse(&target.at, format!("No server hosts {}, which {} balances.", target.node, node.name));
                continue;
            };
            let owner = self.nodes.get(target.node.as_str()).copied();
            let mut endpoints = owner.into_iter().flat_map(|owner| &owner.capabilities);
            let own = endpoints.find_map(|capability| capability.properties.get("port"));
            let own = target.properties.get("port").or(own).cloned();
            let own = own.map_or_else(|| port.clone(), |port| self.value(server, None, &port, &target.at));
            let member = value!({
                "pool": {"get_resource": (name("pool"))},
                "address": {"get_attr": [(&server.name), "first_address"]},
                "protocol_port": own
            });
            self.add(&name(&format!("member_{}", i + 1)), "OS::Octavia::PoolMember", entries(member), &target.at);
        }
        if let Some(host) = text("hostname") {
            let zone = self.ask(&name("zone"), &node.at, Some("designate.zone"), Wanted::Zone(host.to_owned()));
            let record = value!({
                "zone": zone,
                "name": (format!("{}.", host.trim_end_matches('.'))),
                "type": "A",
                "records": [{"get_attr": [(&node.name), "vip_address"]}]
            });
            self.add(&name("record"), "OS::Designate::RecordSet", entries(record), &node.at);
        }
    }
}
