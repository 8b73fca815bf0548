//! What nodes become by the rules of their types.

use kiln_value::{Map, Path, Value, text, value};

use super::rules::Rule;
use super::state::State;
use crate::Refusal;
use crate::graph::{Exists, Node};
use crate::question::Wanted;
use crate::refusal::kind_of;
use crate::tosca::{Scalar, arguments, call};

/// The kind of the refusal when types make too much.
const TOO_LARGE: &str = "too-large";

impl<'g> State<'g> {
    /// Adds the resources of a node.
    pub(super) fn apply(&mut self, node: &'g Node, rule: &Rule) {
        if Self::existing(node, rule).is_some() {
            return;
        }
        self.spend(rule, rule.size, &node.at);
        for (suffix, resource) in rule.resources() {
            if !Self::is_made(node, resource) {
                continue;
            }
            let Some(kind) = resource.str_at("type") else { continue };
            let mut properties = Map::new();
            for (name, value) in resource.get("properties").and_then(Value::as_map).into_iter().flatten() {
                if let Some(value) = self.evaluate(node, rule, value) {
                    properties.insert(name.clone(), value);
                }
            }
            let name = format!("{}{suffix}", node.name);
            self.add(&name, kind, properties, &node.at);
            for key in ["metadata", "deletion_policy", "update_policy"] {
                let value = resource.get(key).and_then(|value| self.evaluate(node, rule, value));
                if let Some(value) = value
                    && let Some(resource) = self.resources.get_mut(&name).and_then(Value::as_map_mut)
                {
                    resource.insert(key.to_owned(), value);
                }
            }
            let before = resource.get("depends_on").and_then(Value::as_list).into_iter().flatten();
            let before = before
                .filter_map(Value::as_str)
                .filter(|suffix| rule.resource(suffix).is_some_and(|resource| Self::is_made(node, resource)));
            let before: Vec<String> = before.map(|suffix| format!("{}{suffix}", node.name)).collect();
            self.depend(&name, &before);
        }
    }

    /// The names of the resources that a node becomes.
    pub(super) fn made(node: &Node, rule: &Rule) -> Vec<String> {
        if Self::existing(node, rule).is_some() {
            return Vec::new();
        }
        let made = rule.resources().filter(|(_, resource)| Self::is_made(node, resource));
        made.map(|(suffix, _)| format!("{}{suffix}", node.name)).collect()
    }

    /// Takes from the budget for what type files make, whose size an author determines.
    pub(super) fn spend(&mut self, rule: &Rule, size: usize, at: &Path) {
        if rule.is_of_file {
            self.take(size, at);
        }
    }

    /// Takes from the budget for what an author multiplies, by types or by references; whether there was enough.
    pub(super) fn take(&mut self, size: usize, at: &Path) -> bool {
        let is_enough = self.rules.spend(size);
        if !is_enough && !self.refusals.iter().any(|refusal| refusal.kind == TOO_LARGE) {
            self.refusals.push(Refusal::new(TOO_LARGE, at, "What this document becomes is too large."));
        }
        is_enough
    }

    fn is_made(node: &Node, resource: &Value) -> bool {
        resource.get("when").is_none_or(|when| read(node, arguments(when)).is_some())
    }

    /// The ID of the object of a node, if it exists already.
    fn existing<'n>(node: &'n Node, rule: &Rule) -> Option<&'n Value> {
        node.properties.get(rule.existing()?).filter(|value| value.is_truthy())
    }

    /// The resource of a node, or the ID of the object that exists.
    pub(super) fn reference(&mut self, node: &'g Node, at: &Path) -> Value {
        if let Some(exists) = &node.exists {
            return self.ask_existing(node, exists, "", &[]);
        }
        if let Some(rule) = self.rules.find(node)
            && let Some(existing) = Self::existing(node, &rule)
        {
            return self.value(node, None, existing, at);
        }
        let has_resource = self.rules.find(node).is_some_and(|rule| rule.resource("").is_some());
        if !has_resource && !self.resources.contains_key(&node.name) {
            let message = format!("{} ({}) has no resource to refer to.", node.name, node.type_name);
            self.refuse(at, message);
        }
        value!({"get_resource": (&node.name)})
    }

    /// An attribute that the rule of a node gives.
    pub(super) fn attribute_of(&mut self, node: &'g Node, name: &str, rest: &[Value], at: &Path) -> Option<Value> {
        let rule = self.rules.find(node)?;
        if let Some(exists) = &node.exists {
            return self.attribute_of_existing(node, exists, rule.attribute(name)?, rest);
        }
        // Whether the address is public depends on a floating IP of a port.
        if name == "public_address"
            && let Some(address) = self.floating_ip(node)
        {
            return Some(value!({"get_attr": [address, "floating_ip_address"]}));
        }
        let expression = rule.attribute(name)?.clone();
        let Some(Value::List(path)) = expression.get("$attribute") else {
            return (rest.is_empty()).then(|| self.evaluate(node, &rule, &expression))?;
        };
        if Self::existing(node, &rule).is_some() {
            self.refuse(at, format!("{} exists already: its attribute {name} is not known.", node.name));
            return None;
        }
        let mut all = vec![Value::from(&node.name)];
        all.extend(path.iter().chain(rest).cloned());
        Some(value!({"get_attr": all}))
    }

    /// The same of a node that exists already.
    fn attribute_of_existing(
        &mut self,
        node: &'g Node,
        exists: &'g Exists,
        expression: &Value,
        rest: &[Value],
    ) -> Option<Value> {
        let (word, argument) = expression.as_map().filter(|map| map.len() == 1)?.first()?;
        let path = arguments(argument);
        let suffix = || path.first().and_then(Value::as_str);
        match word.as_str() {
            "$attribute" => Some(self.ask_existing(node, exists, "", &[path, rest].concat())),
            "$value" => Some(self.ask_existing(node, exists, suffix()?, &["value".into()])),
            "$resource" => Some(self.ask_existing(node, exists, suffix()?, &[])),
            "$resource_attribute" => Some(self.ask_existing(node, exists, suffix()?, &[&path[1..], rest].concat())),
            _ => None,
        }
    }

    /// The floating IP of a port of a server.
    fn floating_ip(&self, node: &Node) -> Option<String> {
        let ports = self.sources_of.get(node.name.as_str())?.iter().map(|(port, _)| port);
        let addresses = ports.filter_map(|port| self.sources_of.get(port.name.as_str())).flatten();
        let address = addresses.map(|(address, _)| address).find(|node| node.is_a("tosca.nodes.network.FloatingIP"))?;
        Some(address.name.clone())
    }

    /// The value of an expression; `None` if it has none.
    pub(super) fn evaluate(&mut self, node: &'g Node, rule: &Rule, expression: &Value) -> Option<Value> {
        let special = expression.as_map().filter(|map| map.len() == 1).and_then(|map| map.first());
        if let Some((key, argument)) = special.filter(|(key, _)| key.starts_with('$')) {
            let value = self.evaluate_special(node, rule, key, argument);
            return value.filter(|value| !value.is_null());
        }
        match expression {
            Value::Map(map) => {
                let entries =
                    map.iter().filter_map(|(key, value)| Some((key.clone(), self.evaluate(node, rule, value)?)));
                let entries: Map = entries.collect();
                // A text has no value if what is put into it has none.
                let lacks_params = |call: &Value| call.get("params").is_none();
                if map.contains_key("str_replace") && entries.get("str_replace").is_none_or(lacks_params) {
                    return None;
                }
                (!entries.is_empty()).then(|| entries.into())
            }
            Value::List(items) => {
                let items: Vec<Value> = items.iter().filter_map(|item| self.evaluate(node, rule, item)).collect();
                (!items.is_empty()).then(|| items.into())
            }
            plain => Some(plain.clone()),
        }
    }

    fn evaluate_special(&mut self, node: &'g Node, rule: &Rule, key: &str, argument: &Value) -> Option<Value> {
        let path = arguments(argument);
        match key {
            "$property" => {
                let value = read(node, path)?;
                self.spend(rule, weight(value), &node.at);
                Some(self.value(node, None, value, &node.at.key("properties")))
            }
            "$gib" => self.size(node, path, f64::from(1 << 30)),
            "$mib" => self.size(node, path, f64::from(1 << 20)),
            "$bytes" => self.size(node, path, 1.0),
            "$kbps" => {
                let rate = kiln_value::number::to_f64(read(node, path)?)?;
                Some(whole(rate / 1024.0))
            }
            "$mapped" => {
                let value = self.known(read(node, arguments(argument.get("of")?))?);
                let word = value.as_str().and_then(|word| argument.get("as")?.get(word)).cloned();
                Some(word.unwrap_or_else(|| self.value(node, None, &value, &node.at.key("properties"))))
            }
            "$user_data" => self.user_data(node, argument.as_str()?),
            "$addresses" => self.addresses(node, argument.as_str()?),
            "$target" => {
                let requirement = argument.as_str()?;
                let target = node.targets.iter().find(|target| target.requirement == requirement)?;
                let at = &target.at;
                let other = self.nodes.get(target.node.as_str()).copied()?;
                Some(self.reference(other, at))
            }
            "$resource" => {
                let suffix = argument.as_str()?;
                let resource = rule.resource(suffix)?;
                Self::is_made(node, resource).then(|| value!({"get_resource": (format!("{}{suffix}", node.name))}))
            }
            "$attribute" => {
                let mut all = vec![Value::from(&node.name)];
                all.extend(path.iter().cloned());
                Some(value!({"get_attr": all}))
            }
            "$value" => Some(value!({"get_attr": [(format!("{}{}", node.name, argument.as_str()?)), "value"]})),
            "$ports" => {
                let bound = self.ports(node, argument.as_str()?);
                // Nova chooses a network only where there is one.
                let parameter = format!("{}_network", node.name);
                Some(bound.unwrap_or_else(|| {
                    let network = self.ask(&parameter, &node.at, Some("neutron.network"), Wanted::Network);
                    value!([{"network": network}])
                }))
            }
            "$network" => {
                let linked = self.evaluate_special(node, rule, "$target", argument);
                let ask = |state: &mut Self| {
                    let parameter = format!("{}_network", node.name);
                    state.ask(&parameter, &node.at, Some("neutron.network"), Wanted::Network)
                };
                Some(linked.unwrap_or_else(|| ask(self)))
            }
            "$cidr" => {
                let given = read(node, path).cloned();
                let given = given.map(|value| self.value(node, None, &value, &node.at.key("properties")));
                let parameter = format!("{}_cidr", node.name);
                Some(given.unwrap_or_else(|| self.ask(&parameter, &node.at, Some("net_cidr"), Wanted::Addresses)))
            }
            "$flavor" => {
                // A flavor of its own, if the node describes one.
                let own = self.evaluate_special(node, rule, "$resource", argument);
                Some(own.unwrap_or_else(|| self.flavor(node)))
            }
            "$image" => self.image(node),
            "$format" => self.has_software(node).then(|| "SOFTWARE_CONFIG".into()),
            "$boot" => self.boot(node, argument.as_str()?),
            _ => self.evaluate_of_file(node, rule, key, path),
        }
    }

    /// The words that only type files use.
    fn evaluate_of_file(&mut self, node: &'g Node, rule: &Rule, key: &str, path: &[Value]) -> Option<Value> {
        let at = node.at.key("properties");
        match key {
            "$content" | "$base64" => {
                let file = read(node, path)?;
                let Some(name) = file.as_str() else {
                    let message = format!("A file must be named by a text, but this is {}.", kind_of(file));
                    self.refuse(&at, message);
                    return None;
                };
                Some(if key == "$content" { self.file(name, &at) } else { self.file_in_base64(name, &at) })
            }
            "$host" => {
                let Some(server) = self.servers(&node.name).first().copied() else {
                    self.refuse(&node.at, format!("No server hosts {}.", node.name));
                    return None;
                };
                Some(self.reference(server, &node.at))
            }
            "$artifact" => {
                let kind = path.first()?.as_str()?;
                let artifacts = node.artifacts.iter().flatten().chain(&node.type_artifacts);
                let found = artifacts.map(|(_, artifact)| artifact).find(|of| of.str_at("type") == Some(kind))?;
                found.get("file").cloned()
            }
            "$node" => Some((&node.name).into()),
            "$target_property" => {
                let (requirement, rest) = path.split_first()?;
                let target =
                    node.targets.iter().find(|target| Some(target.requirement.as_str()) == requirement.as_str())?;
                let other = self.nodes.get(target.node.as_str()).copied()?;
                let value = read(other, rest)?;
                self.spend(rule, weight(value), &target.at);
                Some(self.value(other, None, value, &other.at))
            }
            "$target_attribute" => {
                let (requirement, rest) = path.split_first()?;
                let requirement = requirement.as_str()?;
                let target = node.targets.iter().find(|target| target.requirement == requirement)?;
                let other = self.nodes.get(target.node.as_str()).copied()?;
                let (name, rest) = rest.split_first()?;
                let name = name.as_str()?;
                let value = self.attribute_of(other, name, rest, &target.at);
                if value.is_none() {
                    let message = format!("{} ({}) has no attribute {name}.", other.name, other.type_name);
                    self.refuse(&target.at, message);
                }
                value
            }
            "$resource_attribute" => {
                let (suffix, rest) = path.split_first()?;
                let suffix = suffix.as_str()?;
                if !Self::is_made(node, rule.resource(suffix)?) {
                    return None;
                }
                let mut all = vec![Value::from(format!("{}{suffix}", node.name))];
                all.extend(rest.iter().cloned());
                Some(value!({"get_attr": all}))
            }
            _ => None,
        }
    }

    /// A size in a unit, rounded up.
    fn size(&mut self, node: &'g Node, path: &[Value], unit: f64) -> Option<Value> {
        let value = self.known(read(node, path)?);
        if call(&value).is_some() {
            // Parameters of sizes have no unit: those of HOT are in GiB.
            return Some(self.value(node, None, &value, &node.at.key("properties")));
        }
        let bytes = Scalar::Size.amount(&value).or_else(|| kiln_value::number::to_f64(&value))?;
        Some(whole(bytes / unit))
    }

    /// The value of an input, if it is known; other values as they are.
    pub(super) fn known(&self, value: &Value) -> Value {
        let Some(("get_input", argument)) = call(value) else { return value.clone() };
        let name = arguments(argument).first().and_then(Value::as_str).unwrap_or_default();
        self.inputs.get(name).and_then(|input| input.value()).unwrap_or(value).clone()
    }

    /// The ports that are bound to a server, by their order.
    fn ports(&mut self, node: &'g Node, requirement: &str) -> Option<Value> {
        let sources = self.sources_of.get(node.name.as_str())?.clone();
        let mut ports: Vec<(i64, &Node)> = sources
            .into_iter()
            .filter(|(port, i)| port.targets[*i].requirement == requirement)
            .map(|(port, _)| (port.properties.get("order").and_then(Value::as_i64).unwrap_or(0), port))
            .collect();
        ports.sort_by_key(|(order, _)| *order);
        let ports: Vec<Value> =
            ports.into_iter().map(|(_, port)| value!({"port": {"get_resource": (&port.name)}})).collect();
        (!ports.is_empty()).then(|| ports.into())
    }

    /// The text that a server begins with: `boot_data` of SOL001.
    fn user_data(&mut self, node: &'g Node, property: &str) -> Option<Value> {
        let data = node.properties.get(property)?;
        let at = node.at.key("properties").key(property);
        let Some(map) = data.as_map().filter(|_| call(data).is_none()) else {
            return Some(self.value(node, None, data, &at));
        };
        for key in map.keys().filter(|key| *key != "content_or_file_data") {
            self.note(&at.key(key), format!("{key} in {property} of {} has no effect.", node.name));
        }
        let file = map.get("content_or_file_data")?.as_map()?;
        for key in file.keys().filter(|key| !matches!(key.as_str(), "content" | "source_path")) {
            self.note(&at.key(key), format!("{key} in {property} of {} has no effect.", node.name));
        }
        match (file.get("content"), file.get("source_path").and_then(Value::as_str)) {
            (Some(content), _) => Some(self.value(node, None, content, &at)),
            (None, Some(path)) => Some(self.file(path, &at)),
            (None, None) => None,
        }
    }

    fn flavor(&mut self, node: &'g Node) -> Value {
        // Types of the NFV profile name one.
        if let Some(named) = node.properties.get("flavor").filter(|value| value.is_truthy()) {
            return self.value(node, None, named, &node.at.key("properties"));
        }
        let host = node.capability("host").map(|capability| capability.properties.clone()).unwrap_or_default();
        let amount = |state: &Self, key: &str, unit: f64| {
            let value = state.known(host.get(key)?);
            match whole(Scalar::Size.amount(&value)? / unit) {
                Value::Int(amount) => Some(amount),
                _ => None,
            }
        };
        let cpus = host.get("num_cpus").map(|value| self.known(value));
        let wanted = Wanted::Flavor {
            cpus: cpus.and_then(|cpus| cpus.as_i64().or_else(|| cpus.as_str()?.parse().ok())),
            memory: amount(self, "mem_size", f64::from(1 << 20)),
            disk: amount(self, "disk_size", f64::from(1 << 30)),
        };
        let at = node.at.key("capabilities").key("host");
        self.ask(&format!("{}_flavor", node.name), &at, Some("nova.flavor"), wanted)
    }

    fn image(&mut self, node: &'g Node) -> Option<Value> {
        if let Some(named) = node.properties.get("image").filter(|value| value.is_truthy()) {
            return Some(self.value(node, None, named, &node.at.key("properties")));
        }
        let is_volume = node.is_a("tosca.nodes.nfv.Vdu.VirtualBlockStorage");
        let software = node.properties.get("sw_image_data");
        if (is_volume && software.is_none()) || self.boot(node, "virtual_storage").is_some() {
            return None;
        }
        let os = node.capability("os").map(|capability| capability.properties.clone()).unwrap_or_default();
        if let Some(named) = os.get("image").filter(|value| value.is_truthy()) {
            return Some(self.value(node, None, named, &node.at.key("capabilities")));
        }
        let mut wanted = Map::new();
        let names = [
            ("architecture", "architecture"),
            ("type", "os_type"),
            ("distribution", "os_distro"),
            ("version", "os_version"),
        ];
        for (key, name) in names {
            if let Some(value) = os.get(key) {
                wanted.insert(name.to_owned(), self.known(value));
            }
        }
        if let Some(name) = software.and_then(|data| data.get("name")) {
            wanted.insert("name".to_owned(), name.clone());
        }
        Some(self.ask(&format!("{}_image", node.name), &node.at, Some("glance.image"), Wanted::Image(wanted)))
    }

    fn boot(&mut self, node: &'g Node, requirement: &str) -> Option<Value> {
        let volume = self.boot_volume(node, requirement)?;
        let volume_id = value!({"get_resource": (&volume.name)});
        Some(value!([{"volume_id": volume_id, "boot_index": 0}]))
    }

    /// The volume that a server starts from, if it has no image of its own.
    pub(super) fn boot_volume(&self, node: &'g Node, requirement: &str) -> Option<&'g Node> {
        if node.properties.contains_key("sw_image_data") {
            return None;
        }
        let storage = node.targets.iter().filter(|target| target.requirement == requirement);
        storage.filter_map(|target| self.nodes.get(target.node.as_str()).copied()).find(|volume| {
            volume.is_a("tosca.nodes.nfv.Vdu.VirtualBlockStorage") && volume.properties.contains_key("sw_image_data")
        })
    }
}

/// A value of a node: a property, a part of it, or a property of a capability.
fn read<'n>(node: &'n Node, path: &[Value]) -> Option<&'n Value> {
    let (name, rest) = path.split_first()?;
    let name = name.as_str()?;
    let mut rest = rest;
    let mut value = if let Some(value) = node.properties.get(name) {
        value
    } else {
        let (property, more) = rest.split_first()?;
        rest = more;
        node.capability(name)?.properties.get(property.as_str()?)?
    };
    for step in rest {
        value = match (value, step) {
            (Value::List(items), Value::Int(index)) => items.get(usize::try_from(*index).ok()?)?,
            (Value::Map(map), step) => map.get(&text::str(step))?,
            _ => return None,
        };
    }
    (!value.is_null()).then_some(value)
}

/// About the number of bytes of a value.
fn weight(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(items) => items.iter().map(weight).sum::<usize>() + 1,
        Value::Map(map) => map.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>() + 1,
        _ => 8,
    }
}

/// The next integer.
#[expect(clippy::cast_possible_truncation, reason = "floats are cut to the range of integers")]
fn whole(amount: f64) -> Value {
    Value::Int(amount.ceil() as i64)
}
