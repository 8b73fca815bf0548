//! The environment of a nested stack.

use kiln_value::{Diagnostic, Map, Value};

use super::registry::{Branch, Node};
use super::{Environment, SECTIONS, glob};

impl Environment {
    /// The environment of the nested stack that a resource stands for.
    ///
    /// Registry, parameter defaults and event sinks are this environment's; the parameters are `given`, which may be a
    /// whole environment of sections too. `without` is the template whose entry must not lead into itself.
    /// `resource_name` is the resource: what the registry says of resources inside of it comes to the top, patterns
    /// that match it stay, everything else said of single resources goes.
    ///
    /// Errors: as [`Environment::from_sections`].
    pub fn child(
        &self,
        given: Option<&Map>,
        without: Option<&str>,
        resource_name: Option<&str>,
    ) -> Result<Self, Diagnostic> {
        // As Heat does, by way of what the environment shows: what was remembered of wildcards becomes plain aliases.
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

    /// The same environment with other sections for a request that only knows maps.
    ///
    /// Errors: as [`Environment::from_sections`].
    pub fn from_value(value: &Value) -> Result<Self, Diagnostic> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Map(sections) => Self::from_sections(sections),
            _ => Err(Diagnostic::new("ValueError", "The environment is not a valid YAML mapping data type.")),
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
        // What is said under the very name goes before what patterns say.
        if let Some(Node::Branch(own)) = resources.get(resource_name) {
            kept.extend(own.clone());
        }
        *resources = kept;
    }
}
