//! Software on servers: operations become software configurations and deployments, in their order.

use std::collections::HashSet;

use kiln_value::{Map, Value, value};

use super::state::State;
use crate::graph::{Node, Operation, Target};
use crate::type_file::BY_TYPE;

/// The operations of a node that run when it is created, in their order.
const LIFECYCLE: [&str; 3] = ["create", "configure", "start"];

/// Those that run when it is deleted.
const ENDING: [&str; 2] = ["stop", "delete"];

/// An input with the content of a file in base64.
pub(crate) const CONTENT: &str = "content of file";

/// The type of artifacts that are images of containers.
pub(crate) const IMAGE: &str = "tosca.artifacts.Deployment.Image.Container.Docker";

/// The hook that runs scripts.
pub(super) const SCRIPT: &str = "script";

/// The types of servers.
const SERVERS: [&str; 3] = ["tosca.nodes.Compute", "tosca.nodes.nfv.Vdu.Compute", "tosca.nodes.nfv.VDU"];

pub(super) fn is_server(node: &Node) -> bool {
    SERVERS.iter().any(|name| node.is_a(name))
}

fn is_host(target: &Target) -> bool {
    target.is_a("tosca.relationships.HostedOn") || target.requirement == "host"
}

fn is_standard(operation: &Operation) -> bool {
    operation.interface.rsplit('.').next() == Some("Standard")
}

/// The Ansible roles of a node, which are plain words.
fn roles(node: &Node) -> Vec<&str> {
    let artifacts = node.artifacts.iter().flatten().chain(&node.type_artifacts).map(|(_, artifact)| artifact);
    let is_role = |artifact: &&Value| {
        let kind = artifact.str_at("type").unwrap_or_default();
        kind.eq_ignore_ascii_case("tosca.artifacts.AnsibleGalaxy.role")
    };
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:,".contains(c));
    artifacts.filter(is_role).filter_map(|artifact| artifact.str_at("file")).filter(is_plain).collect()
}

/// What a type file says of an operation.
fn by_type(operation: &Operation) -> Option<&Value> {
    operation.implementation.as_ref()?.get(BY_TYPE)
}

/// Whether an operation is implemented by an artifact that is an image of a container.
fn is_image(node: &Node, operation: &Operation) -> bool {
    let implementation = operation.implementation.as_ref();
    let primary = implementation.and_then(|implementation| implementation.get("primary")).or(implementation);
    let artifact = primary.and_then(Value::as_str).and_then(|name| node.artifact(name));
    artifact.and_then(|artifact| artifact.str_at("type")) == Some(IMAGE)
}

/// How the type of a node runs containers, if an operation is implemented by an image.
fn container_of<'n>(node: &'n Node, operation: &Operation) -> Option<&'n Value> {
    node.type_operations.iter().filter(|_| is_image(node, operation)).find_map(by_type)
}

/// Whether a map is a call of a function of HOT.
fn is_hot_function(map: &Map) -> bool {
    map.len() == 1
        && map.first().is_some_and(|(key, _)| ["get_param", "get_attr", "str_replace"].contains(&key.as_str()))
}

impl<'g> State<'g> {
    /// The servers that a node runs on; the node itself, if it is one.
    pub(super) fn servers(&self, name: &str) -> Vec<&'g Node> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut next: Vec<&'g Node> = self.nodes.get(name).copied().into_iter().collect();
        while let Some(node) = next.pop() {
            if !seen.insert(&node.name) {
                continue;
            }
            if is_server(node) {
                found.push(node);
                continue;
            }
            let hosts = node.targets.iter().rev().filter(|target| is_host(target));
            next.extend(hosts.filter_map(|target| self.nodes.get(target.node.as_str()).copied()));
        }
        found
    }

    /// Whether software is deployed to a server.
    pub(super) fn has_software(&mut self, server: &Node) -> bool {
        if self.with_software.is_none() {
            let mut found = HashSet::new();
            for node in &self.graph.nodes {
                let runs = |operations: &[Operation]| operations.iter().any(|o| o.implementation.is_some());
                if node.all_operations().any(|operation| operation.implementation.is_some()) || !roles(node).is_empty()
                {
                    found.extend(self.servers(&node.name).into_iter().map(|server| server.name.clone()));
                }
                for target in node.targets.iter().filter(|target| runs(&target.operations)) {
                    for name in [&node.name, &target.node] {
                        found.extend(self.servers(name).into_iter().map(|server| server.name.clone()));
                    }
                }
            }
            self.with_software = Some(found);
        }
        // As heat-translator: the agent may be used later.
        is_server(server) && self.with_software.as_ref().is_some_and(|found| found.contains(&server.name))
    }

    /// The operations of a node that are implemented, of those in `order`.
    fn implemented<'n>(node: &'n Node, order: &[&str]) -> Vec<&'n Operation> {
        // An operation that is implemented by an image runs the container.
        let has_container = node.operations.iter().any(|operation| is_image(node, operation));
        let is_run = |operation: &Operation| !(has_container && by_type(operation).is_some());
        let find = |name: &&str| {
            node.all_operations().find(|operation| {
                operation.name == *name
                    && is_standard(operation)
                    && operation.implementation.is_some()
                    && is_run(operation)
            })
        };
        order.iter().filter_map(find).collect()
    }

    /// The last operation that a node runs when it is created: its name with that of the node.
    pub(super) fn last_own(node: &Node) -> Option<String> {
        let operations = Self::implemented(node, &LIFECYCLE);
        operations.last().map(|operation| format!("{}_{}", node.name, operation.name))
    }

    /// The resources that are complete when a node is: its deployments, else those of its hosts, else its own resource.
    fn complete(&self, name: &str) -> Vec<String> {
        let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![name.to_owned()]);
        while let Some(name) = next.pop() {
            let Some(node) = self.nodes.get(name.as_str()).copied() else { continue };
            if !seen.insert(name) {
                continue;
            }
            let last = Self::last_own(node).into_iter();
            let ending = Self::implemented(node, &ENDING);
            let ending = ending.first().map(|operation| format!("{}_{}", node.name, operation.name));
            let deployments: Vec<String> = last.chain(ending).map(|name| format!("{name}_deploy")).collect();
            if !deployments.is_empty() {
                found.extend(deployments);
            } else if self.resources.contains_key(&node.name) {
                found.push(node.name.clone());
            } else {
                next.extend(node.targets.iter().filter(|target| is_host(target)).map(|target| target.node.clone()));
            }
        }
        found
    }

    /// What must be complete before a node begins: the nodes that it requires.
    fn required(&self, node: &Node) -> Vec<String> {
        let plain = ["tosca.relationships.AttachesTo", "tosca.relationships.network.LinksTo"];
        let targets = node.targets.iter().filter(|target| !plain.iter().any(|name| target.is_a(name)));
        let mut found: Vec<String> = targets.flat_map(|target| self.complete(&target.node)).collect();
        // A deployment names its server itself.
        let own: HashSet<&String> = self.servers(&node.name).into_iter().map(|server| &server.name).collect();
        found.retain(|name| !own.contains(name));
        let mut seen = HashSet::new();
        found.retain(|name| seen.insert(name.clone()));
        found
    }

    pub(super) fn lower_software(&mut self) {
        for node in &self.graph.nodes {
            if self.substituted.contains(&node.name) {
                continue;
            }
            self.lower_operations(node);
            self.order_resources(node);
            self.note_other_operations(node);
            if is_server(node) {
                let needs = node.targets.iter().filter(|target| {
                    target.is_a("tosca.relationships.DependsOn") || target.requirement == "dependency"
                });
                let plain = ["tosca.relationships.AttachesTo", "tosca.relationships.HostedOn"];
                let needs = needs.filter(|target| !plain.iter().any(|name| target.is_a(name)));
                let on: Vec<String> = needs.flat_map(|target| self.complete(&target.node)).collect();
                self.depend(&node.name, &on);
            }
        }
        for node in &self.graph.nodes {
            for target in &node.targets {
                self.lower_relationship(node, target);
            }
        }
    }

    /// The resources that a type file makes of a node are made after what the node requires.
    fn order_resources(&mut self, node: &'g Node) {
        let Some(rule) = self.rules.find(node).filter(|rule| rule.is_of_file) else { return };
        if is_server(node) {
            return;
        }
        let before = self.required(node);
        for name in Self::made(node, &rule) {
            self.depend(&name, &before);
        }
    }

    fn lower_operations(&mut self, node: &'g Node) {
        let mut before = self.required(node);
        if let Some(deploy) = self.install_roles(node) {
            self.depend(&deploy, &before);
            before.push(deploy);
        }
        for operation in Self::implemented(node, &LIFECYCLE) {
            let name = format!("{}_{}", node.name, operation.name);
            let servers = self.servers(&node.name);
            if self.deploy(&name, node, None, operation, &servers, &[]) {
                self.depend(&format!("{name}_deploy"), &before);
                before = vec![format!("{name}_deploy")];
            }
        }
        // Deployments for the deletion run in the opposite order of their dependencies.
        for operation in Self::implemented(node, &ENDING).into_iter().rev() {
            let name = format!("{}_{}", node.name, operation.name);
            let servers = self.servers(&node.name);
            if self.deploy(&name, node, None, operation, &servers, &["DELETE"]) {
                self.depend(&format!("{name}_deploy"), &before);
                before = vec![format!("{name}_deploy")];
            }
        }
    }

    /// The deployment that installs the Ansible roles of a node.
    fn install_roles(&mut self, node: &'g Node) -> Option<String> {
        let roles = roles(node);
        let server = self.servers(&node.name).first().copied().filter(|_| !roles.is_empty())?;
        let lines: Vec<String> = roles.iter().map(|role| format!("ansible-galaxy install {role}")).collect();
        let script = format!("#!/bin/bash\nset -e\n{}\n", lines.join("\n"));
        let (config, deploy) =
            (format!("{}_install_roles_config", node.name), format!("{}_install_roles_deploy", node.name));
        let content = value!({"group": "script", "config": script});
        self.add(&config, "OS::Heat::SoftwareConfig", content.as_map().cloned().unwrap_or_default(), &node.at);
        let reference = self.reference(server, &node.at);
        let properties = value!({"config": {"get_resource": (&config)}, "server": reference});
        self.add(&deploy, "OS::Heat::SoftwareDeployment", properties.as_map().cloned().unwrap_or_default(), &node.at);
        Some(deploy)
    }

    fn note_other_operations(&mut self, node: &'g Node) {
        let others: Vec<&'g Operation> =
            node.all_operations().filter(|operation| operation.implementation.is_some()).collect();
        for operation in others {
            let known = LIFECYCLE.contains(&operation.name.as_str()) || ENDING.contains(&operation.name.as_str());
            if !(known && is_standard(operation)) {
                let message = format!(
                    "The operation {} of {} is not run: only those of the interface Standard are.",
                    operation.name, operation.interface
                );
                self.note(&operation.at, message);
            }
        }
    }

    /// The operations of a relationship: before and after those of its source and target.
    fn lower_relationship(&mut self, source: &'g Node, target: &'g Target) {
        let Some(fulfils) = self.nodes.get(target.node.as_str()).copied() else { return };
        for operation in target.operations.iter().filter(|operation| operation.implementation.is_some()) {
            let of_source = match operation.name.as_str() {
                "pre_configure_source" | "post_configure_source" | "add_target" | "target_changed" => true,
                "pre_configure_target" | "post_configure_target" | "add_source" => false,
                "remove_target" => {
                    self.note(&operation.at, "The operation remove_target is not run: nodes are not removed singly.");
                    continue;
                }
                name => {
                    self.note(
                        &operation.at,
                        format!("The operation {name} of a relationship is unknown, and not run."),
                    );
                    continue;
                }
            };
            let place = if of_source { source } else { fulfils };
            let servers = self.servers(&place.name);
            let name = format!("{}_{}_{}", source.name, target.node, operation.name);
            if !self.deploy(&name, source, Some(target), operation, &servers, &[]) {
                continue;
            }
            let deploy = format!("{name}_deploy");
            // The last of the operations that the node implements.
            let step = |node: &Node, names: &[&str]| -> Vec<String> {
                let operations = Self::implemented(node, names);
                operations.last().map(|o| format!("{}_{}_deploy", node.name, o.name)).into_iter().collect()
            };
            // (what is before, what is behind)
            let (before, behind) = match operation.name.as_str() {
                "pre_configure_source" => {
                    let mut before = step(source, &["create"]);
                    before.extend(self.complete(&target.node));
                    (before, step(source, &["start", "configure"]))
                }
                "post_configure_source" => {
                    let mut before = step(source, &["create", "configure"]);
                    before.extend(self.complete(&target.node));
                    (before, step(source, &["start"]))
                }
                "pre_configure_target" => (step(fulfils, &["create"]), step(fulfils, &["start", "configure"])),
                "post_configure_target" => (step(fulfils, &["create", "configure"]), step(fulfils, &["start"])),
                _ => {
                    let mut before = self.complete(&source.name);
                    before.extend(self.complete(&target.node));
                    (before, Vec::new())
                }
            };
            self.depend(&deploy, &before);
            for behind in behind {
                self.depend(&behind, std::slice::from_ref(&deploy));
            }
        }
    }

    /// Adds the configuration and the deployment of an operation; whether there is one.
    fn deploy(
        &mut self,
        name: &str,
        node: &'g Node,
        relationship: Option<&'g Target>,
        operation: &'g Operation,
        servers: &[&'g Node],
        actions: &[&str],
    ) -> bool {
        if servers.is_empty() {
            self.refuse(
                &operation.at,
                format!("No server hosts {}, whose operation {} is to run.", node.name, operation.name),
            );
            return false;
        }
        let mut inputs = Map::new();
        for (input, value) in &operation.inputs {
            // Definitions of inputs, as in types, have a default or no value.
            let value = match value.as_map().filter(|map| map.contains_key("type")) {
                Some(definition) => definition.get("default").or_else(|| definition.get("value")).cloned(),
                None => Some(value.clone()),
            };
            let Some(value) = value else { continue };
            // Blueprints: the content of a file that need not be a text.
            let value = match value.str_at(CONTENT) {
                Some(file) => self.file_in_base64(file, &operation.at),
                None => self.value(node, relationship, &value, &operation.at.key("inputs").key(input)),
            };
            inputs.insert(input.clone(), value);
        }
        let implementation = operation.implementation.clone().unwrap_or_default();
        let config = if let Some(by_type) = by_type(operation) {
            self.config_of_type(name, node, by_type, &mut inputs)
        } else if let Some(by_type) = container_of(node, operation) {
            // The inputs are variables of the container.
            let names: Vec<&str> = inputs.keys().map(String::as_str).collect();
            let names = names.join(" ");
            let config = self.config_of_type(name, node, by_type, &mut inputs);
            inputs.insert("environment_names".to_owned(), names.into());
            config
        } else {
            self.config(node, operation, &implementation)
        };
        let more = implementation.get("dependencies");
        let more =
            more.map(|more| more.as_list().map_or_else(|| vec![more.clone()], <[Value]>::to_vec)).unwrap_or_default();
        for dependency in more.iter().filter_map(Value::as_str) {
            let file = Self::artifact_file(node, dependency).unwrap_or_else(|| dependency.to_owned());
            let input = dependency.rsplit('/').next().unwrap_or(dependency).replace(['.', '-'], "_");
            let content = self.file(&file, &operation.at);
            inputs.entry(input).or_insert(content);
        }
        self.add(&format!("{name}_config"), "OS::Heat::SoftwareConfig", config, &operation.at);
        let mut properties = Map::new();
        properties.insert("config".to_owned(), value!({"get_resource": (format!("{name}_config"))}));
        let kind = if let [server] = servers {
            let reference = self.reference(server, &operation.at);
            properties.insert("server".to_owned(), reference);
            "OS::Heat::SoftwareDeployment"
        } else {
            let all: Map =
                servers.iter().map(|server| (server.name.clone(), self.reference(server, &operation.at))).collect();
            properties.insert("servers".to_owned(), all.into());
            "OS::Heat::SoftwareDeploymentGroup"
        };
        if !inputs.is_empty() {
            properties.insert("input_values".to_owned(), inputs.into());
        }
        if !actions.is_empty() {
            properties.insert("actions".to_owned(), actions.iter().copied().collect());
        }
        self.add(&format!("{name}_deploy"), kind, properties, &operation.at);
        true
    }

    /// The configuration of an operation that a type file implements; its inputs are added.
    fn config_of_type(&mut self, name: &str, node: &'g Node, by_type: &Value, inputs: &mut Map) -> Map {
        let Some(rule) = self.rules.find(node) else { return Map::new() };
        self.spend(&rule, rule.size, &node.at);
        let mut config = Map::new();
        config.insert("group".to_owned(), by_type.str_at("hook").unwrap_or(SCRIPT).into());
        for key in ["config", "options"] {
            if let Some(value) = by_type.get(key).and_then(|value| self.evaluate(node, &rule, value)) {
                config.insert(key.to_owned(), value);
            }
        }
        let given = by_type.get("inputs").and_then(|given| self.evaluate(node, &rule, given)).unwrap_or_default();
        match given {
            Value::Map(given) if !is_hot_function(&given) => inputs.extend(given),
            Value::Null => {}
            _ => self.refuse(&node.at, format!("The inputs of {name} must be a map that the document contains.")),
        }
        for output in by_type.get("outputs").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_str) {
            self.expect_output(name, output);
        }
        if let Some(script) = by_type.str_at("cloud_init") {
            self.lowered.at_boot.insert((None, format!("{name}_config")), script.to_owned());
        }
        config
    }

    /// The configuration of an operation that a file or a text implements.
    fn config(&mut self, node: &'g Node, operation: &Operation, implementation: &Value) -> Map {
        let (content, group) = self.script(node, operation, implementation);
        [("group".to_owned(), group.into()), ("config".to_owned(), content)].into_iter().collect()
    }

    /// The content of the script, and the hook that runs it.
    fn script(&mut self, node: &'g Node, operation: &Operation, implementation: &Value) -> (Value, &'static str) {
        if let Some(text) = implementation.str_at("inline") {
            return (text.into(), SCRIPT);
        }
        let primary = implementation.get("primary").unwrap_or(implementation);
        let Some(name) = primary.as_str().or_else(|| primary.str_at("file")) else {
            self.refuse(&operation.at, "An implementation must name a file or an artifact.");
            return (Value::Null, SCRIPT);
        };
        let file = Self::artifact_file(node, name).unwrap_or_else(|| name.to_owned());
        let extension = file.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let group = match extension.as_str() {
            "yaml" | "yml" | "ansible" => "ansible",
            "pp" => "puppet",
            _ => SCRIPT,
        };
        (self.file(&file, &operation.at), group)
    }

    /// The file of an artifact of a node.
    fn artifact_file(node: &Node, name: &str) -> Option<String> {
        let artifact = node.artifact(name)?;
        artifact.as_str().or_else(|| artifact.str_at("file")).map(str::to_owned)
    }

    /// Notes that a deployment returns an output.
    pub(super) fn expect_output(&mut self, operation: &str, output: &str) {
        self.expected.entry(format!("{operation}_config")).or_default().insert(output.to_owned());
    }

    /// Declares the outputs that are used.
    pub(super) fn declare_outputs(&mut self) {
        for (config, outputs) in std::mem::take(&mut self.expected) {
            let properties = self
                .resources
                .get_mut(&config)
                .and_then(|config| config.as_map_mut()?.get_mut("properties")?.as_map_mut());
            if let Some(properties) = properties {
                let outputs: Vec<Value> = outputs.into_iter().map(|name| value!({"name": name})).collect();
                properties.insert("outputs".to_owned(), outputs.into());
            }
        }
    }
}
