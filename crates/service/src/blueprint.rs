//! Builds and checks the blueprint of a request.

use kiln_identity::Caller;
use kiln_plan::hidden::mask_errors;
use kiln_plan::{Blueprint, Nesting, Sources};
use kiln_template::StackIdentity;

use crate::{Error, Invalid, Service, StackContent, TemplateText};

impl Service {
    /// Reads and binds the sources, within the limit of resources of the whole tree. `strict` as in
    /// [`kiln_plan::Rules::strict`].
    pub(crate) async fn build(
        &self,
        sources: &Sources,
        identity: &StackIdentity,
        template: &TemplateText,
        strict: bool,
    ) -> Result<Blueprint, Error> {
        let types = &self.backends.resource_types;
        let blueprint = match Blueprint::build(sources.clone(), types, Some(identity.clone()), Nesting::default()) {
            Ok(blueprint) => blueprint,
            Err(error) => {
                let mut found = Blueprint::parameter_errors(sources, types, identity, strict);
                found.push(error);
                let placed = found.into_iter().map(|error| template.place(error)).collect();
                return Err(invalid(mask_errors(sources, placed)));
            }
        };
        if let Some(limit) = self.most_resources(&identity.tenant).await? {
            let own = blueprint.bound().template().resource_names().count();
            let depth = self.options.limits.nested_depth;
            if own > limit || blueprint.tree_size(&self.backends.resource_types, limit, depth) > limit {
                return Err(Error::Limit("Maximum resources per stack exceeded.".to_owned()));
            }
        }
        Ok(blueprint)
    }

    /// A new stack with its future identity, fully validated.
    pub(crate) async fn new_blueprint(
        &self,
        caller: &Caller,
        identity: StackIdentity,
        template: &TemplateText,
        content: StackContent,
    ) -> Result<Blueprint, Error> {
        let questions = content.questions.clone();
        let sources = content.sources(template.value())?;
        let sources = self.answered(caller, sources, &questions, None).await?;
        let sources = self.with_nested_templates(sources).await?;
        let blueprint = self.build(&sources, &identity, template, true).await?;
        self.accept(caller, &blueprint, template).await?;
        Ok(blueprint)
    }

    /// Rejects a blueprint that is not allowed or not valid.
    pub(crate) async fn accept(
        &self,
        caller: &Caller,
        blueprint: &Blueprint,
        template: &TemplateText,
    ) -> Result<(), Error> {
        self.allow_types(caller, blueprint)?;
        if !blueprint.bound().template().moves()?.is_empty() {
            // To such an engine, the section is invalid.
            self.refuse_older_engines_to("A template that moves resources").await?;
        }
        let availability = self.availability_of(caller, blueprint).await;
        self.validate(caller, blueprint, template, true, Some(&availability)).await
    }
}

/// The error for a non-empty list of errors.
pub(crate) fn invalid(found: Vec<kiln_value::Diagnostic>) -> Error {
    Invalid::of(found).map_or_else(|| Error::Internal("rejected without a reason".to_owned()), Error::from)
}
