//! The state of lowering a graph, and its order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use kiln_value::{Map, Path, Value, value};

use super::rules::Rules;
use super::{File, Lowered, Note, Source};
use crate::Refusal;
use crate::graph::{Exists, Graph, Group, Input, Node, Target};
use crate::question::{Question, Wanted};

/// The version of the templates that are made: the newest with all functions that are used.
const VERSION: &str = "2018-08-31";

/// The parameter with the country of the region.
const JURISDICTION: &str = "jurisdiction";

/// Topologies that substitute nodes of topologies that substitute nodes, and so on.
const MAX_NESTING: usize = 10;

/// Lowers a graph. `root` is the file that it was read from; implementations are files relative to it.
///
/// Errors: types, policies and functions that have no equivalent, each by its name.
pub fn lower(graph: &Graph, root: &str) -> Result<Lowered, Vec<Refusal>> {
    let rules = Rules::of(&graph.types)?;
    lower_at(graph, root, &rules, 0)
}

fn lower_at(graph: &Graph, root: &str, rules: &Rules, depth: usize) -> Result<Lowered, Vec<Refusal>> {
    let mut state = State::new(graph, root, rules);
    if depth > MAX_NESTING {
        return Err(vec![Refusal::new("too-large", &Path::root(), "Topologies are nested too deeply.")]);
    }
    state.lower_nested(depth)?;
    state.lower_inputs();
    state.lower_jurisdiction();
    state.lower_nodes();
    state.lower_attachments();
    state.lower_virtual_addresses();
    state.lower_software();
    state.lower_outputs();
    state.declare_outputs();
    state.lower_policies();
    state.finish()
}

/// What has been made so far.
pub(super) struct State<'g> {
    pub(super) graph: &'g Graph,
    pub(super) rules: &'g Rules,
    pub(super) nodes: HashMap<&'g str, &'g Node>,
    pub(super) inputs: HashMap<&'g str, &'g Input>,
    pub(super) groups: HashMap<&'g str, &'g Group>,
    /// Nodes that name a node, with the requirement.
    pub(super) sources_of: HashMap<&'g str, Vec<(&'g Node, usize)>>,
    pub(super) folder: String,
    pub(super) parameters: Map,
    pub(super) resources: Map,
    pub(super) outputs: Map,
    pub(super) lowered: Lowered,
    pub(super) refusals: Vec<Refusal>,
    /// Nodes that a topology stands for, with the resource.
    pub(super) substituted: HashSet<String>,
    /// Servers that software is deployed to, once known.
    pub(super) with_software: Option<HashSet<String>>,
    /// Outputs that are used, by configuration.
    pub(super) expected: BTreeMap<String, BTreeSet<String>>,
    /// Groups, the resources in them, and their templates.
    pub(super) scaled: Vec<(String, BTreeSet<String>, String)>,
    /// Files, once each.
    files: HashSet<String>,
}

impl<'g> State<'g> {
    pub(super) fn new(graph: &'g Graph, root: &str, rules: &'g Rules) -> Self {
        let mut sources_of: HashMap<&str, Vec<(&Node, usize)>> = HashMap::new();
        for node in &graph.nodes {
            for (i, target) in node.targets.iter().enumerate() {
                sources_of.entry(&target.node).or_default().push((node, i));
            }
        }
        let file = graph.file.as_deref().unwrap_or(root);
        Self {
            graph,
            rules,
            nodes: graph.nodes.iter().map(|node| (node.name.as_str(), node)).collect(),
            inputs: graph.inputs.iter().map(|input| (input.name.as_str(), input)).collect(),
            groups: graph.groups.iter().map(|group| (group.name.as_str(), group)).collect(),
            sources_of,
            folder: file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned(),
            parameters: Map::new(),
            resources: Map::new(),
            outputs: Map::new(),
            lowered: Lowered::default(),
            refusals: Vec::new(),
            substituted: HashSet::new(),
            with_software: None,
            expected: BTreeMap::new(),
            scaled: Vec::new(),
            files: HashSet::new(),
        }
    }

    pub(super) fn source(&self, at: &Path) -> Source {
        Source { file: self.graph.file.clone(), at: at.clone() }
    }

    pub(super) fn refuse(&mut self, at: &Path, message: impl Into<String>) {
        let mut refusal = Refusal::new("unsupported", at, message);
        refusal.file.clone_from(&self.graph.file);
        self.refusals.push(refusal);
    }

    pub(super) fn note(&mut self, at: &Path, message: impl Into<String>) {
        let source = self.source(at);
        self.lowered.notes.push(Note { source, message: message.into() });
    }

    /// Adds a resource for the part of the original at `at`.
    pub(super) fn add(&mut self, name: &str, kind: &str, properties: Map, at: &Path) {
        let mut resource = Map::new();
        resource.insert("type".to_owned(), kind.into());
        if !properties.is_empty() {
            resource.insert("properties".to_owned(), properties.into());
        }
        if self.resources.insert(name.to_owned(), resource.into()).is_some() {
            self.refuse(at, format!("Two resources would be named {name}: rename a node."));
        }
        let source = self.source(at);
        self.lowered.sources.insert(format!("resources.{name}"), source);
    }

    /// The properties of a resource, if it was lowered.
    pub(super) fn properties_of(&mut self, resource: &str) -> Option<&mut Map> {
        let resource = self.resources.get_mut(resource).and_then(Value::as_map_mut)?;
        resource.entry("properties".to_owned()).or_insert_with(|| Value::Map(Map::new())).as_map_mut()
    }

    /// Adds an item to a list in the properties of a resource.
    pub(super) fn append(&mut self, resource: &str, key: &str, item: Value) {
        let Some(properties) = self.properties_of(resource) else { return };
        if let Value::List(items) = properties.entry(key.to_owned()).or_insert_with(|| Value::List(Vec::new())) {
            items.push(item);
        }
    }

    /// Adds resources that must be complete before.
    pub(super) fn depend(&mut self, name: &str, on: &[String]) {
        let on: Vec<Value> = on.iter().filter(|other| *other != name).map(Value::from).collect();
        let resource = self.resources.get_mut(name).and_then(Value::as_map_mut);
        if let Some(resource) = resource.filter(|_| !on.is_empty()) {
            let known = resource.entry("depends_on".to_owned()).or_insert_with(|| Value::List(Vec::new()));
            if let Value::List(known) = known {
                for other in on {
                    if !known.contains(&other) {
                        known.push(other);
                    }
                }
            }
        }
    }

    /// Adds a parameter that only the cloud can answer, and returns its use.
    pub(super) fn ask(&mut self, name: &str, at: &Path, constraint: Option<&str>, wanted: Wanted) -> Value {
        if !self.parameters.contains_key(name) {
            let mut parameter = Map::new();
            parameter.insert("type".to_owned(), "string".into());
            parameter.insert("description".to_owned(), wanted.text().into());
            if let Some(constraint) = constraint {
                parameter.insert("constraints".to_owned(), value!([{"custom_constraint": constraint}]));
            }
            self.parameters.insert(name.to_owned(), parameter.into());
            let source = self.source(at);
            self.lowered.sources.insert(format!("parameters.{name}"), source.clone());
            self.lowered.questions.push(Question { parameter: name.to_owned(), source, wanted });
        }
        value!({"get_param": name})
    }

    /// The country of the region is a parameter, so that every service checks it.
    fn lower_jurisdiction(&mut self) {
        let Some((at, countries)) = &self.graph.jurisdiction else { return };
        self.ask(JURISDICTION, at, None, Wanted::Jurisdiction(countries.clone()));
        let allowed: Vec<Value> = countries.iter().map(Value::from).collect();
        let parameter = self.parameters.get_mut(JURISDICTION).and_then(Value::as_map_mut);
        if let Some(parameter) = parameter {
            parameter.insert("constraints".to_owned(), value!([{"allowed_values": (Value::List(allowed))}]));
        }
    }

    /// A part of a node that exists already: a parameter.
    pub(super) fn ask_existing(&mut self, node: &Node, exists: &Exists, suffix: &str, attribute: &[Value]) -> Value {
        let words = attribute.iter().map(|part| format!("_{}", kiln_value::text::str(part)));
        let name = format!("{}{suffix}{}", node.name, words.collect::<String>());
        let resource = format!("{}{suffix}", exists.resource);
        let (stack, attribute) = (exists.stack.clone(), attribute.to_vec());
        // Passwords are values of random strings.
        let is_secret = !suffix.is_empty() && !attribute.is_empty();
        let asked = self.ask(&name, &node.at, None, Wanted::Component { stack, resource, attribute });
        if let Some(parameter) = self.parameters.get_mut(&name).and_then(Value::as_map_mut).filter(|_| is_secret) {
            parameter.insert("hidden".to_owned(), true.into());
        }
        asked
    }

    /// The content of a file of the template.
    pub(super) fn file(&mut self, name: &str, at: &Path) -> Value {
        let Some(path) = self.path(name, at) else { return Value::Null };
        self.add_file(File { name: path.clone(), from: path.clone(), is_base64: false });
        value!({"get_file": path})
    }

    /// The content of a file of the template in base64.
    pub(super) fn file_in_base64(&mut self, name: &str, at: &Path) -> Value {
        let Some(path) = self.path(name, at) else { return Value::Null };
        let name = format!("{path}.base64");
        self.add_file(File { name: name.clone(), from: path, is_base64: true });
        value!({"get_file": name})
    }

    fn path(&mut self, name: &str, at: &Path) -> Option<String> {
        if name.contains("://") {
            return Some(name.to_owned());
        }
        let path = crate::tosca::join(&self.folder, name);
        if path.is_none() {
            self.refuse(at, format!("The file {name} is outside of the template's folder."));
        }
        path
    }

    fn add_file(&mut self, file: File) {
        if self.files.insert(file.name.clone()) {
            self.lowered.files.push(file);
        }
    }

    /// Nodes that a topology stands for become nested stacks of it.
    fn lower_nested(&mut self, depth: usize) -> Result<(), Vec<Refusal>> {
        for (i, nested) in self.graph.nested.iter().enumerate() {
            let Some(node) = self.nodes.get(nested.node.as_str()).copied() else { continue };
            // The first topology of those that fit stands for the node.
            if self.substituted.contains(&node.name) {
                continue;
            }
            let inner = lower_at(&nested.graph, &self.folder, self.rules, depth + 1)?;
            let file = format!("{}-{i}.yaml", node.name);
            let mut properties = Map::new();
            for input in &nested.graph.inputs {
                if let Some(value) = node.properties.get(&input.name) {
                    let value = self.value(node, None, value, &node.at);
                    properties.insert(input.name.clone(), value);
                }
            }
            let mapped = nested.graph.substitution.as_ref().and_then(|mappings| mappings.get("requirements"));
            let mut before = Vec::new();
            for question in inner.questions {
                if matches!(question.wanted, Wanted::Network)
                    && let Some((network, resources)) = self.network_outside(node, mapped, &question.parameter)
                {
                    before.extend(resources);
                    properties.insert(question.parameter, network);
                    continue;
                }
                let name = format!("{}_{}", node.name, question.parameter);
                let asked = inner.template.get("parameters").and_then(|all| all.get(&question.parameter)).cloned();
                self.parameters.insert(name.clone(), asked.unwrap_or_default());
                properties.insert(question.parameter.clone(), value!({"get_param": (&name)}));
                let mut wanted = question.wanted;
                if let Wanted::Members { group, .. } = &mut wanted {
                    group.insert(0, node.name.clone());
                }
                self.lowered.questions.push(Question { parameter: name, source: question.source, wanted });
            }
            self.add(&node.name, &file, properties, &node.at);
            self.depend(&node.name, &before);
            self.substituted.insert(node.name.clone());
            let part = |key: &String| format!("{file}:{key}");
            self.lowered.sources.extend(inner.sources.into_iter().map(|(key, source)| (part(&key), source)));
            let at_boot = inner.at_boot.into_iter();
            let at_boot =
                at_boot.map(|((inside, name), script)| ((inside.or_else(|| Some(file.clone())), name), script));
            self.lowered.at_boot.extend(at_boot);
            for file in inner.files {
                self.add_file(file);
            }
            self.lowered.notes.extend(inner.notes);
            self.lowered.nested.extend(inner.nested);
            self.lowered.nested.insert(file, inner.template);
        }
        Ok(())
    }

    fn lower_nodes(&mut self) {
        for node in &self.graph.nodes {
            if self.substituted.contains(&node.name) {
                continue;
            }
            if node.exists.is_some() {
                if node.is_a("tosca.nodes.LoadBalancer") {
                    self.lower_load_balancer(node);
                }
                continue;
            }
            let rule = self.rules.find(node);
            let Some(rule) = rule.filter(|rule| !rule.is_of_file || rule.resources().next().is_some()) else {
                let is_software = ["SoftwareComponent", "WebApplication", "Database", "Container.Application"]
                    .iter()
                    .any(|name| node.is_a(&format!("tosca.nodes.{name}")));
                if node.is_a("tosca.nodes.LoadBalancer") {
                    self.lower_load_balancer(node);
                } else if !is_software && node.all_operations().next().is_none() {
                    let message = format!("{} has no resource: nothing is known of {}.", node.name, node.type_name);
                    self.note(&node.at, message);
                }
                continue;
            };
            if let Some(why) = rule.refused() {
                let message = format!("{} ({}) is not supported: {why}.", node.name, node.type_name);
                self.refuse(&node.at.key("type"), message);
            } else if let Some(why) = rule.boundary() {
                let message = format!("{} ({}) has no resource: {why}.", node.name, node.type_name);
                self.note(&node.at, message);
            }
            self.apply(node, &rule);
            self.note_connection(node);
        }
    }

    /// Volumes that servers require are attached.
    fn lower_attachments(&mut self) {
        for node in &self.graph.nodes {
            let mut number = 0;
            for target in &node.targets {
                let Some(storage) = self.nodes.get(target.node.as_str()).copied() else { continue };
                let is_attached =
                    target.is_a("tosca.relationships.AttachesTo") || self.adds_volume(node, target, storage);
                if !is_attached || !self.resources.contains_key(&node.name) {
                    continue;
                }
                number += 1;
                let mut properties = Map::new();
                properties.insert("instance_uuid".to_owned(), value!({"get_resource": (&node.name)}));
                let volume = self.reference(storage, &target.at);
                properties.insert("volume_id".to_owned(), volume);
                for key in ["location", "device"] {
                    if let Some(value) = target.properties.get(key).filter(|value| value.is_truthy()) {
                        // Nova gives the device a name of its own; a path of a folder has no meaning there.
                        let value = self.value(node, Some(target), value, &target.at);
                        properties.entry("mountpoint".to_owned()).or_insert(value);
                    }
                }
                let name = format!("{}_attachment_{number}", node.name);
                self.add(&name, "OS::Cinder::VolumeAttachment", properties, &target.at);
            }
        }
    }

    /// Whether a server of SOL001 gets a volume besides the one that it starts from.
    fn adds_volume(&self, node: &'g Node, target: &Target, storage: &Node) -> bool {
        let is_volume =
            target.requirement == "virtual_storage" && storage.is_a("tosca.nodes.nfv.Vdu.VirtualBlockStorage");
        is_volume && self.boot_volume(node, "virtual_storage").is_none_or(|boot| boot.name != storage.name)
    }

    fn lower_outputs(&mut self) {
        for output in &self.graph.outputs {
            let mut lowered = Map::new();
            if let Some(text) = &output.description {
                lowered.insert("description".to_owned(), text.into());
            }
            let Some(value) = self.output_value(&output.value, &output.at.key("value")) else { continue };
            lowered.insert("value".to_owned(), value);
            self.outputs.insert(output.name.clone(), lowered.into());
            let source = self.source(&output.at);
            self.lowered.sources.insert(format!("outputs.{}", output.name), source);
        }
    }

    /// Outputs of members of groups are lists.
    fn redirect_outputs(&mut self) {
        for (group, moved, file) in std::mem::take(&mut self.scaled) {
            let mut outputs = BTreeMap::new();
            for output in self.outputs.values_mut() {
                super::scaling::redirect(output, &moved, &group, &mut outputs);
            }
            self.add_outputs(&file, outputs);
        }
    }

    fn finish(mut self) -> Result<Lowered, Vec<Refusal>> {
        if !self.refusals.is_empty() {
            return Err(self.refusals);
        }
        self.redirect_outputs();
        let mut template = Map::new();
        template.insert("heat_template_version".to_owned(), VERSION.into());
        if let Some(text) = &self.graph.description {
            template.insert("description".to_owned(), text.into());
        }
        for (key, section) in
            [("parameters", self.parameters), ("resources", self.resources), ("outputs", self.outputs)]
        {
            if !section.is_empty() {
                template.insert(key.to_owned(), section.into());
            }
        }
        self.lowered.template = template.into();
        Ok(self.lowered)
    }
}

/// A template with these sections.
pub(super) fn template(description: &str, parameters: Map, resources: Map) -> Value {
    let mut template = Map::new();
    template.insert("heat_template_version".to_owned(), VERSION.into());
    template.insert("description".to_owned(), description.into());
    if !parameters.is_empty() {
        template.insert("parameters".to_owned(), parameters.into());
    }
    template.insert("resources".to_owned(), resources.into());
    template.into()
}
