//! The available resource types, and the operator's mappings of types.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_resource::constraint::OwnConstraints;
use kiln_resource::{AttributeSchema, Registry, ResourceType, SchedulerHints};
use kiln_template::environment::{Environment, Globals};
use kiln_template::{Files, YaqlLimits};
use kiln_value::{Diagnostic, Map, Value};

use crate::Provider;

/// The types with their drivers, the operator's environment and limits. Created once, then read-only.
pub struct ResourceTypes {
    /// The types.
    pub types: Registry,
    /// Their names, Heat's aliases, and the mappings and defaults of the operator's environment.
    pub globals: Globals,
    /// The templates that the operator's environment maps types to, by URL.
    pub files: Files,
    /// The constraints of the types and of the operator.
    pub constraints: OwnConstraints,
    /// What changes the hints for schedulers, one after the other.
    pub scheduler_hints: Vec<Arc<dyn SchedulerHints>>,
    /// The limits of YAQL expressions.
    pub yaql: YaqlLimits,
    /// Whether the cloud has a service for backups of volumes (`[volumes] backups_enabled`).
    pub backups: bool,
    /// The types of those templates.
    provided: BTreeMap<String, ResourceType>,
}

impl ResourceTypes {
    /// The types, with Heat's default aliases.
    pub fn new(types: Registry) -> Self {
        let globals = Globals::new(types.names().map(str::to_owned)).with_default_aliases();
        let constraints = OwnConstraints::of(types.finders());
        Self {
            types,
            globals,
            files: Files::default(),
            constraints,
            scheduler_hints: Vec::new(),
            yaql: YaqlLimits::default(),
            backups: true,
            provided: BTreeMap::new(),
        }
    }

    /// The values that replace defaults in templates: those of the stack over those of the operator.
    pub fn defaults(&self, environment: &Environment) -> Map {
        let mut defaults = self.globals.parameter_defaults.clone();
        defaults.extend(environment.parameter_defaults.clone());
        defaults
    }

    /// All types that are shown to users, sorted by name. A template in the operator's environment replaces the type;
    /// aliases are not included.
    pub fn shown(&self) -> impl Iterator<Item = &ResourceType> {
        let types = self.types.iter().map(|entry| &entry.resource_type);
        let all: BTreeMap<&str, &ResourceType> =
            types.chain(self.provided.values()).map(|this| (this.name.as_str(), this)).collect();
        all.into_values()
    }

    /// The type of this name as it is shown to users.
    pub fn shown_as(&self, name: &str) -> Option<&ResourceType> {
        self.provided.get(name).or_else(|| Some(&self.types.get(name)?.resource_type))
    }

    /// Adds the text of a template that the operator's environment maps types to.
    ///
    /// # Errors
    /// Errors in the text. It is added anyway, so that stacks that use it report the error.
    pub fn provide(&mut self, url: &str, text: String) -> Result<(), Diagnostic> {
        let names: Vec<String> =
            self.globals.templates().filter(|(_, found)| *found == url).map(|(name, _)| name.to_owned()).collect();
        let read: Result<Vec<ResourceType>, Diagnostic> =
            names.iter().map(|name| Ok(shown(Provider::new(url, name, &text)?))).collect();
        self.files.0.insert(url.to_owned(), text);
        self.provided.extend(read?.into_iter().map(|this| (this.name.clone(), this)));
        Ok(())
    }

    /// Adds an environment file of the operator (`environment_dir`).
    ///
    /// # Errors
    /// Errors in the text.
    pub fn load(&mut self, text: &str) -> Result<(), Diagnostic> {
        self.globals.load(text)
    }
}

/// The type of a template as it is shown to users: with its description, and its outputs as attributes.
fn shown(provider: Provider) -> ResourceType {
    let Provider { mut resource_type, template, .. } = provider;
    resource_type.class.clone_from(&resource_type.name);
    resource_type.summary = template.description();
    let outputs = template.as_value().get(template.words().outputs).and_then(Value::as_map);
    for (name, output) in outputs.into_iter().flatten() {
        let description = output.str_at(template.words().description).map(str::to_owned);
        resource_type.attributes.insert(name.clone(), AttributeSchema { description, ..AttributeSchema::default() });
    }
    resource_type
}

impl std::fmt::Debug for ResourceTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResourceTypes of {} types", self.types.names().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_the_operator_are_types() {
        let types = Registry::build(["A::Server", "B::Net"].map(ResourceType::new), |_| None);
        let mut catalog = ResourceTypes::new(types);
        catalog
            .load("resource_registry: {'A::Server': 'file:///s.yaml', 'C::Pair': 'file:///s.yaml', 'D::*': 'A::*'}")
            .unwrap();
        let template = "heat_template_version: 2018-08-31\ndescription: A pair.\nparameters: {size: {type: number}}\n\
                        outputs: {both: {description: Both., value: 1}}\n";
        catalog.provide("file:///s.yaml", template.to_owned()).unwrap();
        let names: Vec<&str> = catalog.shown().map(|this| this.name.as_str()).collect();
        assert_eq!(names, ["A::Server", "B::Net", "C::Pair"]);
        for name in ["A::Server", "C::Pair"] {
            let this = catalog.shown_as(name).unwrap();
            assert_eq!((this.summary.as_str(), this.class.as_str()), ("A pair.", name));
            assert!(this.properties["size"].required);
            assert_eq!(this.attributes["both"].description.as_deref(), Some("Both."));
        }
        assert!(catalog.shown_as("B::Net").unwrap().properties.is_empty());
        assert!(catalog.shown_as("D::Net").is_none());

        catalog.load("resource_registry: {'E::Broken': 'file:///e.yaml'}").unwrap();
        assert!(catalog.provide("file:///e.yaml", "heat_template_version: 1999-01-01\n".to_owned()).is_err());
        assert!(catalog.shown_as("E::Broken").is_none() && catalog.files.get("file:///e.yaml").is_some());
    }
}
