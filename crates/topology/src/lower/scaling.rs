//! Groups that grow and shrink: their resources move into a nested template.

use std::collections::{BTreeMap, BTreeSet};

use kiln_value::{Map, Path, Value, value};

use super::state::{State, template};
use crate::question::Wanted;

/// Each group takes time for all resources.
const MOST_GROUPS: usize = 50;

/// A group to make.
pub(super) struct Scaling {
    /// The policy.
    pub(super) at: Path,
    /// The name of the group.
    pub(super) group: String,
    /// What makes it grow and shrink; `None` if the number of members is fixed.
    pub(super) signals: Option<Signals>,
    /// The servers.
    pub(super) targets: Vec<String>,
    /// Number of members.
    pub(super) least: Value,
    pub(super) most: Value,
    pub(super) initial: Value,
}

/// The scaling policies of a group.
pub(super) struct Signals {
    /// What their names begin with.
    pub(super) prefix: String,
    /// Members more or less at each signal.
    pub(super) step: i64,
    /// Seconds.
    pub(super) cooldown: Option<Value>,
}

/// What a nested template takes from outside.
#[derive(Default)]
struct Outside {
    /// Parameters of the nested template: definition and value.
    parameters: BTreeMap<String, (Value, Value)>,
    /// Resources that must be complete before.
    depends_on: BTreeSet<String>,
    /// The subnets of networks: a port in the nested template needs those of its network.
    subnets: BTreeMap<String, Vec<String>>,
}

/// The subnets by the network.
fn subnets(resources: &Map) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, resource) in resources.iter().filter(|(_, r)| r.str_at("type") == Some("OS::Neutron::Subnet")) {
        let network =
            resource.get("properties").and_then(|properties| properties.get("network")?.str_at("get_resource"));
        if let Some(network) = network {
            found.entry(network.to_owned()).or_default().push(name.clone());
        }
    }
    found
}

impl State<'_> {
    /// Moves the servers with their ports, volumes and software into a group.
    pub(super) fn extract(&mut self, scaling: &Scaling) {
        if self.scaled.len() >= MOST_GROUPS {
            return self.refuse(&scaling.at, format!("More than {MOST_GROUPS} groups of servers."));
        }
        let wrong: Vec<String> = scaling.targets.iter().filter(|name| !self.is_server_name(name)).cloned().collect();
        if !wrong.is_empty() || scaling.targets.is_empty() {
            let message = format!("Only servers can scale, but not {}.", wrong.join(", "));
            return self.refuse(&scaling.at, message);
        }
        let moved = self.members(&scaling.targets);
        if moved.is_empty() {
            return self.refuse(&scaling.at, "A server can be a member of one group only.");
        }
        let mut inside = Map::new();
        let all = std::mem::take(&mut self.resources);
        for (name, resource) in all {
            let to = if moved.contains(&name) { &mut inside } else { &mut self.resources };
            to.insert(name, resource);
        }
        let mut outside = Outside { subnets: subnets(&self.resources), ..Outside::default() };
        for resource in inside.values_mut() {
            self.cut(resource, &moved, &mut outside);
        }
        let file = format!("{}.yaml", scaling.group);
        let mut outputs: BTreeMap<String, Value> = BTreeMap::new();
        let mut rest = std::mem::take(&mut self.resources);
        for resource in rest.values_mut() {
            redirect(resource, &moved, &scaling.group, &mut outputs);
        }
        self.resources = rest;
        self.scaled.push((scaling.group.clone(), moved.clone(), file.clone()));
        for name in &moved {
            if let Some(source) = self.lowered.sources.remove(&format!("resources.{name}")) {
                self.lowered.sources.insert(format!("{file}:resources.{name}"), source);
            }
            if let Some(script) = self.lowered.at_boot.remove(&(None, name.clone())) {
                self.lowered.at_boot.insert((Some(file.clone()), name.clone()), script);
            }
        }
        let parameters = outside.parameters.iter().map(|(name, (definition, _))| (name.clone(), definition.clone()));
        let nested = template("A member of a group.", parameters.collect(), inside);
        self.lowered.nested.insert(file.clone(), nested);
        self.add_outputs(&file, outputs);
        let values: Map = outside.parameters.into_iter().map(|(name, (_, value))| (name, value)).collect();
        let mut member = Map::new();
        member.insert("type".to_owned(), file.into());
        if !values.is_empty() {
            member.insert("properties".to_owned(), values.into());
        }
        let mut properties = Map::new();
        properties.insert("min_size".to_owned(), scaling.least.clone());
        properties.insert("max_size".to_owned(), scaling.most.clone());
        properties.insert("desired_capacity".to_owned(), self.desired(scaling));
        if let Some(cooldown) = scaling.signals.as_ref().and_then(|signals| signals.cooldown.as_ref()) {
            properties.insert("cooldown".to_owned(), cooldown.clone());
        }
        properties.insert("resource".to_owned(), member.into());
        self.add(&scaling.group, "OS::Heat::AutoScalingGroup", properties, &scaling.at);
        let depends_on: Vec<String> = outside.depends_on.into_iter().collect();
        self.depend(&scaling.group, &depends_on);
        let Some(signals) = &scaling.signals else { return };
        for (name, step) in [("scale_out", signals.step), ("scale_in", -signals.step)] {
            let mut properties = Map::new();
            properties.insert("auto_scaling_group_id".to_owned(), value!({"get_resource": (&scaling.group)}));
            properties.insert("adjustment_type".to_owned(), "change_in_capacity".into());
            properties.insert("scaling_adjustment".to_owned(), step.into());
            if let Some(cooldown) = &signals.cooldown {
                properties.insert("cooldown".to_owned(), cooldown.clone());
            }
            self.add(&format!("{}_{name}", signals.prefix), "OS::Heat::ScalingPolicy", properties, &scaling.at);
        }
    }

    /// The number of members. An update would set the number of the document again: so a number that the document contains
    /// is the default of a parameter, which Kiln's service answers with the number that there is.
    fn desired(&mut self, scaling: &Scaling) -> Value {
        let name = format!("{}_size", scaling.group);
        let is_fixed = scaling.signals.is_none();
        if is_fixed || scaling.initial.as_i64().is_none() || self.parameters.contains_key(&name) {
            return scaling.initial.clone();
        }
        let (group, least, most) = (vec![scaling.group.clone()], scaling.least.as_i64(), scaling.most.as_i64());
        let asked = self.ask(&name, &scaling.at, None, Wanted::Members { group, least, most });
        if let Some(parameter) = self.parameters.get_mut(&name).and_then(Value::as_map_mut) {
            parameter.insert("type".to_owned(), "number".into());
            parameter.insert("default".to_owned(), scaling.initial.clone());
        }
        asked
    }

    /// Outputs of a nested template that the outside reads.
    pub(super) fn add_outputs(&mut self, file: &str, outputs: BTreeMap<String, Value>) {
        let Some(nested) =
            self.lowered.nested.get_mut(file).and_then(Value::as_map_mut).filter(|_| !outputs.is_empty())
        else {
            return;
        };
        let section = nested.entry("outputs".to_owned()).or_insert_with(|| Value::Map(Map::new()));
        if let Some(section) = section.as_map_mut() {
            section.extend(outputs.into_iter().map(|(name, value)| (name, value!({"value": value}))));
        }
    }

    /// The resources that belong to servers: all but flavors, which members share.
    fn members(&self, servers: &[String]) -> BTreeSet<String> {
        let belongs = |resource: &Value| -> bool {
            let properties = resource.get("properties");
            let names = |key: &str| {
                let of = properties.and_then(|properties| properties.get(key)?.str_at("get_resource"));
                of.is_some_and(|name| servers.iter().any(|server| server == name))
            };
            let address = properties.and_then(|properties| properties.get("address")?.get("get_attr")?.at(0)?.as_str());
            let is_member = address.is_some_and(|name| servers.iter().any(|server| server == name));
            names("server") || names("instance_uuid") || is_member
        };
        let mut found: BTreeSet<String> =
            servers.iter().filter(|name| self.resources.contains_key(*name)).cloned().collect();
        for (name, resource) in &self.resources {
            if belongs(resource) {
                found.insert(name.clone());
                // The configuration, or the volume.
                for key in ["config", "volume_id"] {
                    let of =
                        resource.get("properties").and_then(|properties| properties.get(key)?.str_at("get_resource"));
                    found.extend(of.map(str::to_owned));
                }
            }
        }
        for server in servers {
            let networks =
                self.resources.get(server).and_then(|server| server.get("properties")?.get("networks")?.as_list());
            let ports =
                networks.into_iter().flatten().filter_map(|network| network.get("port")?.str_at("get_resource"));
            found.extend(ports.map(str::to_owned));
            let devices = self
                .resources
                .get(server)
                .and_then(|server| server.get("properties")?.get("block_device_mapping_v2")?.as_list());
            let volumes =
                devices.into_iter().flatten().filter_map(|device| device.get("volume_id")?.str_at("get_resource"));
            found.extend(volumes.map(str::to_owned));
        }
        found.retain(|name| self.resources.contains_key(name));
        found
    }

    /// Replaces what a moved resource takes from outside by parameters.
    fn cut(&self, value: &mut Value, moved: &BTreeSet<String>, outside: &mut Outside) {
        match value {
            Value::List(items) => items.iter_mut().for_each(|item| self.cut(item, moved, outside)),
            Value::Map(map) => {
                if let Some(Value::List(names)) = map.get_mut("depends_on") {
                    names.retain(|name| {
                        let inside = name.as_str().is_some_and(|name| moved.contains(name));
                        if !inside {
                            outside.depends_on.extend(name.as_str().map(str::to_owned));
                        }
                        inside
                    });
                    if names.is_empty() {
                        map.shift_remove("depends_on");
                    }
                }
                let call = map.first().filter(|_| map.len() == 1).map(|(key, value)| (key.clone(), value.clone()));
                match call {
                    Some((key, Value::Str(name))) if key == "get_resource" && !moved.contains(&name) => {
                        outside.depends_on.extend(outside.subnets.get(&name).into_iter().flatten().cloned());
                        let parameter = format!("{}_id", name.to_lowercase());
                        let definition = value!({"type": "string"});
                        outside.parameters.insert(parameter.clone(), (definition, Value::Map(map.clone())));
                        *value = value!({"get_param": parameter});
                    }
                    Some((key, argument)) if key == "get_attr" => {
                        let path = argument.as_list().unwrap_or_default();
                        let name = path.first().and_then(Value::as_str).unwrap_or_default();
                        if moved.contains(name) {
                            return;
                        }
                        let words: Vec<String> = path.iter().map(kiln_value::text::str).collect();
                        let parameter = words.join("_").to_lowercase();
                        let definition = value!({"type": "json"});
                        outside.parameters.insert(parameter.clone(), (definition, Value::Map(map.clone())));
                        *value = value!({"get_param": parameter});
                    }
                    Some((key, argument)) if key == "get_param" => {
                        let name = argument.as_str().or_else(|| argument.at(0)?.as_str()).unwrap_or_default();
                        if name.starts_with("OS::") {
                            return;
                        }
                        let definition =
                            self.parameters.get(name).cloned().unwrap_or_else(|| value!({"type": "string"}));
                        outside.parameters.insert(name.to_owned(), (definition, value!({"get_param": name})));
                    }
                    _ => map.values_mut().for_each(|item| self.cut(item, moved, outside)),
                }
            }
            _ => {}
        }
    }
}

/// Replaces what the rest takes from moved resources by outputs of the group.
pub(super) fn redirect(
    value: &mut Value,
    moved: &BTreeSet<String>,
    group: &str,
    outputs: &mut BTreeMap<String, Value>,
) {
    match value {
        Value::List(items) => items.iter_mut().for_each(|item| redirect(item, moved, group, outputs)),
        Value::Map(map) => {
            if let Some(Value::List(names)) = map.get_mut("depends_on") {
                for name in names.iter_mut() {
                    if name.as_str().is_some_and(|name| moved.contains(name)) {
                        *name = group.into();
                    }
                }
            }
            let call = map.first().filter(|_| map.len() == 1).map(|(key, value)| (key.clone(), value.clone()));
            let path = match &call {
                Some((key, Value::Str(name))) if key == "get_resource" => vec![name.clone()],
                Some((key, Value::List(path))) if key == "get_attr" => path.iter().map(kiln_value::text::str).collect(),
                _ => Vec::new(),
            };
            if path.first().is_some_and(|name| moved.contains(name)) {
                let output = path.join("_");
                outputs.insert(output.clone(), Value::Map(map.clone()));
                *value = value!({"get_attr": [group, "outputs_list", output]});
            } else {
                map.values_mut().for_each(|item| redirect(item, moved, group, outputs));
            }
        }
        _ => {}
    }
}
