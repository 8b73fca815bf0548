//! A template: its version and its sections.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::StackIdentity;
use indexmap::IndexMap;
use kiln_value::{Class, Diagnostic, Map, Path, Value, text};

use crate::hint::hinted_word;
use crate::parameter::{self, HotEdition, ParameterSchema, Parameters};
use crate::version::{Dialect, Release, Version, Words};

/// The contents of the files of a template, by their names in `get_file`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(pub BTreeMap<String, String>);

impl Files {
    /// The content of a file.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// A template of one version of one language, not yet bound to parameters.
#[derive(Clone, Debug)]
pub struct Template {
    value: Arc<Value>,
    version: Version,
}

/// HOT's resource keys in the check of sections: Heat uses one table for all versions, which includes `value` of
/// outputs (`docs/heat-behaviour.md` §4).
const HOT_RESOURCE_KEYS: [&str; 10] = [
    "type",
    "properties",
    "metadata",
    "depends_on",
    "deletion_policy",
    "update_policy",
    "description",
    "external_id",
    "condition",
    "value",
];

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Map(Map::new()));

impl Template {
    /// Reads the version of a template; the sections are read on demand.
    ///
    /// Fails with `InvalidTemplateVersion`.
    pub fn from_value(value: impl Into<Arc<Value>>) -> Result<Self, Diagnostic> {
        let value = value.into();
        let version = Version::of(&value)?;
        Ok(Self { value, version })
    }

    /// The version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The release of the version.
    pub fn release(&self) -> Release {
        self.version.release
    }

    /// The keywords of its language.
    pub fn words(&self) -> &'static Words {
        self.version.release.dialect().words()
    }

    /// The template as given.
    pub fn as_value(&self) -> &Value {
        &self.value
    }

    /// The template as given, shared.
    pub fn shared(&self) -> Arc<Value> {
        Arc::clone(&self.value)
    }

    /// The template without resources and outputs: the desired state of a stack that is deleted, or whose creation is
    /// rolled back.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let mut emptied = self.clone();
        if let Some(map) = Arc::make_mut(&mut emptied.value).as_map_mut() {
            map.shift_remove(self.words().outputs);
            if let Some(resources) = map.get_mut(self.words().resources) {
                *resources = Value::Map(Map::new());
            }
        }
        emptied
    }

    /// The description, or `No description`.
    pub fn description(&self) -> String {
        match self.section(self.words().description) {
            Some(description) => text::str(description),
            None => "No description".to_owned(),
        }
    }

    /// A section, unless it is empty.
    fn section(&self, name: &str) -> Option<&Value> {
        self.value.get(name).filter(|section| section.is_truthy())
    }

    /// A section that must be a map; empty if it is missing or null.
    fn map_section(&self, name: &str) -> Result<&Map, Diagnostic> {
        let section = self.section(name).unwrap_or(&EMPTY);
        section.as_map().ok_or_else(|| {
            let kind = section.kind().python_name();
            Diagnostic::new(Class::AttributeError, format!("'{kind}' object has no attribute 'items'"))
                .at(Path::root().key(name))
        })
    }

    pub(crate) fn resources(&self) -> Result<&Map, Diagnostic> {
        self.map_section(self.words().resources)
    }

    pub(crate) fn outputs(&self) -> Result<&Map, Diagnostic> {
        self.map_section(self.words().outputs)
    }

    /// The conditions as written; `None` if the version or the template has none.
    pub(crate) fn conditions(&self) -> Option<&Value> {
        self.release().has_conditions().then(|| self.value.get(self.words().conditions)).flatten()
    }

    /// CFN's `Mappings`; empty in HOT.
    pub(crate) fn mappings(&self) -> &Value {
        match self.release().dialect() {
            Dialect::Hot => &EMPTY,
            Dialect::Cfn | Dialect::HeatCfn => self.section("Mappings").unwrap_or(&EMPTY),
        }
    }

    pub(crate) fn has_resource(&self, name: &str) -> bool {
        self.value.get(self.words().resources).is_some_and(|resources| resources.get(name).is_some())
    }

    /// The names of all resources, also those with a false condition.
    pub fn resource_names(&self) -> impl Iterator<Item = &str> {
        let resources = self.value.get(self.words().resources).and_then(Value::as_map);
        resources.into_iter().flat_map(|resources| resources.keys().map(String::as_str))
    }

    /// Checks the names of the sections and that every resource has a type.
    ///
    /// Fails with `InvalidTemplateSection` or `StackValidationFailed` (`docs/heat-behaviour.md` §4).
    pub fn validate_sections(&self) -> Result<(), Diagnostic> {
        if let Some(unknown) = self.value.as_map().and_then(|map| map.keys().find(|key| !self.has_section(key))) {
            let message = format!("The template section is invalid: {unknown}");
            let error = Diagnostic::new(Class::InvalidTemplateSection, message).at(Path::root().key(unknown.as_str()));
            let known: Vec<&str> = self.sections().chain([self.words().conditions]).collect();
            return Err(hinted_word(error, unknown, &known));
        }
        let resources = self.resources()?;
        if self.release().dialect() == Dialect::Hot {
            self.validate_hot_resources(resources)?;
        }
        resources.iter().try_for_each(|(name, resource)| {
            let message = match resource {
                Value::Map(map) if map.get(self.words().resource_type).is_some_and(Value::is_truthy) => return Ok(()),
                other if !other.is_truthy() || other.as_map().is_some() => {
                    "Each Resource must contain a Type key.".to_owned()
                }
                other => {
                    let kind = other.kind().python_name();
                    format!("Resources must contain Resource. Found a [<class '{kind}'>] instead")
                }
            };
            Err(self.invalid_resource(name, message))
        })
    }

    /// The known sections of the version.
    fn sections(&self) -> impl Iterator<Item = &'static str> {
        let words = self.words();
        let special = match self.release().dialect() {
            Dialect::Hot => ["heat_template_version", "parameter_groups"],
            Dialect::Cfn | Dialect::HeatCfn => ["AWSTemplateFormatVersion", "HeatTemplateFormatVersion"],
        };
        let mappings = (self.release().dialect() != Dialect::Hot).then_some("Mappings");
        let conditions = self.release().has_conditions().then_some(words.conditions);
        let common = [words.description, words.parameters, words.resources, words.outputs, words.moved];
        special.into_iter().chain(common).chain(mappings).chain(conditions)
    }

    fn has_section(&self, name: &str) -> bool {
        // HOT accepts the name that Heat's code uses for the mappings, which HOT does not have.
        self.sections().any(|known| known == name)
            || (name == "__undefined__" && self.release().dialect() == Dialect::Hot)
    }

    /// HOT's keyword check, in the order of the names.
    fn validate_hot_resources(&self, resources: &Map) -> Result<(), Diagnostic> {
        let mut sorted: Vec<_> = resources.iter().collect();
        sorted.sort_by_key(|(name, _)| name.as_str());
        for (name, resource) in sorted {
            let message = match resource {
                other if !other.is_truthy() => "Each resource must contain a type key.".to_owned(),
                Value::Map(map) => match map.keys().find(|key| !HOT_RESOURCE_KEYS.contains(&key.as_str())) {
                    Some(unknown) => {
                        let message = format!("\"{unknown}\" is not a valid keyword inside a resource definition");
                        let error = self.invalid_resource(name, message);
                        let at = error.path.key(unknown.as_str());
                        return Err(hinted_word(error.at(at), unknown, &HOT_RESOURCE_KEYS));
                    }
                    None if map.contains_key("type") => continue,
                    None => "Each resource must contain a type key.".to_owned(),
                },
                other => format!(
                    "\"resources\" must contain a map of resource maps. Found a [<class '{}'>] instead",
                    other.kind().python_name()
                ),
            };
            return Err(self.invalid_resource(name, message));
        }
        Ok(())
    }

    fn invalid_resource(&self, name: &str, message: String) -> Diagnostic {
        let path = Path::root().key(self.words().resources).key(name);
        Diagnostic::invalid(message).at(path)
    }

    /// The parameter schemas of the template.
    ///
    /// Fails as [`ParameterSchema::from_hot`] and [`ParameterSchema::from_cfn`].
    pub fn parameter_schemata(&self) -> Result<IndexMap<String, ParameterSchema>, Diagnostic> {
        let release = self.release();
        let edition = match (release.has_modulo(), release.has_parameter_tags()) {
            (_, true) => HotEdition::Tags,
            (true, false) => HotEdition::Modulo,
            (false, false) => HotEdition::First,
        };
        let section = self.words().parameters;
        let schema = |(name, value): (&String, &Value)| {
            let schema = match release.dialect() {
                Dialect::Hot => ParameterSchema::from_hot(name, value, edition),
                Dialect::Cfn | Dialect::HeatCfn => ParameterSchema::from_cfn(name, value),
            };
            match schema {
                Ok(schema) => Ok((name.clone(), schema)),
                Err(error) if error.path.is_root() => Err(error.at(Path::root().key(section).key(name.as_str()))),
                Err(error) => Err(error),
            }
        };
        self.map_section(section)?.iter().map(schema).collect()
    }

    /// The parameters with the values of a user and an environment; see [`Parameters::new`].
    pub fn parameters(
        &self,
        identity: Option<&StackIdentity>,
        user: &Map,
        defaults: &Map,
    ) -> Result<Parameters, Diagnostic> {
        let dialect = match self.release().dialect() {
            Dialect::Hot => parameter::Dialect::Hot,
            Dialect::Cfn | Dialect::HeatCfn => parameter::Dialect::Cfn,
        };
        Ok(Parameters::new(dialect, identity, self.parameter_schemata()?, user, defaults))
    }
}
