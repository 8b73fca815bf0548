//! Writes a template for objects that exist.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use indexmap::IndexMap;
use kiln_resource::translation::{Rule, Translation};
use kiln_resource::{Cloud, Context, Facts, PropertySchema, RegisteredType, ResourceType, Support, Wire};
use kiln_stack::Backends;
use kiln_value::{Map, Value, value};

use super::scan::{ATTACHMENT, FoundObject, INTERFACE, KEY_PAIR, MEMBER, ObjectKey, Scan, boots_from_volume, is_root};
use crate::reading_cloud::ReadingCloud;

/// Objects that are read at the same time.
const AT_ONCE: usize = 8;

/// The version of the templates.
const VERSION: &str = "2018-08-31";

/// Properties whose value the service has chosen, or which other resources say, so that no template needs them.
const CHOSEN_BY_SERVICE: &[&str] = &[
    "tenant_id",
    "project_id",
    "mac_address",
    "device_id",
    "device_owner",
    "floating_ip_address",
    "fixed_ip_address",
    "router_id",
    "diskConfig",
    "user",
    "provider",
    "read_only",
];

/// The values that services give if the template says nothing.
fn is_default_of_service(property: &str, value: &Value) -> bool {
    match property {
        "port_security_enabled" | "stateful" | "admin_state_up" | "enable_snat" | "bootable" => *value == value!(true),
        "propagate_uplink_status" | "mtu" => true,
        "type" => value.as_str() == Some("ssh"),
        "availability_zone" => value.as_str() == Some("nova"),
        "weight" => *value == value!(1),
        "connection_limit" => *value == value!(-1),
        "config_drive" | "multiattach" | "ha" | "distributed" | "vlan_transparent" | "tls_enabled" => {
            !value.is_truthy()
        }
        _ => false,
    }
}

/// A template for objects, and what it cannot say.
#[derive(Clone, Debug)]
pub struct Written {
    /// The template.
    pub template: Value,
    /// The resources in the order of the template.
    pub resources: Vec<WrittenResource>,
}

/// A resource that an object becomes.
#[derive(Clone, Debug)]
pub struct WrittenResource {
    /// Its name.
    pub name: String,
    /// The object.
    pub key: ObjectKey,
    /// The name of the object; empty if it has none.
    pub object_name: String,
    /// What the template does not say, because it cannot be read.
    pub left_out: Vec<String>,
}

/// Writes a template for objects of a scan. `names` are the wanted names of resources.
pub async fn write(
    backends: &Backends,
    cloud: &Arc<dyn Cloud>,
    scan: &Scan,
    objects: &[&FoundObject],
    names: &BTreeMap<ObjectKey, String>,
) -> Written {
    let reading = ReadingCloud::new(Arc::clone(cloud), objects.len());
    let reading: &dyn Cloud = &reading;
    let names = resource_names(objects, names);
    let servers = &Servers::of(scan);
    let types = &backends.resource_types.types;
    let entries = objects.iter().filter_map(|one| Some((*one, Arc::clone(types.get(&one.key.resource_type)?))));
    let read: Vec<BoxFuture<'_, (&FoundObject, Arc<RegisteredType>, Given)>> = entries
        .map(|(one, entry)| {
            async move {
                let given = properties(backends, reading, &entry, one, servers).await;
                (one, entry, given)
            }
            .boxed()
        })
        .collect();
    let read: Vec<_> = stream::iter(read).buffered(AT_ONCE).collect().await;
    let taken = names.values().map(String::as_str).collect();
    let mut writer = Writer { names: by_id(&names), taken, parameters: IndexMap::new(), uses: HashMap::new() };
    let (mut resources, mut shown) = (Map::new(), Vec::new());
    for (one, entry, Given { properties, mut left_out }) in read {
        let Some(name) = names.get(&one.key) else { continue };
        let mut written = Map::new();
        for (property, value) in properties {
            let value = writer.referring(&entry.resource_type, name, std::slice::from_ref(&property), value);
            written.insert(property, value);
        }
        for (property, schema) in &entry.resource_type.properties {
            if schema.required && !written.contains_key(property) {
                let parameter = writer.unknown(name, property, schema);
                left_out.push(property.clone());
                written.insert(property.clone(), parameter);
            }
        }
        let mut resource = Map::from_iter([("type".to_owned(), Value::from(one.key.resource_type.as_str()))]);
        if !written.is_empty() {
            resource.insert("properties".to_owned(), written.into());
        }
        resources.insert(name.clone(), resource.into());
        let (name, key, object_name) = (name.clone(), one.key.clone(), one.name.clone());
        shown.push(WrittenResource { name, key, object_name, left_out });
    }
    let mut template = Map::from_iter([("heat_template_version".to_owned(), Value::from(VERSION))]);
    if !writer.parameters.is_empty() {
        let parameters = writer.parameters.into_iter().map(|(name, parameter)| (name, parameter.schema));
        template.insert("parameters".to_owned(), parameters.collect::<Map>().into());
    }
    template.insert("resources".to_owned(), resources.into());
    Written { template: template.into(), resources: shown }
}

/// What can be said of an object.
#[derive(Default)]
struct Given {
    properties: Map,
    left_out: Vec<String>,
}

/// The properties of an object, as a template would give them, with the IDs of other objects.
async fn properties(
    backends: &Backends,
    cloud: &dyn Cloud,
    entry: &RegisteredType,
    one: &FoundObject,
    servers: &Servers<'_>,
) -> Given {
    let resource_type = &entry.resource_type;
    let mut given = Given::default();
    if matches!(one.key.resource_type.as_str(), INTERFACE | ATTACHMENT) {
        given.properties = one.object.as_map().cloned().unwrap_or_default();
        // Nova names the device as it likes.
        given.properties.shift_remove("device");
        return given;
    }
    let known = if one.is_a(MEMBER) { &["pool"][..] } else { &[] };
    let known: Map =
        known.iter().filter_map(|name| Some(((*name).to_owned(), one.object.get(name)?.clone()))).collect();
    let facts = Facts {
        name: one.name.clone(),
        resource_type: resource_type.name.clone(),
        physical_id: Some(one.key.id.clone()),
        properties: known.clone(),
        ..Facts::default()
    };
    let project = cloud.project_id().await.unwrap_or_default();
    let software = backends.software(&project);
    let cx = Context::reading(cloud, &software, &facts);
    let mut live = match entry.driver.live(&cx).await {
        Ok(live) => live,
        Err(failure) => {
            given.left_out.push(format!("all properties ({failure})"));
            Map::new()
        }
    };
    live.extend(known);
    let mut more = Map::new();
    match one.key.resource_type.as_str() {
        "OS::Nova::Server" => {
            more = servers.properties(one);
            given.left_out.extend(["user_data".to_owned(), "scheduler_hints".to_owned()]);
        }
        "OS::Neutron::SecurityGroup" => _ = live.insert("rules".to_owned(), rules(&one.object)),
        "OS::Cinder::Volume" => {
            // What Cinder, Nova and Kiln keep there.
            let own = |key: &str| key.starts_with("kiln") || key == "readonly" || key == "attached_mode";
            if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_map_mut) {
                metadata.retain(|key, _| !own(key));
            }
        }
        _ => {}
    }
    live.extend(more);
    let mut order: Vec<(&String, &PropertySchema)> = resource_type.properties.iter().collect();
    order.sort_by_key(|(name, _)| name.as_str() != "name");
    for (name, schema) in order {
        let Some(value) = live.get(name.as_str()).filter(|_| is_written(schema)) else { continue };
        let Some(value) = tidy(schema, value) else { continue };
        let is_default = schema.default.as_ref() == Some(&value) || is_default_of_service(name, &value);
        let is_chosen = CHOSEN_BY_SERVICE.contains(&name.as_str());
        if schema.required || !is_default && !is_chosen {
            given.properties.insert(name.clone(), value);
        }
    }
    if one.is_a("OS::Neutron::Subnet") {
        without_default_pool(&mut given.properties);
    }
    given
}

/// Whether templates should have a property: not a former name, and not one that has no effect.
fn is_written(schema: &PropertySchema) -> bool {
    schema.implemented && matches!(schema.support.status, Support::Supported)
}

/// A value as a template would give it: only with known members, without what is empty. `None`: nothing is left.
fn tidy(schema: &PropertySchema, value: &Value) -> Option<Value> {
    match (value, schema.members(), schema.items()) {
        (Value::Null, ..) => None,
        (Value::Str(text), ..) if text.is_empty() => None,
        (Value::List(items), _, inner) => {
            let tidied = items.iter().map(|item| match inner {
                Some(inner) => tidy(inner, item),
                None => Some(item.clone()),
            });
            let items: Vec<Value> = tidied.flatten().collect();
            (!items.is_empty()).then_some(Value::List(items))
        }
        (Value::Map(entries), Some(members), _) => {
            let known = members
                .iter()
                .filter(|(_, schema)| is_written(schema) && schema.wire != Wire::Never || schema.required);
            let known = known.filter_map(|(name, schema)| {
                let value = tidy(schema, entries.get(name)?)?;
                let is_default = schema.default.as_ref() == Some(&value) || is_default_of_service(name, &value);
                // The address of a router outside: a subnet that only its owner sees.
                let is_default = is_default || name == "external_fixed_ips";
                (schema.required || !is_default).then(|| (name.clone(), value))
            });
            let known: Map = known.collect();
            (!known.is_empty()).then_some(Value::Map(known))
        }
        (Value::Map(entries), ..) if entries.is_empty() => None,
        _ => Some(value.clone()),
    }
}

/// What servers do not show of themselves.
#[derive(Default)]
struct Servers<'s> {
    /// The ports of each server.
    ports: HashMap<&'s str, Vec<&'s str>>,
    /// The volume that a server has booted from.
    roots: HashMap<&'s str, &'s str>,
}

impl<'s> Servers<'s> {
    fn of(scan: &'s Scan) -> Self {
        let mut servers = Self::default();
        for one in &scan.objects {
            let id = one.key.id.as_str();
            match one.key.resource_type.as_str() {
                "OS::Neutron::Port" => {
                    if let Some(server) = one.object.str_at("device_id").filter(|server| !server.is_empty()) {
                        servers.ports.entry(server).or_default().push(id);
                    }
                }
                "OS::Cinder::Volume" => {
                    let attachments = one.object.get("attachments").and_then(Value::as_list).unwrap_or_default();
                    let roots = attachments.iter().filter(|attachment| is_root(attachment));
                    servers.roots.extend(roots.filter_map(|root| Some((root.str_at("server_id")?, id))));
                }
                _ => {}
            }
        }
        servers
    }

    /// The properties of a server that it does not show.
    fn properties(&self, server: &FoundObject) -> Map {
        let id = server.key.id.as_str();
        let mut more = Map::new();
        if let Some(ports) = self.ports.get(id) {
            let networks: Value = ports.iter().map(|port| value!({ "port": (*port) })).collect();
            more.insert("networks".to_owned(), networks);
        }
        if let Some(volume) = self.roots.get(id).filter(|_| boots_from_volume(&server.object)) {
            let device = value!({ "volume_id": (*volume), "boot_index": 0, "delete_on_termination": false });
            more.insert("block_device_mapping_v2".to_owned(), value!([device]));
        }
        more
    }
}

/// The rules of a security group, as templates give them; empty if they are those of a new group.
fn rules(group: &Value) -> Value {
    let rules = group.get("security_group_rules").and_then(Value::as_list).unwrap_or_default();
    let given = |key: &str, rule: &Value| rule.get(key).filter(|value| value.is_truthy()).cloned();
    let is_open = |rule: &Value| {
        ["protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"]
            .iter()
            .all(|key| given(key, rule).is_none())
    };
    let egress: Vec<&Value> = rules.iter().filter(|rule| rule.str_at("direction") == Some("egress")).collect();
    let is_usual = egress.len() == 2 && egress.iter().all(|rule| is_open(rule));
    let own = group.str_at("id").unwrap_or_default();
    let written = rules.iter().filter(|rule| !is_usual || rule.str_at("direction") != Some("egress")).map(|rule| {
        let mut out = Map::new();
        let keys = ["direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix"];
        out.extend(keys.iter().chain(&["description"]).filter_map(|key| Some(((*key).to_owned(), given(key, rule)?))));
        // Port 0 is a port, and type 0 of ICMP the answer to a ping.
        for key in ["port_range_min", "port_range_max"] {
            if rule.get(key) == Some(&value!(0)) {
                out.insert(key.to_owned(), value!(0));
            }
        }
        if let Some(remote) = rule.str_at("remote_group_id").filter(|id| !id.is_empty()) {
            out.insert("remote_mode".to_owned(), "remote_group_id".into());
            if remote != own {
                out.insert("remote_group_id".to_owned(), remote.into());
            }
        }
        Value::Map(out)
    });
    let written: Vec<Value> = written.collect();
    written.into()
}

/// Takes away the pool that Neutron makes if none is given: all addresses but that of the network, of the gateway and of the
/// broadcast.
fn without_default_pool(properties: &mut Map) {
    let is_default = || {
        let pools = properties.get("allocation_pools")?.as_list()?;
        let [pool] = pools else { return None };
        let (network, length) = properties.get("cidr")?.as_str()?.split_once('/')?;
        let network: std::net::Ipv4Addr = network.parse().ok()?;
        let size = 1_u32.checked_shl(32_u32.checked_sub(length.parse().ok()?)?)?;
        let (first, last) = (u32::from(network).checked_add(1)?, u32::from(network).checked_add(size.checked_sub(2)?)?);
        let gateway = properties.get("gateway_ip").and_then(Value::as_str).and_then(|ip| ip.parse().ok());
        let gateway = gateway.map(|ip: std::net::Ipv4Addr| u32::from(ip));
        let first = if gateway == Some(first) { first.checked_add(1)? } else { first };
        let last = if gateway == Some(last) { last.checked_sub(1)? } else { last };
        let at = |key: &str| pool.str_at(key)?.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
        Some(at("start") == Some(first) && at("end") == Some(last))
    };
    if is_default() == Some(true) {
        properties.shift_remove("allocation_pools");
    }
}

/// The name of each resource: what is wanted, else the name of its object, else its kind.
fn resource_names(objects: &[&FoundObject], wanted: &BTreeMap<ObjectKey, String>) -> BTreeMap<ObjectKey, String> {
    let by_key: HashMap<&ObjectKey, &FoundObject> = objects.iter().map(|one| (&one.key, *one)).collect();
    let (mut taken, mut numbers) = (HashSet::new(), HashMap::new());
    let mut names = BTreeMap::new();
    for one in objects {
        let kind = kind_word(&one.key.resource_type);
        let used = |resource_type: &str| {
            let owner = one.uses.iter().find(|used| used.resource_type == resource_type)?;
            let name = names.get(owner).cloned().or_else(|| by_key.get(owner).map(|one| word(&one.name)));
            name.filter(|name| !name.is_empty())
        };
        let of_owner = match one.key.resource_type.as_str() {
            "OS::Neutron::Port" => used("OS::Nova::Server").map(|server| format!("{server}_port")),
            INTERFACE => used("OS::Neutron::Router").map(|router| format!("{router}_interface")),
            ATTACHMENT => used("OS::Cinder::Volume").map(|volume| format!("{volume}_attachment")),
            MEMBER => used("OS::Octavia::Pool").map(|pool| format!("{pool}_member")),
            _ => None,
        };
        let own = wanted.get(&one.key).map(|name| word(name)).filter(|name| !name.is_empty());
        let own = own.or_else(|| Some(word(without_suffix(&one.name))).filter(|name| !name.is_empty()));
        let base = own.or(of_owner).unwrap_or_else(|| kind.clone());
        let mut candidates = [base.clone(), format!("{base}_{kind}")].into_iter();
        let free = candidates.find(|name| !taken.contains(name));
        let name = free.unwrap_or_else(|| {
            let last: &mut u32 = numbers.entry(base.clone()).or_insert(1);
            loop {
                *last += 1;
                let name = format!("{base}_{last}");
                if !taken.contains(&name) {
                    return name;
                }
            }
        });
        taken.insert(name.clone());
        names.insert(one.key.clone(), name);
    }
    names
}

/// A name without what makes the names of the objects of a stack unique.
fn without_suffix(name: &str) -> &str {
    let is_suffix = |text: &str| text.len() == 12 && text.chars().all(|c| matches!(c, 'a'..='z' | '2'..='7'));
    match name.rsplit_once('-') {
        Some((front, back)) if is_suffix(back) => front,
        _ => name,
    }
}

/// A text as the name of a resource; empty if it has no letter.
fn word(text: &str) -> String {
    let name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { String::new() }
}

/// `OS::Neutron::FloatingIP` → `floating_ip`.
fn kind_word(resource_type: &str) -> String {
    let last = resource_type.rsplit("::").next().unwrap_or_default();
    let mut out = String::new();
    let mut was_lower = false;
    for c in last.chars() {
        if c.is_ascii_uppercase() && was_lower {
            out.push('_');
        }
        was_lower = c.is_ascii_lowercase();
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The names of the resources by the IDs of their objects. An attachment has the ID of its volume.
fn by_id(names: &BTreeMap<ObjectKey, String>) -> [HashMap<&str, &str>; 2] {
    let mut by_id = [HashMap::new(), HashMap::new()];
    for (key, name) in names.iter().filter(|(key, _)| !matches!(key.resource_type.as_str(), ATTACHMENT | INTERFACE)) {
        let [key_pairs, others] = &mut by_id;
        let of_kind = if key.resource_type == KEY_PAIR { key_pairs } else { others };
        of_kind.insert(key.id.as_str(), name.as_str());
    }
    by_id
}

/// A parameter of the template.
struct Parameter {
    schema: Value,
    /// The value for which it stands; `None`: nobody knows it.
    value: Option<Value>,
}

/// Writes references to other resources and to parameters.
struct Writer<'a> {
    /// The names of the resources by the IDs of their objects: those of key pairs, which are names, and the others.
    names: [HashMap<&'a str, &'a str>; 2],
    /// The names of the resources, which parameters cannot have.
    taken: HashSet<&'a str>,
    parameters: IndexMap<String, Parameter>,
    /// Which resources refer to which others.
    uses: HashMap<String, BTreeSet<String>>,
}

impl Writer<'_> {
    /// A value in which the IDs of other objects of the template are references, and those of others parameters.
    fn referring(&mut self, resource_type: &ResourceType, name: &str, at: &[String], value: Value) -> Value {
        match value {
            Value::Map(entries) => {
                let entries = entries.into_iter().map(|(key, value)| {
                    let at = [at, std::slice::from_ref(&key)].concat();
                    let value = self.referring(resource_type, name, &at, value);
                    (key, value)
                });
                Value::Map(entries.collect())
            }
            Value::List(items) => items.into_iter().map(|item| self.referring(resource_type, name, at, item)).collect(),
            Value::Str(text) => self.text(resource_type, name, at, text),
            other => other,
        }
    }

    fn text(&mut self, resource_type: &ResourceType, name: &str, at: &[String], text: String) -> Value {
        let is_key_name = at.last().is_some_and(|key| key == "key_name");
        let finder = finder(&resource_type.translation, at);
        let refers = finder.is_some()
            || is_key_name
            || matches!(at.last().map(String::as_str), Some("instance_uuid" | "volume_id"));
        let [key_pairs, others] = &self.names;
        let target = if is_key_name { key_pairs } else { others }.get(text.as_str()).copied();
        if let Some(target) = target.filter(|target| *target != name && (refers || is_id(&text)))
            && !self.reaches(target, name)
        {
            self.uses.entry(name.to_owned()).or_default().insert(target.to_owned());
            return value!({ "get_resource": target });
        }
        if !refers {
            return text.into();
        }
        let word = at.last().map(String::as_str).unwrap_or_default();
        let what = finder.and_then(|finder| finder.split_once('.')).map_or(word, |(_, kind)| kind);
        let what = what.replace('_', " ");
        let schema =
            value!({ "type": "string", "description": (format!("ID of the {what}")), "default": (text.as_str()) });
        self.parameter(word, Some(text.into()), schema)
    }

    /// A parameter for a property whose value nobody can read.
    fn unknown(&mut self, resource: &str, property: &str, schema: &PropertySchema) -> Value {
        let kind = match schema.kind.property_name().to_lowercase().as_str() {
            "integer" | "number" => "number",
            "boolean" => "boolean",
            "map" => "json",
            "list" => "comma_delimited_list",
            _ => "string",
        };
        let mut parameter = value!({
            "type": kind, "description": (format!("{property} of {resource}, which cannot be read")),
        });
        let is_secret = property.contains("password") || property.contains("secret") || property == "payload";
        if let (true, Some(parameter)) = (is_secret, parameter.as_map_mut()) {
            parameter.insert("hidden".to_owned(), true.into());
        }
        self.parameter(&format!("{resource}_{property}"), None, parameter)
    }

    /// A reference to a parameter with this value, which is added if there is none.
    fn parameter(&mut self, word: &str, value: Option<Value>, schema: Value) -> Value {
        let same = |(_, parameter): &(&String, &Parameter)| {
            value.is_some()
                && parameter.value == value
                && parameter.schema.get("description") == schema.get("description")
        };
        if let Some((name, _)) = self.parameters.iter().find(same) {
            return value!({ "get_param": (name.as_str()) });
        }
        let numbered = (2..).map(|number: u32| format!("{word}_{number}"));
        let mut candidates = std::iter::once(word.to_owned()).chain(numbered);
        let is_free = |name: &String| !self.parameters.contains_key(name) && !self.taken.contains(name.as_str());
        let name = candidates.find(is_free).unwrap_or_default();
        self.parameters.insert(name.clone(), Parameter { schema, value });
        value!({ "get_param": name })
    }

    /// Whether a resource refers to another one, perhaps through others.
    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(name) = next.pop() {
            if name == to {
                return true;
            }
            if seen.insert(name) {
                next.extend(self.uses.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        false
    }
}

/// The finder of the property at a path, without the indexes of lists.
fn finder<'t>(rules: &'t [Translation], at: &[String]) -> Option<&'t str> {
    let rule = rules.iter().find(|rule| rule.path == at && matches!(rule.rule, Rule::Find(_)))?;
    if let Rule::Find(finder) = &rule.rule { Some(finder) } else { None }
}

/// Whether a text is an ID that a service has made, and no word that may mean something else.
fn is_id(text: &str) -> bool {
    text.len() >= 32 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}
