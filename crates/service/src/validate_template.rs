//! Validates a template and describes its parameters.

use indexmap::IndexMap;
use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft, Kind, Nesting, Sources};
use kiln_resource::{Facts, properties};
use kiln_template::Definition;
use kiln_value::{Diagnostic, Map, StackIdentity, Value};

use crate::{Error, Service, StackContent, TemplateText};

/// A valid template.
pub struct ValidatedTemplate {
    /// Its description and parameters.
    pub summary: TemplateSummary,
    /// The effective environment.
    pub environment: Value,
}

/// Description and parameters of a template.
pub struct TemplateSummary {
    /// Description.
    pub description: String,
    /// The parameters, in the format of validate calls.
    pub parameters: Map,
    /// Parameter groups, if there are any.
    pub parameter_groups: Option<Value>,
    /// The templates of nested stacks, by resource name.
    pub nested: IndexMap<String, NestedTemplate>,
}

/// The template of a nested stack.
pub struct NestedTemplate {
    /// The resource type.
    pub resource_type: String,
    /// Its description and parameters.
    pub summary: TemplateSummary,
}

impl Service {
    /// Validates a template. `nested` includes the templates of nested stacks; `ignore_availability` accepts types
    /// without a service.
    pub async fn validate_template(
        &self,
        caller: &Caller,
        template: &TemplateText,
        content: StackContent,
        nested: bool,
        ignore_availability: bool,
    ) -> Result<ValidatedTemplate, Error> {
        let sources = content.sources(template.value())?;
        let identity = StackIdentity::new(caller.project_id.clone(), "dummy", "None")?;
        let blueprint = self.build(&sources, identity, template)?;
        let availability = self.availability_of(caller, &blueprint).await;
        let availability = Some(&availability).filter(|_| !ignore_availability);
        self.validate(caller, &blueprint, template, false, availability).await?;
        let summary = self.summary(&blueprint, nested)?;
        Ok(ValidatedTemplate { summary, environment: blueprint.sources().environment.to_value() })
    }

    fn summary(&self, blueprint: &Blueprint, nested: bool) -> Result<TemplateSummary, Error> {
        let template = blueprint.bound().template();
        let has_groups = !template.parameter_groups()?.is_empty();
        let groups = || template.as_value().get("parameter_groups").cloned().unwrap_or_default();
        Ok(TemplateSummary {
            description: template.description(),
            parameters: blueprint.parameters().validate_view(),
            parameter_groups: has_groups.then(groups),
            nested: if nested { self.nested(blueprint)? } else { IndexMap::new() },
        })
    }

    /// The templates of nested stacks, recursively.
    fn nested(&self, blueprint: &Blueprint) -> Result<IndexMap<String, NestedTemplate>, Error> {
        let mut all = IndexMap::new();
        let place = Nesting { facade: None, depth: blueprint.place.depth + 1 };
        if place.depth > self.options.limits.nested_depth {
            return Ok(all);
        }
        for definition in blueprint.definitions().values() {
            let Some(sources) = inside(blueprint, definition)? else { continue };
            let (types, identity) = (&self.backends.resource_types, blueprint.identity.clone());
            let summary = self.summary(&Blueprint::build(sources, types, identity, place.clone())?, true)?;
            let resource_type = definition.resource_type.clone();
            all.insert(definition.name.clone(), NestedTemplate { resource_type, summary });
        }
        Ok(all)
    }
}

/// The sources of a resource's nested stack; for a group with one member, as Heat shows it.
pub(crate) fn inside(blueprint: &Blueprint, definition: &Definition) -> Result<Option<Sources>, Error> {
    let Some(kind) = blueprint.kind(&definition.name) else { return Ok(None) };
    if !kind.is_nested() {
        return Ok(None);
    }
    let resource_type = kind.resource_type();
    // Heat reports errors of properties as Python errors here.
    let draft = Draft::of(blueprint);
    let as_value_error = |error: Diagnostic| Diagnostic::new("ValueError", error.message.clone());
    if let Kind::Type(entry) = kind
        && entry.driver.members(&Facts::default()).is_none()
        && let Err(error) = definition.properties.resolve(&draft)
        && error.not_known_yet
    {
        // Scaling groups reject a parameter without a value, unlike template resources and resource groups.
        return Err(as_value_error(error).into());
    }
    let (given, _) = blueprint.draft_properties(definition, &draft).map_err(as_value_error)?;
    let mut properties = properties::resolve(&resource_type.properties, &given)?;
    match kind {
        Kind::Template(provider) => Ok(Some(blueprint.provider_sources(definition, provider, &properties)?)),
        Kind::Type(entry) => {
            if let Some(count) = properties.get_mut("count") {
                *count = Value::Int(1);
            }
            let facts = Facts {
                name: definition.name.clone(),
                resource_type: resource_type.name.clone(),
                properties,
                given: given.keys().cloned().collect(),
                ..Facts::default()
            };
            let wanted = blueprint.wanted_paths(&definition.name);
            let nested = match entry.driver.members(&facts) {
                // Unknown values are null and are kept.
                Some(_) => entry.driver.nested_draft(&facts, &wanted),
                None => entry.driver.nested(&facts, &wanted),
            };
            let nested = nested.transpose()?;
            Ok(nested.map(|nested| blueprint.group_sources(definition, nested)).transpose()?)
        }
    }
}
