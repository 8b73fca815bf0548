//! Updates a stack.

use std::collections::BTreeSet;

use kiln_identity::Caller;
use kiln_plan::Blueprint;
use kiln_resource::{Action, Converge, StackPolicy};
use kiln_stack::load;
use kiln_store::{DesiredText, Details, Planned, Stack, StackRequest};
use kiln_value::Map;

use crate::answer::Before;
use crate::{Error, Service, Settings, StackContent, TemplateText};

/// An update.
#[derive(Clone, Debug, Default)]
pub struct UpdateStack {
    /// The new template; a partial update may omit it and keep the current one.
    pub template: Option<TemplateText>,
    /// Environment and files.
    pub content: StackContent,
    /// New settings.
    pub settings: Settings,
    /// Whether parts that are not given are kept (docs/heat-behaviour.md §20.1).
    pub existing: bool,
    /// The number of the revision that stands for the present parts, with `existing`.
    pub revision: Option<String>,
    /// Parameters to reset.
    pub clear_parameters: BTreeSet<String>,
    /// The data of existing objects by the name of their new resources: they are adopted, not created.
    pub adopt: Map,
    /// The stack policy during this update, instead of that of the stack. Whoever gives one must be allowed to lift guards.
    pub stack_policy: Option<StackPolicy>,
}

/// A checked update.
pub(crate) struct CheckedUpdate {
    /// The desired state.
    pub(crate) desired: DesiredText,
    /// Settings; without tags, they are kept.
    pub(crate) settings: Settings,
    /// See [`UpdateStack::adopt`].
    pub(crate) adopt: Map,
    /// See [`UpdateStack::stack_policy`].
    pub(crate) stack_policy: Option<StackPolicy>,
}

impl UpdateStack {
    /// The settings as the request has them: without `existing`, tags that are not given are removed.
    pub(crate) fn all_settings(&self) -> Settings {
        let mut settings = self.settings.clone();
        settings.tags = settings.tags.or_else(|| (!self.existing).then(Vec::new));
        settings
    }
}

impl Service {
    /// Updates a stack. On an error the stack does not change.
    pub async fn update_stack(&self, caller: &Caller, stack: &Stack, update: UpdateStack) -> Result<Stack, Error> {
        self.allow_update(caller, stack).await?;
        let checked = self.check_update(caller, stack, update).await?;
        self.request_update(caller, stack, checked, None).await
    }

    /// Checks an update. What adopts objects is not compared with them.
    pub(crate) async fn check_update(
        &self,
        caller: &Caller,
        stack: &Stack,
        update: UpdateStack,
    ) -> Result<CheckedUpdate, Error> {
        let (settings, adopt, stack_policy) =
            (update.all_settings(), update.adopt.clone(), update.stack_policy.clone());
        settings.check_preflight(!adopt.is_empty())?;
        let blueprint = self.updated_blueprint(caller, stack, update).await?;
        self.refuse_removals(stack, &blueprint, stack_policy.as_ref()).await?;
        if let Some(converge) = settings.converge.as_ref().filter(|converge| converge.is_partial()) {
            self.refuse_older_engines_to("Comparing a part of the resources with their objects").await?;
            let is_unknown = |path: &&str| {
                let resource = path.split('/').next().unwrap_or_default();
                !blueprint.definitions().contains_key(resource)
            };
            if let Some(unknown) = converge.paths().find(is_unknown) {
                return Err(Error::NoResource { resource: unknown.to_owned(), stack: stack.name.clone() });
            }
        }
        Ok(CheckedUpdate { desired: load::accepted(&self.backends, &blueprint), settings, adopt, stack_policy })
    }

    /// Refuses an update of a stack in its state, or with types that the caller may not use.
    pub(crate) async fn allow_update(&self, caller: &Caller, stack: &Stack) -> Result<(), Error> {
        self.allow_types_of(caller, stack).await?;
        match stack.state.action {
            Action::Suspend => Err(Error::NotSupported("Updating a stack when it is suspended".to_owned())),
            Action::Delete => Err(Error::NotSupported("Updating a stack when it is deleting".to_owned())),
            _ => Ok(()),
        }
    }

    /// Stores the request of an update, and uses up its plan.
    pub(crate) async fn request_update(
        &self,
        caller: &Caller,
        stack: &Stack,
        update: CheckedUpdate,
        planned: Option<Planned>,
    ) -> Result<Stack, Error> {
        let CheckedUpdate { desired, settings, adopt, stack_policy } = update;
        let snapshot = (!adopt.is_empty()).then(|| self.data_to_adopt(stack.id, adopt.into()));
        let converge = self.converges(&settings);
        let preflight = settings.preflight && planned.is_none();
        let snapshot_id = snapshot.as_ref().map(|data| data.id);
        let details =
            Details { converge, snapshot: snapshot_id, planned, preflight, stack_policy, ..Details::default() };
        let is_planned = settings.if_version.is_some();
        let request = StackRequest {
            desired: Some(desired),
            disable_rollback: settings.disable_rollback,
            timeout_mins: settings.timeout_mins,
            tags: settings.tags,
            credentials: self.renewed_credentials(caller, stack).await?,
            details,
            snapshot,
            if_generation: Some(stack.generation),
            if_version: settings.if_version,
            ..StackRequest::new(Action::Update, self.backends.clock.now())
        };
        self.request(caller, stack, request).await.map_err(|error| match error {
            Error::Changed if is_planned => Error::StalePlan(stack.name.clone()),
            error => error,
        })
    }

    /// The resources that an update compares with their objects first.
    pub(crate) fn converges(&self, settings: &Settings) -> Converge {
        if self.options.observe_on_update {
            return Converge::all();
        }
        settings.converge.clone().unwrap_or_default()
    }

    /// The blueprint after an update, fully validated.
    pub(crate) async fn updated_blueprint(
        &self,
        caller: &Caller,
        stack: &Stack,
        update: UpdateStack,
    ) -> Result<Blueprint, Error> {
        let UpdateStack { template, content, settings, existing, revision, clear_parameters, .. } = update;
        settings.check()?;
        let (parameters, questions) = (content.parameters(), content.questions.clone());
        let current = load::blueprint(&self.backends, stack, &stack.desired).await?;
        let current = current.map_err(|error| Error::Internal(error.to_string()))?;
        let sources = if existing {
            let given = template.as_ref().map(TemplateText::value);
            let revision = match &revision {
                Some(number) => Some(self.sources_of_revision(stack, number).await?.1),
                None => None,
            };
            content.sources_over(current.sources().clone(), revision, given, &clear_parameters)?
        } else {
            content.sources(template.as_ref().ok_or(Error::NoTemplate)?.value())?
        };
        let before = Before {
            stack,
            parameters: &current.sources().environment.parameters,
            given: existing.then_some(&parameters),
        };
        let sources = self.answered(caller, sources, &questions, Some(&before)).await?;
        let sources = self.with_nested_templates(sources).await?;
        let template = template.unwrap_or_else(|| TemplateText::stored(&sources.template));
        let identity = load::identity(stack);
        let identity = identity.ok_or_else(|| Error::Internal("a stack without an identity".to_owned()))?;
        let blueprint = self.build(&sources, &identity, &template, true).await?;
        let changed = current.parameters().immutable_modified(blueprint.parameters(), &parameters);
        if !changed.is_empty() {
            return Err(Error::ImmutableParameters(changed.into_iter().map(Into::into).collect()));
        }
        self.accept(caller, &blueprint, &template).await?;
        Ok(blueprint)
    }
}
