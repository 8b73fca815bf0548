//! A blueprint as a graph: components become nodes, requirements become capabilities, software and targets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kiln_value::{Map, Path, Value, value};

use super::model::{Application, Component, Fulfilment, Requirement};
use crate::graph::{Capability, Graph, Node, Operation, Policy, Target};
use crate::lower::CONTENT;
use crate::tosca::{Definitions, TypeChecker, Types};
use crate::{Refusal, TypeFiles};

const HOSTED_ON: &str = "tosca.relationships.HostedOn";
const DEPENDS_ON: &str = "tosca.relationships.DependsOn";

/// The most members of a tier, as a multiple of its initial size.
const GROWTH: i64 = 2;

/// Requirements that have no effect: the place and why.
pub type Notes = Vec<(Path, String)>;

impl Application {
    /// The graph of the components, with notes about requirements that have no effect.
    ///
    /// Errors: types of components and ways of fulfilment that cannot be deployed.
    pub fn graph(&self) -> Result<(Graph, Notes), Vec<Refusal>> {
        let definitions = Definitions::of_all_profiles(&self.types)?;
        let node_types = Types::new(&definitions);
        let mut builder = Builder::new(&self.types, TypeChecker::new(&node_types));
        builder.graph.description.clone_from(&self.name);
        builder.graph.types = Arc::clone(&self.types);
        builder.graph.jurisdiction = builder.jurisdiction(self);
        builder.components = self.components.iter().filter_map(|c| Some((c.id.as_deref()?, c))).collect();
        for component in &self.components {
            builder.component(component, component.id.as_deref().unwrap_or_default());
        }
        builder.connect();
        builder.check_targets();
        builder.refusals.extend(builder.checker.refusals());
        if builder.refusals.is_empty() { Ok((builder.graph, builder.notes)) } else { Err(builder.refusals) }
    }
}

/// A target that is found when all nodes are made.
struct Link {
    from: String,
    target: Target,
}

pub(super) struct Builder<'b> {
    pub(super) types: &'b TypeFiles,
    pub(super) checker: TypeChecker<'b>,
    components: HashMap<&'b str, &'b Component>,
    pub(super) graph: Graph,
    /// Names of nodes.
    names: HashSet<String>,
    links: Vec<Link>,
    /// Properties of load balancers that requirements on them give.
    balancer_settings: Vec<(String, Map, Path)>,
    /// Databases with a server that uses them.
    databases: HashMap<String, String>,
    /// Schemas with their databases.
    schemas: Vec<(String, String, Path)>,
    /// Nodes that exist already, by URL.
    pub(super) existing: HashMap<&'b str, String>,
    pub(super) refusals: Vec<Refusal>,
    notes: Vec<(Path, String)>,
}

impl<'b> Builder<'b> {
    fn new(types: &'b TypeFiles, checker: TypeChecker<'b>) -> Self {
        Self {
            types,
            checker,
            components: HashMap::new(),
            graph: Graph::default(),
            names: HashSet::new(),
            links: Vec::new(),
            balancer_settings: Vec::new(),
            databases: HashMap::new(),
            schemas: Vec::new(),
            existing: HashMap::new(),
            refusals: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn refuse(&mut self, at: &Path, message: impl Into<String>) {
        self.refusals.push(Refusal::new("unsupported", at, message));
    }

    pub(super) fn link(
        &mut self,
        from: &str,
        requirement: &str,
        to: &str,
        relationship: &str,
        at: &Path,
    ) -> &mut Target {
        let target = Target {
            at: at.clone(),
            requirement: requirement.to_owned(),
            node: to.to_owned(),
            relationship: Some(relationship.to_owned()),
            ancestors: Vec::new(),
            properties: Map::new(),
            operations: Vec::new(),
        };
        self.links.push(Link { from: from.to_owned(), target });
        let last = self.links.len() - 1;
        &mut self.links[last].target
    }

    /// Gives all nodes their targets, and load balancers their ports.
    fn connect(&mut self) {
        for (schema, database, at) in std::mem::take(&mut self.schemas) {
            // SQL runs on a server that uses the database.
            let client = self.databases.get(&database).cloned();
            match client {
                Some(server) => {
                    self.link(&schema, "host", &server, HOSTED_ON, &at);
                    let installed = format!("{server}_server");
                    self.link(&schema, "dependency", &installed, DEPENDS_ON, &at);
                }
                None => {
                    self.refuse(&at, format!("No server uses the database {database}: the SQL has nowhere to run."));
                }
            }
        }
        let places: HashMap<String, usize> =
            self.graph.nodes.iter().enumerate().map(|(i, node)| (node.name.clone(), i)).collect();
        for (balancer, wanted, _) in std::mem::take(&mut self.balancer_settings) {
            let Some(i) = places.get(&balancer) else { continue };
            let node = &mut self.graph.nodes[*i];
            for (property, value) in wanted {
                if property == "port" {
                    let properties = [("port".to_owned(), value)].into_iter().collect();
                    let type_name = "tosca.capabilities.Root".to_owned();
                    node.capabilities.push(Capability { name: "client".to_owned(), type_name, properties });
                } else {
                    node.properties.insert(property, value);
                }
            }
        }
        for Link { from, target } in std::mem::take(&mut self.links) {
            if let Some(i) = places.get(&from) {
                self.graph.nodes[*i].targets.push(target);
            }
        }
    }

    fn component(&mut self, component: &'b Component, name: &str) {
        if self.types.get(&component.deploys).is_some() {
            return self.typed(component, name);
        }
        match component.deploys.as_str() {
            "org.openstack.nova.Server" => self.server(component, name),
            "org.openstack.heat.Tier" => self.tier(component, name),
            "org.openstack.octavia.LoadBalancer" => self.load_balancer(component, name),
            "org.openstack.trove.Instance" => {
                let node = node(name, "org.openstack.trove.Instance", &component.at);
                self.push(node);
            }
            "com.example.script.ShellScript"
            | "org.openstack.heat.Rpm"
            | "org.openstack.heat.Tgz"
            | "com.example.java:War"
            | "com.example.database:Schema" => self.software(component, name),
            "org.apache.tomcat.Server" => self.container(component, name, "tomcat"),
            "org.jetty.Server" => self.container(component, name, "jetty"),
            other => self.refuse(&component.at, format!("Components of type {other} cannot be deployed by Kiln.")),
        }
    }

    /// The names of those who fulfil a requirement; components in place and of the platform are made.
    fn fulfilled(&mut self, owner: &str, requirement: &'b Requirement) -> Vec<String> {
        self.fulfilled_by(owner, requirement, None)
    }

    /// The same; `wanted` is the type of nodes that the requirement asks for, if a file defines it.
    pub(super) fn fulfilled_by(
        &mut self,
        owner: &str,
        requirement: &'b Requirement,
        wanted: Option<&str>,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for (i, by) in requirement.fulfilled_by.iter().enumerate() {
            let short = requirement.type_name.rsplit(['.', ':']).next().unwrap_or_default();
            let made = if i == 0 { format!("{owner}_{short}") } else { format!("{owner}_{short}_{}", i + 1) };
            match by {
                Fulfilment::Component(id) => names.push(id.clone()),
                Fulfilment::InLine(component) => {
                    let name = self.free(&made);
                    self.component(component, &name);
                    names.push(name);
                }
                Fulfilment::Platform(kind) => {
                    let name = self.free(&made);
                    self.platform(kind, &name, &requirement.at);
                    names.push(name);
                }
                Fulfilment::Url(url) => names.extend(self.existing(url, requirement, wanted)),
            }
        }
        names
    }

    pub(super) fn push(&mut self, node: Node) {
        self.names.insert(node.name.clone());
        self.graph.nodes.push(node);
    }

    /// A name that no node has.
    pub(super) fn free(&self, wanted: &str) -> String {
        let taken = |name: &str| self.components.contains_key(name) || self.names.contains(name);
        let numbered = (2..).map(|i| format!("{wanted}_{i}"));
        std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
    }

    /// A component that the platform makes.
    fn platform(&mut self, kind: &str, name: &str, at: &Path) {
        if self.types.get(kind).is_some() {
            let node = self.checker.node(name, kind, Map::new(), at);
            return node.into_iter().for_each(|node| self.push(node));
        }
        match kind {
            "org.openstack.trove.Instance" => self.push(node(name, kind, at)),
            "org.openstack.octavia.LoadBalancer" => {
                self.push(node(name, "tosca.nodes.LoadBalancer", at));
            }
            "org.apache.tomcat.Server" => self.container_nodes(name, "tomcat", at),
            "org.jetty.Server" => self.container_nodes(name, "jetty", at),
            other => self.refuse(at, format!("The platform cannot make a component of type {other}.")),
        }
    }

    fn server(&mut self, component: &'b Component, name: &str) {
        self.server_node(component, name, node(name, "tosca.nodes.Compute", &component.at));
    }

    /// A server; `node` has what its type says.
    pub(super) fn server_node(&mut self, component: &'b Component, name: &str, mut node: Node) {
        let (mut host, mut os) = (Map::new(), Map::new());
        for requirement in &component.requires {
            let attribute = |key: &str| requirement.attributes.get(key).cloned();
            match requirement.type_name.as_str() {
                "minRam" => host.extend(attribute("amount").map(|amount| ("mem_size".to_owned(), amount))),
                "minCores" => host.extend(attribute("amount").map(|amount| ("num_cpus".to_owned(), amount))),
                "os" => {
                    os.extend(attribute("name").map(|name| ("distribution".to_owned(), name)));
                    os.extend(attribute("version").map(|version| ("version".to_owned(), version)));
                }
                _ => {}
            }
        }
        for (name, properties) in [("host", host), ("os", os)] {
            if let Some(known) = node.capabilities.iter_mut().find(|capability| capability.name == name) {
                known.properties.extend(properties);
                continue;
            }
            let type_name = "tosca.capabilities.Root".to_owned();
            node.capabilities.push(Capability { name: name.to_owned(), type_name, properties });
        }
        self.push(node);
        // Software is installed in the order of the requirements.
        let mut before: Option<String> = None;
        for requirement in &component.requires {
            if !matches!(requirement.type_name.as_str(), "run" | "unpack") {
                continue;
            }
            for software in self.fulfilled(name, requirement) {
                self.link(&software, "host", name, HOSTED_ON, &requirement.at);
                if let Some(before) = before.replace(software.clone()) {
                    self.link(&software, "dependency", &before, DEPENDS_ON, &requirement.at);
                }
            }
        }
    }

    /// A server that scales.
    fn tier(&mut self, component: &'b Component, name: &str) {
        match component.specs.first() {
            Some((_, spec)) => self.component(spec, name),
            None => self.push(node(name, "tosca.nodes.Compute", &component.at)),
        }
        let size = component.attributes.get("initialSize").and_then(Value::as_i64).unwrap_or(1);
        if size < 1 {
            self.refuse(&component.at.key("initialSize"), "The initial size must be at least 1.");
        }
        let properties = value!({
            "min_instances": 1, "default_instances": size, "max_instances": (size.saturating_mul(GROWTH)), "increment": 1
        });
        self.graph.policies.push(Policy {
            at: component.at.clone(),
            name: name.to_owned(),
            type_name: "tosca.policies.Scaling".to_owned(),
            ancestors: vec!["tosca.policies.Root".to_owned()],
            targets: vec![name.to_owned()],
            of_groups: false,
            properties: properties.as_map().cloned(),
            values: Map::new(),
            triggers: Map::new(),
            template: Map::new(),
        });
        for requirement in component.requires.iter().filter(|r| r.type_name == "loadbalancer") {
            self.balance(name, requirement, "publicPort", "membersPort");
        }
    }

    /// Puts a server behind load balancers.
    fn balance(&mut self, server: &str, requirement: &'b Requirement, public: &str, members: &str) {
        for balancer in self.fulfilled(server, requirement) {
            let port = requirement.attributes.get(members).cloned();
            let target = self.link(&balancer, "application", server, "tosca.relationships.RoutesTo", &requirement.at);
            target.properties.extend(port.map(|port| ("port".to_owned(), port)));
            let mut wanted = Map::new();
            for (attribute, property) in [(public, "port"), ("protocol", "protocol"), ("algorithm", "algorithm")] {
                if let Some(value) = requirement.attributes.get(attribute) {
                    wanted.insert(property.to_owned(), value.clone());
                }
            }
            if requirement.attributes.get("sticky-sessions").is_some_and(Value::is_truthy) {
                wanted.insert("sticky".to_owned(), true.into());
            }
            self.balancer_settings.push((balancer, wanted, requirement.at.clone()));
        }
    }

    fn load_balancer(&mut self, component: &'b Component, name: &str) {
        self.load_balancer_node(component, node(name, "tosca.nodes.LoadBalancer", &component.at));
    }

    /// A load balancer; `node` has what its type says.
    pub(super) fn load_balancer_node(&mut self, component: &'b Component, mut node: Node) {
        for requirement in component.requires.iter().filter(|requirement| requirement.type_name == "dns") {
            if let Some(host) = requirement.attributes.get("hostname") {
                node.properties.insert("hostname".to_owned(), host.clone());
            }
        }
        self.push(node);
    }

    /// A server with an application server.
    fn container(&mut self, component: &'b Component, name: &str, kind: &str) {
        self.container_nodes(name, kind, &component.at);
        for requirement in &component.requires {
            match requirement.type_name.as_str() {
                "database" => {
                    if requirement.attributes.contains_key("mode") {
                        let message = "The mode is not used: the database is given as system properties db.host, \
                                       db.user, db.password and db.name.";
                        self.notes.push((requirement.at.clone(), message.to_owned()));
                    }
                    for database in self.fulfilled(name, requirement) {
                        let inputs = database_inputs(&database);
                        let script = include_str!("scripts/database.sh").replace("@KIND@", kind);
                        let configured = format!("{name}_{database}");
                        let configure = software(&configured, "configure", script, inputs, &requirement.at);
                        self.push(configure);
                        self.link(&configured, "host", name, HOSTED_ON, &requirement.at);
                        let server = format!("{name}_server");
                        self.link(&configured, "dependency", &server, DEPENDS_ON, &requirement.at);
                        self.databases.entry(database).or_insert_with(|| name.to_owned());
                    }
                }
                "com.example.lb:LoadBalanced" => self.balance(name, requirement, "port", "port"),
                _ => {}
            }
        }
    }

    fn container_nodes(&mut self, name: &str, kind: &str, at: &Path) {
        self.push(node(name, "tosca.nodes.Compute", at));
        let script = include_str!("scripts/container.sh").replace("@KIND@", kind);
        let server = format!("{name}_server");
        self.push(software(&server, "create", script, Map::new(), at));
        self.link(&server, "host", name, HOSTED_ON, at);
    }

    fn software(&mut self, component: &'b Component, name: &str) {
        let mut inputs = Map::new();
        if let Some(content) = &component.content {
            if content.contains("://") {
                inputs.insert("content_url".to_owned(), content.into());
            } else {
                inputs.insert("content_base64".to_owned(), Value::from_iter([(CONTENT, Value::from(content))]));
            }
        }
        let texts = |key: &str| -> String {
            let value = component.attributes.get(key);
            let items = value.and_then(Value::as_list).unwrap_or_default();
            let one = value.and_then(Value::as_str).into_iter();
            items.iter().filter_map(Value::as_str).chain(one).collect::<Vec<&str>>().join(" ")
        };
        let script = match component.deploys.as_str() {
            "com.example.script.ShellScript" => {
                let user =
                    if component.attributes.get("sudo").is_some_and(|sudo| !sudo.is_truthy()) { "nobody" } else { "" };
                inputs.insert("as_user".to_owned(), user.into());
                include_str!("scripts/script.sh")
            }
            "org.openstack.heat.Rpm" => {
                inputs.insert("rpms".to_owned(), texts("rpms").into());
                inputs.insert("repos".to_owned(), texts("repos").into());
                include_str!("scripts/rpm.sh")
            }
            "org.openstack.heat.Tgz" => {
                let target = component.attributes.get("target").cloned().unwrap_or_else(|| "/opt".into());
                inputs.insert("target".to_owned(), target);
                include_str!("scripts/tgz.sh")
            }
            "com.example.java:War" => include_str!("scripts/war.sh"),
            _ => include_str!("scripts/schema.sh"),
        };
        if component.content.is_none() && component.deploys != "org.openstack.heat.Rpm" {
            self.refuse(&component.at, format!("The component {name} must have content."));
        }
        for requirement in &component.requires {
            for by in self.fulfilled(name, requirement) {
                match requirement.type_name.as_str() {
                    "DB" => {
                        inputs.extend(database_inputs(&by));
                        self.schemas.push((name.to_owned(), by, requirement.at.clone()));
                    }
                    "runOn" => drop(self.link(name, "host", &by, HOSTED_ON, &requirement.at)),
                    _ => {
                        self.link(name, "host", &by, HOSTED_ON, &requirement.at);
                        let server = format!("{by}_server");
                        self.link(name, "dependency", &server, DEPENDS_ON, &requirement.at);
                    }
                }
            }
        }
        self.push(software(name, "create", script.to_owned(), inputs, &component.at));
    }
}

/// The inputs that give a database to a script.
fn database_inputs(database: &str) -> Map {
    let attribute = |name: &str| value!({"get_attribute": [database, name]});
    [
        ("db_host".to_owned(), attribute("hostname")),
        ("db_password".to_owned(), attribute("password")),
        ("db_user".to_owned(), "app".into()),
        ("db_name".to_owned(), "app".into()),
    ]
    .into_iter()
    .collect()
}

pub(super) fn node(name: &str, type_name: &str, at: &Path) -> Node {
    Node {
        at: at.clone(),
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        ancestors: vec!["tosca.nodes.Root".to_owned()],
        ..Node::default()
    }
}

fn software(name: &str, operation: &str, script: String, inputs: Map, at: &Path) -> Node {
    let mut node = node(name, "tosca.nodes.SoftwareComponent", at);
    node.operations.push(Operation {
        at: at.clone(),
        interface: "Standard".to_owned(),
        name: operation.to_owned(),
        implementation: Some(value!({"inline": script})),
        inputs,
    });
    node
}
