//! Validates a template and describes its parameters.

use std::collections::{BTreeMap, BTreeSet};

use kiln_identity::Caller;
use kiln_plan::TemplateSummary;
use kiln_template::StackIdentity;
use kiln_value::Value;

use crate::import::importable;
use crate::{Error, Service, StackContent, TemplateText};

/// A valid template.
pub struct ValidatedTemplate {
    /// Its description and parameters.
    pub summary: TemplateSummary,
    /// The types of its resources.
    pub resource_types: BTreeSet<String>,
    /// The resources that can be imported, by type.
    pub importable: BTreeMap<String, Vec<String>>,
    /// The effective environment.
    pub environment: Value,
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
        let blueprint = self.build(&sources, &identity, template, false).await?;
        let availability = self.availability_of(caller, &blueprint).await;
        let availability = Some(&availability).filter(|_| !ignore_availability);
        self.validate(caller, &blueprint, template, false, availability).await?;
        let depth = nested.then_some(self.options.limits.nested_depth);
        let summary = blueprint.summary(&self.backends.resource_types, depth)?;
        let resource_types = blueprint.definitions().values().map(|one| one.resource_type.clone()).collect();
        let (importable, environment) = (importable(&blueprint), blueprint.sources().environment.to_value());
        Ok(ValidatedTemplate { summary, resource_types, importable, environment })
    }
}
