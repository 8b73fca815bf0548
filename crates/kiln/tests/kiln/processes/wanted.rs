//! A stack of servers: its template, and the comparison with the cloud.

use std::collections::{BTreeMap, BTreeSet};

use kiln_client::{Bundle, Client, Resource, StackRequest};
use kiln_testcloud::Snapshot;
use kiln_value::{Map, Value, value};

/// The types of objects that are counted, with their resource types.
pub(crate) const KINDS: [(&str, &str); 5] = [
    ("networks", "OS::Neutron::Net"),
    ("ports", "OS::Neutron::Port"),
    ("servers", "OS::Nova::Server"),
    ("subnets", "OS::Neutron::Subnet"),
    ("volumes", "OS::Cinder::Volume"),
];

/// IDs of objects by type.
pub(crate) type Ids = BTreeMap<&'static str, BTreeSet<String>>;

/// A stack of pairs of a port and a server on one of two networks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Number of pairs in the stack itself.
    pub(crate) pairs: usize,
    /// Whether there is a pair in a nested stack.
    pub(crate) nested: bool,
    /// Number of pairs in a group.
    pub(crate) members: usize,
    /// Whether the first server has a volume.
    pub(crate) volume: bool,
    /// Metadata of the servers: updated in place.
    pub(crate) label: u32,
    /// Whether the servers are larger: updated in place.
    pub(crate) large: bool,
    /// The network of all pairs: a change replaces the ports.
    pub(crate) side: usize,
    /// User data of the servers: a change replaces them.
    pub(crate) script: u32,
}

/// A pair as a nested template.
const PAIR: &str = "
heat_template_version: 2018-08-31
parameters:
  network: {type: string}
  subnet: {type: string}
  flavor: {type: string}
  label: {type: string}
  script: {type: string}
resources:
  port:
    type: OS::Neutron::Port
    properties: {network: {get_param: network}, fixed_ips: [{subnet: {get_param: subnet}}]}
  server:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: {get_param: flavor}
      networks: [{port: {get_resource: port}}]
      metadata: {label: {get_param: label}}
      user_data_format: RAW
      user_data: {get_param: script}
outputs:
  server: {value: {get_resource: server}}
";

impl Wanted {
    /// One pair.
    pub(crate) fn small() -> Self {
        Self { pairs: 1, nested: false, members: 0, volume: false, label: 0, large: false, side: 0, script: 0 }
    }

    /// The stack with all ports and servers replaced.
    pub(crate) fn replaced(&self) -> Self {
        Self { side: 1 - self.side, script: self.script + 1, ..self.clone() }
    }

    /// The request for the stack.
    pub(crate) fn request(&self) -> StackRequest {
        let mut files = Map::new();
        if self.nested || self.members > 0 {
            files.insert("pair.yaml".to_owned(), PAIR.into());
        }
        let bundle = Bundle { template: Some(self.template()), files, ..Bundle::default() };
        StackRequest { bundle, disable_rollback: Some(true), timeout_mins: Some(30), ..StackRequest::default() }
    }

    fn template(&self) -> Value {
        let mut resources = Map::new();
        let mut add = |name: String, kind: &str, properties: Value| {
            resources.insert(name, value!({"type": kind, "properties": (properties)}));
        };
        let get = |name: String| value!({"get_resource": (name)});
        for side in 0..2 {
            add(format!("network{side}"), "OS::Neutron::Net", value!({}));
            let (network, cidr) = (get(format!("network{side}")), format!("192.168.{side}.0/24"));
            add(format!("subnet{side}"), "OS::Neutron::Subnet", value!({"network": (network), "cidr": (cidr)}));
        }
        let (network, subnet) = (get(format!("network{}", self.side)), get(format!("subnet{}", self.side)));
        let flavor = if self.large { "m1.small" } else { "m1.tiny" };
        let (label, script) = (self.label.to_string(), format!("#!/bin/sh\necho {}\n", self.script));
        for n in 0..self.pairs {
            let fixed_ips = value!([{"subnet": (subnet.clone())}]);
            let port = value!({"network": (network.clone()), "fixed_ips": (fixed_ips)});
            add(format!("port{n}"), "OS::Neutron::Port", port);
            let networks = value!([{"port": (get(format!("port{n}")))}]);
            let server = value!({
                "image": "cirros",
                "flavor": (flavor),
                "networks": (networks),
                "metadata": {"label": (label.as_str())},
                "user_data_format": "RAW",
                "user_data": (script.as_str()),
            });
            add(format!("server{n}"), "OS::Nova::Server", server);
        }
        let pair = value!({
            "network": (network),
            "subnet": (subnet),
            "flavor": (flavor),
            "label": (label.as_str()),
            "script": (script.as_str()),
        });
        if self.nested {
            add("nested".to_owned(), "pair.yaml", pair.clone());
        }
        if self.members > 0 {
            let count = i64::try_from(self.members).expect("few");
            let member = value!({"type": "pair.yaml", "properties": (pair)});
            add("group".to_owned(), "OS::Heat::ResourceGroup", value!({"count": (count), "resource_def": (member)}));
        }
        if self.volume {
            add("volume".to_owned(), "OS::Cinder::Volume", value!({"size": 1}));
            let (server, volume) = (get("server0".to_owned()), get("volume".to_owned()));
            let attachment = value!({"instance_uuid": (server), "volume_id": (volume)});
            add("attachment".to_owned(), "OS::Cinder::VolumeAttachment", attachment);
        }
        value!({"heat_template_version": "2018-08-31", "resources": (resources)})
    }

    /// Number of objects of each type.
    fn counts(&self) -> BTreeMap<&'static str, usize> {
        let pairs = self.pairs + usize::from(self.nested) + self.members;
        let volumes = usize::from(self.volume);
        BTreeMap::from([("networks", 2), ("ports", pairs), ("servers", pairs), ("subnets", 2), ("volumes", volumes)])
    }

    /// The IDs of the stack's objects; differences are added to `wrong`.
    pub(crate) async fn check(&self, client: &Client, stack: &str, now: &Snapshot, wrong: &mut Vec<String>) -> Ids {
        let resources = client.resources(stack, 5, false, &vec![]).await.expect("resources");
        let mut say = |text: String| wrong.push(format!("{stack}: {text}"));
        for resource in resources.iter().filter(|resource| !resource.status().ends_with("_COMPLETE")) {
            say(format!("{} is {}: {}", resource.name(), resource.status(), resource.reason()));
        }
        let ids = ids_of(&resources);
        let counts: BTreeMap<&str, usize> = ids.iter().map(|(kind, ids)| (*kind, ids.len())).collect();
        if counts != self.counts() {
            say(format!("has {counts:?}, should have {:?}", self.counts()));
        }
        let network = resources.iter().find(|resource| resource.name() == format!("network{}", self.side));
        let network = network.map(Resource::physical_id).unwrap_or_default();
        for (kind, id) in ids.iter().flat_map(|(kind, ids)| ids.iter().map(move |id| (*kind, id))) {
            let rows = now.objects.get(kind).map(Vec::as_slice).unwrap_or_default();
            let Some(row) = rows.iter().find(|row| row["id"] == id.as_str()) else {
                say(format!("{kind} {id} is not in the cloud"));
                continue;
            };
            let label = self.label.to_string();
            let is_right = match kind {
                "servers" => row["metadata"]["label"] == label.as_str() && row["status"] == "ACTIVE",
                "ports" => row["network_id"] == network && row["device_id"] != "",
                "volumes" => row["status"] == "in-use",
                _ => true,
            };
            if !is_right {
                say(format!("{kind} {id} should be of {self:?}, is {}", serde_json::Value::from(row.clone())));
            }
        }
        ids
    }
}

/// The IDs of the objects of resources, by type.
fn ids_of(resources: &[Resource]) -> Ids {
    let of = |wanted: &str| {
        let resources = resources.iter().filter(|resource| resource.kind() == wanted);
        resources.map(|resource| resource.physical_id().to_owned()).collect()
    };
    KINDS.iter().map(|(kind, resource_type)| (*kind, of(resource_type))).collect()
}

/// The IDs of all objects in the cloud.
pub(crate) fn ids_in(snapshot: &Snapshot) -> Ids {
    let of = |kind: &str| {
        let rows = snapshot.objects.get(kind).map(Vec::as_slice).unwrap_or_default();
        rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect()
    };
    KINDS.iter().map(|(kind, _)| (*kind, of(kind))).collect()
}
