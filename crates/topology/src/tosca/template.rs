//! A service template: its sections, inputs, nodes and outputs.

use std::rc::Rc;
use std::sync::Arc;

use kiln_value::{Map, Path, Value};
use kiln_yaml::Document;

use super::function::{Context, check_function};
use super::import::{Files, Loader, VERSIONS};
use super::node::NodeParts;
use super::reader::Reader;
use super::schema::{is_required, map_at};
use super::types::{Definitions, Kind, Section, Types};
use super::version_2;
use crate::graph::{Graph, Input, Nested, Output, Relationship};
use crate::refusal::sort;
use crate::type_file::TypeFiles;
use crate::{Refusal, refusal};

/// A service template that has been read.
#[derive(Clone, Debug)]
pub struct Template {
    /// What it describes.
    pub graph: Graph,
    /// Its text as a document, for positions.
    pub document: Document,
}

const SECTIONS: [&str; 22] = [
    "tosca_definitions_version",
    "tosca_default_namespace",
    "namespace",
    "profile",
    "template_name",
    "topology_template",
    "service_template",
    "template_author",
    "template_version",
    "description",
    "imports",
    "dsl_definitions",
    "node_types",
    "relationship_types",
    "relationship_templates",
    "capability_types",
    "artifact_types",
    "data_types",
    "interface_types",
    "policy_types",
    "group_types",
    "repositories",
];

/// The keys of a topology.
pub(crate) const TOPOLOGY: [&str; 9] = [
    "description",
    "inputs",
    "node_templates",
    "relationship_templates",
    "outputs",
    "groups",
    "substitution_mappings",
    "policies",
    "workflows",
];

/// The types of inputs, besides data types.
const SIMPLE_TYPES: [&str; 19] = [
    "integer",
    "string",
    "boolean",
    "float",
    "range",
    "number",
    "timestamp",
    "list",
    "map",
    "scalar-unit.size",
    "scalar-unit.frequency",
    "scalar-unit.time",
    "scalar-unit.bitrate",
    "version",
    "PortDef",
    "PortSpec",
    "json",
    "xml",
    "bytes",
];

/// Substituted nodes in substituted nodes, and so on.
const MOST_NESTED: usize = 200;

/// Reads the service template `file` of `files` with values for its inputs, and with Kiln's types.
///
/// Errors: all of the template and its imports, in the order of their positions, with the document if it is YAML.
pub fn read(files: &dyn Files, file: &str, given: &Map) -> Result<Template, (Option<Document>, Vec<Refusal>)> {
    let types = TypeFiles::shipped().map_err(|refusals| (None, refusals))?;
    read_with(files, file, given, &types)
}

/// The same with other types.
pub fn read_with(
    files: &dyn Files,
    file: &str,
    given: &Map,
    types: &Arc<TypeFiles>,
) -> Result<Template, (Option<Document>, Vec<Refusal>)> {
    let Some(text) = files.text(file) else {
        let message = format!("The file {file} does not exist, or is not a text.");
        return Err((None, vec![Refusal::new("missing-file", &Path::root(), message)]));
    };
    let mut document = kiln_yaml::parse(&text)
        .map_err(|error| (None, vec![Refusal::new("not-yaml", &Path::root(), error.message)]))?;
    let unsupported = version_2::rewrite(&mut document.value);
    let read = match read_document(files, file, &document, given, types) {
        Ok(graph) if unsupported.is_empty() => Ok(graph),
        Ok(_) => Err(unsupported),
        Err(refusals) => Err(unsupported.into_iter().chain(refusals).collect::<Vec<_>>()),
    };
    match read {
        Ok(graph) => Ok(Template { graph, document }),
        Err(mut refusals) => {
            for refusal in &mut refusals {
                refusal.file = refusal.file.take().filter(|other| other != file);
            }
            sort(&mut refusals, &document);
            Err((Some(document), refusals))
        }
    }
}

fn read_document(
    files: &dyn Files,
    file: &str,
    document: &Document,
    given: &Map,
    type_files: &Arc<TypeFiles>,
) -> Result<Graph, Vec<Refusal>> {
    let root = Path::root();
    let Some(sections) = document.value.as_map() else {
        let message = format!("A service template must be a map, but this is {}.", refusal::kind_of(&document.value));
        return Err(vec![Refusal::new("wrong-shape", &root, message)]);
    };
    let version = sections.get("tosca_definitions_version").map(kiln_value::text::str);
    let mut definitions = Definitions::of(version.as_deref().unwrap_or_default(), type_files)?;
    let mut loader = Loader::new(files);
    loader.load(file, sections);
    definitions.custom = loader.types;
    let types = Types::new(&definitions);
    let reader = Reader::new(&types, None, given.clone());
    match &version {
        None => {
            let message = "The template must have the field \"tosca_definitions_version\".";
            reader.refuse("missing-field", &root, message);
        }
        Some(version) if !VERSIONS.contains(&version.as_str()) => {
            let message = format!("The version \"{version}\" is unknown: the versions are {}.", VERSIONS.join(", "));
            reader.refuse("unknown-version", &root.key("tosca_definitions_version"), message);
        }
        Some(_) => {}
    }
    let known: Vec<&str> = SECTIONS.iter().copied().chain(["metadata"]).collect();
    reader.check_keys("The template", sections, &known, &root);
    let mut graph = Graph::default();
    let key = if sections.contains_key("service_template") { "service_template" } else { "topology_template" };
    if let Some(topology) = map_at(&reader, sections, key, &root) {
        let (read, nodes) = read_topology(&reader, topology, &root.key(key), None);
        graph = read;
        let mut left = MOST_NESTED;
        substitute(&reader, &mut graph, &nodes, &loader.with_topology, given, &mut left, &mut loader.refusals);
        reader.check_occurrences(&graph, &nodes);
    }
    graph.version = version;
    graph.types = Arc::clone(type_files);
    let mut refusals = std::mem::take(&mut loader.refusals);
    refusals.extend(reader.into_refusals());
    refusals.extend(types.refusals.take());
    if refusals.is_empty() { Ok(graph) } else { Err(refusals) }
}

/// Reads the topologies that substitute nodes: those of imported documents whose substitution has the type of a node
/// without operations of its own.
fn substitute(
    reader: &Reader<'_>,
    graph: &mut Graph,
    nodes: &[NodeParts<'_>],
    imported: &[super::import::Imported],
    given: &Map,
    left: &mut usize,
    refusals: &mut Vec<Refusal>,
) {
    for document in imported {
        let sections = document.document.value.as_map();
        let key = ["topology_template", "service_template"]
            .into_iter()
            .find(|key| document.document.value.get(key).is_some());
        let (Some(sections), Some(key)) = (sections, key) else { continue };
        let Some(topology) = sections.get(key).and_then(Value::as_map) else { continue };
        let Some(of) = topology.get("substitution_mappings").and_then(|mappings| mappings.str_at("node_type")) else {
            continue;
        };
        for (node, parts) in graph.nodes.iter().zip(nodes) {
            if parts.kind.name != of || !node.operations.is_empty() {
                continue;
            }
            let Some(next) = left.checked_sub(1) else {
                reader.refuse("too-large", &node.at, format!("More than {MOST_NESTED} nodes are substituted."));
                return;
            };
            *left = next;
            let mut values = given.clone();
            values.extend(node.properties.iter().map(|(name, value)| (name.clone(), value.clone())));
            let nested = Reader::new(reader.types, Some(document.file.clone()), values);
            let (read, _) = read_topology(&nested, topology, &Path::root().key(key), Some(node));
            refusals.extend(nested.into_refusals());
            graph.nested.push(Nested { node: node.name.clone(), graph: read });
        }
    }
}

/// Reads a topology. `stands_for` is the node that it substitutes.
fn read_topology<'d>(
    reader: &Reader<'d>,
    topology: &Map,
    at: &Path,
    stands_for: Option<&crate::graph::Node>,
) -> (Graph, Vec<NodeParts<'d>>) {
    reader.check_keys("The template", topology, &TOPOLOGY, at);
    if topology.contains_key("workflows") {
        reader.refuse("unsupported", &at.key("workflows"), "Imperative \"workflows\" are not supported.");
    }
    let mut graph = Graph {
        file: reader.file.clone(),
        description: topology.get("description").and_then(Value::as_str).map(|text| text.trim_end().to_owned()),
        ..Graph::default()
    };
    graph.description = graph.description.filter(|text| !text.is_empty());
    for (name, definition) in map_at(reader, topology, "inputs", at).into_iter().flatten() {
        graph.inputs.extend(reader.read_input(name, definition, &at.key("inputs").key(name)));
    }
    let relationships = map_at(reader, topology, "relationship_templates", at);
    for (name, template) in relationships.into_iter().flatten() {
        let at = at.key("relationship_templates").key(name);
        graph.relationships.extend(reader.read_relationship(name, template, &at));
    }
    let templates = map_at(reader, topology, "node_templates", at);
    let empty = Map::new();
    let templates = templates.unwrap_or(&empty);
    let mut nodes = Vec::new();
    for (name, template) in templates {
        let node = reader.read_node(name, template, &at.key("node_templates").key(name));
        if let Some((node, parts)) = node {
            graph.nodes.push(node);
            nodes.push(parts);
        }
    }
    reader.relate(&mut graph, &nodes, templates);
    for (name, output) in map_at(reader, topology, "outputs", at).into_iter().flatten() {
        graph.outputs.extend(reader.read_output(name, output, &at.key("outputs").key(name)));
    }
    reader.read_groups(topology, at, &mut graph);
    reader.read_policies(topology, at, &mut graph);
    let context = Context::new(reader, &graph, &nodes);
    context.check_nodes();
    for output in &graph.outputs {
        check_function(&context, None, &output.value, &output.at.key("value"));
    }
    if let Some(mappings) = map_at(reader, topology, "substitution_mappings", at) {
        reader.check_substitution(mappings, &at.key("substitution_mappings"), &graph, stands_for);
        graph.substitution = Some(mappings.clone());
    }
    (graph, nodes)
}

impl<'d> Reader<'d> {
    fn read_input(&self, name: &str, definition: &Value, at: &Path) -> Option<Input> {
        const KEYS: [&str; 10] = [
            "type",
            "description",
            "default",
            "constraints",
            "required",
            "status",
            "key_schema",
            "entry_schema",
            "value",
            "metadata",
        ];
        let Some(fields) = definition.as_map() else {
            self.refuse("bad-schema", at, format!("The definition of \"{name}\" must be a map."));
            return None;
        };
        self.check_keys(&format!("The input \"{name}\""), fields, &KEYS, at);
        let Some(type_name) = fields.get("type").and_then(Value::as_str) else {
            self.refuse("bad-schema", at, format!("The definition of \"{name}\" must have a \"type\"."));
            return None;
        };
        if !SIMPLE_TYPES.contains(&type_name) && self.types.find(Section::Data, type_name).is_none() {
            self.refuse("bad-value", &at.key("type"), format!("The type \"{type_name}\" of an input is unknown."));
            return None;
        }
        let given = self.given.get(name).map(|value| self.checked(name, definition, value, at));
        if let Some(default) = fields.get("default").filter(|default| given.is_none() && default.is_truthy()) {
            self.checked(name, definition, default, &at.key("default"));
        }
        Some(Input {
            at: at.clone(),
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            required: is_required(definition),
            definition: fields.clone(),
            given,
        })
    }

    fn read_output(&self, name: &str, output: &Value, at: &Path) -> Option<Output> {
        let fields = output.as_map();
        let value = fields.and_then(|fields| fields.get("value")).filter(|value| !value.is_null());
        if let Some(fields) = fields {
            let keys =
                ["description", "value", "type", "mapping", "required", "default", "constraints", "entry_schema"];
            self.check_keys(&format!("The output \"{name}\""), fields, &keys, at);
        }
        let Some(value) = value else {
            self.refuse("missing-field", at, format!("The output \"{name}\" must have the field \"value\"."));
            return None;
        };
        let description = output.str_at("description").map(str::to_owned);
        Some(Output { at: at.clone(), name: name.to_owned(), description, value: value.clone() })
    }

    fn read_relationship(&self, name: &str, template: &Value, at: &Path) -> Option<Relationship> {
        let Some(fields) = template.as_map() else {
            self.refuse("wrong-shape", at, format!("The relationship template \"{name}\" must be a map."));
            return None;
        };
        let Some(type_name) = fields.get("type").and_then(Value::as_str) else {
            self.refuse("missing-field", at, format!("The template \"{name}\" must have the field \"type\"."));
            return None;
        };
        let kind = self.kind(Section::Relationship, type_name, &at.key("type"))?;
        let mut properties = Map::new();
        for (name, value) in map_at(self, fields, "properties", at).into_iter().flatten() {
            if kind.properties.contains_key(name) {
                properties.insert(name.clone(), value.clone());
            }
        }
        for (name, schema) in &kind.properties {
            if let Some(default) = schema.get("default").filter(|_| !properties.contains_key(name)) {
                properties.insert(name.clone(), default.clone());
            }
        }
        Some(Relationship {
            name: name.to_owned(),
            type_name: kind.name.clone(),
            ancestors: kind.ancestors.clone(),
            properties,
            template: fields.clone(),
        })
    }

    /// The type of a name; an unknown one is refused.
    pub(super) fn kind(&self, section: Section, name: &str, at: &Path) -> Option<Rc<Kind<'d>>> {
        let kind = self.types.find(section, name);
        if kind.is_none() {
            self.refuse("unknown-type", at, format!("No type is named \"{name}\"."));
        }
        kind
    }
}
