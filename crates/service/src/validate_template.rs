//! Tells whether a template may be used, and what it asks for.

use kiln_identity::Caller;
use kiln_plan::TemplateSummary;
use kiln_value::{StackIdentity, Value};

use crate::{Error, Service, StackContent, TemplateText};

/// A template that may be used.
pub struct ValidatedTemplate {
    /// What it asks for.
    pub summary: TemplateSummary,
    /// The environment in force.
    pub environment: Value,
}

impl Service {
    /// Tells whether a template may be used. With `nested` also what the templates in it ask for; with
    /// `ignore_availability` types without a service are right.
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
        let depth = nested.then_some(self.options.limits.nested_depth);
        let summary = blueprint.summary(&self.backends.resource_types, depth)?;
        Ok(ValidatedTemplate { summary, environment: blueprint.sources().environment.to_value() })
    }
}
