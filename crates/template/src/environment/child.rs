//! The environment of a nested stack.

use kiln_value::{Class, Diagnostic, Map, Value, glob};

use super::registry::{Branch, Node};
use super::{Environment, SECTIONS};

impl Environment {
    /// The environment of the nested stack of a resource.
    ///
    /// Registry, parameter defaults and event sinks are those of this environment; the parameters are `given`, which
    /// may also be an environment with sections. `without` is a template whose entry must not refer to itself.
    /// `resource_name` is the resource: registry entries for resources inside it move to the top, patterns that match
    /// it stay, and all other entries for single resources are dropped.
    ///
    /// Errors: as [`Environment::from_sections`].
    pub fn child(
        &self,
        given: Option<&Map>,
        without: Option<&str>,
        resource_name: Option<&str>,
    ) -> Result<Self, Diagnostic> {
        // As in Heat, by way of the visible environment: remembered wildcards become plain aliases.
        let mut shown = self.to_value();
        let sections = shown.as_map_mut().map(std::mem::take).unwrap_or_default();
        let mut child = Self::from_sections(&sections)?;
        child.parameters = Map::new();
        match given {
            None => {}
            Some(given) if SECTIONS.iter().any(|section| given.contains_key(*section)) => child.load(given)?,
            Some(given) => child.parameters.clone_from(given),
        }
        if let Some(name) = without {
            child.registry.root.shift_remove(name);
        }
        if let Some(name) = resource_name {
            child.registry.keep_resources_of(name);
        }
        Ok(child)
    }

    /// Creates an environment from its sections as one value.
    ///
    /// Errors: as [`Environment::from_sections`].
    pub fn from_value(value: &Value) -> Result<Self, Diagnostic> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Map(sections) => Self::from_sections(sections),
            _ => Err(Diagnostic::new(Class::ValueError, "The environment is not a valid YAML mapping data type.")),
        }
    }
}

impl super::Registry {
    fn keep_resources_of(&mut self, resource_name: &str) {
        let Some(Node::Branch(resources)) = self.root.get_mut("resources") else { return };
        let mut kept = Branch::new();
        for (pattern, node) in resources.iter() {
            if let (true, Node::Branch(below)) = (glob::matches(pattern, resource_name), node) {
                kept.extend(below.clone());
            }
        }
        // Entries for the exact name take precedence over patterns.
        if let Some(Node::Branch(own)) = resources.get(resource_name) {
            kept.extend(own.clone());
        }
        *resources = kept;
    }
}
