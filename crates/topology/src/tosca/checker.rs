//! Nodes and definitions that are not part of a service template: those of type files and blueprints.

use kiln_value::{Map, Path, Value, value};

use super::reader::Reader;
use super::types::{Section, Types};
use crate::Refusal;
use crate::graph::Node;

/// Simple types of properties, besides data types.
const SIMPLE: [&str; 16] = [
    "string",
    "integer",
    "float",
    "number",
    "boolean",
    "range",
    "timestamp",
    "version",
    "list",
    "map",
    "json",
    "xml",
    "scalar-unit.size",
    "scalar-unit.time",
    "scalar-unit.frequency",
    "scalar-unit.bitrate",
];

/// Checks definitions and nodes against types.
pub(crate) struct TypeChecker<'d> {
    types: &'d Types<'d>,
    found: std::cell::RefCell<Vec<Refusal>>,
}

/// What a type has, with everything that it inherits.
pub(crate) struct Names {
    /// The type, its parent, and so on.
    pub(crate) line: Vec<String>,
    pub(crate) properties: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) requirements: Vec<String>,
}

impl<'d> TypeChecker<'d> {
    pub(crate) fn new(types: &'d Types<'d>) -> Self {
        Self { types, found: std::cell::RefCell::default() }
    }

    /// Whether a type exists.
    pub(crate) fn has(&self, section: Section, name: &str) -> bool {
        self.types.find(section, name).is_some()
    }

    /// Whether a type of nodes is `ancestor` or derived from it.
    pub(crate) fn is_a(&self, name: &str, ancestor: &str) -> bool {
        self.types.find(Section::Node, name).is_some_and(|kind| kind.is_a(ancestor))
    }

    /// The type of a relationship and its parents.
    pub(crate) fn relationship(&self, name: &str) -> Option<(String, Vec<String>)> {
        let kind = self.types.find(Section::Relationship, name)?;
        Some((kind.name.clone(), kind.ancestors.clone()))
    }

    /// What a type of nodes has.
    pub(crate) fn names(&self, name: &str) -> Option<Names> {
        let kind = self.types.find(Section::Node, name)?;
        Some(Names {
            line: std::iter::once(&kind.name).chain(&kind.ancestors).cloned().collect(),
            properties: kind.properties.keys().cloned().collect(),
            capabilities: kind.capabilities.keys().cloned().collect(),
            requirements: kind.requirements.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// The names of all types that describe this.
    pub(crate) fn all(&self, section: Section) -> Vec<String> {
        self.types.names(section)
    }

    /// The properties of a type with their definitions.
    pub(crate) fn properties(&self, section: Section, name: &str) -> Vec<(String, Value)> {
        let kind = self.types.find(section, name);
        let properties = kind.iter().flat_map(|kind| &kind.properties);
        properties.map(|(name, definition)| (name.clone(), (*definition).clone())).collect()
    }

    /// The type of a capability of a type of nodes.
    pub(crate) fn capability_type(&self, name: &str, capability: &str) -> Option<String> {
        let kind = self.types.find(Section::Node, name)?;
        let definition = kind.capabilities.get(capability)?;
        definition.as_str().or_else(|| definition.str_at("type")).map(str::to_owned)
    }

    /// The description of a type of nodes.
    pub(crate) fn description(&self, name: &str) -> Option<String> {
        let kind = self.types.find(Section::Node, name)?;
        kind.line.first()?.get("description")?.as_str().map(str::to_owned)
    }

    /// The requirements of a type with their definitions; those of parents are behind its own.
    pub(crate) fn requirements(&self, name: &str) -> Vec<(String, Value)> {
        let kind = self.types.find(Section::Node, name);
        kind.map(|kind| kind.requirements.iter().map(|(name, of)| (name.clone(), (*of).clone())).collect())
            .unwrap_or_default()
    }

    /// Checks the definition of a property: its type, its constraints, and its default.
    pub(crate) fn check_schema(&self, name: &str, schema: &Value, at: &Path) {
        let reader = Reader::new(self.types, None, Map::new());
        let mut part = Some(schema);
        while let Some(of) = part {
            match of.as_str().or_else(|| of.str_at("type")) {
                Some(kind) if !SIMPLE.contains(&kind) && !self.has(Section::Data, kind) => {
                    reader.refuse("unknown-type", at, format!("No type of values is named {kind}."));
                }
                Some(_) => {}
                None => reader.refuse("bad-schema", at, format!("The definition of {name} must have a type.")),
            }
            part = of.get("entry_schema").filter(|entry| !entry.is_null());
        }
        match schema.get("default").filter(|default| !default.is_null()) {
            Some(default) => drop(reader.checked(name, schema, default, &at.key("default"))),
            // Operators of constraints are checked with any value.
            None => reader.check_operators(name, schema, &at.key("constraints")),
        }
        self.found.borrow_mut().extend(reader.into_refusals());
    }

    /// A node of a type with these properties, at a place of a blueprint.
    pub(crate) fn node(&self, name: &str, type_name: &str, properties: Map, at: &Path) -> Option<Node> {
        let reader = Reader::new(self.types, None, Map::new());
        let template = value!({"type": type_name, "properties": (Value::Map(properties))});
        let node = reader.read_node(name, &template, at).map(|(node, _)| node);
        // Attributes of components have no key of their own.
        let inside = at.key("properties");
        let found = reader.into_refusals().into_iter().map(|mut refusal| {
            if refusal.at.0.len() >= inside.0.len() && refusal.at.0[..inside.0.len()] == inside.0[..] {
                refusal.at.0.remove(at.0.len());
            }
            refusal
        });
        self.found.borrow_mut().extend(found);
        node
    }

    /// The errors that were found, also those in definitions.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let mut all = self.found.take();
        all.extend(self.types.refusals.take());
        all
    }
}
