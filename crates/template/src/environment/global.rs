//! The base of all environments: the available types and the operator's environment.

use std::collections::BTreeSet;

use kiln_value::{Diagnostic, Map};

use super::registry::{EntryKind, Node};
use super::{Registry, parse};

/// The built-in aliases of Heat (docs/heat-behaviour.md §12.1).
const DEFAULT_ALIASES: [(&str, &str); 7] = [
    ("OS::Quantum*", "OS::Neutron*"),
    ("OS::Metering::Alarm", "OS::Aodh::Alarm"),
    ("OS::Ceilometer::Alarm", "OS::Aodh::Alarm"),
    ("OS::Ceilometer::GnocchiResourcesAlarm", "OS::Aodh::GnocchiResourcesAlarm"),
    ("OS::Ceilometer::GnocchiAggregationByMetricsAlarm", "OS::Aodh::GnocchiAggregationByMetricsAlarm"),
    ("OS::Ceilometer::GnocchiAggregationByResourcesAlarm", "OS::Aodh::GnocchiAggregationByResourcesAlarm"),
    ("OS::Ceilometer::CombinationAlarm", "OS::Aodh::CombinationAlarm"),
];

/// The available types, and the aliases that apply to every stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Globals {
    types: BTreeSet<String>,
    pub(super) registry: Registry,
    /// The `parameter_defaults` of the operator's environment.
    pub parameter_defaults: Map,
    /// The `parameters` of the operator's environment.
    pub parameters: Map,
}

impl Globals {
    /// The given types, without aliases.
    pub fn new(types: impl IntoIterator<Item = String>) -> Self {
        Self { types: types.into_iter().collect(), ..Self::default() }
    }

    /// Adds the built-in aliases of Heat.
    #[must_use]
    pub fn with_default_aliases(mut self) -> Self {
        let aliases: Map = DEFAULT_ALIASES.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let loaded = self.registry.load(&aliases);
        debug_assert!(loaded.is_ok(), "the aliases are valid");
        self
    }

    /// Adds an environment file of the operator (from `environment_dir`).
    ///
    /// Errors: as [`parse`] and [`Registry::load`].
    pub fn load(&mut self, text: &str) -> Result<(), Diagnostic> {
        let environment = super::Environment::from_sections(&with_parameters(parse(text)?))?;
        for (key, node) in environment.registry.root {
            match (self.registry.root.get_mut(&key), node) {
                // The `resources` of several files are merged.
                (Some(Node::Branch(own)), Node::Branch(new)) => own.extend(new),
                (_, node) => _ = self.registry.root.insert(key, node),
            }
        }
        self.parameters.extend(environment.parameters);
        self.parameter_defaults.extend(environment.parameter_defaults);
        Ok(())
    }

    /// The operator's environment, as written in environments.
    pub fn to_value(&self) -> Map {
        Map::from_iter([
            ("resource_registry".to_owned(), self.registry.to_value()),
            ("parameters".to_owned(), self.parameters.clone().into()),
            ("parameter_defaults".to_owned(), self.parameter_defaults.clone().into()),
        ])
    }

    /// The types that are mapped to templates, with the URLs of the templates.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.registry.root.iter().filter_map(|(name, node)| match node {
            Node::RegistryEntry(entry) if entry.kind == EntryKind::Template => {
                Some((name.as_str(), entry.value.as_str()))
            }
            _ => None,
        })
    }

    /// Whether the type exists.
    pub fn has_type(&self, name: &str) -> bool {
        self.types.contains(name)
    }

    /// The available types.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.types.iter().map(String::as_str)
    }
}

/// Adds an empty `parameters` section if the file has none, so that other keys are not read as parameters.
fn with_parameters(mut sections: Map) -> Map {
    super::fill(&mut sections);
    sections
}
