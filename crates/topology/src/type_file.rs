//! Type files: types of nodes that Kiln ships as data, and that operators, users and packages add, one a file.
//!
//! `docs/topology-types.md` describes the format. A type has a definition as in TOSCA, and the HOT that its nodes become
//! in the words of `topology-types/tosca/hot.yaml`; blueprints, CAMP plans and service templates use it alike.

mod check;
mod expression;
mod format;
mod set;

use kiln_value::{Map, Value};

pub(crate) use expression::{Names, WORDS};
pub use format::is_type_file;
pub(crate) use format::keys_at;
pub use set::TypeFiles;

/// Operations of type files: the implementation of such an operation is a map with this key.
pub(crate) const BY_TYPE: &str = "operation of the type";

/// The key that each type file begins with.
pub const NAME: &str = "topology_type";

/// A type that is defined in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeFile {
    /// The full name.
    pub name: String,
    /// The file, for errors.
    pub file: String,
    /// The text for people.
    pub description: Option<String>,
    /// Whether it takes the place of a type with this name.
    pub replaces: bool,
    /// As a node type of TOSCA.
    pub(crate) definition: Value,
    /// What it becomes; empty: what its parent becomes.
    pub(crate) hot: Map,
    /// As a component type of blueprints: `aliases`, `tags`, `derived_from`, `requires`, `default_requirement`.
    pub(crate) component: Map,
}

impl TypeFile {
    /// The parent.
    pub fn parent(&self) -> &str {
        self.definition.str_at("derived_from").unwrap_or_default()
    }

    /// The definitions of the properties that it adds to those of its parent.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.definition.get("properties").and_then(Value::as_map).into_iter().flatten()
    }

    /// The operations that it implements.
    pub fn operations(&self) -> impl Iterator<Item = &String> {
        self.hot.get("operations").and_then(Value::as_map).into_iter().flat_map(Map::keys)
    }

    /// The resources that a node becomes: the suffix of the name, and the resource in the words of the file.
    pub fn resources(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.hot.get("resources").and_then(Value::as_map).into_iter().flatten()
    }
}
