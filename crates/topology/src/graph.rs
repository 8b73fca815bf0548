//! The model that all languages are read into: nodes with requirements, capabilities, operations, policies and groups.

use std::sync::Arc;

use kiln_value::{Map, Path, Value};

use crate::type_file::TypeFiles;

/// A service: what a blueprint, a plan or a service template describes.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The file, if it is not the one that was given.
    pub file: Option<String>,
    /// The version of the language, as written; `None` for nested topologies and blueprints.
    pub version: Option<String>,
    /// The types that nodes may be of besides those of the languages, with what they become.
    pub types: Arc<TypeFiles>,
    /// The text for people.
    pub description: Option<String>,
    /// Values that a user may give.
    pub inputs: Vec<Input>,
    /// The countries that it may be deployed to, and the place that says so: codes of ISO 3166-1 with capital letters.
    pub jurisdiction: Option<(Path, Vec<String>)>,
    /// The nodes, in the order of the document.
    pub nodes: Vec<Node>,
    /// Relationships that requirements name.
    pub relationships: Vec<Relationship>,
    /// Values for users.
    pub outputs: Vec<Output>,
    /// Sets of nodes.
    pub groups: Vec<Group>,
    /// Rules for nodes and groups.
    pub policies: Vec<Policy>,
    /// What the topology stands for, as written.
    pub substitution: Option<Map>,
    /// Topologies that substitute nodes, with the name of the node.
    pub nested: Vec<Nested>,
}

/// A topology that substitutes a node.
#[derive(Clone, Debug)]
pub struct Nested {
    /// The node.
    pub node: String,
    /// The topology.
    pub graph: Graph,
}

/// An input.
#[derive(Clone, Debug)]
pub struct Input {
    /// The place in the document.
    pub at: Path,
    /// Its name.
    pub name: String,
    /// The type, as written.
    pub type_name: String,
    /// Whether a value is required.
    pub required: bool,
    /// The definition, as written.
    pub definition: Map,
    /// The value that was given.
    pub given: Option<Value>,
}

impl Input {
    /// The value that was given, or the default.
    pub fn value(&self) -> Option<&Value> {
        self.given.as_ref().or_else(|| self.definition.get("default"))
    }
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The place in the document.
    pub at: Path,
    /// Its name.
    pub name: String,
    /// The full name of the type.
    pub type_name: String,
    /// The parent of the type, its parent, and so on.
    pub ancestors: Vec<String>,
    /// The properties with the defaults of the type, checked; sizes have the form `10 GB`.
    pub properties: Map,
    /// The requirements, as written.
    pub requirements: Option<Value>,
    /// The nodes that requirements name.
    pub targets: Vec<Target>,
    /// The capabilities with the defaults of their types.
    pub capabilities: Vec<Capability>,
    /// The operations of its interfaces, in the order of the document.
    pub operations: Vec<Operation>,
    /// The operations that its type implements and the node does not.
    pub type_operations: Vec<Operation>,
    /// The artifacts, as written.
    pub artifacts: Option<Map>,
    /// The artifacts of its type.
    pub type_artifacts: Map,
    /// The attributes that the type has.
    pub attributes: Vec<String>,
    /// The node, as written.
    pub template: Map,
    /// What it is, if it exists already.
    pub exists: Option<Exists>,
}

/// A resource of another stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exists {
    /// The name of the stack.
    pub stack: String,
    /// The name of the resource.
    pub resource: String,
}

impl Node {
    /// Whether the type is `name` or derived from it.
    pub fn is_a(&self, name: &str) -> bool {
        self.type_name == name || self.ancestors.iter().any(|ancestor| ancestor == name)
    }

    /// Its operations and those of its type.
    pub fn all_operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().chain(&self.type_operations)
    }

    /// An artifact of the node or of its type.
    pub fn artifact(&self, name: &str) -> Option<&Value> {
        self.artifacts.as_ref().and_then(|artifacts| artifacts.get(name)).or_else(|| self.type_artifacts.get(name))
    }

    /// The capability of this name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.name == name)
    }
}

/// A requirement that names a node.
#[derive(Clone, Debug)]
pub struct Target {
    /// The place in the document.
    pub at: Path,
    /// The requirement.
    pub requirement: String,
    /// The node that fulfils it.
    pub node: String,
    /// The type of the relationship.
    pub relationship: Option<String>,
    /// The parents of the type of the relationship.
    pub ancestors: Vec<String>,
    /// The properties of the relationship, as written.
    pub properties: Map,
    /// The operations of the relationship.
    pub operations: Vec<Operation>,
}

impl Target {
    /// Whether the relationship is of the type `name` or derived from it.
    pub fn is_a(&self, name: &str) -> bool {
        self.relationship.as_deref() == Some(name) || self.ancestors.iter().any(|ancestor| ancestor == name)
    }
}

/// A capability of a node.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// The full name of the type.
    pub type_name: String,
    /// The properties with the defaults of the type, as written.
    pub properties: Map,
}

/// An operation of an interface.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The place in the document.
    pub at: Path,
    /// The interface, as written.
    pub interface: String,
    /// The operation.
    pub name: String,
    /// A file, the name of an artifact, or a map with `primary` and `dependencies`.
    pub implementation: Option<Value>,
    /// The inputs, as written.
    pub inputs: Map,
}

/// A relationship template.
#[derive(Clone, Debug)]
pub struct Relationship {
    /// Its name.
    pub name: String,
    /// The type, as written.
    pub type_name: String,
    /// The parents of the type.
    pub ancestors: Vec<String>,
    /// The properties with the defaults of the type, as written.
    pub properties: Map,
    /// The template, as written.
    pub template: Map,
}

/// An output.
#[derive(Clone, Debug)]
pub struct Output {
    /// The place in the document.
    pub at: Path,
    /// Its name.
    pub name: String,
    /// The text for people.
    pub description: Option<String>,
    /// The value, as written.
    pub value: Value,
}

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The type.
    pub type_name: String,
    /// The nodes.
    pub members: Vec<String>,
    /// The properties, as written.
    pub properties: Map,
}

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The place in the document.
    pub at: Path,
    /// Its name.
    pub name: String,
    /// The type.
    pub type_name: String,
    /// The parents of the type.
    pub ancestors: Vec<String>,
    /// Nodes or groups.
    pub targets: Vec<String>,
    /// Whether the targets are groups.
    pub of_groups: bool,
    /// The properties, as written.
    pub properties: Option<Map>,
    /// The properties with the defaults of the type, checked.
    pub values: Map,
    /// The triggers, as written.
    pub triggers: Map,
    /// The policy, as written.
    pub template: Map,
}

impl Policy {
    /// Whether the type is `name` or derived from it.
    pub fn is_a(&self, name: &str) -> bool {
        self.type_name == name || self.ancestors.iter().any(|ancestor| ancestor == name)
    }
}
